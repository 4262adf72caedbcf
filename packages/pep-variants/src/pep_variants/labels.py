"""Variant labels: their grammar, and where they stand in a wheel filename (PEP 825).

Imports nothing heavy: clients look at every filename of an index with this module before they know
whether there are variants at all.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from .errors import InvalidLabel, shortened
from .limits import FILENAME_CHARACTERS, LABEL_LENGTH

__all__ = [
    "LABEL", "METADATA_SUFFIX", "NULL_LABEL", "ORIGIN_FILE", "VARIANT_FILE", "ZERO_LABEL",
    "check_label", "filename_of_url", "split_label", "tag_count",
]  # fmt: skip

NULL_LABEL = "null"
"""Label of the null variant: zero properties, always compatible."""

ZERO_LABEL = "00000000"
"""How format 0.0.1 spells the null label, in metadata and in filenames."""

_CHARACTERS = frozenset("0123456789_.abcdefghijklmnopqrstuvwxyz")
LABEL = re.compile(rf"[0-9a-z_.]{{1,{LABEL_LENGTH}}}")

METADATA_SUFFIX = "-variants.json"
"""How the name of the index-level metadata file of a version ends."""

VARIANT_FILE = "variant.json"
"""Name of the variant metadata inside the dist-info folder."""

ORIGIN_FILE = "variant_origin.json"
"""Name of the record beside it of what a wheel was before it got the name of its project."""


def check_label(label: str) -> str:
    """Return *label* if it is well-formed.

    Raises:
        InvalidLabel: it is empty, too long or has other characters than ``0-9 a-z _ .``.

    >>> from pep_variants.labels import check_label
    >>> check_label("cu128")
    'cu128'
    """
    if not _is_label(label):
        raise InvalidLabel(
            f"{shortened(label)} is not a valid variant label: it must match {LABEL.pattern}"
        )
    return label


def split_label(filename: str) -> tuple[str, str | None]:
    """Split *filename* into the plain wheel filename and the label.

    Names other than labelled wheel filenames, malformed and too long ones included, come back as
    they are with None: the parser of wheel filenames reports them.

    >>> from pep_variants.labels import split_label
    >>> split_label("torch-2.8.0-cp313-cp313-linux_x86_64-cu128.whl")
    ('torch-2.8.0-cp313-cp313-linux_x86_64.whl', 'cu128')
    >>> split_label("torch-2.8.0-cp313-cp313-linux_x86_64.whl")
    ('torch-2.8.0-cp313-cp313-linux_x86_64.whl', None)
    """
    if not filename.endswith(".whl") or len(filename) > FILENAME_CHARACTERS:
        return filename, None
    dashes = filename.count("-")
    if dashes not in (5, 6):
        return filename, None
    # The third part is a build tag, which starts with a digit, or the python tag, which does not:
    # of seven parts it has to be the one, of six with a label the other.
    if filename.split("-", 3)[2][:1].isdigit() is not (dashes == 6):
        return filename, None
    plain, _, last = filename[:-4].rpartition("-")
    if not _is_label(last):
        return filename, None
    return f"{plain}.whl", last


def _is_label(text: str) -> bool:
    """Return whether `LABEL` matches all of *text*."""
    return 0 < len(text) <= LABEL_LENGTH and _CHARACTERS.issuperset(text)


def filename_of_url(url: str) -> str:
    """Return the last component of the path of *url*, percent-decoded; empty without one.

    Some mirrors encode the plus sign of a local version twice.

    Raises:
        ValueError: *url* cannot be parsed.

    >>> from pep_variants.labels import filename_of_url
    >>> filename_of_url("https://host.example/torch-2.8.0%2Bcu128-py3-none-any.whl?token=1")
    'torch-2.8.0+cu128-py3-none-any.whl'
    """
    filename = unquote(urlsplit(url).path.rpartition("/")[2])
    return filename.replace("%2B", "+").replace("%2b", "+") if "%2" in filename else filename


def tag_count(filename: str) -> int:
    """Return how many compatibility tags the filename of a wheel stands for, 0 for no wheel.

    A compressed set stands for every combination of its parts, each an object of `packaging`.

    >>> from pep_variants.labels import tag_count
    >>> tag_count("six-1.17.0-py2.py3-none-any.whl")
    2
    """
    parts = split_label(filename)[0].rsplit("-", 3)
    if len(parts) < 4 or not filename.endswith(".whl"):
        return 0
    _, python, abi, platform = parts
    return (python.count(".") + 1) * (abi.count(".") + 1) * platform.count(".")

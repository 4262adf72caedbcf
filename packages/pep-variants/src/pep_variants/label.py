"""Variant labels: their grammar, and where they stand in a wheel filename (PEP 825).

Imports nothing heavy: clients look at every filename of an index with this module before they know
whether there are variants at all.
"""

from __future__ import annotations

import re

from .errors import InvalidLabel, shortened

NULL_LABEL = "null"
"""Label of the null variant: zero properties, always compatible."""

ZERO_LABEL = "00000000"
"""How format 0.0.1 spells the null label, in metadata and in filenames."""

LABEL = re.compile(r"[0-9a-z_.]+")

METADATA_SUFFIX = "-variants.json"
"""How the name of the index-level metadata file of a version ends."""

VARIANT_FILE = "variant.json"
"""Name of the variant metadata inside the dist-info folder."""


def check_label(label: str) -> str:
    """Return *label* if it is well-formed.

    Raises:
        InvalidLabel: it is empty or has other characters than ``0-9 a-z _ .``.
    """
    if not LABEL.fullmatch(label):
        raise InvalidLabel(f"{shortened(label)} is no variant label: it must match {LABEL.pattern}")
    return label


def split_label(filename: str) -> tuple[str, str | None]:
    """Split *filename* into the plain wheel filename and the label.

    Cheap and without opinion: names that are no labelled wheel filenames, broken ones included,
    come back as they are with None, for whoever parses wheel filenames to judge.
    """
    if not filename.endswith(".whl"):
        return filename, None
    dashes = filename.count("-")
    if dashes not in (5, 6):
        return filename, None
    # The third part is a build tag, which starts with a digit, or the python tag, which does not:
    # of seven parts it has to be the one, of six with a label the other.
    if filename.split("-", 3)[2][:1].isdigit() is not (dashes == 6):
        return filename, None
    plain, _, last = filename[:-4].rpartition("-")
    if not LABEL.fullmatch(last):
        return filename, None
    return f"{plain}.whl", last

"""Names of variant wheels on in-place pages: the label is in the build tag, and in the URL.

``torch-2.9.0-cp313-cp313-linux_x86_64-cu128.whl`` is listed as
``.variant/cu128/torch-2.9.0-0_cu128-cp313-cp313-linux_x86_64.whl``: a name that every installer
parses, that differs from those of other variants in caches, and that tells a reader of a lock file
the label. A wheel's own build tag stays in front: ``2`` becomes ``2_cu128``.

One module has the rule in both directions; nothing heavy is imported, for readers of lock files.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from pep_variants import labels as wheel_labels

FOLDER = ".variant"
"""Folder of a project page with the files that are not the upstream's."""

UNLABELLED = "-"
"""Folder of wheels without label whose variant markers are evaluated."""

REFUSED = "no-variant-fits"
"""Folder of files that are listed though they do not fit, see `Offer.refused`; not a label."""

_ESCAPE = "~"
_RESERVED = (".", "..")
_ZEROS = re.compile(r"0*")
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


def encoded_name(plain: str, label: str) -> str:
    """Return the name of the variant wheel with the plain filename *plain* and *label*."""
    build, parts = _split(plain)
    # "0" stands for no build tag, so builds of zeros get one more.
    number = f"0{build}" if _ZEROS.fullmatch(build) else build
    return "-".join((*parts[:2], f"{number}_{label}", *parts[2:]))


def decoded_name(name: str, label: str) -> str | None:
    """Return the plain filename that `encoded_name` made *name* of, None if it did not."""
    build, parts = _split(name)
    suffix = f"_{label}"
    number = build.removesuffix(suffix)
    if len(parts) != 5 or number == build or not number[:1].isdigit():
        return None
    if _ZEROS.fullmatch(number):
        number = number[1:]
    return "-".join((*parts[:2], *((number,) if number else ()), *parts[2:]))


def label_folder(label: str) -> str:
    """Return the name of the folder for *label*; `label_in_folder` is its inverse."""
    return f"{_ESCAPE}{label}" if label in _RESERVED else label


def label_in_folder(folder: str) -> str | None:
    """Return the label that the name of a folder stands for, None if it stands for none."""
    label = folder.removeprefix(_ESCAPE)
    if not wheel_labels.LABEL.fullmatch(label) or label_folder(label) != folder:
        return None
    return label


def variant_path(label: str | None, plain: str) -> str:
    """Return the URL of a wheel relative to its page; without *label* its markers are evaluated."""
    return variant_place(label, plain)[1]


def variant_place(label: str | None, plain: str) -> tuple[str, str]:
    """Return name and URL (see `variant_path`) of a wheel."""
    name = plain if label is None else encoded_name(plain, label)
    folder = UNLABELLED if label is None else label_folder(label)
    return name, f"{FOLDER}/{folder}/{_quoted(name)}"


def folder_path(label: str, name: str) -> str:
    """Return the URL, relative to the page, of a file *name* in the folder of *label*."""
    return f"{FOLDER}/{label_folder(label)}/{_quoted(name)}"


def wheel_at(url: str) -> tuple[str | None, str] | None:
    """Return label and plain filename of the wheel at *url*, absolute or relative to its page.

    The label is None for wheels without label. None for every other URL than those of
    `variant_path`.

    >>> from variants_proxy.urls import wheel_at
    >>> wheel_at(".variant/cu128/tool-1.0-1_cu128-py3-none-any.whl")
    ('cu128', 'tool-1.0-1-py3-none-any.whl')
    >>> wheel_at("https://host.example/files/tool-1.0-py3-none-any.whl")
    """
    folder, _, rest = urlsplit(url).path.rpartition("/")
    above, _, folder = folder.rpartition("/")
    name = unquote(rest)
    if above.rpartition("/")[2] != FOLDER or not name.endswith(".whl"):
        return None
    if folder == UNLABELLED:
        return None, name
    label = label_in_folder(folder)
    plain = None if label is None else decoded_name(name, label)
    return None if plain is None else (label, plain)


def _split(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the build tag in *name*, empty without one, and the other parts."""
    parts = tuple(name.split("-"))
    if len(parts) == 6 and parts[2][:1].isdigit():
        return parts[2], (*parts[:2], *parts[3:])
    return "", parts


def _quoted(name: str) -> str:
    return name if _SAFE.fullmatch(name) else quote(name)

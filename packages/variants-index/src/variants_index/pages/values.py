"""Values of pages, in JSON and HTML alike: they are not trusted, and checked one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pep_variants import limits
from pep_variants.errors import redacted, shortened

from ..errors import InvalidPage
from .page import PageFile

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f/\\\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def text_of(value: object) -> str | None:
    """Return *value* if it is text, with surrogates replaced; None otherwise, or if empty."""
    if not isinstance(value, str) or not value:
        return None
    # A lone surrogate (an escape of JSON) cannot be written to any file or terminal.
    return value if value.isascii() else _SURROGATE.sub("\ufffd", value)


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of *value*, a list; none if it is something else."""
    return tuple(item for item in value if text_of(item)) if isinstance(value, list) else ()


def check_number(files: Sequence[PageFile], url: str) -> None:
    """Check the number of files; raises InvalidPage."""
    if len(files) > limits.PAGE_FILES:
        raise InvalidPage(
            f"{redacted(url)}: lists more than {limits.PAGE_FILES:,} files, the most that are read"
        )


def is_filename(filename: str) -> bool:
    """Return whether *filename* is one path component, printable, and not too long."""
    if not 0 < len(filename) <= limits.FILENAME_CHARACTERS or filename in (".", ".."):
        return False
    if filename.isascii():  # nearly always; then a third of the search's time
        return filename.isprintable() and "/" not in filename and "\\" not in filename
    return _UNPRINTABLE.search(filename) is None


def check_version(version: object, url: str) -> None:
    """Check the version of the API that a page declares; raises InvalidPage."""
    major = version.partition(".")[0].strip() if isinstance(version, str) else ""
    if major != "1":
        raise InvalidPage(
            f"{redacted(url)}: is of version {shortened(version)} of the simple API; "
            "only 1.x is supported"
        )


def too_many_values(url: str) -> InvalidPage:
    """Return the error for a page with more values than are read."""
    return InvalidPage(
        f"{redacted(url)}: has more than {limits.PAGE_VALUES:,} values, the most that are read"
    )

"""Project pages of the simple API as data, checks of the values in them, and their links.

Pages are not trusted: values are checked one by one. Which links may be opened depends on the URL
of the page, not on its contents: ``<base href="file:///">`` on a page from a server does not make
its links local.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from pep_variants import labels as wheel_labels
from pep_variants import limits
from pep_variants.errors import shortened

from .._errors import InvalidPage

API_VERSION = "1.4"
"""Version of the simple API of pages that are written (PEP 792)."""

JSON = "application/vnd.pypi.simple.v1+json"
"""Media type of JSON pages (PEP 691)."""

HTML = "application/vnd.pypi.simple.v1+html"
"""Media type of HTML pages (PEP 691)."""

ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.01"
"""``Accept`` header of a request for a page."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f/\\\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# What links have in common, a server, the root or a number of folders up, and a path in which
# joining would change nothing.
_SEGMENT = r"[\w%~+@=-][\w%~+@=.-]*"
_PLAIN = re.compile(
    rf"(https?://[a-z0-9.:-]+/|/|(?:\.\./)*)({_SEGMENT}(?:/{_SEGMENT})*/?)", re.ASCII
)
_INVALID = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_IGNORED = dict.fromkeys(map(ord, "\t\r\n"))
_BLANK = "".join(map(chr, range(0x21)))
_LOCALHOST = ("", "localhost")


@dataclass(slots=True)
class PageFile:
    """A file on a page; never changed.

    `Final` says so to type checkers, in place of ``frozen``: pages have thousands, and making a
    frozen one takes five times as long, an eighth of the time of reading a page.

    Attributes:
        filename: its name, one path component.
        url: absolute and without fragment in pages that were read; in pages to be written it may
            be relative to the page.
        hashes: hexadecimal digests by the algorithm's name; empty if the index gives none.
        requires_python: version specifier, unparsed, None if there is none.
        yanked: reason, empty if none was given; None for a file that is not yanked (PEP 592).
        size: in bytes (PEP 700), None if unknown.
        upload_time: ISO 8601 as the index spells it (PEP 700), None if unknown.
        core_metadata: hashes of the METADATA file at the URL plus ``.metadata`` (PEP 658, 714),
            empty if it is there without any; None if it is not there.
        provenance: URL of attestations (PEP 740), None if there are none.
    """

    filename: Final[str]
    url: Final[str]
    hashes: Final[Mapping[str, str]] = field(default_factory=dict)
    requires_python: Final[str | None] = None
    yanked: Final[str | None] = None
    size: Final[int | None] = None
    upload_time: Final[str | None] = None
    core_metadata: Final[Mapping[str, str] | None] = None
    provenance: Final[str | None] = None


@dataclass(frozen=True)
class Page:
    """The page of a project.

    Attributes:
        project: normalized name.
        files: in the order of the page.
        versions: all versions of the project (PEP 700), None if the page does not list them.
        status: project status (PEP 792): active, archived, quarantined, deprecated.
        status_reason: why it has that status, None if not said.
    """

    project: str
    files: tuple[PageFile, ...]
    versions: tuple[str, ...] | None = None
    status: str = "active"
    status_reason: str | None = None


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
            f"lists more than {limits.PAGE_FILES:,} files, the most that are read", url=url
        )


def check_parts(files: Sequence[PageFile], url: str) -> None:
    """Check what the files of a page take to be judged; raises InvalidPage."""
    tags = sum(wheel_labels.tag_count(file.filename) for file in files)
    if tags > limits.PAGE_TAGS:
        raise InvalidPage(
            f"has filenames that stand for {tags:,} platform tags, at most {limits.PAGE_TAGS:,} "
            "are read",
            url=url,
        )
    python = sum(map(len, {file.requires_python for file in files if file.requires_python}))
    if python > limits.PAGE_PYTHON_CHARACTERS:
        raise InvalidPage(
            f"has {python:,} characters of Requires-Python, at most "
            f"{limits.PAGE_PYTHON_CHARACTERS:,} are read",
            url=url,
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
            f"is of version {shortened(version)} of the simple API; only 1.x is supported", url=url
        )


def too_many_values(url: str) -> InvalidPage:
    """Return the error for a page with more values than are read."""
    return InvalidPage(
        f"has more than {limits.PAGE_VALUES:,} values, the most that are read", url=url
    )


class Links:
    """The links of one page.

    Pages from servers link to ``http`` and ``https`` URLs; as in pip and uv, a page from an
    ``https`` server may link to ``http`` files. Only a page that is a local file itself may link
    to local files, and only to those of its own machine.
    """

    def __init__(self, page: str, base: str | None = None) -> None:
        """Set up.

        Args:
            page: URL of the page after redirects.
            base: ``href`` of the ``<base>`` of the page, if any.
        """
        self._page = page
        self._base = page
        if base:
            try:
                joined = urljoin(page, base)
                _ = urlsplit(joined).port
            except ValueError:
                pass  # ignored
            else:
                self._base = joined
        # Nearly all of thousands of links begin alike: where that leads to is checked once.
        self._good: dict[str, str] = {}
        self._local = urlsplit(self._base).scheme == "file"

    def join(self, address: str) -> str | None:
        """Return the absolute URL of *address* without fragment, None if it must not be opened."""
        if len(address) > limits.URL_CHARACTERS:
            return None
        plain = _PLAIN.fullmatch(address)
        # In a local path, percent-encoding can hide the name of another machine.
        if plain is None or (self._local and "%" in address):
            return self._joined(address)
        prefix, path = plain.groups()
        start = self._good.get(prefix)
        if start is None:
            url = self._joined(address)
            if url is not None and url.endswith(path):
                self._good[prefix] = url[: -len(path)]
            return url
        return start + path

    def _joined(self, address: str) -> str | None:
        try:
            # Ignored in URLs by browsers and newer Pythons.
            address = address.translate(_IGNORED).lstrip(_BLANK)
            url = urljoin(self._base, address).partition("#")[0]
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            return None
        if _INVALID.search(url):
            return None
        if parts.scheme in ("http", "https"):
            return url if parts.hostname else None
        return url if parts.scheme == "file" and self._same_machine(url) else None

    def _same_machine(self, url: str) -> bool:
        """Return whether the ``file:`` *url* is on the machine that the page is on.

        On Windows, opening a path of another machine (``file://host/share``, ``file:////host``,
        backslashes) sends it the user's login.
        """
        page = urlsplit(self._page)
        return page.scheme == "file" and _machine(url) == _machine(self._page)


def _machine(url: str) -> str:
    """Return the host of a ``file:`` URL as Windows reads it, empty for this machine."""
    parts = urlsplit(url)
    path = unquote(parts.path).replace("\\", "/")
    if path.startswith("//"):
        return path.lstrip("/").partition("/")[0].lower() or "//"
    return "" if parts.netloc in _LOCALHOST else parts.netloc.lower()

"""Project pages of the simple API, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

API_VERSION = "1.4"
"""Version of the simple API of pages that are written (PEP 792)."""

JSON = "application/vnd.pypi.simple.v1+json"
"""Media type of JSON pages (PEP 691)."""

HTML = "application/vnd.pypi.simple.v1+html"
"""Media type of HTML pages (PEP 691)."""

ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.01"
"""``Accept`` header of a request for a page."""


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
        gpg_sig: whether there is a signature at the URL plus ``.asc``; None if not said.
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
    gpg_sig: Final[bool | None] = None


@dataclass(frozen=True)
class Page:
    """The page of a project.

    Attributes:
        project: normalized name.
        files: in the order of the page.
        versions: all versions of the project (PEP 700), None if the page does not list them.
        status: project status (PEP 792): active, archived, quarantined, deprecated.
        status_reason: why it has that status, None if not said.
        alternate_locations: URLs of the same project elsewhere (PEP 708).
        tracks: URLs of the project that this one extends (PEP 708).
    """

    project: str
    files: tuple[PageFile, ...]
    versions: tuple[str, ...] | None = None
    status: str = "active"
    status_reason: str | None = None
    alternate_locations: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()

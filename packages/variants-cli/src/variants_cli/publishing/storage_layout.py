"""The layout of an index in a store, and the URLs in its pages.

Below the place::

    simple/index.html                                    the projects of the index
    simple/index.v1_json
    simple/PROJECT/index.html                            the files of one
    simple/PROJECT/index.v1_json
    files/PROJECT/DIGEST/FILENAME                        a distribution, or *-variants.json
    files/PROJECT/DIGEST/FILENAME.metadata               METADATA of a wheel (PEP 658)
    files/PROJECT/DIGEST/FILENAME.provenance             attestations (PEP 740)

DIGEST is the start of the SHA-256 of the file, so no file ever changes, and a page always fits the
documents that it lists. Pages are what changes; the JSON page of a project is its state.
"""

from __future__ import annotations

import re
from dataclasses import replace
from posixpath import relpath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from pep_variants.model.label import METADATA_SUFFIX
from variants_index.pages import JSON

from ..indexing.static_index import HTML_PAGE, JSON_PAGE
from ..indexing.update import PROVENANCE_SUFFIX
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX
from ..stores.store import Headers

if TYPE_CHECKING:
    from pathlib import Path

    from variants_index.pages import Page, PageFile

BASE = "https://place.invalid/"
"""Stands for the place in the URLs of pages as data; `relative` and `shown` replace it."""

PAGES = "simple"
FILES = "files"

_DIGEST_CHARACTERS = 32
"""128 bits; a whole SHA-256 makes paths too long for Windows."""

_IMMUTABLE = "public, max-age=31536000, immutable"
_CHANGING = "public, max-age=60"
_FILE = re.compile(rf"{FILES}/[a-z0-9-]+/[0-9a-f]{{{_DIGEST_CHARACTERS}}}/[^/]+")


def page_path(project: str, name: str) -> str:
    """Return the path of the page *name* of *project*; of the list of projects, if it is empty."""
    return f"{PAGES}/{project}/{name}" if project else f"{PAGES}/{name}"


def file_path(project: str, filename: str, sha256: str) -> str:
    """Return the path of a file that never changes."""
    return f"{FILES}/{project}/{sha256[:_DIGEST_CHARACTERS]}/{filename}"


def is_file_path(path: str) -> bool:
    """Return whether *path* is one that `file_path` returns."""
    return _FILE.fullmatch(path) is not None


def is_published(directory: Path) -> bool:
    """Return whether *directory* has files that `variants publish --to` put there."""
    folders = directory.glob(f"{FILES}/*/{'[0-9a-f]' * _DIGEST_CHARACTERS}")
    return next(folders, None) is not None


def url_at(path: str) -> str:
    """Return the URL of *path* for a page as data."""
    return BASE + quote(path)


def path_at(url: str) -> str | None:
    """Return the path that *url* of a page as data stands for, None if it is elsewhere."""
    return unquote(url.removeprefix(BASE)) if url.startswith(BASE) else None


def relative(page: Page) -> Page:
    """Return *page* with links to the place itself as seen from where the page is."""

    def link(url: str | None) -> str | None:
        if url is None or not url.startswith(BASE):
            return url
        return relpath(url.removeprefix(BASE), f"{PAGES}/{page.project}")

    def linked(file: PageFile) -> PageFile:
        return replace(file, url=link(file.url) or file.url, provenance=link(file.provenance))

    return replace(page, files=tuple(map(linked, page.files)))


def shown(text: str, place: str) -> str:
    """Return a message with the name of the *place* in its URLs."""
    return text.replace(BASE, f"{place.rstrip('/')}/")


def headers_of(path: str) -> Headers:
    """Return what servers are to send with the object at *path*."""
    name = path.rpartition("/")[2]
    if name == JSON_PAGE:
        return Headers(JSON, _CHANGING)
    if name == HTML_PAGE:
        return Headers("text/html; charset=utf-8", _CHANGING)
    if name.endswith((METADATA_SUFFIX, PROVENANCE_SUFFIX)):
        return Headers("application/json", _IMMUTABLE)
    if name.endswith(CORE_METADATA_SUFFIX):
        return Headers("text/plain; charset=utf-8", _IMMUTABLE)
    return Headers("application/octet-stream", _IMMUTABLE)

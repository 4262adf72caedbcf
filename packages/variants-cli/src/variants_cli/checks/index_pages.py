"""Checks of the pages of an index in a directory against the files that they list."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.urls import is_local, local_path
from variants_index.errors import InvalidPage
from variants_index.pages import HTML, JSON, Page, read_page

from .finding import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from variants_index.pages import PageFile

PAGES = {"index.html": HTML, "index.v1_json": JSON}
"""Names of project pages, and how they are read."""

_CHUNK = 1024 * 1024


class Digests:
    """SHA-256 of files, each read once."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        """Return the hexadecimal digest of the file *path*."""
        path = path.resolve()
        if path not in self._known:
            digest = hashlib.sha256()
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
            self._known[path] = digest.hexdigest()
        return self._known[path]


def find_pages(directory: Path) -> list[Path]:
    """Return the project pages in *directory* and below: those that list wheels."""
    found = []
    for name in PAGES:
        found += [path for path in directory.rglob(name) if b".whl" in path.read_bytes()]
    return sorted(found)


def check_page(path: Path, remedy: str, digests: Digests) -> tuple[Page | None, list[Finding]]:
    """Check the page *path*; return it if it is readable, and what was found."""
    try:
        page = read_page(path.read_bytes(), PAGES[path.name], path.absolute().as_uri())
    except InvalidPage as problem:
        return None, [error("invalid-page", str(path), "", str(problem), remedy)]
    return page, [
        finding for file in page.files for finding in _check_file(file, path, remedy, digests)
    ]


def _check_file(file: PageFile, page: Path, remedy: str, digests: Digests) -> Iterator[Finding]:
    place = path_of(file)
    if place is None:
        return  # on a server
    if not place.is_file():
        yield error(
            "page-file-missing", str(page), file.filename, f"{place} does not exist", remedy
        )
        return
    size = place.stat().st_size
    if file.size is not None and file.size != size:
        yield error(
            "page-mismatch",
            str(page),
            file.filename,
            f"lists size {file.size}, the file has {size} bytes",
            remedy,
        )
    elif "sha256" in file.hashes and file.hashes["sha256"] != digests.of(place):
        yield error(
            "page-mismatch",
            str(page),
            file.filename,
            f"lists SHA-256 {file.hashes['sha256']}, the file has {digests.of(place)}",
            remedy,
        )
    if file.core_metadata is None:
        return
    metadata = place.with_name(f"{place.name}.metadata")
    if not metadata.is_file():
        yield error(
            "page-file-missing", str(page), file.filename, f"{metadata} does not exist", remedy
        )
    elif file.core_metadata.get("sha256", digests.of(metadata)) != digests.of(metadata):
        yield error(
            "page-mismatch",
            str(page),
            file.filename,
            f"lists SHA-256 {file.core_metadata['sha256']} of {metadata.name}, "
            f"which has {digests.of(metadata)}",
            remedy,
        )


def path_of(file: PageFile) -> Path | None:
    """Return the path of *file*, None if it is on a server."""
    return local_path(file.url) if is_local(file.url) else None

"""Checks of the pages of an index in a directory against the files that they list."""

from __future__ import annotations

import hashlib
import os
from typing import IO, TYPE_CHECKING, NamedTuple

from pep_variants.urls import is_local, local_path
from variants_index.errors import InvalidPage
from variants_index.pages import HTML, JSON, read_page

from .finding import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PAGES = {"index.html": HTML, "index.v1_json": JSON}
"""Names of project pages, and how they are read."""

_CHUNK = 1024 * 1024


class FileDigest(NamedTuple):
    """What pages say of a file.

    Attributes:
        size: in bytes.
        sha256: hexadecimal.
    """

    size: int
    sha256: str


class Digests:
    """Sizes and SHA-256 of files, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, FileDigest] = {}

    def add(self, path: str, digest: FileDigest) -> None:
        """Remember a file that was read."""
        self._known[os.path.abspath(path)] = digest  # noqa: PTH100

    def of(self, path: str) -> FileDigest | None:
        """Return what there is to say of the file at *path*, which is absolute; None without one.

        Raises:
            OSError: it cannot be read.
        """
        if path not in self._known:
            if not os.path.isfile(path):  # noqa: PTH113
                return None
            with open(path, "rb") as stream:  # noqa: PTH123
                self._known[path] = digest_of(stream)
        return self._known[path]


def digest_of(stream: IO[bytes]) -> FileDigest:
    """Return size and SHA-256 of a file, which is read from its start.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    stream.seek(0)
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return FileDigest(stream.tell(), digest.hexdigest())


def find_pages(directory: Path) -> list[Path]:
    """Return the project pages in *directory* and below: those that list wheels."""
    found = []
    for name in PAGES:
        found += [path for path in directory.rglob(name) if b".whl" in path.read_bytes()]
    return sorted(found)


class ListedFile(NamedTuple):
    """What a page says of a file beside it.

    Attributes:
        filename: its name.
        path: absolute.
        size: in bytes, None if the page does not say it.
        sha256: hexadecimal, None if the page does not give it.
        metadata: SHA-256 of its METADATA file, empty if that is there without one; None if it is
            not there.
    """

    filename: str
    path: str
    size: int | None
    sha256: str | None
    metadata: str | None


def read_listed(path: Path) -> tuple[ListedFile, ...] | str:
    """Return the files on the page *path* that are not on a server, or what is wrong with it."""
    try:
        page = read_page(path.read_bytes(), PAGES[path.name], path.absolute().as_uri())
    except InvalidPage as problem:
        return str(problem)
    except OSError as problem:
        return f"{path}: {problem.strerror or problem}"
    return tuple(
        ListedFile(
            file.filename,
            os.fspath(local_path(file.url)),
            file.size,
            file.hashes.get("sha256"),
            None if file.core_metadata is None else file.core_metadata.get("sha256", ""),
        )
        for file in page.files
        if is_local(file.url)
    )


def check_listed(
    page: str, files: Iterable[ListedFile], remedy: str, digests: Digests
) -> Iterator[Finding]:
    """Yield where a page contradicts the files that it lists.

    Args:
        page: its path.
        files: that it lists.
        remedy: what to do about it.
        digests: of files that were read.

    Raises:
        OSError: a file cannot be read.
    """
    for file in files:
        found = digests.of(file.path)
        if found is None:
            yield error(
                "page-file-missing", page, file.filename, f"{file.path} does not exist", remedy
            )
            continue
        problems = []
        if file.size not in (None, found.size):
            problems.append(f"lists size {file.size}, the file has {found.size} bytes")
        elif file.sha256 not in (None, found.sha256):
            problems.append(f"lists SHA-256 {file.sha256}, the file has {found.sha256}")
        if file.metadata is not None:
            metadata = f"{file.path}.metadata"
            beside = digests.of(metadata)
            if beside is None:
                yield error(
                    "page-file-missing", page, file.filename, f"{metadata} does not exist", remedy
                )
            elif file.metadata not in ("", beside.sha256):
                problems.append(
                    f"lists SHA-256 {file.metadata} of {file.filename}.metadata, which has "
                    f"{beside.sha256}"
                )
        for problem in problems:
            yield error("page-mismatch", page, file.filename, problem, remedy)

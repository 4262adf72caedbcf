"""Files on servers: read by ranges, or downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from pep_variants.internal import (
    FIRST_PART,
    Digests,
    Part,
    PartialFile,
    Range,
    is_local,
    local_path,
    redacted,
)

from ..cache.store import Store
from ..errors import BadResponse
from .bodies import check_digests
from .session import Session

MAX_DOWNLOAD = 16 * 1024**3


@contextmanager
def opened(
    session: Session,
    url: str,
    hashes: Mapping[str, str] | None = None,
    *,
    largest: int = MAX_DOWNLOAD,
) -> Iterator[IO[bytes]]:
    """Yield the file at *url*, seekable: by ranges, or downloaded if its server serves none.

    Args:
        session: makes the requests.
        url: http, https or file.
        hashes: expected digests; only checked if it is downloaded.
        largest: the most bytes that are downloaded.

    Raises:
        PackageIndexError: it cannot be fetched; also raised by reading.
    """
    if is_local(url):
        with local_path(url).open("rb") as file:
            yield file
        return
    with in_parts(session, url) as parts:
        if parts is not None:
            yield parts
            return
    with temporary_file(session.store) as copy:
        download(session, url, copy, hashes or {}, largest=largest)
        copy.seek(0)
        yield copy


def temporary_file(store: Store | None) -> IO[bytes]:
    """Return an empty temporary file for a wheel, see `Store.temporary_file`."""
    return tempfile.TemporaryFile() if store is None else store.temporary_file()


@contextmanager
def in_parts(session: Session, url: str) -> Iterator[IO[bytes] | None]:
    """Yield the file at *url*, seekable, read by ranges; None if its server serves none.

    Raises:
        PackageIndexError: it cannot be fetched; also raised by reading.
    """
    tail = session.fetch_range(url, None, FIRST_PART)
    if tail is None:
        yield None
        return

    def fetch(wanted: Range) -> Part | None:
        return session.fetch_range(url, wanted.start, wanted.length)

    def problem(what: str) -> BadResponse:
        return BadResponse(f"{redacted(url)}: {what}")

    with PartialFile(tail, fetch, problem) as file:
        yield file  # type: ignore[misc] # has all that readers of archives use


def download(
    session: Session,
    url: str,
    target: IO[bytes],
    hashes: Mapping[str, str],
    *,
    size: int | None = None,
    largest: int = MAX_DOWNLOAD,
) -> None:
    """Download *url* to *target*, and check *hashes* and *size*.

    Raises:
        PackageIndexError: it cannot be fetched, or a hash or its size differs.
        OSError: *target* cannot be written.
    """
    check = Digests(hashes)
    written = 0
    limit = largest if size is None else size
    with session.stream(url) as chunks:
        for chunk in chunks:
            written += len(chunk)
            if written > limit:
                raise BadResponse(f"{redacted(url)}: is larger than the {limit} bytes expected")
            check.update(chunk)
            target.write(chunk)
    if size is not None and written != size:
        raise BadResponse(f"{redacted(url)}: has {written} bytes, expected {size}")
    check_digests(check, url)

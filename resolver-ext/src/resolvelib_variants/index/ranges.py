"""A file on a server as a seekable file here, of which only what is looked at is fetched.

Wheels keep their directory at the end and, mostly, the dist-info just before it: two or three
small requests tell what is in a wheel of several gigabytes.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from pep_variants.errors import redacted

from .errors import BadAnswer
from .session import Digests, Part, Session, is_local, local_path

FIRST_PART = 32 * 1024
SMALLEST_PART = 16 * 1024
MAX_PARTS = 32
MAX_BYTES = 64 * 1024 * 1024
MAX_DOWNLOAD = 16 * 1024**3


@contextmanager
def opened(
    session: Session, url: str, hashes: Mapping[str, str] | None = None
) -> Iterator[IO[bytes]]:
    """Yield the file at *url*, seekable: in parts, or downloaded where there are no parts.

    Args:
        session: what fetches.
        url: http, https or file.
        hashes: of the file; they can only be checked if it is downloaded.

    Raises:
        IndexProblem: it cannot be had; also raised by reading.
    """
    if is_local(url):
        with local_path(url).open("rb") as file:
            yield file
        return
    part = session.part(url, None, FIRST_PART)
    if part is not None:
        with PartialFile(session, url, part) as partial:
            yield partial  # type: ignore[misc] # has all that readers of archives use
        return
    with tempfile.TemporaryFile() as copy:
        download(session, url, copy, hashes or {})
        copy.seek(0)
        yield copy


def download(
    session: Session,
    url: str,
    target: IO[bytes],
    hashes: Mapping[str, str],
    *,
    size: int | None = None,
) -> None:
    """Write what is at *url* to *target*, and check *hashes* and *size* of it.

    Raises:
        IndexProblem: it cannot be had, or is not what was promised.
        OSError: *target* cannot be written.
    """
    check = Digests(hashes)
    written = 0
    limit = MAX_DOWNLOAD if size is None else size
    with session.stream(url) as chunks:
        for chunk in chunks:
            written += len(chunk)
            if written > limit:
                raise BadAnswer(f"{redacted(url)}: is larger than the {limit} bytes expected")
            check.update(chunk)
            target.write(chunk)
    if size is not None and written != size:
        raise BadAnswer(f"{redacted(url)}: has {written} bytes, not the {size} promised")
    check.compare(url)


class PartialFile(io.RawIOBase):
    """The seekable file; see above."""

    def __init__(self, session: Session, url: str, tail: Part) -> None:
        """Start with the last part of the file."""
        super().__init__()
        self._session = session
        self._url = url
        self._tag = tail.tag
        self._size = tail.total
        self._position = 0
        self._parts = [tail]
        self._fetched = len(tail.data)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set and return the position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to *size* bytes, all that are left by default."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = bytearray()
        while len(data) < wanted:
            data += self._at(self._position + len(data), wanted - len(data))
        self._position += wanted
        return bytes(data)

    def readinto(self, buffer: object, /) -> int:
        """Read into *buffer*."""
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _at(self, start: int, length: int) -> bytes:
        """Return at least one and at most *length* bytes from *start* on."""
        for part in self._parts:
            if part.start <= start < part.start + len(part.data):
                offset = start - part.start
                return part.data[offset : offset + length]
        # Up to where the next known part begins.
        following = [part.start for part in self._parts if part.start > start]
        end = min([start + max(length, SMALLEST_PART), self._size, *following])
        if len(self._parts) >= MAX_PARTS or self._fetched + end - start > MAX_BYTES:
            raise BadAnswer(
                f"{redacted(self._url)}: its directory is spread over more than {MAX_PARTS} "
                f"parts or {MAX_BYTES} bytes"
            )
        found = self._session.part(self._url, start, end - start)
        if found is None or found.start != start or not found.data:
            raise BadAnswer(f"{redacted(self._url)}: the server stops giving parts of it")
        if (found.tag, found.total) != (self._tag, self._size):
            raise BadAnswer(f"{redacted(self._url)}: changes while it is read: try again")
        self._parts.append(found)
        self._fetched += len(found.data)
        return found.data[:length]

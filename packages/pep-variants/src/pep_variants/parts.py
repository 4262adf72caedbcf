"""A file on a server as a seekable file here, of which only what is looked at is fetched.

Wheels keep their directory at the end and, mostly, the dist-info just before it: two or three
small requests tell what is in a wheel of several gigabytes. How a part is fetched, and which
errors that may raise, is the caller's affair: there is no network here.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

FIRST_PART = 64 * 1024
"""So many bytes of the end of a file to fetch first, for the directory and the dist-info."""

SMALLEST_PART = 16 * 1024
MAX_PARTS = 32
MAX_BYTES = 64 * 1024 * 1024

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")


@dataclass(frozen=True)
class Part:
    """A part of a file.

    Attributes:
        data: the bytes.
        start: place of the first of them.
        total: size of the whole file.
        tag: identifies this state of the file (``ETag``), empty if the server gives none.
    """

    data: bytes
    start: int
    total: int
    tag: str = ""


def read_content_range(value: str) -> tuple[int, int, int] | None:
    """Return start, length and the file's size from a ``Content-Range`` (RFC 9110, 14.4).

    None if it says anything else: several parts at once, unknown size, nothing.
    """
    found = _CONTENT_RANGE.fullmatch(value)
    if found is None:
        return None
    first, last, total = map(int, found.groups())
    return (first, last + 1 - first, total) if first <= last < total else None


class PartialFile(io.RawIOBase):
    """The seekable file; has all that readers of archives use."""

    def __init__(
        self,
        tail: Part,
        fetch: Callable[[int, int], Part | None],
        problem: Callable[[str], Exception],
    ) -> None:
        """Start with what is known.

        Args:
            tail: the end of the file.
            fetch: takes a place and a length, at least one byte, and returns that part or the
                beginning of it; None if there is none to be had. What it raises, reading raises.
            problem: makes the error to raise of what is wrong, in words. No `OSError` or
                `ValueError`: they tell readers of archives that the archive is damaged.
        """
        super().__init__()
        self._fetch = fetch
        self._problem = problem
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
            raise self._problem(
                f"its directory is spread over more than {MAX_PARTS} parts or {MAX_BYTES} bytes"
            )
        found = self._fetch(start, end - start)
        if found is None or found.start != start or not found.data:
            raise self._problem("the server stops giving parts of it")
        if (found.tag, found.total) != (self._tag, self._size):
            raise self._problem("changes while it is read: try again")
        self._parts.append(found)
        self._fetched += len(found.data)
        return found.data[:length]

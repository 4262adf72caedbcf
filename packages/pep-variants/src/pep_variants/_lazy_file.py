"""A seekable file of which only the parts that are read are fetched from a server.

A wheel has its central directory at the end and usually the dist-info just before it, so two or
three small range requests (RFC 9110, section 14) are enough to read the metadata of a wheel of
several gigabytes. There is no network in here: the caller makes the requests.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

from .limits import PARTIAL_BYTES, PARTIAL_PARTS

FIRST_PART = 64 * 1024
"""Bytes of the end of a file that are fetched first, for the central directory and dist-info."""

SMALLEST_PART = 16 * 1024

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")


class RangeRefused(Exception):
    """The server refuses this range; it may serve another one."""


REFUSED = (400, 416, 501)
"""HTTP statuses of servers that refuse ``bytes=-N``, though they may serve other ranges."""
_OK = 200


class Range(NamedTuple):
    """A range of bytes of a file.

    Attributes:
        start: offset of the first byte, None for the last *length* bytes.
        length: number of bytes, at least 1.
    """

    start: int | None
    length: int

    @property
    def header(self) -> str:
        """The value of the ``Range`` header (RFC 9110, section 14.2)."""
        if self.start is None:
            return f"bytes=-{self.length}"
        return f"bytes={self.start}-{self.start + self.length - 1}"


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        data: the bytes.
        start: offset of the first of them.
        total: size of the whole file.
        tag: the ``ETag`` of the file, empty if the server sends none.
    """

    data: bytes
    start: int
    total: int
    tag: str = ""


def is_refused(wanted: Range, status: int, accepted: str) -> bool:
    """Return whether a response refuses *wanted*, so that another range is worth a request.

    Some servers that serve ranges send the whole file for ``bytes=-N``.

    Args:
        wanted: the range of the request.
        status: HTTP status of the response.
        accepted: value of its ``Accept-Ranges``, empty without.
    """
    return status in REFUSED or (status == _OK and wanted.start is None and accepted == "bytes")


def read_content_range(value: str) -> tuple[int, int, int] | None:
    """Return start, length and the file's size from a ``Content-Range`` (RFC 9110, 14.4).

    None if it says anything else: several parts at once, unknown size, nothing.

    >>> from pep_variants.wheel_files import read_content_range
    >>> read_content_range("bytes 0-999/8000")
    (0, 1000, 8000)
    """
    match = _CONTENT_RANGE.fullmatch(value)
    if match is None:
        return None
    first, last, total = map(int, match.groups())
    return (first, last + 1 - first, total) if first <= last < total else None


def last_part_ranges(length: int) -> Generator[Range, Part | None, Part | None]:
    """Yield the ranges to request for the end of a file; return the end, None without ranges.

    Object stores and caches refuse ``bytes=-N``, but serve ranges with a start. The size of the
    file is then in the answer to a request for its first byte: unlike HEAD, that works with URLs
    that are signed for GET.

    Send the part for each range, None if the server does not support range requests. Throw
    `RangeRefused` for a status in `REFUSED`.

    Args:
        length: number of bytes; the whole file if it is shorter.
    """
    try:
        return (yield Range(None, length))
    except RangeRefused:
        pass
    try:
        first = yield Range(0, 1)
        if first is None:
            return None
        start = max(0, first.total - length)
        return (yield Range(start, first.total - start))
    except RangeRefused:
        return None


def last_part(ask: Callable[[Range], Part | None], length: int) -> Part | None:
    """Return the last *length* bytes of a file on a server, None if it serves no ranges.

    Args:
        ask: makes one request; see `last_part_ranges` for what it returns and raises.
        length: number of bytes; the whole file if it is shorter.
    """
    ranges = last_part_ranges(length)
    wanted = next(ranges)
    while True:
        try:
            try:
                wanted = ranges.send(ask(wanted))
            except RangeRefused as refused:
                wanted = ranges.throw(refused)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class PartialFile(io.RawIOBase):
    """A seekable file made of parts; has every method that `zipfile` uses."""

    def __init__(
        self,
        tail: Part,
        fetch: Callable[[Range], Part | None],
        problem: Callable[[str], Exception],
    ) -> None:
        """Start with the end of the file.

        Args:
            tail: the end of the file.
            fetch: returns the part for a range or the beginning of it; None if the server does
                not serve it. Reading raises what it raises.
            problem: makes the error to raise from a message. No `OSError` or `ValueError`:
                `zipfile` takes them for a damaged archive.
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
        """Return up to *size* bytes, everything up to the end by default."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = bytearray()
        while len(data) < wanted:
            data += self._at(self._position + len(data), wanted - len(data))
        self._position += wanted
        return bytes(data)

    def _at(self, start: int, length: int) -> bytes:
        """Return at least one and at most *length* bytes from *start* on."""
        for part in self._parts:
            if part.start <= start < part.start + len(part.data):
                offset = start - part.start
                return part.data[offset : offset + length]
        # Up to where the next known part begins.
        following = [part.start for part in self._parts if part.start > start]
        end = min([start + max(length, SMALLEST_PART), self._size, *following])
        if len(self._parts) >= PARTIAL_PARTS or self._fetched + end - start > PARTIAL_BYTES:
            raise self._problem(
                f"reading its central directory takes more than {PARTIAL_PARTS} ranges or "
                f"{PARTIAL_BYTES} bytes"
            )
        wanted = Range(start, end - start)
        fetched: Part | None = None
        with suppress(RangeRefused):
            fetched = self._fetch(wanted)
        return self.add(wanted, fetched).data[:length]

    def add(self, wanted: Range, part: Part | None) -> Part:
        """Add the part that was fetched for *wanted*, and return it.

        Raises:
            Exception: it is missing, another part, or of another state of the file; what
                *problem* of the constructor makes.
        """
        if part is None or part.start != wanted.start or not part.data:
            raise self._problem("the server stopped answering range requests for it")
        if (part.tag, part.total) != (self._tag, self._size):
            raise self._problem("changes while it is read: try again")
        self._parts.append(part)
        self._fetched += len(part.data)
        return part

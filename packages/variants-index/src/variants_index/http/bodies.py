"""Bodies of responses: read raw and decompressed here, within limits.

httpx decompresses any number of nested codings without a limit (``gzip, gzip, gzip`` turns 269
bytes into 3 GB), so nothing here uses ``Response.read`` or ``Response.iter_bytes``.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing

import httpx

from pep_variants.internal import (
    REFUSED,
    Digests,
    Part,
    RangeRefused,
    limits,
    read_content_range,
    redacted,
    shortened,
)

from ..errors import BadResponse, Unreachable

ENCODINGS = "gzip"
"""``Accept-Encoding`` header of requests whose responses are read with `read_body`."""

CHUNK = 512 * 1024
_PARTIAL = 206
_UNSUPPORTED = (
    "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "pack200-gzip", "x-compress",
    "zstd",
)  # fmt: skip
"""Content codings of IANA's registry that are not asked for. Names that are not in it change
nothing, for pip and uv alike: storage servers hand out ``utf-8`` and ``aws-chunked``."""
_GZIP = ("gzip", "x-gzip")


def read_body(
    response: httpx.Response,
    url: str,
    limit: int,
    until: float,
    seconds: float,
    grown: Callable[[int], None] | None = None,
) -> bytes:
    """Return the body of *response*, decompressed; close it.

    Args:
        response: whose body was not read yet.
        url: for messages.
        limit: the most bytes, both compressed and decompressed.
        until: deadline, in seconds of `time.monotonic`.
        seconds: the time that was allowed, for messages.
        grown: called with the number of bytes so far whenever there are more; may wait or raise.

    Raises:
        BadResponse: it is too large, or compressed in a way that was not asked for.
        Unreachable: it takes too long.
        httpx.HTTPError: the connection breaks.
    """
    with closing(response):
        decoder = _Decoder(response.headers.get("Content-Encoding", ""), url)
        body = bytearray()
        received = 0
        for chunk in _pieces(response, url):
            received += len(chunk)
            for part in decoder.decode(chunk):
                body += part
                if len(body) > limit:
                    break
            if received > limit or len(body) > limit:
                raise BadResponse(
                    f"{redacted(url)}: is larger than {limit} bytes, the most that is read"
                )
            if grown is not None:
                grown(len(body))
            if time.monotonic() > until:
                raise Unreachable(
                    f"{redacted(url)}: no complete answer in time ({seconds:g} seconds)"
                )
        decoder.finish()
        return bytes(body)


def read_range(response: httpx.Response, url: str, length: int) -> Part | None:
    """Return the range of a file in *response*, None if it is not a range; close it.

    Raises:
        RangeRefused: the server does not serve this range.
        BadResponse: it is another range, or larger than *length*.
        httpx.HTTPError: the connection breaks.
    """
    with closing(response):
        if response.status_code in REFUSED:
            raise RangeRefused
        if response.status_code != _PARTIAL:
            return None
        span = read_content_range(response.headers.get("Content-Range", ""))
        if span is None:
            return None
        start, size, total = span
        if size > length:
            raise BadResponse(f"{redacted(url)}: the server sends more than the range asked for")
        data = bytearray()
        for chunk in _pieces(response, url):
            data += chunk
            if len(data) > size:
                break
        if len(data) != size:
            raise BadResponse(f"{redacted(url)}: the server sends another range than it says")
        return Part(bytes(data), start, total, response.headers.get("ETag", ""))


def raw_chunks(response: httpx.Response, url: str) -> Iterator[bytes]:
    """Yield the body of *response*, not decompressed, in chunks of `CHUNK` bytes.

    Raises:
        BadResponse: it comes in too many pieces.
        httpx.HTTPError: the connection breaks.
    """
    buffer = bytearray()
    for piece in _pieces(response, url):
        buffer += piece
        if len(buffer) >= CHUNK:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _pieces(response: httpx.Response, url: str) -> Iterator[bytes]:
    """Yield the pieces of a body, at most so many: in pieces of a byte it takes minutes to read."""
    received = 0
    for number, piece in enumerate(response.iter_raw()):
        received += len(piece)
        if number > limits.SMALL_PIECES + received // limits.PIECE_BYTES:
            raise BadResponse(f"{redacted(url)}: the response comes in too many small pieces")
        yield piece


def check_digests(digests: Digests, source: str) -> None:
    """Check that no digest differs from the expected one; *source* is the URL, for messages.

    Raises:
        BadResponse: one does.
    """
    problem = digests.problem()
    if problem is not None:
        raise BadResponse(f"{redacted(source)}: {problem}")


class _Decoder:
    """Decompresses one content coding (RFC 9110, section 8.4), a limited amount at a time."""

    def __init__(self, header: str, url: str) -> None:
        """Set up for the ``Content-Encoding`` *header*; raises BadResponse."""
        names = [item.strip().lower() for item in header.split(",")]
        codings = [name for name in names if name in (*_GZIP, *_UNSUPPORTED)]
        self._url = url
        self._stream: zlib._Decompress | None = None
        self._coding = codings[0] if codings else ""
        if len(codings) > 1 or self._coding in _UNSUPPORTED:
            raise BadResponse(
                f"{redacted(url)}: is compressed as {shortened(header)}; {ENCODINGS} was asked for"
            )

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the plain bytes of *data*, at most `CHUNK` at a time; raises BadResponse."""
        if not self._coding:
            yield data
            return
        if self._stream is None and data:
            self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while data and self._stream is not None and not self._stream.eof:
            try:
                plain = self._stream.decompress(data, CHUNK)
            except zlib.error as error:
                raise BadResponse(
                    f"{redacted(self._url)}: is not {self._coding} data ({error})"
                ) from None
            data = self._stream.unconsumed_tail
            yield plain

    def finish(self) -> None:
        """Check that the data was complete; raises BadResponse."""
        if self._stream is not None and not self._stream.eof:
            raise BadResponse(f"{redacted(self._url)}: the {self._coding} data is cut off")

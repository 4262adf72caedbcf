"""Responses: statuses and network failures as typed errors, bodies within limits, validators.

Bodies are read raw and decompressed here: httpx decompresses any number of nested codings without a
limit (``gzip, gzip, gzip`` turns 269 bytes into 3 GB), so nothing here uses ``Response.read`` or
``Response.iter_bytes``.
"""

from __future__ import annotations

import email.utils
import json
import re
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx

from pep_variants import limits, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import redacted, shortened
from pep_variants.metadata import Digests
from pep_variants.wheel_files import Part, Range, RangeRefused

from .._errors import PROXY_LOGIN, AccessDenied, BadResponse, NotFound, TimedOut

_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
_VALIDATOR_CHARACTERS = 1000
_MAX_AGE = re.compile(r"(?<![\w-])max-age=(\d{1,9})")

BUSY = variant_metadata.MAY_PASS
"""Statuses after which a request is sent again."""

_OK = 200
_GONE = (404, 410)
_DENIED = (401, 403)
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


@dataclass(frozen=True)
class Response:
    """A complete response.

    Attributes:
        url: after redirects, without credentials.
        content_type: the header; for local files ``text/html`` or empty.
        body: decompressed.
        validators: request headers that ask for another response than this one
            (RFC 9110, section 13.1); empty if the server gave none.
        unchanged: it is the response that was asked past: without a body (status 304).
        max_age: seconds for which a client may use it without asking again (RFC 9111, 5.2.2).
        may_be_stored: whether the server allows a cache to keep it.
    """

    url: str
    content_type: str
    body: bytes
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False
    max_age: int = 0
    may_be_stored: bool = False

    def record(self) -> bytes:
        """Return it for `read_response`."""
        head = [self.url, self.content_type, dict(self.validators)]
        return json.dumps(head).encode() + b"\n" + self.body


def revalidated(known: Response | None, ask: Callable[[Mapping[str, str]], Response]) -> Response:
    """Return *known* if its server says that it has not changed, else the new response.

    Args:
        known: a response that the caller has, None without one.
        ask: sends the request with `Response.validators`.
    """
    if known is None:
        return ask({})
    answer = ask(known.validators)
    if not answer.unchanged:
        return answer
    # Of another URL, to which the server redirects now, it says nothing of the one at hand.
    return known if answer.url == known.url else ask({})


def read_response(record: bytes | None) -> Response | None:
    """Return the response in a record of a cache, None if there is none, or of another release."""
    head, _, body = (record or b"").partition(b"\n")
    try:
        url, content_type, validators = json.loads(head)
    except (ValueError, TypeError):
        return None
    return Response(url, content_type, body, validators)


def validators_of(response: httpx.Response) -> dict[str, str]:
    """Return the headers of a request that asks for another response than *response*."""
    return {
        asked: value
        for given, asked in _VALIDATORS.items()
        if (value := response.headers.get(given)) is not None
        and value.isascii()
        and value.isprintable()
        and len(value) <= _VALIDATOR_CHARACTERS
    }


def max_age_of(response: httpx.Response) -> int:
    """Return the seconds for which ``Cache-Control`` allows to use *response*, 0 without."""
    control = response.headers.get("Cache-Control", "").lower()
    found = _MAX_AGE.search(control)
    return int(found[1]) if found and "no-cache" not in control and "no-store" not in control else 0


def may_be_stored(response: httpx.Response) -> bool:
    """Return whether a private cache may keep *response* (RFC 9111, section 5.2.2.5).

    A query may be a signature: such URLs are not kept.
    """
    forbidden = "no-store" in response.headers.get("Cache-Control", "").lower()
    return not forbidden and not response.url.query


def check_status(response: httpx.Response, url: str, allowed: tuple[int, ...] = ()) -> None:
    """Check the status of a response: 200, or one of *allowed*; close it otherwise.

    Raises:
        PackageIndexError: it is another one; the message says what to do.
    """
    status = response.status_code
    if status == _OK or status in allowed:
        return
    response.close()
    if status in _GONE:
        raise NotFound(f"not found (HTTP status {status})", status, url=url)
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        raise AccessDenied(PROXY_LOGIN, status, url=url)
    if status in _DENIED:
        raise AccessDenied(
            f"access denied (HTTP status {status}): put user name and password into the URL of the "
            "index, netrc or keyring",
            status,
            url=url,
        )
    raise BadResponse(f"HTTP status {status}", status, url=url)


def retry_after(response: httpx.Response) -> float:
    """Return the seconds of the ``Retry-After`` header (RFC 9110, section 10.2.3), 0 without."""
    text = response.headers.get("Retry-After", "")
    if text.isascii() and text.isdigit() and len(text) < 19:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return what is wrong with the certificate of a server, None if the error is another one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def describe(error: Exception) -> str:
    """Return an error of httpx in words for a message."""
    # Messages of the libraries may hold the URL of a proxy, or what a server sent.
    text = redacted("".join(c if c.isprintable() else "?" for c in str(error)[:200]))
    untrusted = certificate_error(error)
    if untrusted is not None:
        return (
            f"the certificate is not accepted ({untrusted.verify_message or text}): name the file "
            "with the authorities to trust in the variable SSL_CERT_FILE"
        )
    if isinstance(error, httpx.ProxyError) and text.startswith("407"):
        return PROXY_LOGIN
    words: dict[type[Exception], str] = {
        httpx.ConnectTimeout: "the connection timed out",
        httpx.ReadTimeout: "the response timed out",
        httpx.ConnectError: f"cannot connect ({text})",
        httpx.RemoteProtocolError: f"the response is cut off or invalid ({text})",
    }
    return words.get(
        type(error), f"{type(error).__name__}: {text}" if text else type(error).__name__
    )


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
        TimedOut: it takes too long.
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
                raise BadResponse(f"is larger than {limit} bytes, the most that is read", url=url)
            if grown is not None:
                grown(len(body))
            if time.monotonic() > until:
                raise TimedOut(f"no complete answer in time ({seconds:g} seconds)", url=url)
        decoder.finish()
        return bytes(body)


def read_range(response: httpx.Response, url: str, wanted: Range) -> Part | None:
    """Return the range of a file in *response*, None if it is not a range; close it.

    Raises:
        RangeRefused: the server does not serve this range.
        BadResponse: it is another range, or larger than *wanted*.
        httpx.HTTPError: the connection breaks.
    """
    with closing(response):
        accepted = response.headers.get("Accept-Ranges", "")
        if wheel_files.is_refused(wanted, response.status_code, accepted):
            raise RangeRefused
        if response.status_code != _PARTIAL:
            return None
        span = wheel_files.read_content_range(response.headers.get("Content-Range", ""))
        if span is None:
            return None
        start, size, total = span
        if size > wanted.length:
            raise BadResponse("the server sends more than the range asked for", url=url)
        data = bytearray()
        for chunk in _pieces(response, url):
            data += chunk
            if len(data) > size:
                break
        if len(data) != size:
            raise BadResponse("the server sends another range than it says", url=url)
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
            raise BadResponse("the response comes in too many small pieces", url=url)
        yield piece


def check_digests(digests: Digests, source: str) -> None:
    """Check that no digest differs from the expected one; *source* is the URL, for messages.

    Raises:
        BadResponse: one does.
    """
    problem = digests.problem()
    if problem is not None:
        raise BadResponse(problem, url=source)


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
                f"is compressed as {shortened(header)}; {ENCODINGS} was asked for", url=url
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
                raise BadResponse(f"is not {self._coding} data ({error})", url=self._url) from None
            data = self._stream.unconsumed_tail
            yield plain

    def finish(self) -> None:
        """Check that the data was complete; raises BadResponse."""
        if self._stream is not None and not self._stream.eof:
            raise BadResponse(f"the {self._coding} data is cut off", url=self._url)

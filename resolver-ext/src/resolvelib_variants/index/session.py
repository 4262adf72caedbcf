"""Getting bytes from URLs, within limits and with patience: pages, metadata, parts of wheels.

Everything an index sends is bounded in size, and so are redirects and retries. ``file:`` URLs are
read the same way. One session serves all threads of one command.
"""

from __future__ import annotations

import email.utils
import hashlib
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
from hishel import CacheOptions
from hishel.httpx import CacheTransport

from pep_variants.errors import redacted
from pep_variants.parts import Part, read_content_range
from pep_variants.plugins.sources import Sources

from .errors import AccessDenied, BadAnswer, NotFound, Unreachable
from .http_cache import AnswerStorage
from .store import Store
from .transport import Authorizing, Routes

MAX_REDIRECTS = 10
RETRIES = 4
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0
TIMEOUT = 15.0
CHUNK = 256 * 1024

_OK = 200
_PARTIAL = 206
_PARTS_OR_NONE = (206, 416, 501)
_GONE = (404, 410)
_DENIED = (401, 403, 407)
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_ALGORITHMS = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")

_T = TypeVar("_T")


@dataclass(frozen=True)
class Answer:
    """What was found at a URL.

    Attributes:
        url: where it was in the end, without credentials.
        content_type: header of the answer; made up for files.
        body: contents, decompressed.
    """

    url: str
    content_type: str
    body: bytes


@dataclass
class Traffic:
    """How much a session has asked for over the network; for people and for tests.

    Attributes:
        requests: requests sent, retries and redirects included.
    """

    requests: int = 0


class Session:
    """Gets what is at a URL; safe to use from several threads.

    Attributes:
        store: where answers are kept, None without a cache.
        traffic: what went over the network so far.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        store: Store | None = None,
        environ: Mapping[str, str] | None = None,
        retries: int = RETRIES,
        first_pause: float = FIRST_PAUSE,
        keyring: bool = True,
    ) -> None:
        """Set up.

        Args:
            sources: the user's settings for indexes; credentials in their URLs are learnt here.
            store: keeps answers between commands.
            environ: environment variables, those of this process by default.
            retries: how often a request is sent again.
            first_pause: seconds before the first retry; doubles with each.
            keyring: ask the keyring when an index wants to know who is there.
        """
        environ = os.environ if environ is None else environ
        self.store = store
        self.traffic = Traffic()
        self._retries = retries
        self._first_pause = first_pause
        self._closed = threading.Event()
        self._access = Authorizing(
            _Counting(Routes(sources, environ), self.traffic), environ, keyring=keyring
        )
        for url in (*sources.indexes, *sources.links):
            self.learn(url)
        transport: httpx.BaseTransport = self._access
        if store is not None:
            transport = CacheTransport(
                transport,
                storage=AnswerStorage(store),
                rfc=CacheOptions(shared=False, allow_stale=False),
            )
        self._client = httpx.Client(
            transport=transport,
            timeout=sources.timeout or TIMEOUT,
            headers={"User-Agent": "pep-variants", "Accept-Encoding": "gzip, deflate"},
            trust_env=False,
        )

    def learn(self, url: str) -> str:
        """Remember the credentials in the URL of an index; return it without them."""
        return self._access.learn(url)

    def learn_token(self, url: str, token: str) -> None:
        """Remember the bearer token of an index."""
        self._access.learn_token(url, token)

    def tells(self, url: str) -> bool:
        """Return whether the host of *url* has been told who is there, so that answers are private.

        Hosts that nobody asked yet have not.
        """
        return self._access.tells(url)

    def close(self) -> None:
        """Close all connections; threads that wait to try again give up."""
        self._closed.set()
        self._client.close()

    def fetch(
        self,
        url: str,
        *,
        limit: int,
        accept: str = "*/*",
        revalidate: bool = False,
        hashes: Mapping[str, str] | None = None,
        seconds: float = math.inf,
    ) -> Answer:
        """Return what is at *url*.

        Args:
            url: http, https or file.
            limit: the most bytes that are taken.
            accept: media types.
            revalidate: ask the server whether what the cache has is still good, however long it
                was promised to be.
            hashes: hexadecimal digests by algorithm; all that are known here have to fit.
            seconds: that the body may take once it has begun, however steadily it trickles.

        Raises:
            IndexProblem: it cannot be had, is too large, or its hash differs.
        """
        if is_local(url):
            answer = _read_file(url, limit)
        else:
            headers = {"Accept": accept}
            if revalidate:
                headers["Cache-Control"] = "no-cache"
            answer = self._patiently(url, headers, lambda reply: _whole(reply, url, limit, seconds))
        check = Digests(hashes or {})
        check.update(answer.body)
        check.compare(url)
        return answer

    @contextmanager
    def stream(self, url: str) -> Iterator[Iterator[bytes]]:
        """Yield the chunks of what is at *url*, past the cache: for whole wheels.

        A transfer that breaks off is an error; start again.

        Raises:
            IndexProblem: it cannot be had.
        """
        if is_local(url):
            with _opened(url) as file:
                yield iter(lambda: file.read(CHUNK), b"")
            return
        # Without compression, so that nothing but the file itself comes.
        headers = {"Accept-Encoding": "identity", "Cache-Control": "no-store"}
        reply = self._patiently(url, headers, lambda reply: reply)
        with closing(reply):
            yield _chunks(reply, url)

    def part(self, url: str, start: int | None, length: int) -> Part | None:
        """Return a part of the file at *url*, None if the server gives no parts.

        Args:
            url: http or https.
            start: place of the first byte, None for the last *length* bytes.
            length: how many bytes.

        Raises:
            IndexProblem: it cannot be had.
        """
        wanted = f"-{length}" if start is None else f"{start}-{start + length - 1}"
        headers = {
            "Range": f"bytes={wanted}",
            "Accept-Encoding": "identity",
            "Cache-Control": "no-store",
        }
        return self._patiently(
            url, headers, lambda reply: _part(reply, url, length), allowed=_PARTS_OR_NONE
        )

    def _patiently(
        self,
        url: str,
        headers: Mapping[str, str],
        take: Callable[[httpx.Response], _T],
        *,
        allowed: tuple[int, ...] = (),
    ) -> _T:
        """Return what *take* makes of the answer, which it closes; try again if that may help."""
        if "@" in url:
            url = self.learn(url)
        for attempt in range(self._retries + 1):
            pause = self._first_pause * 2**attempt * (1 + random.random() / 4)  # noqa: S311
            try:
                reply = self._send(url, headers)
                if reply.status_code not in _BUSY or reply.status_code in allowed:
                    _check_status(reply, url, allowed)
                    return take(reply)
                asked = _retry_after(reply)
                reply.close()
                problem = Unreachable(
                    f"{redacted(url)}: the server cannot answer now "
                    f"(HTTP status {reply.status_code}): try later"
                )
                pause = max(pause, asked)
            except (httpx.TimeoutException, httpx.NetworkError, httpx.ProtocolError) as error:
                problem = Unreachable(f"{redacted(url)}: {_reason(error)}")
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise BadAnswer(f"{redacted(url)}: {_reason(error)}") from None
            if attempt == self._retries or pause > LONGEST_PAUSE or self._closed.wait(pause):
                raise problem
        raise AssertionError("the last attempt returns or raises")

    def _send(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        request = self._client.build_request("GET", url, headers=headers)
        for _ in range(MAX_REDIRECTS + 1):
            reply = self._client.send(request, stream=True)
            following = reply.next_request
            if following is None:
                return reply
            reply.close()
            if request.url.scheme == "https" and following.url.scheme != "https":
                raise BadAnswer(f"{redacted(url)}: redirects to a place without https")
            # Somebody else's idea of who we are; and it would be in messages.
            request = following
            request.url = request.url.copy_with(userinfo=b"")
        raise BadAnswer(f"{redacted(url)}: redirects more than {MAX_REDIRECTS} times")


class Digests:
    """Hashes of what goes by, to be compared with what was promised."""

    def __init__(self, promised: Mapping[str, str]) -> None:
        """Start; of *promised* (hexadecimal, by algorithm) all known algorithms count."""
        self._promised = {name: promised[name] for name in _ALGORITHMS if name in promised}
        self._found = {name: hashlib.new(name) for name in self._promised}

    @classmethod
    def of(cls, algorithms: Iterable[str]) -> Digests:
        """Return what only finds out digests, of all known ones of *algorithms*."""
        digests = cls({})
        digests._found = {name: hashlib.new(name) for name in algorithms if name in _ALGORITHMS}
        return digests

    @property
    def found(self) -> dict[str, str]:
        """Hexadecimal digests of what went by, by algorithm."""
        return {name: digest.hexdigest() for name, digest in self._found.items()}

    def update(self, chunk: bytes) -> None:
        """Take in the next bytes."""
        for digest in self._found.values():
            digest.update(chunk)

    def compare(self, source: str) -> None:
        """Raise BadAnswer if a hash is not what was promised; *source* is for the message."""
        for name, promised in self._promised.items():
            found = self._found[name].hexdigest()
            if found != promised.lower():
                raise BadAnswer(
                    f"{redacted(source)}: does not have the {name} hash that was promised: "
                    f"expected {promised}, found {found}"
                )


class _Counting(httpx.BaseTransport):
    """Counts what is really sent."""

    def __init__(self, below: httpx.BaseTransport, traffic: Traffic) -> None:
        self._below = below
        self._traffic = traffic
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self._traffic.requests += 1
        return self._below.handle_request(request)

    def close(self) -> None:
        self._below.close()


def is_local(url: str) -> bool:
    """Return whether *url* names a file of this machine."""
    return url[:5].lower() == "file:"


def local_path(url: str) -> Path:
    """Return the path of a ``file:`` URL."""
    parts = urlsplit(url)
    host = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return Path(url2pathname(host + parts.path))


def _opened(url: str) -> IO[bytes]:
    path = local_path(url)
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such file") from None
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror or error}") from None


def _read_file(url: str, limit: int) -> Answer:
    with _opened(url) as file:
        body = file.read(limit + 1)
    if len(body) > limit:
        raise BadAnswer(f"{local_path(url)}: is larger than {limit} bytes, the most that is read")
    return Answer(url, "text/html" if url.endswith(".html") else "", body)


def _whole(reply: httpx.Response, url: str, limit: int, seconds: float) -> Answer:
    end = time.monotonic() + seconds
    with closing(reply):
        body = bytearray()
        for chunk in reply.iter_bytes(CHUNK):
            body += chunk
            if len(body) > limit:
                raise BadAnswer(
                    f"{redacted(url)}: is larger than {limit} bytes, the most that is read"
                )
            if time.monotonic() > end:
                raise Unreachable(
                    f"{redacted(url)}: no complete answer in time ({seconds:g} seconds)"
                )
        return Answer(str(reply.url), reply.headers.get("Content-Type", ""), bytes(body))


def _chunks(reply: httpx.Response, url: str) -> Iterator[bytes]:
    try:
        yield from reply.iter_raw(CHUNK)
    except httpx.HTTPError as error:
        raise Unreachable(f"{redacted(url)}: {_reason(error)}") from None


def _part(reply: httpx.Response, url: str, length: int) -> Part | None:
    with closing(reply):
        if reply.status_code != _PARTIAL:
            return None
        span = read_content_range(reply.headers.get("Content-Range", ""))
        if span is None:
            return None
        start, size, total = span
        if size > length:
            raise BadAnswer(f"{redacted(url)}: the server sends more than the part asked for")
        data = bytearray()
        for chunk in reply.iter_raw(CHUNK):
            data += chunk
            if len(data) > size:
                break
        if len(data) != size:
            raise BadAnswer(f"{redacted(url)}: the server sends another part than it says")
        return Part(bytes(data), start, total, reply.headers.get("ETag", ""))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _check_status(reply: httpx.Response, url: str, allowed: tuple[int, ...]) -> None:
    status = reply.status_code
    if status == _OK or status in allowed:
        return
    reply.close()
    place = redacted(url)
    if status in _GONE:
        raise NotFound(f"{place}: not found (HTTP status {status})")
    if status in _DENIED:
        raise AccessDenied(
            f"{place}: access denied (HTTP status {status}): put user name and password into the "
            "URL of the index, netrc or keyring"
        )
    raise BadAnswer(f"{place}: HTTP status {status}")


def _retry_after(reply: httpx.Response) -> float:
    """Return for how many seconds the server asks to wait, 0 if it does not say."""
    text = reply.headers.get("Retry-After", "")
    if _is_number(text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _reason(error: Exception) -> str:
    # Messages of the libraries may hold the URL of a proxy, or what a server sent.
    text = redacted("".join(c if c.isprintable() else "?" for c in str(error)[:200]))
    words: dict[type[Exception], str] = {
        httpx.ConnectTimeout: "no connection in time",
        httpx.ReadTimeout: "no answer in time",
        httpx.ConnectError: f"no connection ({text})",
        httpx.RemoteProtocolError: f"the answer is cut off or garbled ({text})",
    }
    return words.get(
        type(error), f"{type(error).__name__}: {text}" if text else type(error).__name__
    )

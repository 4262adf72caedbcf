"""Requests that are sent on as they came, and their responses, without storing either.

The method, the target, all headers of the message itself (credentials among them) and the body are
the client's; redirects, statuses and encodings are the upstream's. Only what concerns the single
connection (RFC 9110, section 7.6.1) is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import httpcore

from variants_index.http.user_proxies import InvalidProxy, UserProxy

from ..errors import UvVariantsError
from .connecting import cause
from .network_backend import AsyncioBackend
from .request_head import BadRequest
from .route import Receive, Scope, Send

if TYPE_CHECKING:
    from .outbound import Outbound

_TIMEOUTS: Final = {"connect": 30.0, "read": 120.0, "write": 120.0, "pool": 60.0}
_WAYS: Final = 16
"""Different ways to the outside (proxy, certificates) whose connections are kept."""
_IDLE_SECONDS: Final = 15.0
_CONNECTIONS: Final = 256
_KEPT: Final = 64
"""Of one way: connections at a time, and those that are kept; uv sends fifty requests at a time."""

HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_REPEATABLE = ("GET", "HEAD")


class ForwardingFailed(UvVariantsError):
    """A request that got no response.

    Attributes:
        status: of the response that says so.
    """

    def __init__(self, message: str, status: int = 502) -> None:
        self.status = status
        super().__init__(message)


_BROKEN_OFF = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    ssl.SSLError,
)


class Answer:
    """A response whose head was received.

    Attributes:
        status: of the response.
        headers: those of the message itself.
    """

    def __init__(self, response: httpcore.Response, place: str) -> None:
        self._response = response
        self._place = place
        self.status = response.status if response.status < 600 else 502
        self.headers = _end_to_end(response.headers)
        if any(name == b"transfer-encoding" for name, _ in _lowered(response.headers)):
            # A length beside it does not count (RFC 9112, section 6.3).
            self.headers = [each for each in self.headers if each[0] != b"content-length"]

    async def send(self, send: Send) -> None:
        """Send it to the client, whose speed the upstream has to keep to.

        Raises:
            ConnectionAbortedError: the upstream fails: the response is not complete.
        """
        try:
            await self._send_head(send)
            assert isinstance(self._response.stream, AsyncIterable)
            async for chunk in self._response.stream:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except _BROKEN_OFF as error:
            raise ConnectionAbortedError(f"{self._place}: {_words(error)}") from None
        finally:
            await self.close()

    async def send_whole(self, send: Send, limit: int, begin: Callable[[], None]) -> bool:
        """Send it to the client once all of it is here; return False if it is not sent.

        That is a redirect, one that has to be decompressed, or one of more than *limit* bytes.
        *begin* is called before it is sent.

        Raises:
            ConnectionAbortedError: the upstream fails: the response is not complete.
        """
        names = {name for name, _ in _lowered(self.headers)}
        if 300 <= self.status < 400 or b"content-encoding" in names:
            await self.close()
            return False
        body = bytearray()
        problem: Exception | None = None
        assert isinstance(self._response.stream, AsyncIterable)
        try:
            async for chunk in self._response.stream:
                body += chunk
                if len(body) > limit:
                    return False
        except _BROKEN_OFF as error:
            problem = error
        finally:
            await self.close()
        begin()
        await self._send_head(send)
        rest = {"type": "http.response.body", "body": bytes(body)}
        await send({**rest, "more_body": problem is not None})
        if problem is not None:
            raise ConnectionAbortedError(f"{self._place}: {_words(problem)}")
        return True

    async def _send_head(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})

    async def close(self) -> None:
        """Give up the rest of the response."""
        with contextlib.suppress(httpcore.NetworkError, httpcore.ProtocolError):
            await self._response.aclose()


class Forwarder:
    """Sends requests on; belongs to one event loop."""

    def __init__(self) -> None:
        self._ways: OrderedDict[object, httpcore.AsyncConnectionPool] = OrderedDict()

    async def close(self) -> None:
        """Close all connections."""
        while self._ways:
            with contextlib.suppress(RuntimeError):
                await self._ways.popitem()[1].aclose()

    async def forward(self, scope: Scope, receive: Receive, send: Send, outbound: Outbound) -> None:
        """Send a request on, and its response back; 502 or 504 with the cause if there is none."""
        has_body = _has_body(scope)

        async def exchange() -> None:
            try:
                answer = await self.answer(scope, receive, outbound)
            except BadRequest as error:
                await refuse(send, error.status, str(error))
                return
            except ForwardingFailed as error:
                await send_text(send, error.status, str(error))
                return
            if has_body:
                await while_connected(receive, answer.send(send))
            else:
                await answer.send(send)

        await (exchange() if has_body else while_connected(receive, exchange()))

    async def answer(self, scope: Scope, receive: Receive, outbound: Outbound) -> Answer:
        """Send a request on, and return its response.

        Args:
            scope: scheme, server, path and headers of the request.
            receive: for its body.
            outbound: the way to the host.

        Raises:
            ForwardingFailed: there is no response.
            BadRequest: the request has no clear end.
        """
        scheme: str = scope["scheme"]
        host, port = scope["server"]
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        request = _request(scope, receive, scheme, host, port)
        repeatable = scope["method"] in _REPEATABLE and not _has_body(scope)
        try:
            proxy = outbound.proxy(scheme, host)
            is_plain = scheme == "http" and proxy is None
            tls = None if is_plain else outbound.tls(host, port)
            pool = self._way(proxy, outbound, tls)
        except (InvalidProxy, OSError) as error:
            raise ForwardingFailed(f"{place}: {cause(error)}") from None
        for attempt in (1, 2):
            try:
                response = await pool.handle_async_request(request)
                break
            except (httpcore.RemoteProtocolError, ssl.SSLError) as error:
                # The upstream may close a kept connection just when it gets a request.
                if attempt == 2 or not repeatable:
                    raise ForwardingFailed(f"{place}: {_words(error)}") from None
            except httpcore.TimeoutException as error:
                raise ForwardingFailed(f"{place}: {_words(error)}", 504) from None
            except (
                httpcore.NetworkError,
                httpcore.ProtocolError,
                httpcore.ProxyError,
                httpcore.UnsupportedProtocol,
            ) as error:
                through = f" (through the proxy {proxy.place})" if proxy else ""
                words = _words(error)  # those of `connecting` have the place in front
                text = words if words.startswith(place) else f"{place}{through}: {words}"
                raise ForwardingFailed(text) from None
        if response.status == 407 and proxy is not None:
            await response.aclose()
            raise ForwardingFailed(f"the proxy {proxy.place}: wants user name and password")
        return Answer(response, place)

    def _way(
        self, proxy: UserProxy | None, outbound: Outbound, tls: ssl.SSLContext | None
    ) -> httpcore.AsyncConnectionPool:
        key = (proxy, tls)
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = httpcore.AsyncConnectionPool(
                ssl_context=tls,
                proxy=_proxy(proxy, outbound),
                max_connections=_CONNECTIONS,
                max_keepalive_connections=_KEPT,
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=_backend(proxy),
            )
            if len(self._ways) > _WAYS:
                # Requests in progress keep their connections; idle ones end with the object.
                self._ways.popitem(last=False)
        self._ways.move_to_end(key)
        return way


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do *work*, which is cancelled if the client disconnects; *receive* is of its connection."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (task, watch):
            each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)
    if not task.cancelled():
        task.result()


async def send_text(
    send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a response of one line."""
    body = f"{text}\n".encode()
    fields = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def refuse(
    send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a response of one line, after which the connection ends: what follows is not read."""
    await send_text(send, status, text, (*headers, (b"connection", b"close")))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _request(scope: Scope, receive: Receive, scheme: str, host: str, port: int) -> httpcore.Request:
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    # Lower case is what the parser made of them, and not every server takes it.
    headers = [(_spelled(name), value) for name, value in _end_to_end(scope["headers"])]
    content: AsyncIterator[bytes] | None = None
    if _has_body(scope):
        names = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= names:
            raise BadRequest("a request has a length or is chunked, not both")
        if b"transfer-encoding" in names:
            headers.append((b"Transfer-Encoding", b"chunked"))
        content = _body(receive)
    return httpcore.Request(
        scope["method"],
        httpcore.URL(scheme=scheme.encode(), host=host.encode(), port=port, target=target),
        headers=headers,
        content=content,
        extensions={"timeout": _TIMEOUTS},
    )


@lru_cache(maxsize=256)
def _spelled(name: bytes) -> bytes:
    return b"-".join(part.capitalize() for part in name.split(b"-"))


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise httpcore.ReadError("the client disconnected")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def _lowered(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in headers]


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    lowered = _lowered(headers)
    named = {
        word.strip().lower()
        for name, value in lowered
        if name == b"connection"
        for word in value.split(b",")
    }
    return [each for each in lowered if each[0] not in HOP_BY_HOP and each[0] not in named]


def _proxy(proxy: UserProxy | None, outbound: Outbound) -> httpcore.Proxy | None:
    if proxy is None or proxy.scheme.startswith("socks"):
        return None
    auth = None
    if proxy.username or proxy.password:
        auth = (proxy.username.encode(), proxy.password.encode())
    url = httpcore.URL(
        scheme=proxy.scheme.encode(), host=proxy.host.encode(), port=proxy.port, target=b"/"
    )
    tls = outbound.tls(proxy.host, proxy.port) if proxy.scheme == "https" else None
    return httpcore.Proxy(url, auth=auth, ssl_context=tls)


def _backend(proxy: UserProxy | None) -> httpcore.AsyncNetworkBackend | None:
    if proxy is None or proxy.scheme == "http":
        return AsyncioBackend()
    # TLS to the proxy and to the host within: the one of httpcore.
    return AsyncioBackend(proxy) if proxy.scheme.startswith("socks") else None


def _words(error: BaseException) -> str:
    """Return the cause of an error of httpcore: what the system or TLS said, if they did."""
    seen: BaseException | None = error
    found = error
    for _ in range(10):
        if seen is None:
            break
        if isinstance(seen, OSError) and (seen.errno is not None or isinstance(seen, ssl.SSLError)):
            found = seen
        seen = seen.__cause__ or seen.__context__
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (httpcore.ConnectTimeout, "no connection in time"),
        (httpcore.ReadTimeout, "no response in time"),
        (httpcore.PoolTimeout, "too many connections"),
    )
    for kind, words in kinds:
        if isinstance(error, kind):
            return words
    return cause(found)

"""Requests that are sent on as they came, and their responses, without storing either.

The method, the target, all headers of the message itself (credentials among them) and the body are
the client's; redirects, statuses and encodings are the upstream's. Only what concerns the single
connection (RFC 9110, section 7.6.1) is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from typing import Any, Final

import httpcore

from variants_index.internal import InvalidProxy, UserProxy, certificate_error

from ..errors import UvVariantsError
from .route import Outbound, Receive, Scope, Send, address
from .tunnel import cause

FAILED: Final = 424
"""Status for what a repetition does not help: uv repeats requests after those above 499."""
_TIMEOUTS: Final = {"connect": 30.0, "read": 120.0, "write": 120.0, "pool": 60.0}
_CONNECTIONS: Final = 256
_KEPT: Final = 64
"""Connections at a time, and those that are kept; uv sends fifty requests at a time."""

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
_FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    ssl.SSLError,
)

Headers = list[tuple[bytes, bytes]]


class BadRequest(Exception):
    """A request that is refused.

    Attributes:
        status: of the response.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class ForwardingFailed(UvVariantsError):
    """A request that got no response.

    Attributes:
        status: of the response that says so.
    """

    def __init__(self, message: str, status: int = 502) -> None:
        self.status = status
        super().__init__(message)


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
        if _has(response.headers, b"transfer-encoding"):
            # A length beside it does not count (RFC 9112, section 6.3).
            self.headers = [each for each in self.headers if each[0] != b"content-length"]

    async def send(self, send: Send) -> None:
        """Send it to the client, whose speed the upstream has to keep to.

        Raises:
            ConnectionAbortedError: the upstream fails: the response is not complete.
        """
        try:
            await self._send_head(send)
            async for chunk in self._body():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except _FAILURES as error:
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
        body = bytearray()
        problem: Exception | None = None
        try:
            if 300 <= self.status < 400 or _has(self.headers, b"content-encoding"):
                return False
            async for chunk in self._body():
                body += chunk
                if len(body) > limit:
                    return False
        except _FAILURES as error:
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

    def _body(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, AsyncIterable)
        return self._response.stream.__aiter__()

    async def _send_head(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})

    async def close(self) -> None:
        """Give up the rest of the response."""
        with contextlib.suppress(*_FAILURES):
            await self._response.aclose()


class Forwarder:
    """Sends requests on; belongs to one event loop."""

    def __init__(self) -> None:
        self._ways: dict[object, httpcore.AsyncConnectionPool] = {}

    async def close(self) -> None:
        """Close all connections."""
        while self._ways:
            with contextlib.suppress(RuntimeError):
                await self._ways.popitem()[1].aclose()

    async def forward(self, scope: Scope, receive: Receive, send: Send, outbound: Outbound) -> None:
        """Send a request on, and its response back; a line with the cause if there is none."""
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
        place = address(host, port)
        request = _request(scope, receive, scheme, host, port)
        attempts = 2 if scope["method"] in _REPEATABLE and not _has_body(scope) else 1
        try:
            proxy = outbound.proxy(scheme, host)
            tls = outbound.tls(host, port) if scheme == "https" or proxy is not None else None
            way = self._way(proxy, tls, outbound)
        except (InvalidProxy, OSError) as error:
            raise ForwardingFailed(f"{place}: {cause(error)}", FAILED) from None
        through = f"{place} (through the proxy {proxy.place})" if proxy else place
        while True:
            attempts -= 1
            try:
                response = await way.handle_async_request(request)
                break
            except httpcore.RemoteProtocolError as error:
                # The upstream may close a kept connection just when it gets a request.
                if not attempts:
                    raise ForwardingFailed(f"{place}: {_words(error)}") from None
            except httpcore.TimeoutException as error:
                raise ForwardingFailed(f"{through}: {_words(error)}", 504) from None
            except _FAILURES as error:
                status = FAILED if certificate_error(error) else 502
                raise ForwardingFailed(f"{through}: {_words(error)}", status) from None
        if response.status == 407 and proxy is not None:
            await response.aclose()
            raise ForwardingFailed(f"the proxy {proxy.place}: wants user name and password")
        return Answer(response, place)

    def _way(
        self, proxy: UserProxy | None, tls: ssl.SSLContext | None, outbound: Outbound
    ) -> httpcore.AsyncConnectionPool:
        key = (proxy, tls)
        if key not in self._ways:
            self._ways[key] = httpcore.AsyncConnectionPool(
                ssl_context=tls,
                proxy=None if proxy is None else _proxy(proxy, outbound),
                max_connections=_CONNECTIONS,
                max_keepalive_connections=_KEPT,
            )
        return self._ways[key]


def _proxy(proxy: UserProxy, outbound: Outbound) -> httpcore.Proxy:
    url = httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target="/")
    auth = (proxy.username, proxy.password) if proxy.username or proxy.password else None
    tls = outbound.tls(proxy.host, proxy.port) if proxy.scheme == "https" else None
    return httpcore.Proxy(url, auth=auth, ssl_context=tls)


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


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise httpcore.ReadError("the client disconnected")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _request(scope: Scope, receive: Receive, scheme: str, host: str, port: int) -> httpcore.Request:
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    headers = _end_to_end(scope["headers"])
    content: AsyncIterator[bytes] | None = None
    if _has_body(scope):
        if _has(scope["headers"], b"content-length") and _has(
            scope["headers"], b"transfer-encoding"
        ):
            raise BadRequest("a request has a length or is chunked, not both")
        if _has(scope["headers"], b"transfer-encoding"):
            headers.append((b"transfer-encoding", b"chunked"))
        content = _body(receive)
    return httpcore.Request(
        scope["method"],
        httpcore.URL(scheme=scheme.encode(), host=host.encode(), port=port, target=target),
        headers=headers,
        content=content,
        extensions={"timeout": _TIMEOUTS},
    )


def _has(headers: Headers, wanted: bytes) -> bool:
    return any(name.lower() == wanted for name, _ in headers)


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def _end_to_end(headers: Headers) -> Headers:
    lowered = [(name.lower(), value) for name, value in headers]
    named = {
        word.strip().lower()
        for name, value in lowered
        if name == b"connection"
        for word in value.split(b",")
    }
    return [each for each in lowered if each[0] not in HOP_BY_HOP and each[0] not in named]


def _words(error: BaseException) -> str:
    """Return the cause of an error of httpcore: what the system or TLS said, if they did."""
    if isinstance(error, httpcore.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpcore.TimeoutException):
        return "no response in time"
    found: BaseException = error
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and (seen.errno is not None or isinstance(seen, ssl.SSLError)):
            found = seen
        seen = seen.__cause__ or seen.__context__
    return cause(found)

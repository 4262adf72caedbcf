"""Requests that are sent on as they came, and their responses, without storing either.

The method, the target, all headers of the message itself (credentials among them) and the body are
the client's; redirects, statuses and encodings are the upstream's. Only what concerns the single
connection (RFC 9110, section 7.6.1) is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import h11

from variants_index.http import InvalidProxy, UserProxy

from .outbound import (
    FAILED,
    HostUnreachable,
    Outbound,
    Receive,
    Scope,
    Send,
    Streams,
    address,
    cause,
    dial,
    is_asked,
    tls_errors,
)

_SECONDS: Final = 120.0
"""Seconds until an upstream sends, or takes, the next bytes."""
_CHUNK: Final = 64 * 1024
_HEAD_BYTES: Final = 256 * 1024
_KEPT: Final = 64
"""Connections that are kept for the next requests; uv sends fifty at a time."""

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
_BROKEN = (OSError, EOFError, h11.ProtocolError, asyncio.TimeoutError)
"""What a connection to an upstream fails with."""

Headers = list[tuple[bytes, bytes]]


class BadRequest(Exception):
    """A request that is refused.

    Attributes:
        status: of the response.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class _Connection:
    """A connection to an upstream, for one request after the other.

    Not one of httpcore's pool: `dial` would make them all the same (proxies that resolve no names),
    and with anyio's streams a wheel comes within TLS at a third of the speed.

    Attributes:
        is_new: whether it has had no response yet.
    """

    def __init__(self, streams: Streams, kept: list[_Connection]) -> None:
        self._reader, self._writer = streams
        self._http = h11.Connection(h11.CLIENT, _HEAD_BYTES)
        self._kept = kept
        self.is_new = True

    @property
    def is_usable(self) -> bool:
        """Whether the upstream has not closed it."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def ask(self, request: h11.Request, body: AsyncIterator[bytes] | None) -> h11.Response:
        """Send a request; return the head of its response.

        Raises:
            OSError, EOFError, h11.ProtocolError, asyncio.TimeoutError: there is none.
        """
        await self._send(request)
        with contextlib.suppress(ConnectionError):  # it may have said why it reads no more
            async for chunk in body or _nothing():
                await self._send(h11.Data(chunk))
            await self._send(h11.EndOfMessage())
        while isinstance(event := await self._next(), h11.InformationalResponse):
            if event.status_code == 101:
                raise h11.RemoteProtocolError("the upstream changes the protocol")
        if not isinstance(event, h11.Response):
            raise EOFError
        return event

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body of the response; then the connection is free for another request."""
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise EOFError
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            if len(self._kept) < _KEPT and not self._http.trailing_data[0]:
                self.is_new = False
                self._kept.append(self)
                return
        self.close()

    def close(self) -> None:
        """End it."""
        self._writer.close()

    async def _send(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            self._writer.write(data)
            with tls_errors():
                await asyncio.wait_for(self._writer.drain(), _SECONDS)

    async def _next(self) -> Any:  # noqa: ANN401 - h11's events have no common type
        while (event := self._http.next_event()) is h11.NEED_DATA:
            with tls_errors():
                data = await asyncio.wait_for(self._reader.read(_CHUNK), _SECONDS)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise EOFError
            self._http.receive_data(data)
        return event


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


class UpstreamAnswer:
    """A response whose head was received.

    Attributes:
        status: of the response.
        headers: those of the message itself.
    """

    def __init__(self, response: h11.Response, connection: _Connection, place: str) -> None:
        self._connection = connection
        self._place = place
        self.status = response.status_code if response.status_code < 600 else 502
        received = [(bytes(name), bytes(value)) for name, value in response.headers]
        self.headers = _end_to_end(received)
        if _has(received, b"transfer-encoding"):
            # A length beside it does not count (RFC 9112, section 6.3).
            self.headers = [each for each in self.headers if each[0] != b"content-length"]

    async def send(self, send: Send) -> None:
        """Send it to the client, whose speed the upstream has to keep to.

        Raises:
            ConnectionAbortedError: the upstream fails: the response is not complete.
        """
        try:
            await self._send_head(send)
            async for chunk in self._connection.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except BaseException as error:
            self.close()
            if isinstance(error, _BROKEN):
                raise ConnectionAbortedError(f"{self._place}: {_words(error)}") from None
            raise
        await send({"type": "http.response.body", "body": b""})

    async def send_whole(self, send: Send, limit: int, begin: Callable[[], None]) -> bool:
        """Send it to the client once all of it is here; return False if it is not sent.

        That is a redirect, one that has to be decompressed, or one of more than *limit* bytes.
        *begin* is called before it is sent. Without its validators: the client shall ask for all
        of it again.

        Raises:
            ConnectionAbortedError: the upstream fails: the response is not complete.
        """
        if 300 <= self.status < 400 or _has(self.headers, b"content-encoding"):
            self.close()
            return False
        body, problem = await self._read(limit)
        if body is None:
            return False
        begin()
        self.headers = [each for each in self.headers if each[0] not in _VALIDATORS]
        await self._send_head(send)
        rest = {"type": "http.response.body", "body": body}
        await send({**rest, "more_body": problem is not None})
        if problem is not None:
            raise ConnectionAbortedError(f"{self._place}: {_words(problem)}")
        return True

    async def read(self, limit: int) -> bytes | None:
        """Return the body; None if it is incomplete or has more than *limit* bytes."""
        body, problem = await self._read(limit)
        return body if problem is None else None

    async def _read(self, limit: int) -> tuple[bytes | None, BaseException | None]:
        """Return the body as far as it came, None if it is too large, and what broke it off."""
        body = bytearray()
        try:
            async for chunk in self._connection.chunks():
                body += chunk
                if len(body) > limit:
                    self.close()
                    return None, None
        except _BROKEN as error:
            self.close()
            return bytes(body), error
        except BaseException:
            self.close()
            raise
        return bytes(body), None

    async def _send_head(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})

    def close(self) -> None:
        """Give up the rest of the response."""
        self._connection.close()


class Forwarder:
    """Sends requests on; belongs to one event loop."""

    def __init__(self) -> None:
        self._kept: dict[object, list[_Connection]] = {}

    def close(self) -> None:
        """Close all connections."""
        for kept in self._kept.values():
            while kept:
                kept.pop().close()

    async def forward(self, scope: Scope, receive: Receive, send: Send, outbound: Outbound) -> None:
        """Send a request on, and its response back; a line with the cause if there is none."""
        has_body = _has_body(scope)

        async def exchange() -> None:
            try:
                answer = await self.answer(scope, receive, outbound)
            except BadRequest as error:
                await refuse(send, error.status, str(error))
                return
            except HostUnreachable as error:
                await send_text(send, error.status, str(error))
                return
            if has_body:
                await while_connected(receive, answer.send(send))
            else:
                await answer.send(send)

        await (exchange() if has_body else while_connected(receive, exchange()))

    async def answer(self, scope: Scope, receive: Receive, outbound: Outbound) -> UpstreamAnswer:
        """Send a request on, and return its response.

        Args:
            scope: scheme, server, path and headers of the request.
            receive: for its body.
            outbound: the way to the host.

        Raises:
            HostUnreachable: there is no response.
            BadRequest: the request has no clear end.
        """
        scheme: str = scope["scheme"]
        host, port = scope["server"]
        place = address(host, port)
        try:
            proxy = outbound.proxy(scheme, host)
            tls = outbound.tls(host, port) if scheme == "https" else None
        except (InvalidProxy, OSError) as error:
            raise HostUnreachable(f"{place}: {cause(error)}", FAILED) from None
        request = _request(scope, proxy)
        body = _body(receive) if _has_body(scope) else None
        kept = self._kept.setdefault((scheme, host, port, proxy, tls), [])
        through = f"{place} (through the proxy {proxy.place})" if proxy else place
        while True:
            connection = _from(kept)
            if connection is None:
                connection = _Connection(await dial(host, port, outbound, scheme), kept)
            try:
                response = await connection.ask(request, body)
                break
            except _BROKEN as error:
                connection.close()
                # The upstream may close a kept connection just when it gets a request.
                if connection.is_new or scope["method"] not in _REPEATABLE or body is not None:
                    timed_out = isinstance(error, (asyncio.TimeoutError, TimeoutError))
                    raise HostUnreachable(
                        f"{through}: {_words(error)}", 504 if timed_out else 502
                    ) from None
            except BaseException:
                connection.close()
                raise
        if response.status_code == 407 and proxy is not None:
            connection.close()
            raise HostUnreachable(f"the proxy {proxy.place}: wants user name and password")
        return UpstreamAnswer(response, connection, place)


_VALIDATORS: Final = (b"etag", b"last-modified")


def _from(kept: list[_Connection]) -> _Connection | None:
    """Return a connection that was kept, None if there is none."""
    while kept:
        connection = kept.pop()
        if connection.is_usable:
            return connection
        connection.close()
    return None


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
            raise OSError("the client disconnected")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def _request(scope: Scope, proxy: UserProxy | None) -> h11.Request:
    """Return the request of *scope*, which *proxy* may be asked for.

    Raises:
        BadRequest: it has no clear end.
    """
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    headers = _end_to_end(scope["headers"])
    if _has(scope["headers"], b"transfer-encoding"):
        if _has(scope["headers"], b"content-length"):
            raise BadRequest("a request has a length or is chunked, not both")
        headers.append((b"transfer-encoding", b"chunked"))
    if proxy is not None and is_asked(scope["scheme"], proxy):
        target = f"http://{address(*scope['server'])}".encode() + target
        if proxy.authorization:
            headers.append((b"proxy-authorization", proxy.authorization.encode()))
    return h11.Request(method=scope["method"], target=target, headers=headers)


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
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return "no response in time"
    if isinstance(error, EOFError):
        return "closed the connection without a response"
    return cause(error)

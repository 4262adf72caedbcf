"""Connections of clients: who asks, and what for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from uvicorn.server import ServerState

from variants_index.http.user_proxies import InvalidProxy
from variants_proxy.server.connections import LimitedProtocol, connection_limit
from variants_proxy.server.server import limited_config

from .authority import Authority, AuthorityFailed
from .connecting import Unreachable
from .dialing import dial
from .forwarding import Forwarder, refuse
from .request_head import (
    BadRequest,
    ConnectRequest,
    first_bytes,
    is_connect,
    read_authority,
    read_connect,
    session_credentials,
)
from .route import PORTS, Application, Receive, Route, Scope, Send
from .tunnel import SocketEnd, join

if TYPE_CHECKING:
    from uvicorn import Config

logger = logging.getLogger(__name__)

HEAD_SECONDS: Final = 10.0
"""Seconds for a connection's first request, and for the greeting of TLS."""
PENDING: Final = 128
"""Connections whose client has not said who it is; above it the oldest ends."""
GRACE_SECONDS: Final = 1.0
"""Seconds for requests in progress when serving ends."""

_WRONG_SESSION = (
    "this proxy is for commands that uv-variants runs: the session of this one is unknown or has "
    "ended. Unset HTTP_PROXY and HTTPS_PROXY, or run the command with uv-variants"
)
_CHALLENGE = (b"proxy-authenticate", b'Basic realm="uv-variants"')
_REASONS = {
    400: "Bad Request",
    407: "Proxy Authentication Required",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}
Sessions = Callable[[str, str], "Route | Awaitable[Route | None] | None"]


class Transport:
    """An HTTP proxy at sockets of loopback; one event loop serves all sessions."""

    def __init__(
        self,
        authority: Authority,
        sessions: Sessions,
        direct: Application,
        forwarder: Forwarder | None = None,
    ) -> None:
        """Set up.

        Args:
            authority: signs the certificates for hosts of indexes.
            sessions: from id and token to the route of a session, None for wrong ones; it may wait
                for one that is being restored. Called for every connection and every request;
                compares in constant time.
            direct: answers requests for the port itself, as for a web server; it checks
                ``Authorization`` itself.
            forwarder: for requests of plain http to other hosts; one of its own by default.
        """
        self._authority = authority
        self._sessions = sessions
        self._forwarder = forwarder or Forwarder()
        self._direct = direct
        self._config: Config = limited_config(direct)
        self._config.load()
        self._state = ServerState()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending: dict[asyncio.Task[None], None] = {}
        self._ended: asyncio.Event | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no connection is open."""
        return not self._tasks and not self._state.connections

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Serve at *sockets*, which listen and are closed here, until `close` or cancelled."""
        self._ended = asyncio.Event()
        for each in sockets:
            each.setblocking(False)
        accepting = [asyncio.ensure_future(self._accept(each)) for each in sockets]
        try:
            await self._ended.wait()
        finally:
            for task in accepting:
                task.cancel()
            await asyncio.gather(*accepting, return_exceptions=True)
            for each in sockets:
                each.close()  # so a client that is too late does not wait
            await self._shut_down()

    def close(self) -> None:
        """End serving: no new connections; those in progress get a second. From the loop only."""
        if self._ended is not None:
            self._ended.set()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                if listening.fileno() == -1:
                    return
                logger.warning("no connection can be accepted: %s", error.strerror)
                await asyncio.sleep(0.1)  # no file descriptors: others have to end first
                continue
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = asyncio.ensure_future(self._connection(connection))
            self._tasks.add(task)
            self._pending[task] = None
            task.add_done_callback(self._forget)
            if len(self._pending) > PENDING:
                next(iter(self._pending)).cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._pending.pop(task, None)

    async def _connection(self, connection: socket.socket) -> None:
        """Handle a connection until it ends, or until uvicorn's protocol has it."""
        owned = True
        try:
            first = await asyncio.wait_for(first_bytes(connection), HEAD_SECONDS)
            self._identified()
            if not first:
                return
            if len(self._tasks) + len(self._state.connections) > connection_limit():
                await _refuse(connection, 503, "too many connections")
            elif is_connect(first):
                owned = await self._connect(connection, read_connect(first))
            else:
                owned = False
                await self._http(connection, PortApplication(self), first=first)
        except BadRequest as error:
            await _refuse(connection, error.status, str(error))
        except (OSError, asyncio.TimeoutError, TimeoutError):
            pass  # the client is gone, or too slow
        finally:
            if owned:
                connection.close()

    def _identified(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._pending.pop(task, None)

    async def _connect(self, connection: socket.socket, request: ConnectRequest) -> bool:
        """Answer a CONNECT request; return whether the socket is still this module's."""
        route = await self.route(request.credentials)
        if route is None or request.credentials is None:
            await _refuse(connection, 407, _WRONG_SESSION, _CHALLENGE)
            return True
        session = request.credentials[0]
        # Programs that uv starts, as git, do not have the authority in their own settings.
        if ("https", request.host, request.port) not in route.hosts or not request.may_be_uv:
            await self._tunnel(connection, request, route)
            return True
        if request.rest:
            # A client that sends TLS before the answer does not check what it connects to.
            raise BadRequest("bytes before the response to CONNECT")
        try:
            # Signing takes a millisecond; importing what signs, once in two weeks, a hundred.
            context = self._authority.leaf(request.host)
        except AuthorityFailed as error:
            route.failed(str(error))
            await _refuse(connection, 502, str(error))
            return True
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, b"HTTP/1.1 200 Connection established\r\n\r\n")
        application = TlsApplication(request.host, request.port, session, route, self)
        try:
            await self._http(connection, application, tls=context)
        except (OSError, asyncio.TimeoutError, TimeoutError) as error:
            if isinstance(error, ssl.SSLError):
                route.failed(f"{request.place}: uv ended the greeting of TLS: {error.reason}")
            raise
        return False

    async def _tunnel(
        self, connection: socket.socket, request: ConnectRequest, route: Route
    ) -> None:
        try:
            server = await dial(request.host, request.port, route.outbound)
        except (Unreachable, InvalidProxy) as error:
            route.failed(str(error))
            await _refuse(connection, 502, str(error))
            return
        client = SocketEnd(connection, request.rest)
        try:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(connection, b"HTTP/1.1 200 Connection established\r\n\r\n")
        except BaseException:
            server.close()
            raise
        await join(client, server)

    async def _http(
        self,
        connection: socket.socket,
        application: Application,
        *,
        first: bytes = b"",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # Not `start_tls`: before Python 3.11 it loses bytes that come at once after the greeting.
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: ProxyProtocol(self._config, self._state, application, first),
            connection,
            ssl=tls,
            ssl_handshake_timeout=HEAD_SECONDS if tls is not None else None,
        )

    async def route(self, credentials: tuple[str, str] | None) -> Route | None:
        """Return the route of a session, None without valid credentials."""
        if credentials is None:
            return None
        found = self._sessions(*credentials)
        return await found if isinstance(found, Awaitable) else found

    async def answer_directly(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the port itself."""
        await self._direct(scope, receive, send)

    async def forward(self, scope: Scope, receive: Receive, send: Send, route: Route) -> None:
        """Send a request of plain http on."""
        await self._forwarder.forward(scope, receive, send, route.outbound)

    async def _shut_down(self) -> None:
        for protocol in list(self._state.connections):
            protocol.shutdown()
        waiting = {*self._state.tasks}
        if waiting:
            await asyncio.wait(waiting, timeout=GRACE_SECONDS)
        remaining = {*self._state.tasks, *self._tasks}
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)
        await self._forwarder.close()


class ProxyProtocol(LimitedProtocol):
    """An HTTP connection whose requests one application answers."""

    def __init__(
        self, config: Config, state: ServerState, application: Application, first: bytes
    ) -> None:
        super().__init__(config, state, {})
        self.app = application
        self._first = first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Process what was read before the protocol had the connection."""
        super().connection_made(transport)
        if self._first:
            self.data_received(self._first)


class TlsApplication:
    """Requests within TLS for one host."""

    def __init__(
        self, host: str, port: int, session: str, route: Route, transport: Transport
    ) -> None:
        self._server = (host, port)
        self._session = session
        self._route = route
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not scope["raw_path"].startswith(b"/"):
            await refuse(send, 400, "the target of the request is not a path")
            return
        if _host(scope, "https") != self._server:
            await refuse(send, 421, "the Host header is not the host of this connection")
            return
        await _answer(scope, receive, send, "https", self._server, self._session, self._route)


class PortApplication:
    """Requests for the port itself, and requests of plain http to other hosts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        target: bytes = scope["raw_path"]
        if scope["type"] != "http" or target.startswith(b"/"):
            await self._transport.answer_directly(scope, receive, send)
            return
        credentials = session_credentials(scope["headers"])
        route = await self._transport.route(credentials)
        if route is None or credentials is None:
            await refuse(send, 407, _WRONG_SESSION, (_CHALLENGE,))
            return
        if target[:7].lower() != b"http://":
            await refuse(send, 400, "the URL of the request is not one of http")
            return
        authority, slash, path = target[7:].partition(b"/")
        try:
            server = read_authority(authority.decode("latin-1"), PORTS["http"])
        except BadRequest as error:
            await refuse(send, 400, str(error))
            return
        if _host(scope, "http") != server:
            await refuse(send, 400, "the Host header is not the host of the URL")
            return
        raw = slash + path or b"/"
        own = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        if ("http", *server) in route.hosts:
            await _answer(own, receive, send, "http", server, credentials[0], route)
        else:
            own.update(scheme="http", server=server)
            await self._transport.forward(own, receive, send, route)


async def _answer(
    scope: Scope,
    receive: Receive,
    send: Send,
    scheme: str,
    server: tuple[str, int],
    session: str,
    route: Route,
) -> None:
    kept = [each for each in scope["headers"] if not each[0].startswith(b"proxy-")]
    own = {**scope, "scheme": scheme, "server": server, "headers": kept}
    own["state"] = {**scope.get("state", {}), "session": session}
    await route.application(own, receive, send)


def _host(scope: Scope, scheme: str) -> tuple[str, int] | None:
    """Return host and port of the ``Host`` header, None if it is not one valid header."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return None
    try:
        return read_authority(values[0].decode("latin-1"), PORTS[scheme])
    except BadRequest:
        return None


async def _refuse(
    connection: socket.socket, status: int, text: str, *headers: tuple[bytes, bytes]
) -> None:
    body = f"{text}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}".encode(),
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: %d" % len(body),
        b"Connection: close",
        *(name + b": " + value for name, value in headers),
    ]
    with contextlib.suppress(OSError):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, b"\r\n".join([*lines, b"", body]))
        connection.shutdown(socket.SHUT_WR)

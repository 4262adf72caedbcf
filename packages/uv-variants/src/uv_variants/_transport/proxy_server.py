"""An HTTP proxy on loopback for one uv: it authenticates connections and dispatches them.

CONNECT to the host of an index is answered here, within TLS; CONNECT to another host is a tunnel.
Requests of plain http are answered or sent on in the same way.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import ipaddress
import re
import socket
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import h11
from uvicorn.server import ServerState

from variants_index import http
from variants_index.http import InvalidProxy
from variants_proxy import application as proxy_application
from variants_proxy.application import LimitedProtocol

from .forwarding import BadRequest, Forwarder, Headers, refuse
from .outbound import (
    Application,
    HostUnreachable,
    Origin,
    Receive,
    Route,
    Scope,
    Send,
    address,
    dial,
    join,
)

if TYPE_CHECKING:
    from uvicorn import Config

    from .authority import Authority


HEAD_BYTES: Final = 64 * 1024
"""Maximum size of a request's head."""
_END: Final = b"\r\n\r\n"
_CONNECT: Final = b"CONNECT "
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


class ConnectRequest(NamedTuple):
    """A request for a connection to a host.

    Attributes:
        host: name in lower case, or IP address without brackets.
        port: of the host.
        headers: of the request.
        rest: bytes that came after the head.
    """

    host: str
    port: int
    headers: list[tuple[bytes, bytes]]
    rest: bytes

    @property
    def may_be_uv(self) -> bool:
        """Whether uv may have sent it. Every uv says so; git, which uv starts, says what it is."""
        agent = next((value for name, value in self.headers if name == b"user-agent"), b"")
        return not agent or agent.startswith(b"uv/")


async def first_bytes(connection: socket.socket) -> bytes:
    """Return the start of the first request: all of its head if it is a CONNECT request.

    It is empty if the client ends the connection before.

    Raises:
        BadRequest: the head is too large.
    """
    loop = asyncio.get_running_loop()
    data = b""
    while more := await loop.sock_recv(connection, HEAD_BYTES):
        data += more
        begins = data[: len(_CONNECT)]
        if not _CONNECT.startswith(begins) or _END in data:
            return data
        if len(data) > HEAD_BYTES:
            raise BadRequest("the head of the request is too large", 431)
    return b""


def read_connect(data: bytes) -> ConnectRequest | None:
    """Return the CONNECT request in *data*, what `first_bytes` returned; None for another method.

    Raises:
        BadRequest: it is not valid.
    """
    if not data.startswith(_CONNECT):
        return None
    parser = h11.Connection(h11.SERVER, HEAD_BYTES)
    try:
        parser.receive_data(data)
        request = parser.next_event()
    except h11.RemoteProtocolError as error:
        raise BadRequest(f"not a valid request: {error}") from None
    if not isinstance(request, h11.Request):
        raise BadRequest("not a valid request")
    headers = [(bytes(name), bytes(value)) for name, value in request.headers]
    if any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 "))
        for name, value in headers
    ):
        raise BadRequest("a CONNECT request has no body")
    host, port = read_authority(bytes(request.target).decode("latin-1"))
    return ConnectRequest(host, port, headers, parser.trailing_data[0])


def read_authority(text: str, default: int | None = None) -> tuple[str, int]:
    """Return host (in lower case, without brackets) and port of ``host:port``.

    Args:
        text: with port, unless there is a *default*.
        default: port if there is none.

    Raises:
        BadRequest: it is not valid.
    """
    host, colon, port = text.rpartition(":")
    if not colon or (text.endswith("]") and default is not None):
        host, port = text, str(default or "")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        raise BadRequest("the port is not valid")
    if host.startswith("[") and host.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(host[1:-1])), int(port)
        except ValueError:
            raise BadRequest("the host is not valid") from None
    if len(host) > 254 or not _NAME.fullmatch(host):
        raise BadRequest("the host is not valid")
    return host.rstrip(".").lower(), int(port)


HEAD_SECONDS: Final = 10.0
"""Seconds for a connection's first request, and for the handshake of TLS."""
PENDING: Final = 128
"""Connections whose client has not said who it is; above it the oldest ends."""
GRACE_SECONDS: Final = 1.0
"""Seconds for requests in progress when serving ends."""

_NOT_OURS: Final = (
    "this proxy is for one command that uv-variants runs, and its token is missing or wrong: unset "
    "HTTP_PROXY and HTTPS_PROXY, or run the command with uv-variants"
)
_CHALLENGE: Final = (b"proxy-authenticate", b'Basic realm="uv-variants"')
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Transport:
    """The proxy.

    Attributes:
        route: of the requests.
    """

    def __init__(
        self, authority: Authority | None, token: str, route: Route, forwarder: Forwarder
    ) -> None:
        """Set up.

        Args:
            authority: signs the certificates for hosts of indexes; None if none has TLS.
            token: that uv has to send, as the password of ``uv``.
            route: of the requests.
            forwarder: for requests of plain http to other hosts.
        """
        self.route = route
        self._authority = authority
        self._secret = b"Basic " + base64.b64encode(f"uv:{token}".encode())
        self._forwarder = forwarder
        self._config: Config = proxy_application.limited_config(self._plain)
        self._config.load()
        self._state = ServerState()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending: dict[asyncio.Task[None], None] = {}
        self._ended: asyncio.Event | None = None

    async def serve(self, listening: socket.socket) -> None:
        """Serve at *listening*, which is closed here, until `close` or cancelled."""
        self._ended = asyncio.Event()
        listening.setblocking(False)
        accepting = asyncio.ensure_future(self._accept(listening))
        try:
            await self._ended.wait()
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            listening.close()  # so a client that is too late does not wait
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
            except OSError:
                if listening.fileno() == -1:
                    return
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
            task = asyncio.current_task()
            assert task is not None
            self._pending.pop(task, None)
            if not first:
                return
            request = read_connect(first)
            if (
                len(self._tasks) + len(self._state.connections)
                > proxy_application.connection_limit()
            ):
                await _refuse(connection, 503, "too many connections")
            elif request is not None:
                owned = await self._connect(connection, request)
            else:
                owned = False
                await self._http(connection, self._plain, first=first)
        except BadRequest as error:
            await _refuse(connection, error.status, str(error))
        except (OSError, asyncio.TimeoutError, TimeoutError):
            pass  # the client is gone, or too slow
        finally:
            if owned:
                connection.close()

    async def _connect(self, connection: socket.socket, request: ConnectRequest) -> bool:
        """Answer a CONNECT request; return whether the socket is still this module's."""
        if not self._is_known(request.headers):
            await _refuse(connection, 407, _NOT_OURS, _CHALLENGE)
            return True
        # Programs that uv starts, as git, do not have the authority in their own settings.
        is_index = ("https", request.host, request.port) in self.route.hosts
        if self._authority is None or not (is_index and request.may_be_uv):
            return await self._tunnel(connection, request)
        if request.rest:
            # A client that sends TLS before the answer does not check what it connects to.
            raise BadRequest("bytes before the response to CONNECT")
        context = self._authority.leaf(request.host)
        await asyncio.get_running_loop().sock_sendall(connection, _ESTABLISHED)
        application = self._within_tls(request.host, request.port)
        try:
            await self._http(connection, application, tls=context)
        except ssl.SSLError as error:
            place = address(request.host, request.port)
            self.route.failed(
                f"{place}: TLS handshake failed: uv closed the connection ({error.reason})"
            )
            raise
        return False

    def _is_known(self, headers: Headers) -> bool:
        """Return whether a request has the token of the command."""
        sent = next((value for name, value in headers if name == b"proxy-authorization"), b"")
        return hmac.compare_digest(sent, self._secret)

    async def _tunnel(self, connection: socket.socket, request: ConnectRequest) -> bool:
        try:
            server = await dial(request.host, request.port, self.route.outbound)
        except (HostUnreachable, InvalidProxy) as error:
            self.route.failed(str(error))
            await _refuse(connection, 502, str(error))
            return True
        try:
            client = await asyncio.open_connection(sock=connection)
        except BaseException:
            server[1].close()
            raise
        client[1].write(_ESTABLISHED)
        server[1].write(request.rest)
        await join(client, server)
        return False

    async def _http(
        self,
        connection: socket.socket,
        application: Application,
        *,
        first: bytes = b"",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # Not `start_tls`: before Python 3.11 it loses bytes that come at once after the handshake.
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: _Protocol(self._config, self._state, application, first),
            connection,
            ssl=tls,
            ssl_handshake_timeout=HEAD_SECONDS if tls is not None else None,
        )

    def _within_tls(self, host: str, port: int) -> Application:
        """Return the application for requests within TLS, all of which are for one host."""

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            if not scope["raw_path"].startswith(b"/"):
                await refuse(send, 400, "the target of the request is not a path")
            elif _host(scope, "https") != (host, port):
                await refuse(send, 421, "the Host header is not the host of this connection")
            else:
                await self._answer(scope, receive, send, ("https", host, port))

        return application

    async def _plain(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of plain http to this proxy."""
        if scope["type"] != "http":
            return
        if not self._is_known(scope["headers"]):
            await refuse(send, 407, _NOT_OURS, (_CHALLENGE,))
            return
        target: bytes = scope["raw_path"]
        if target[:7].lower() != b"http://":
            await refuse(send, 400, "the URL of the request is not one of http")
            return
        authority, slash, path = target[7:].partition(b"/")
        try:
            server = read_authority(authority.decode("latin-1"), http.PORTS["http"])
        except BadRequest as error:
            await refuse(send, 400, str(error))
            return
        if _host(scope, "http") != server:
            await refuse(send, 400, "the Host header is not the host of the URL")
            return
        raw = slash + path or b"/"
        own = {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1"))}
        await self._answer(own, receive, send, ("http", *server))

    async def _answer(self, scope: Scope, receive: Receive, send: Send, asked: Origin) -> None:
        kept = [each for each in scope["headers"] if not each[0].startswith(b"proxy-")]
        own = {**scope, "scheme": asked[0], "server": asked[1:], "headers": kept}
        if asked in self.route.hosts:
            await self.route.application(own, receive, send)
        else:
            await self._forwarder.forward(own, receive, send, self.route.outbound)

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
        self._forwarder.close()


class _Protocol(LimitedProtocol):
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


def _host(scope: Scope, scheme: str) -> tuple[str, int] | None:
    """Return host and port of the ``Host`` header, None if it is not one valid header."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return None
    try:
        return read_authority(values[0].decode("latin-1"), http.PORTS[scheme])
    except BadRequest:
        return None


async def _refuse(
    connection: socket.socket, status: int, text: str, *headers: tuple[bytes, bytes]
) -> None:
    body = f"{text}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(),
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: %d" % len(body),
        b"Connection: close",
        *(name + b": " + value for name, value in headers),
    ]
    with contextlib.suppress(OSError):
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, b"\r\n".join([*lines, b"", body]))
        connection.shutdown(socket.SHUT_WR)

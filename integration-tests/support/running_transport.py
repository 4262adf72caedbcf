"""A running transport of uv-variants, and clients that say exactly what they send."""

from __future__ import annotations

import asyncio
import base64
import http.client
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from uv_variants.transport.authority import Authority
from uv_variants.transport.forwarding import Forwarder, send_text
from uv_variants.transport.outbound import (
    Application,
    Origin,
    Outbound,
    Receive,
    Route,
    Scope,
    Send,
)
from uv_variants.transport.proxy_server import Transport
from uv_variants.transport.trust_bundle import trusted_roots

TOKEN = "secret-token"
HOSTS = ("index.example", "index.test", "127.0.0.1", "::1")
"""Hosts that the authorities here may sign for."""
Got = tuple[int, dict[str, str], bytes]


async def echo(scope: Scope, _: Receive, send: Send) -> None:
    """Answer what the application saw."""
    seen = (
        f"{scope['method']} {scope['scheme']}://{scope['server'][0]}:{scope['server'][1]}"
        f"{scope['raw_path'].decode()}"
    )
    names = sorted(name.decode() for name, _ in scope["headers"])
    await send_text(send, 200, f"{seen} headers={','.join(names)}")


def trusting(authority: Authority, folder: Path) -> Path:
    """Return a file in *folder* with the certificate of *authority*."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "authority.pem"
    path.write_bytes(authority.certificate)
    return path


class Running:
    """A transport in a thread.

    Attributes:
        authority: of the transport.
        trusted: file with its certificate.
        port: of loopback.
        outbound: the way to the outside, without proxies.
        failures: what the command would show.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(HOSTS)
        self.trusted = trusting(self.authority, folder)
        roots = folder / "roots.pem"
        roots.write_bytes(trusted_roots({}))
        self.outbound = Outbound({}, roots)
        self.failures: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]
        self.forwarder = Forwarder()
        self.transport: Transport
        started = threading.Event()

        async def serve() -> None:
            route = Route(frozenset(), echo, self.outbound, self.failures.append)
            self.transport = Transport(self.authority, TOKEN, route, self.forwarder)
            started.set()
            await self.transport.serve(self._listening)

        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()))
        self._thread.start()
        started.wait()

    def begin(
        self,
        hosts: Iterable[Origin] = (),
        application: Application = echo,
        outbound: Outbound | None = None,
    ) -> None:
        """Answer for *hosts* from now on."""
        self.transport.route = Route(
            frozenset(hosts), application, outbound or self.outbound, self.failures.append
        )

    def stop(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self.transport.close)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listening.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def raw(self) -> socket.socket:
        """Return a connection to the port."""
        connection = socket.create_connection(("127.0.0.1", self.port), 10)
        connection.settimeout(10)
        return connection

    def connect(
        self,
        place: str,
        token: str = TOKEN,
        more: bytes = b"",
        headers: bytes = b"",
    ) -> tuple[socket.socket, int]:
        """Return a connection after the response to CONNECT, and its status."""
        connection = self.raw()
        secret = base64.b64encode(f"uv:{token}".encode())
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode() + headers
        connection.sendall(head + b"Proxy-Authorization: Basic " + secret + b"\r\n\r\n" + more)
        return connection, head_of(connection)[0]

    def tls(
        self, connection: socket.socket, name: str, trusted: Path | None = None
    ) -> ssl.SSLSocket:
        """Return *connection* with TLS."""
        context = ssl.create_default_context(cafile=str(trusted or self.trusted))
        return context.wrap_socket(connection, server_hostname=name)

    def https(
        self,
        host: str,
        port: int,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
    ) -> Got:
        """Return status, headers and body of a request within TLS."""
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        connection, status = self.connect(place)
        assert status == 200, status
        with self.tls(connection, host) as secured:
            client = http.client.HTTPConnection(host, port)
            client.sock = secured
            client.request(method, target, body, dict(headers or {}))
            answer = client.getresponse()
            return answer.status, _lowered(answer), answer.read()

    def http(
        self,
        url: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        token: str = TOKEN,
    ) -> Got:
        """Return status, headers and body of a request of plain http."""
        secret = base64.b64encode(f"uv:{token}".encode()).decode()
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            own = {"Proxy-Authorization": f"Basic {secret}", **(headers or {})}
            client.request(method, url, body, own)
            answer = client.getresponse()
            return answer.status, _lowered(answer), answer.read()
        finally:
            client.close()


def _lowered(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def head_of(connection: socket.socket) -> tuple[int, bytes]:
    """Return status and bytes of a response's head, and not one byte more."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(1)
        if not more:
            return (int(data.split()[1]) if data else 0), data
        data += more
    return int(data.split()[1]), data


def everything(connection: socket.socket) -> bytes:
    """Return all bytes until the end."""
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except OSError:
        pass
    return data


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """Run a transport, with files in *folder*."""
    found = Running(folder)
    try:
        yield found
    finally:
        found.stop()

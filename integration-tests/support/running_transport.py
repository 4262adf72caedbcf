"""A running transport of uv-variants, and clients that say exactly what they send."""

from __future__ import annotations

import asyncio
import base64
import http.client
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from uv_variants._transport.authority import Authority
from uv_variants._transport.forwarding import Forwarder, send_text
from uv_variants._transport.outbound import (
    Application,
    Origin,
    Outbound,
    Receive,
    Route,
    Scope,
    Send,
)
from uv_variants._transport.proxy_server import Transport
from uv_variants._transport.trust_bundle import trusted_roots

TOKEN = "secret-token"
HOSTS = ("index.example", "index.test", "127.0.0.1", "::1")
"""Hosts that the authorities here may sign for."""
Got = tuple[int, dict[str, str], bytes]


async def echo(scope: Scope, _: Receive, send: Send) -> None:
    """Answer what the application saw."""
    (host, port), path = scope["server"], scope["raw_path"].decode()
    names = sorted(name.decode() for name, _ in scope["headers"])
    seen = f"{scope['method']} {scope['scheme']}://{host}:{port}{path}"
    await send_text(send, 200, f"{seen} headers={','.join(names)}")


def trusting(authority: Authority, folder: Path) -> Path:
    """Return a file in *folder* with the certificate of *authority*."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "authority.pem"
    path.write_bytes(authority.certificate)
    return path


def authorization(token: str = TOKEN) -> str:
    """Return the value of ``Proxy-Authorization``."""
    return "Basic " + base64.b64encode(f"uv:{token}".encode()).decode()


class Running:
    """A transport in a thread.

    Attributes:
        trusted: file with the certificate of its authority.
        outbound: the way to the outside, without proxies.
        failures: what the command would show.
    """

    def __init__(self, folder: Path, listening: socket.socket) -> None:
        authority = Authority(HOSTS)
        self.trusted = trusting(authority, folder)
        roots = folder / "roots.pem"
        roots.write_bytes(trusted_roots({}))
        self.outbound = Outbound({}, roots)
        self.failures: list[str] = []
        self.address: tuple[str, int] = listening.getsockname()
        self.forwarder = Forwarder()
        route = Route(frozenset(), echo, self.outbound, self.failures.append)
        self.transport = Transport(authority, TOKEN, route, self.forwarder)

    def begin(
        self,
        hosts: Iterable[Origin] = (),
        application: Application = echo,
        outbound: Outbound | None = None,
    ) -> None:
        """Answer for *hosts* from now on."""
        self.failures.clear()
        self.transport.route = Route(
            frozenset(hosts), application, outbound or self.outbound, self.failures.append
        )

    def raw(self) -> socket.socket:
        """Return a connection to the port."""
        return socket.create_connection(self.address, 10)

    def connect(
        self, place: str, token: str = TOKEN, more: bytes = b"", headers: bytes = b""
    ) -> tuple[socket.socket, int]:
        """Return a connection after the response to CONNECT, and its status."""
        connection = self.raw()
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode() + headers
        head += f"Proxy-Authorization: {authorization(token)}\r\n\r\n".encode()
        connection.sendall(head + more)
        return connection, status_of(connection)

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
        context = ssl.create_default_context(cafile=str(self.trusted))
        client = http.client.HTTPSConnection(*self.address, timeout=10, context=context)
        client.set_tunnel(host, port, {"Proxy-Authorization": authorization()})
        return _got(client, method, target, headers or {}, body)

    def http(
        self,
        url: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        token: str = TOKEN,
    ) -> Got:
        """Return status, headers and body of a request of plain http."""
        client = http.client.HTTPConnection(*self.address, timeout=10)
        own = {"Proxy-Authorization": authorization(token), **(headers or {})}
        return _got(client, method, url, own, body)


def _got(
    client: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | Iterable[bytes] | None,
) -> Got:
    try:
        client.request(method, target, body, dict(headers))
        answer = client.getresponse()
        lowered = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, lowered, answer.read()
    finally:
        client.close()


def status_of(connection: socket.socket) -> int:
    """Read a response's head, and not one byte more; return its status, 0 if there is none."""
    data = b""
    while not data.endswith(b"\r\n\r\n") and (more := connection.recv(1)):
        data += more
    return int(data.split()[1]) if data else 0


def everything(connection: socket.socket) -> bytes:
    """Return all bytes until the end."""
    data = b""
    with suppress(OSError):
        while more := connection.recv(65536):
            data += more
    return data


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """Run a transport, with files in *folder*."""
    loop = asyncio.new_event_loop()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        found = Running(folder, listening)
        thread = threading.Thread(
            target=lambda: loop.run_until_complete(found.transport.serve(listening))
        )
        thread.start()
        try:
            yield found
        finally:
            loop.call_soon_threadsafe(found.transport.close)
            thread.join(10)
            assert not thread.is_alive()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()

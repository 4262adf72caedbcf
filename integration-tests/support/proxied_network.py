"""Peers of an HTTP proxy on loopback: origins with and without TLS, and other people's proxies.

Independent of the code under test: threads and the standard library.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import select
import socket
import socketserver
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .loopback import serving


@dataclass(frozen=True)
class Reply:
    """A response of an origin.

    Attributes:
        body: sent with its length.
        status: of the response.
        headers: besides the length.
        cut: close the connection after half of the body.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True)
class Asked:
    """A request that an origin or a proxy got.

    Attributes:
        method, target: of the request.
        headers: as pairs, in order.
        body: of the request.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the value of a header, None without."""
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


@dataclass
class Server:
    """A running server.

    Attributes:
        port: of loopback.
        url: without a path.
        asked: requests, in order.
        replies: of an origin, by target.
        reply: of an origin, for all other targets.
    """

    port: int
    url: str
    asked: list[Asked] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    reply: Callable[[Asked], Reply] = lambda _: Reply(b"not found\n", 404)

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc


@contextmanager
def origin(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a web server, over TLS with *context*."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            asked = Asked(self.command, self.path, tuple(self.headers.items()), body)
            server.asked.append(asked)
            reply = server.replies.get(self.path) or server.reply(asked)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status != 304:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if reply.cut:
                self.wfile.write(reply.body[: len(reply.body) // 2])
                self.close_connection = True
                return
            self.wfile.write(reply.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler, context) as url:
        server = Server(int(url.rpartition(":")[2]), url)
        yield server


@contextmanager
def http_proxy(
    credentials: str = "",
    context: ssl.SSLContext | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run an HTTP proxy.

    Args:
        credentials: ``user:password`` that it wants.
        context: for clients over TLS.
        names: addresses by host, for those that do not resolve; for CONNECT also with ports.
    """
    wanted = "Basic " + base64.b64encode(credentials.encode()).decode() if credentials else None
    resolved = dict(names or {})

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def is_refused(self) -> bool:
            server.asked.append(Asked(self.command, self.path, tuple(self.headers.items())))
            if wanted is None or self.headers.get("Proxy-Authorization") == wanted:
                return False
            self.send_response(407, "Proxy Authentication Required")
            self.send_header("Proxy-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True

        def do_CONNECT(self) -> None:
            if self.is_refused():
                return
            host, _, port = resolved.get(self.path, self.path).rpartition(":")
            try:
                other = socket.create_connection((resolved.get(host, host), int(port)), 10)
            except OSError:
                self.send_error(502)
                return
            self.send_response(200, "OK")
            self.end_headers()
            self.close_connection = True
            _join(self.connection, other)

        def do_GET(self) -> None:
            if self.is_refused():
                return
            parts = urlsplit(self.path)
            host = resolved.get(parts.hostname or "", parts.hostname or "")
            connection = http.client.HTTPConnection(host, parts.port or 80, timeout=10)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            headers = {k: v for k, v in self.headers.items() if not k.lower().startswith("proxy-")}
            connection.request(self.command, target, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, *_: object) -> None:
            pass

    at = f"{credentials}@" if credentials else ""
    with serving(Handler, context) as url:
        server = Server(int(url.rpartition(":")[2]), url.replace("://", f"://{at}"))
        yield server


@contextmanager
def socks_proxy(credentials: str = "") -> Iterator[Server]:
    """Run a SOCKS 5 proxy (RFC 1928); its requests have the host as it was named."""

    class Handler(socketserver.StreamRequestHandler):
        timeout = 30

        def handle(self) -> None:
            read, write = self.rfile.read, self.wfile.write
            with contextlib.suppress(OSError, ValueError, IndexError):
                _, count = read(2)
                method = 2 if credentials else 0
                if method not in read(count):
                    write(b"\x05\xff")
                    return
                write(bytes([5, method]))
                if credentials:
                    user = read(read(2)[1])
                    wrong = user + b":" + read(read(1)[0]) != credentials.encode()
                    write(bytes([1, wrong]))
                    if wrong:
                        return
                kind = read(4)[3]
                if kind == 3:
                    host = read(read(1)[0]).decode()
                else:
                    host = socket.inet_ntop(*((2, read(4)) if kind == 1 else (10, read(16))))
                port = int.from_bytes(read(2), "big")
                server.asked.append(Asked("SOCKS", f"{host}:{port}", ()))
                try:
                    other = socket.create_connection((host, port), 10)
                except OSError:
                    write(b"\x05\x05\x00\x01\0\0\0\0\0\0")
                    return
                write(b"\x05\x00\x00\x01\0\0\0\0\0\0")
                _join(self.connection, other)

    with serving(Handler) as url:
        port = int(url.rpartition(":")[2])
        at = f"{credentials}@" if credentials else ""
        server = Server(port, f"socks5h://{at}127.0.0.1:{port}")
        yield server


def _join(first: socket.socket, second: socket.socket) -> None:
    """Pass bytes both ways until both have ended; in one thread, as TLS is not for two."""
    others = {first: second, second: first}
    while others:
        pending = [each for each in others if isinstance(each, ssl.SSLSocket) and each.pending()]
        for source in pending or select.select(list(others), (), ())[0]:
            data = b""
            with contextlib.suppress(OSError):
                data = source.recv(65536)
                others[source].sendall(data)
            if not data:
                with contextlib.suppress(OSError):
                    others.pop(source).shutdown(socket.SHUT_WR)
    second.close()

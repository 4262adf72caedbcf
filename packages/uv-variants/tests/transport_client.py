"""A running transport, and clients that say exactly what they send."""

from __future__ import annotations

import asyncio
import base64
import http.client
import socket
import ssl
import threading
from contextlib import contextmanager

from uv_variants.transport import Authority, Outbound, Route, Transport
from uv_variants.transport.forwarding import send_text

TOKEN = "secret-token"


async def echo(scope, receive, send):
    """Answer what the application saw."""
    seen = (
        f"{scope['method']} {scope['scheme']}://{scope['server'][0]}:{scope['server'][1]}"
        f"{scope['raw_path'].decode()} session={scope['state'].get('session')}"
    )
    names = sorted(name.decode() for name, _ in scope["headers"])
    await send_text(send, 200, f"{seen} headers={','.join(names)}")


async def direct(scope, receive, send):
    """Answer for the port itself."""
    if scope["type"] == "http":
        await send_text(send, 200, f"direct {scope['path']}")


class Running:
    """A transport in a thread.

    Attributes:
        routes: by id of the session; the token is `TOKEN`.
        failures: what sessions' commands would show.
    """

    def __init__(self, folder):
        self.authority = Authority.load_or_create(folder / "ca")
        self.outbound = Outbound({}, self.authority.roots({}))
        self.routes = {}
        self.failures = []
        self._loop = asyncio.new_event_loop()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.transport = None
        started = threading.Event()

        async def serve():
            self.transport = Transport(self.authority, self._route, direct)
            started.set()
            await self.transport.serve([self._listening])

        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()))
        self._thread.start()
        started.wait()

    def _route(self, session, token):
        return self.routes.get(session) if token == TOKEN else None

    def add(self, session, hosts=(), application=echo, outbound=None):
        self.routes[session] = Route(
            frozenset(hosts), application, outbound or self.outbound, self.failures.append
        )

    def call(self, function):
        """Run *function* in the loop."""
        done = threading.Event()

        def run():
            function()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(10)

    def stop(self):
        self._loop.call_soon_threadsafe(self.transport.close)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listening.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def raw(self):
        """Return a connection to the port."""
        connection = socket.create_connection(("127.0.0.1", self.port), 10)
        connection.settimeout(10)
        return connection

    def say(self, data):
        """Return all that the port answers to *data*."""
        with self.raw() as connection:
            connection.sendall(data)
            return everything(connection)

    def connect(self, place, session="one", token=TOKEN, more=b""):
        """Return a connection after the response to CONNECT, and its status."""
        connection = self.raw()
        secret = base64.b64encode(f"{session}:{token}".encode())
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n".encode()
        connection.sendall(head + b"Proxy-Authorization: Basic " + secret + b"\r\n\r\n" + more)
        status, _ = head_of(connection)
        return connection, status

    def tls(self, connection, name, trusted=None):
        """Return *connection* with TLS."""
        trusted = trusted or self.authority.bundle({})
        context = ssl.create_default_context(cafile=str(trusted))
        return context.wrap_socket(connection, server_hostname=name)

    def https(self, host, port, method, target, headers=None, body=None, session="one"):
        """Return status, headers and body of a request within TLS."""
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        connection, status = self.connect(place, session)
        assert status == 200, status
        with self.tls(connection, host) as secured:
            client = http.client.HTTPConnection(host, port)
            client.sock = secured
            client.request(method, target, body, headers or {})
            answer = client.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def http(self, url, method="GET", headers=None, body=None, session="one", token=TOKEN):
        """Return status, headers and body of a request of plain http."""
        secret = base64.b64encode(f"{session}:{token}".encode()).decode()
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            own = {"Proxy-Authorization": f"Basic {secret}", **(headers or {})}
            client.request(method, url, body, own)
            answer = client.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            client.close()


def head_of(connection):
    """Return status and bytes of a response's head, and not one byte more."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(1)
        if not more:
            return (int(data.split()[1]) if data else 0), data
        data += more
    return int(data.split()[1]), data


def everything(connection):
    """Return all bytes until the end."""
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except OSError:
        pass
    return data


@contextmanager
def running(folder):
    """Run a transport."""
    found = Running(folder)
    try:
        yield found
    finally:
        found.stop()

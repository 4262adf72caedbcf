"""Connections that are kept between requests: used again, ended when they cannot be, limited."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore
import pytest

from support.proxied_network import Reply, Server, origin
from variants_index.http.kept_connections import KeptConnections

SECONDS = {"connect": 10.0, "read": 10.0, "write": 10.0, "pool": 0.1}


class Counting(httpcore.SyncBackend):
    """Counts the connections that are made."""

    def __init__(self) -> None:
        self.made = 0
        self._lock = threading.Lock()

    def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        with self._lock:
            self.made += 1
        return super().connect_tcp(*args, **options)


def kept(backend: Counting, most: int = 32, seconds: float = 15.0) -> KeptConnections:
    pool = httpcore.ConnectionPool(network_backend=backend, keepalive_expiry=seconds)
    return KeptConnections(pool, most)


def request(server: Server, path: str = "/") -> httpcore.Request:
    headers = [("Host", server.place)]
    extensions = {"timeout": SECONDS}
    return httpcore.Request("GET", server.url + path, headers=headers, extensions=extensions)


def body(connections: KeptConnections, server: Server, path: str = "/") -> bytes:
    response = connections.handle_request(request(server, path))
    try:
        assert isinstance(response.stream, Iterable)
        return b"".join(response.stream)
    finally:
        response.close()
        response.close()  # a second time does nothing


@pytest.fixture
def server() -> Iterator[Server]:
    with origin() as found:
        found.replies["/"] = Reply(b"body")
        found.replies["/cut"] = Reply(b"body", cut=True)
        yield found


def test_connections_are_used_again(server: Server) -> None:
    backend = Counting()
    known = kept(backend)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda _: body(known, server), range(200)))
    assert found == [b"body"] * 200
    assert backend.made <= 16
    before = backend.made
    with origin() as other:
        other.replies["/"] = Reply(b"other")
        assert body(known, other) == b"other"  # each origin has its own
    assert backend.made == before + 1
    known.close()


def test_what_broke_off_or_was_not_read_is_not_used_again(server: Server) -> None:
    backend = Counting()
    known = kept(backend)
    with pytest.raises(httpcore.RemoteProtocolError):
        body(known, server, "/cut")
    assert body(known, server) == b"body"
    assert backend.made == 2
    known.handle_request(request(server)).close()  # unread
    assert body(known, server) == b"body"
    assert backend.made == 3


def test_connections_expire(server: Server) -> None:
    backend = Counting()
    known = kept(backend, seconds=0.0)
    assert [body(known, server) for _ in range(3)] == [b"body"] * 3
    assert backend.made == 3


def test_a_connection_that_the_server_ended_is_not_used() -> None:
    backend = Counting()
    known = kept(backend)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"

    def serve() -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        server = Server(port, f"http://127.0.0.1:{port}")
        assert body(known, server) == b"body"
        while known._idle and not known._idle[0][1].has_expired():
            pass  # until the end has arrived
        assert body(known, server) == b"body"
        thread.join()
    assert backend.made == 2


def test_places(server: Server) -> None:
    known = kept(Counting(), most=2)
    for _ in range(4):
        with pytest.raises(httpcore.ConnectError):
            known.handle_request(request(Server(1, "http://127.0.0.1:1")))
    with pytest.raises(httpcore.UnsupportedProtocol):
        known.handle_request(request(Server(1, "ftp://127.0.0.1:1")))
    one, two = (known.handle_request(request(server)) for _ in range(2))
    with pytest.raises(httpcore.PoolTimeout):
        known.handle_request(request(server))
    one.close()
    assert body(known, server) == b"body"
    known.close()
    two.close()
    assert known._idle == []

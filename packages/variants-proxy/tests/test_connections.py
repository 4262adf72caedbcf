"""Connections of the server: answers and limits."""

import os
import socket
import stat
import threading
import time
from contextlib import contextmanager

import pytest
from upstream_server import Upstream as Server
from upstream_server import served

from variants_proxy import Settings, Upstream, index_url
from variants_proxy.server import server as connections
from variants_proxy.server.server import HEAD_BYTES, LimitedServer, limited_config, make_server

PAGE = f"{index_url('~')}app/"
HEAD = b"Host: localhost\r\n"
INVALID = b"Invalid HTTP request received."


@contextmanager
def running(found):
    """Run a server in a thread; yields its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=found.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not found.started:
        time.sleep(0.005)
    try:
        yield listening.getsockname()[1]
    finally:
        found.should_exit = True
        thread.join(10)
        listening.close()


@pytest.mark.skipif(os.name == "nt", reason="permissions are access control lists")
def test_new_directories_are_private_whatever_the_umask(tmp_path):
    cache = tmp_path / "one" / "cache"
    before = os.umask(0)
    try:
        make_server(Settings((Upstream("main", "https://index.example/simple/"),), cache))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, cache.parent)] == [0o700] * 2


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with served(Server()) as upstream:
        upstream.add_release("1.0")
        settings = Settings((Upstream("main", upstream.simple),), tmp_path_factory.mktemp("cache"))
        with running(make_server(settings)) as found:
            yield found


@pytest.fixture(scope="module")
def hanging():
    """A server whose application never answers ``/wait``."""

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while scope["path"] == "/wait" and (await receive())["type"] != "http.disconnect":
            pass
        body = scope["raw_path"] + b"\r\n"
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    with running(LimitedServer(limited_config(application))) as port:
        yield port


def asked(port, data):
    """Return what a server answers before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        return everything(connection)


def everything(connection):
    found = b""
    try:
        while part := connection.recv(2**16):
            found += part
    except ConnectionError:
        pass
    return found


def parsed(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    return status[:12], sorted(line.lower() for line in headers), body


def get(path, *lines, method="GET", version="1.1"):
    head = "".join(f"{line}\r\n" for line in ("Host: localhost", "Connection: close", *lines))
    return f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode("latin-1")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\nnonsense\r\n\r\n", b"GET\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo st: a\r\n\r\n", b"GET / HTTP/1.1\r\nX: \0\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES * 2,
    ],
    ids=range(9),
)  # fmt: skip
def test_invalid_requests(port, data):
    status, _, body = parsed(asked(port, data))
    assert status in (b"HTTP/1.1 400", b"HTTP/1.1 404", b"HTTP/1.1 405")
    assert INVALID in body or data.startswith(b"CONNECT")


def test_a_head_comes_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    settings = Settings((Upstream("main", "http://127.0.0.1:9/simple/"),), tmp_path)
    with running(make_server(settings)) as port:
        assert asked(port, b"GET / HTTP/1.1\r\n") == b""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            for _ in range(2):  # the second request has a time of its own
                connection.sendall(b"GET /health HTTP/1.1\r\n" + HEAD + b"\r\n")
                answer = b""
                while not answer.endswith(b"}"):
                    answer += connection.recv(2**16)
                assert answer.startswith(b"HTTP/1.1 200")
            connection.sendall(b"GET /health HTTP/1.1\r\n")
            assert everything(connection) == b""


def test_requests_sent_ahead_are_answered_in_order(hanging):
    paths = [f"/{number}" for number in range(16)]
    requests = b"".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for path in paths)
    answers = asked(hanging, requests + get("/end"))
    assert [part.split()[0].decode() for part in answers.split(b"\r\n\r\n")[1:]] == [*paths, "/end"]


def test_what_is_sent_ahead_is_not_kept_without_limit(hanging):
    """While a request waits: another head without end, and any number of requests."""
    request = b"GET / HTTP/1.1\r\n" + HEAD
    for more in (request + b"X: y\r\n" * 10**7, (request + b"\r\n") * 10**6):
        with socket.create_connection(("127.0.0.1", hanging), timeout=1) as connection:
            connection.sendall(b"GET /wait HTTP/1.1\r\n" + HEAD + b"\r\n")
            # Either the server closes the connection, or it reads no more.
            with pytest.raises(OSError, match=r"reset|pipe|timed out|aborted"):
                connection.sendall(more)
        assert asked(hanging, get("/x")).endswith(b"/x\r\n")

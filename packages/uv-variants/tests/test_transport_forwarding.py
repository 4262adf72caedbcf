"""Requests that are sent on: unchanged both ways, and never to anywhere else."""

from __future__ import annotations

import gzip
import queue
import socket
import socketserver
import sys
import threading
from contextlib import contextmanager

import pytest

from support.loopback import serving
from support.proxied_network import Reply, Server, http_proxy, origin, socks_proxy
from support.raw_server import sending
from support.running_transport import HOSTS, authorization
from uv_variants._transport.authority import Authority

both = pytest.mark.parametrize("web", ["https", "http"], indirect=True)


@both
def test_unchanged(world):
    body = gzip.compress(b"text")
    headers = {"ETag": '"x"', "Content-Encoding": "gzip", "X-Own": "a, b", "Set-Cookie": "c=d"}
    world.host.replies["/a%2Fb/?q=%20&r"] = Reply(body, 200, headers)
    sent = {"Authorization": "Basic eDp5", "X-More": "\xe4", "Accept-Encoding": "gzip"}
    status, got, data = world.ask("/a%2Fb/?q=%20&r", headers=sent)
    assert (status, data) == (200, body)
    assert headers.items() <= {name: got[name.lower()] for name in headers}.items()
    (asked,) = world.host.asked
    assert (asked.method, asked.target) == ("GET", "/a%2Fb/?q=%20&r")
    assert asked.header("Authorization") == "Basic eDp5"
    assert asked.header("X-More") == "\xe4"
    assert asked.header("Host") == f"127.0.0.1:{world.host.port}"
    assert asked.header("Proxy-Authorization") is None


@pytest.mark.parametrize("status", [204, 206, 302, 304, 401, 503])
def test_statuses(world, status):
    headers = {"WWW-Authenticate": 'Basic realm="x"', "Location": "https://other.example/?a"}
    world.host.replies["/file"] = Reply(b"" if status in (204, 304) else b"why", status, headers)
    found, got, body = world.ask()
    assert (found, body) == (status, world.host.replies["/file"].body)
    assert (got["www-authenticate"], got["location"]) == tuple(headers.values())
    found, got, none = world.ask(method="HEAD")
    assert (found, none) == (status, b"")
    assert got.get("content-length", str(len(body))) == str(len(body))


@pytest.mark.parametrize("body", [b"x" * 500_000, [b"a" * 70_000] * 5, b""])
def test_bodies(world, body):
    world.host.reply = lambda asked: Reply(b"%d" % len(asked.body), 201)
    status, _, answer = world.ask(
        method="POST", body=iter(body) if body and body[0] != 120 else body
    )
    expected = body if isinstance(body, bytes) else b"".join(body)
    assert (status, answer) == (201, b"%d" % len(expected))
    assert world.host.asked[0].body == expected


def test_headers_of_the_connection_end_here(world):
    world.host.replies["/file"] = Reply(
        b"", 200, {"Connection": "x-hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "X-Other": "1"}
    )
    sent = {"Connection": "x-mine, keep-alive", "X-Mine": "1", "TE": "trailers", "X-Kept": "1"}
    _, got, _ = world.ask(headers=sent)
    assert "x-hop" not in got
    assert got["x-other"] == "1"
    (asked,) = world.host.asked
    assert (asked.header("X-Mine"), asked.header("TE"), asked.header("X-Kept")) == (None, None, "1")


def test_an_answer_that_is_cut_off_stays_so(world):
    world.host.replies["/file"] = Reply(b"x" * 1000, cut=True)
    with pytest.raises(Exception, match=r"IncompleteRead|Remote end"):
        world.ask()


def test_a_kept_connection_that_the_upstream_closes(world):
    world.host.reply = lambda _: Reply(b"ok", 200, {"Connection": "close"})
    for _ in range(5):
        assert world.ask()[2] == b"ok"
    world.host.reply = lambda _: Reply(b"ok")
    for _ in range(5):
        assert world.ask()[2] == b"ok"


@contextmanager
def through(scheme, theirs):
    """Run a proxy of the user's."""
    if scheme == "https" and sys.version_info < (3, 11):
        pytest.skip("asyncio has no TLS within TLS")
    context = theirs.leaf("127.0.0.1") if scheme == "https" else None
    with socks_proxy("me:pass") if scheme == "socks5h" else http_proxy("me:pass", context) as proxy:
        yield proxy


@pytest.mark.parametrize("proxy", ["", "https"])
def test_an_upstream_that_is_not_trusted_is_named(session, theirs, trusted, proxy):
    with origin(Authority(HOSTS).leaf("127.0.0.1")) as host, through(proxy, theirs) as other:
        environ = {"ALL_PROXY": other.url} if proxy else {}
        host.replies["/file"] = Reply(b"ok")
        status, _, body = session(host, trusted, environ).ask()
        assert status == 424, "uv asks again after those above 499"
        assert b"certificate is not trusted (unable to get local issuer certificate)" in body
        assert session(host, trusted, environ, ["127.0.0.1"]).ask()[2] == b"ok"
        # A session that verifies does not get a connection of one that does not.
        assert session(host, trusted, environ).ask()[0] == 424


@pytest.mark.parametrize(("proxy", "tls"), [("http", False), ("https", True), ("socks5h", True)])
def test_through_the_users_proxy(session, theirs, trusted, proxy, tls):
    context = theirs.leaf("127.0.0.1") if tls else None
    with origin(context) as host, through(proxy, theirs) as other:
        host.replies["/file"] = Reply(b"x" * 300_000)
        found = session(host, trusted, {"ALL_PROXY": other.url})
        assert [found.ask()[2] for _ in range(3)] == [b"x" * 300_000] * 3
        assert other.asked
        assert host.asked[0].header("Proxy-Authorization") is None


def test_a_proxy_that_wants_to_know_who_is_named(session, trusted):
    with origin() as host, http_proxy("a:b") as other:
        url = f"http://me:wrong@127.0.0.1:{other.port}"
        status, headers, body = session(host, trusted, {"ALL_PROXY": url}).ask()
    assert status == 502
    assert f"proxy 127.0.0.1:{other.port}".encode() in body
    assert b"wrong" not in body
    assert "proxy-authenticate" not in headers


HOSTILE = {
    "not HTTP": (b"SSH-2.0-x\r\n\r\n", 502),
    "nothing": (b"", 502),
    "a status of its own": (b"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n", 502),
    "length beside chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\n",
        200,
    ),
    "without a length": (b"HTTP/1.0 200 OK\r\n\r\nok", 200),
    "early hints": (
        b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        200,
    ),
    "upgrade": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 502),
    "more than its length": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 O", 200),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_upstreams(transport, name):
    data, expected = HOSTILE[name]
    with sending(lambda: [data]) as url:
        status, headers, body = transport.http(url + "/")
    assert status == expected, body
    if name == "nothing":
        assert body.endswith(b": closed the connection without a response\n")
    if expected == 200:
        assert body == b"ok"
        assert headers.get("content-length") in (None, "2")


@contextmanager
def upstream(answer):
    """Serve connections with *answer*, a function; yield host and port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.settimeout(10)
            answer(self.request)

    with serving(Handler) as url:
        yield url.removeprefix("http://")


def head_of_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        assert more
        data += more


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has no TLS within TLS")
def test_tls_within_tls_that_breaks(session, theirs, trusted):
    """The asyncio of Python 3.11 and 3.12 ends such a connection in a TypeError."""

    def answer(connection):
        secured = theirs.leaf("127.0.0.1").wrap_socket(connection, server_side=True)
        head_of_request(secured)
        with socket.socket(fileno=secured.detach()) as bare:
            bare.sendall(b"no TLS at all" * 100)

    with upstream(answer) as place, through("https", theirs) as proxy:
        host = Server(int(place.rpartition(":")[2]), f"https://{place}")
        status, _, body = session(host, trusted, {"ALL_PROXY": proxy.url}).ask()
    assert status == 502, body
    assert body.startswith(f"{place} (through the proxy".encode())


def test_what_a_gone_client_asked_for_is_given_up(transport):
    asked, received = threading.Event(), queue.Queue()

    def answer(connection):
        head_of_request(connection)
        asked.set()
        received.put(connection.recv(1))

    with upstream(answer) as place, transport.raw() as connection:
        head = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n"
        connection.sendall(f"{head}Proxy-Authorization: {authorization()}\r\n\r\n".encode())
        assert asked.wait(10)
        connection.close()
        assert received.get(timeout=10) == b""

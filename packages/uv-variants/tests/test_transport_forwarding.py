"""Requests that are sent on: unchanged both ways, and never to anywhere else."""

from __future__ import annotations

import base64
import gzip
import socket
import sys
import threading

import pytest

from support.proxied_network import Reply, http_proxy, origin, socks_proxy
from support.running_transport import HOSTS, TOKEN, running, trusting
from uv_variants.transport.authority import Authority
from uv_variants.transport.index_application import (
    AnsweredIndex,
    IndexApplication,
    path_segments,
)
from uv_variants.transport.outbound import Outbound


async def no_service(scope, receive, send):
    raise AssertionError(scope["path"])


class World:
    """A session whose index is below ``/simple/`` of a host, and that host."""

    def __init__(self, transport, host, outbound):
        self.transport = transport
        self.host = host
        self.application = IndexApplication(
            [AnsweredIndex("main", f"{host.url}/simple/")],
            lambda _, __: no_service,
            outbound,
            transport.forwarder,
            transport.failures.append,
        )
        transport.begin(self.application.hosts, self.application, outbound)

    def ask(self, target="/file", method="GET", headers=None, body=None):
        if self.host.url.startswith("https"):
            return self.transport.https("127.0.0.1", self.host.port, method, target, headers, body)
        return self.transport.http(self.host.url + target, method, headers, body)


@pytest.fixture(scope="module", params=["https", "http"])
def servers(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers")
    theirs = Authority(HOSTS)
    context = theirs.leaf("127.0.0.1") if request.param == "https" else None
    with running(folder) as transport, origin(context) as host:
        yield transport, host, Outbound({}, trusting(theirs, folder / "theirs"))


@pytest.fixture
def world(servers):
    transport, host, outbound = servers
    transport.failures.clear()
    host.asked.clear()
    host.replies.clear()
    return World(transport, host, outbound)


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


def test_head(world):
    world.host.replies["/file"] = Reply(b"x" * 1000)
    status, headers, body = world.ask(method="HEAD")
    assert (status, headers["content-length"], body) == (200, "1000", b"")


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


def test_an_upstream_that_is_gone_is_named(tmp_path):
    theirs = Authority(HOSTS)
    with running(tmp_path) as transport:
        with origin(theirs.leaf("127.0.0.1")) as host:
            found = World(transport, host, Outbound({}, trusting(theirs, tmp_path / "theirs")))
        status, _, body = found.ask()
    assert (status, body) == (502, f"127.0.0.1:{host.port}: connection refused\n".encode())


def test_an_upstream_that_is_not_trusted_is_named(tmp_path):
    theirs = Authority(HOSTS)
    with running(tmp_path) as transport, origin(theirs.leaf("127.0.0.1")) as host:
        untrusted = World(transport, host, transport.outbound)
        status, _, body = untrusted.ask()
        assert status == 424, "uv asks again after those above 499"
        assert b"certificate is not trusted (unable to get local issuer certificate)" in body
        insecure = Outbound({}, transport.outbound.roots, frozenset({"127.0.0.1"}))
        host.replies["/file"] = Reply(b"ok")
        assert World(transport, host, insecure).ask()[2] == b"ok"
        # A session that verifies does not get a connection of one that does not.
        assert World(transport, host, transport.outbound).ask()[0] == 424


def through(scheme, theirs):
    if scheme == "socks5h":
        return socks_proxy("me:pass")
    return http_proxy("me:pass", theirs.leaf("127.0.0.1") if scheme == "https" else None)


@pytest.mark.parametrize(
    ("proxy", "tls"), [("http", False), ("http", True), ("https", True), ("socks5h", True)]
)
def test_through_the_users_proxy(tmp_path, proxy, tls):
    if proxy == "https" and tls and sys.version_info < (3, 11):
        pytest.skip("asyncio has no TLS within TLS")
    theirs = Authority(HOSTS)
    context = theirs.leaf("127.0.0.1") if tls else None
    with running(tmp_path) as transport, origin(context) as host, through(proxy, theirs) as other:
        outbound = Outbound({"ALL_PROXY": other.url}, trusting(theirs, tmp_path / "theirs"))
        host.replies["/file"] = Reply(b"x" * 300_000)
        found = World(transport, host, outbound)
        assert [found.ask()[2] for _ in range(3)] == [b"x" * 300_000] * 3
        assert other.asked
        assert host.asked[0].header("Proxy-Authorization") is None


@pytest.mark.parametrize("tls", [True, False])
def test_a_proxy_that_wants_to_know_who_is_named(tmp_path, tls):
    theirs = Authority(HOSTS)
    context = theirs.leaf("127.0.0.1") if tls else None
    with running(tmp_path) as transport, origin(context) as host, http_proxy("a:b") as other:
        url = f"http://me:wrong@127.0.0.1:{other.port}"
        found = World(
            transport, host, Outbound({"ALL_PROXY": url}, trusting(theirs, tmp_path / "theirs"))
        )
        status, headers, body = found.ask()
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
def test_hostile_upstreams(tmp_path, name):
    data, expected = HOSTILE[name]
    with running(tmp_path) as transport, socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                head_of_request(connection)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        transport.begin()
        status, headers, body = transport.http(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        thread.join()
    assert status == expected, body
    if expected == 200:
        assert body == b"ok"
        assert headers.get("content-length") in (None, "2")


def head_of_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        assert more
        data += more


def test_what_a_gone_client_asked_for_is_given_up(tmp_path):
    with running(tmp_path) as transport, socket.create_server(("127.0.0.1", 0)) as listening:
        transport.begin()
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        secret = base64.b64encode(f"uv:{TOKEN}".encode()).decode()
        head = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n"
        connection = transport.raw()
        connection.sendall(f"{head}Proxy-Authorization: Basic {secret}\r\n\r\n".encode())
        upstream, _ = listening.accept()
        with upstream:
            upstream.settimeout(10)
            head_of_request(upstream)
            connection.close()
            assert upstream.recv(1) == b""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/simple/%61/", ("simple", "a", "")),
        (b"/", ("",)),
        (b"/simple/../x/", None),
        (b"/simple/%2e%2e/x/", None),
        (b"/simple/./x/", None),
        (b"/simple/a%2Fb/", None),
        (b"/simple/a%5Cb/", None),
        (b"/simple//a/", None),
        (b"/simple/%00/", None),
        (b"/simple/%ff/", None),
    ],
)
def test_parts_of_a_path(path, expected):
    assert path_segments(path) == expected

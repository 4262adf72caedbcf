"""The proxy that uv talks to: who may ask, TLS for hosts of indexes, tunnels for all others."""

from __future__ import annotations

import socket
import ssl

import pytest

from support.proxied_network import Reply, http_proxy, socks_proxy
from support.running_transport import authorization, everything, running, status_of
from support.waiting import wait_until
from uv_variants._transport import proxy_server
from uv_variants._transport.outbound import Outbound

INDEX = ("https", "index.example", 443)


@pytest.fixture
def transport(transport):
    transport.begin([INDEX, ("https", "127.0.0.1", 8443), ("http", "plain.example", 80)])
    return transport


def test_hosts_of_indexes_are_answered(transport):
    status, _, body = transport.https("index.example", 443, "GET", "/simple/a%20b/?q=1")
    assert status == 200
    assert body.startswith(b"GET https://index.example:443/simple/a%20b/ ")
    assert transport.https("127.0.0.1", 8443, "GET", "/")[0] == 200
    status, _, body = transport.http("http://plain.example/simple/?x")
    assert (status, body.split()[:2]) == (200, [b"GET", b"http://plain.example:80/simple/"])
    assert b"proxy-authorization" not in body


@pytest.mark.parametrize("token", ["wrong", ""])
def test_without_the_token_there_is_nothing(transport, host, token):
    for place in (host.place, "index.example:443"):
        connection, status = transport.connect(place, token)
        with connection:
            assert status == 407
            assert b"uv-variants" in everything(connection)
    status, headers, _ = transport.http(f"http://{host.place}/", token=token)
    assert (status, headers["proxy-authenticate"]) == (407, 'Basic realm="uv-variants"')
    assert host.asked == []


AUTH = f"Proxy-Authorization: {authorization()}\r\n".encode()


def request(line: str, more: bytes = b"\r\n", host: str = "index.example") -> bytes:
    return f"{line} HTTP/1.1\r\nHost: {host}\r\n".encode("latin-1") + AUTH + more


HOSTILE = {
    "no credentials": (b"CONNECT index.example:443 HTTP/1.1\r\nHost: index.example\r\n\r\n", 407),
    "no port": (request("CONNECT index.example"), 400),
    "port 0": (request("CONNECT index.example:0"), 400),
    "port too large": (request("CONNECT index.example:65536"), 400),
    "port of other digits": (request("CONNECT index.example:4\xb2"), 400),
    "URL for a host": (request("CONNECT https://index.example/"), 400),
    "user in the host": (request("CONNECT a@index.example:443"), 400),
    "long host": (request(f"CONNECT {'a.' * 200}b:443"), 400),
    "bad address": (request("CONNECT [::g]:443"), 400),
    "chunked": (
        request("CONNECT index.example:443", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        400,
    ),
    "body": (request("CONNECT index.example:443", b"Content-Length: 2\r\n\r\nab"), 400),
    "early TLS": (request("CONNECT index.example:443", b"\r\n\x16\x03\x01"), 400),
    "no version": (b"CONNECT index.example:443\r\n" + AUTH + b"\r\n", 400),
    "large head": (request("CONNECT index.example:443", b"X: " + b"a" * 100_000), 431),
    "other host in the URL": (request("GET http://plain.example/", host="other.example"), 400),
    "https in the URL": (request("GET https://index.example/"), 400),
    "user in the URL": (request("GET http://a@plain.example/", host="plain.example"), 400),
    "length and chunks": (
        request(
            "POST http://127.0.0.1:1/",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled",
            "127.0.0.1:1",
        ),
        400,
    ),
    "TLS at once": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600), 400),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests(transport, name):
    data, status = HOSTILE[name]
    with transport.raw() as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR) if name == "TLS at once" else None
        found = everything(connection)
    assert found.startswith(b"HTTP/1.1 %d " % status), found
    assert b"smuggled" not in found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: index.example:8443\r\n\r\n", 421),
        (b"GET http://other.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n", 400),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: index.example\r\n\r\n", 400),
    ],
)
def test_hostile_requests_within_tls(transport, data, status):
    connection, _ = transport.connect("index.example:443")
    with transport.tls(connection, "index.example") as secured:
        secured.sendall(data)
        assert status_of(secured) == status


def test_another_name_in_the_greeting_is_refused(transport):
    connection, _ = transport.connect("index.example:443")
    with connection, pytest.raises((ssl.SSLError, ConnectionError)):
        transport.tls(connection, "other.example")


def test_who_does_not_trust_is_noted(transport):
    connection, _ = transport.connect("index.example:443")
    with connection, pytest.raises(ssl.SSLCertVerificationError):
        transport.tls(connection, "index.example", transport.outbound.roots)
    assert wait_until(lambda: transport.failures)
    assert "index.example:443" in transport.failures[0]


# Tunnels


BODY = b"x" * 3_000_000


@pytest.fixture
def fetched(transport, host, trusted):
    """Return a function that returns what a client gets which trusts the server itself."""
    host.replies["/file"] = Reply(BODY)

    def get(headers=b""):
        connection, status = transport.connect(host.place, headers=headers)
        assert status == 200, everything(connection)
        with transport.tls(connection, "127.0.0.1", trusted) as secured:
            head = f"GET /file HTTP/1.1\r\nHost: {host.place}\r\nConnection: close\r\n\r\n"
            secured.sendall(head.encode())
            return everything(secured)

    return get


def test_other_hosts_are_tunnelled(transport, fetched):
    assert fetched().endswith(BODY)
    assert transport.failures == []


@pytest.mark.parametrize("agent", [b"", b'uv/0.13.9 {"installer":{"name":"uv"}}', b"git/2.39.5"])
def test_programs_that_uv_starts_reach_the_index_itself(transport, host, fetched, agent):
    """git has certificates of its own, and takes no part in variants."""
    transport.begin([("https", "127.0.0.1", host.port)])
    headers = b"User-Agent: " + agent + b"\r\n" if agent else b""
    if agent.startswith(b"git"):
        assert fetched(headers).endswith(BODY)
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            fetched(headers)


@pytest.mark.parametrize(
    ("kind", "credentials"),
    [
        *(("http", ""), ("http", "me:p@ss"), ("https", "me:pass")),
        *(("socks5", ""), ("socks5h", "me:pass")),
    ],
)
def test_through_the_users_proxy(transport, host, fetched, theirs, trusted, kind, credentials):
    context = theirs.leaf("127.0.0.1") if kind == "https" else None
    socks = kind.startswith("socks")
    with socks_proxy(credentials) if socks else http_proxy(credentials, context) as proxy:
        at = credentials.replace("@", "%40") + "@" if credentials else ""
        environ = {"ALL_PROXY": f"{kind}://{at}127.0.0.1:{proxy.port}"}
        transport.begin(outbound=Outbound(environ, trusted))
        assert fetched().endswith(BODY)
        assert [each.target for each in proxy.asked] == [host.place]
        # Other servers do not see our own session.
        assert all(AUTH.split()[-1].decode() not in str(each.headers) for each in proxy.asked)
        proxy.asked.clear()
        transport.begin(outbound=Outbound({**environ, "NO_PROXY": "127.0.0.0/8"}, trusted))
        assert fetched().endswith(BODY)
        assert proxy.asked == []


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("http://me:wrong@127.0.0.1:{port}", "HTTP status 407"),
        ("http://127.0.0.1:{closed}", "the proxy 127.0.0.1:{closed}: connection refused"),
        ("ftp://127.0.0.1", "HTTPS_PROXY: a proxy of the kind 'ftp' cannot be used"),
        ("https://127.0.0.1:{port}", "the proxy 127.0.0.1:{port}: TLS failed"),
        ("socks5://me:wrong@127.0.0.1:{socks}", "127.0.0.1:{socks}: user name or password is"),
        ("socks5h://127.0.0.1:{socks}", "the proxy 127.0.0.1:{socks}: accepts no way to log in"),
    ],
)
def test_proxies_that_do_not_work_are_named(transport, host, variable, message):
    with socket.socket() as closed, http_proxy("me:right") as proxy, socks_proxy("a:b") as socks:
        closed.bind(("127.0.0.1", 0))
        ports = {"port": proxy.port, "closed": closed.getsockname()[1], "socks": socks.port}
        environ = {"HTTPS_PROXY": variable.format(**ports)}
        transport.begin(outbound=Outbound(environ, transport.outbound.roots))
        connection, status = transport.connect(host.place)
        with connection:
            text = everything(connection).decode()
    assert status == 502
    assert message.format(**ports).lower() in text.lower()
    assert "wrong" not in text.replace("is wrong", "")
    assert transport.failures == [text.strip()]


def test_hosts_that_do_not_answer_are_named(transport):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        for asked, why in (
            (place, f"{place}: connection refused\n"),
            ("does-not-exist.invalid:443", "does-not-exist.invalid:443: the name cannot be res"),
        ):
            connection, status = transport.connect(asked)
            with connection:
                assert everything(connection).decode().startswith(why)
            assert status == 502


@pytest.fixture
def tcp():
    """A TCP server on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.settimeout(10)
        yield found


def test_a_tunnel_passes_on_bytes_and_ends(transport, tcp):
    """Bytes beside the request too, and the end of one direction before that of the other."""
    connection, _ = transport.connect(f"127.0.0.1:{tcp.getsockname()[1]}", more=b"early ")
    with connection, tcp.accept()[0] as other:
        connection.sendall(b"question")
        connection.shutdown(socket.SHUT_WR)
        assert everything(other) == b"early question"
        other.sendall(b"answer" * 1000)
        other.shutdown(socket.SHUT_WR)
        assert everything(connection) == b"answer" * 1000


def test_a_client_that_is_gone_ends_the_tunnel(transport, tcp):
    connection, _ = transport.connect(f"127.0.0.1:{tcp.getsockname()[1]}")
    with tcp.accept()[0] as other:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        assert everything(other) == b""


@pytest.mark.parametrize("greets", [False, True])
def test_a_slow_client_ends(tmp_path, monkeypatch, greets):
    """Before its request is complete, and before it greets within TLS."""
    monkeypatch.setattr(proxy_server, "HEAD_SECONDS", 0.1)
    with running(tmp_path) as found:
        found.begin([INDEX])
        if greets:
            connection, status = found.connect("index.example:443")
            assert status == 200
        else:
            connection = found.raw()
            connection.sendall(b"CONNECT index.exa")
        with connection:
            assert everything(connection) == b""


def test_of_too_many_silent_clients_the_oldest_ends(transport, monkeypatch):
    monkeypatch.setattr(proxy_server, "PENDING", 2)
    clients = [transport.raw() for _ in range(3)]
    clients[0].settimeout(5)  # less than it has for its request
    assert clients[0].recv(1) == b""
    for each in clients:
        each.close()


def test_it_ends_with_open_connections(tmp_path, tcp):
    with running(tmp_path) as found:
        found.begin([INDEX])
        tunnelled, _ = found.connect(f"127.0.0.1:{tcp.getsockname()[1]}")
        other, _ = tcp.accept()
        connection, _ = found.connect("index.example:443")
        secured = found.tls(connection, "index.example")
        silent = found.raw()
    for each in (tunnelled, other, secured, silent):
        with each:
            assert everything(each) == b""

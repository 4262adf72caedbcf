"""The proxy that uv talks to: who may ask, TLS for hosts of indexes, tunnels for all others."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from support.proxied_network import Reply, http_proxy, origin, socks_proxy
from support.running_transport import HOSTS, TOKEN, everything, head_of, running, trusting
from uv_variants.transport import proxy_server
from uv_variants.transport.authority import Authority
from uv_variants.transport.outbound import Outbound

INDEX = ("https", "index.example", 443)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with running(tmp_path_factory.mktemp("ours")) as found:
        yield found


@pytest.fixture
def transport(started):
    started.failures.clear()
    started.begin([INDEX, ("https", "127.0.0.1", 8443), ("http", "plain.example", 80)])
    return started


def secret(token=TOKEN):
    return base64.b64encode(f"uv:{token}".encode())


def test_hosts_of_indexes_are_answered(transport):
    status, _, body = transport.https("index.example", 443, "GET", "/simple/a%20b/?q=1")
    assert status == 200
    assert body.startswith(b"GET https://index.example:443/simple/a%20b/ ")
    assert transport.https("127.0.0.1", 8443, "GET", "/")[0] == 200


def test_a_connection_is_kept(transport):
    connection, _ = transport.connect("index.example:443")
    with transport.tls(connection, "index.example") as secured:
        for number in range(3):
            secured.sendall(b"GET /%d HTTP/1.1\r\nHost: index.example\r\n\r\n" % number)
            status, head = head_of(secured)
            assert status == 200
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            body = b""
            while len(body) < length:
                body += secured.recv(length - len(body))
            assert b"index.example:443/%d " % number in body


def test_plain_http_of_an_index(transport):
    status, _, body = transport.http("http://plain.example/simple/?x")
    assert (status, body.split()[:2]) == (200, [b"GET", b"http://plain.example:80/simple/"])
    assert b"proxy-authorization" not in body


def test_the_port_itself_answers_nothing(transport):
    found = transport.say(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 407 ")


@pytest.mark.parametrize("token", ["wrong", ""])
def test_without_the_token_there_is_nothing(transport, token):
    with origin() as other:
        connection, status = transport.connect(f"127.0.0.1:{other.port}", token)
        with connection:
            assert status == 407
            assert b"uv-variants" in everything(connection)
        connection, status = transport.connect("index.example:443", token)
        connection.close()
        assert status == 407
        status, headers, _ = transport.http(other.url, token=token)
        assert (status, headers["proxy-authenticate"]) == (407, 'Basic realm="uv-variants"')
        assert other.asked == []


AUTH = b"Proxy-Authorization: Basic " + secret() + b"\r\n"
GOOD = b"Host: index.example\r\n" + AUTH
HOSTILE = {
    "no credentials": (b"CONNECT index.example:443 HTTP/1.1\r\nHost: index.example\r\n\r\n", 407),
    "digest": (
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Digest secret-token\r\n\r\n",
        407,
    ),
    "not base64": (
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic *\r\n\r\n",
        407,
    ),
    "no port": (b"CONNECT index.example HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "port 0": (b"CONNECT index.example:0 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "port too large": (b"CONNECT index.example:65536 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "port of other digits": (b"CONNECT index.example:4\xb2 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "URL for a host": (b"CONNECT https://index.example/ HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "user in the host": (b"CONNECT a@index.example:443 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "long host": (b"CONNECT " + b"a." * 200 + b"b:443 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "bad address": (b"CONNECT [::g]:443 HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "chunked CONNECT": (
        b"CONNECT index.example:443 HTTP/1.1\r\n"
        + GOOD
        + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "CONNECT with a body": (
        b"CONNECT index.example:443 HTTP/1.1\r\n" + GOOD + b"Content-Length: 2\r\n\r\nab",
        400,
    ),
    "early TLS": (b"CONNECT index.example:443 HTTP/1.1\r\n" + GOOD + b"\r\n\x16\x03\x01", 400),
    "two hosts": (
        b"CONNECT index.example:443 HTTP/1.1\r\n" + GOOD + b"Host: other\r\n\r\n",
        400,
    ),
    "no host": (b"CONNECT index.example:443 HTTP/1.1\r\n" + AUTH + b"\r\n", 400),
    "folded header": (
        b"CONNECT index.example:443 HTTP/1.1\r\n"
        + GOOD
        + b"X: a\r\n b\r\nTransfer-Encoding : x\r\n\r\n",
        400,
    ),
    "no version": (b"CONNECT index.example:443\r\n" + GOOD + b"\r\n", 400),
    "large head": (
        b"CONNECT index.example:443 HTTP/1.1\r\n" + GOOD + b"X: " + b"a" * 100_000,
        431,
    ),
    "other host in the URL": (
        b"GET http://plain.example/ HTTP/1.1\r\nHost: other.example\r\n" + AUTH + b"\r\n",
        400,
    ),
    "https in the URL": (b"GET https://index.example/ HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "file URL": (b"GET file:///etc/passwd HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "user in the URL": (
        b"GET http://a@plain.example/ HTTP/1.1\r\nHost: plain.example\r\n" + AUTH + b"\r\n",
        400,
    ),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n" + GOOD + b"\r\n", 400),
    "length and chunks": (
        b"POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
        + AUTH
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled",
        400,
    ),
    "two lengths": (
        b"POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
        + AUTH
        + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
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


INSIDE = {
    "other host": (b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", 421),
    "other port": (b"GET / HTTP/1.1\r\nHost: index.example:8443\r\n\r\n", 421),
    "absolute URL": (b"GET http://other.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: index.example\r\nHost: index.example\r\n\r\n", 400),
    "CONNECT within": (b"CONNECT a:443 HTTP/1.1\r\nHost: index.example\r\n\r\n", 400),
    "not HTTP": (b"SSH-2.0-x\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", INSIDE)
def test_hostile_requests_within_tls(transport, name):
    data, status = INSIDE[name]
    connection, _ = transport.connect("index.example:443")
    with transport.tls(connection, "index.example") as secured:
        secured.sendall(data)
        assert head_of(secured)[0] == status


def test_another_name_in_the_greeting_is_refused(transport):
    connection, _ = transport.connect("index.example:443")
    with connection, pytest.raises((ssl.SSLError, ConnectionError)):
        transport.tls(connection, "other.example")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_refused(transport):
    connection, _ = transport.connect("index.example:443")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(transport.trusted))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with connection, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(connection, server_hostname="index.example")


def test_who_does_not_trust_is_noted(transport, tmp_path):
    connection, _ = transport.connect("index.example:443")
    with connection, pytest.raises(ssl.SSLCertVerificationError):
        transport.tls(connection, "index.example", transport.outbound.roots)
    wait_for(lambda: transport.failures)
    assert "index.example:443" in transport.failures[0]


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# Tunnels


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """An HTTPS server that is no index, and the file with the certificate to trust."""
    theirs = Authority(["127.0.0.1"])
    with origin(theirs.leaf("127.0.0.1")) as found:
        found.replies["/file"] = Reply(b"x" * 3_000_000)
        yield found, trusting(theirs, tmp_path_factory.mktemp("theirs"))


def fetched(transport, peer):
    found, trusted = peer
    connection, status = transport.connect(found.place)
    assert status == 200, everything(connection)
    with transport.tls(connection, "127.0.0.1", trusted) as secured:
        secured.sendall(b"GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return everything(secured)


def test_other_hosts_are_tunnelled(transport, peer):
    assert fetched(transport, peer).endswith(b"x" * 3_000_000)
    assert transport.failures == []


@pytest.mark.parametrize(
    ("agent", "tunnelled"),
    [
        (b"", False),
        (b'uv/0.13.9 {"installer":{"name":"uv"}}', False),
        (b"git/2.39.5", True),
        (b"curl/7.88.1", True),
    ],
)
def test_programs_that_uv_starts_reach_the_index_itself(transport, peer, agent, tunnelled):
    """git has certificates of its own, and takes no part in variants."""
    found, trusted = peer
    transport.begin([("https", "127.0.0.1", found.port)])
    headers = b"User-Agent: " + agent + b"\r\n" if agent else b""
    connection, status = transport.connect(found.place, headers=headers)
    assert status == 200
    with transport.tls(connection, "127.0.0.1", trusted if tunnelled else None) as secured:
        host = found.place.encode()
        secured.sendall(b"GET /file HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        assert everything(secured).endswith(b"x" * 3_000_000) == tunnelled


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_asks_the_host_of_an_index(transport, peer):
    found, _ = peer
    transport.begin([("https", "127.0.0.1", found.port)])
    commit = "1234567890" * 4
    target = "/tool.git/info/refs?service=git-upload-pack"
    found.replies[target] = Reply(f"{commit}\trefs/heads/main\n".encode())
    environ = {
        "PATH": os.environ["PATH"],
        "HTTPS_PROXY": f"http://uv:{TOKEN}@127.0.0.1:{transport.port}",
        "GIT_SSL_NO_VERIFY": "1",  # GnuTLS takes no certificates with name constraints
        "GIT_TERMINAL_PROMPT": "0",
    }
    command = ["git", "ls-remote", f"https://{found.place}/tool.git"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == f"{commit}\trefs/heads/main\n", done


def through(transport, url, no_proxy=""):
    transport.begin(
        outbound=Outbound({"HTTPS_PROXY": url, "NO_PROXY": no_proxy}, transport.outbound.roots),
    )


@pytest.mark.parametrize("credentials", ["", "me:p%40ss"])
def test_through_the_users_proxy(transport, peer, credentials):
    with http_proxy(credentials.replace("%40", "@")) as proxy:
        url = f"http://{credentials + '@' if credentials else ''}127.0.0.1:{proxy.port}"
        through(transport, url)
        assert fetched(transport, peer).endswith(b"x" * 3_000_000)
        assert [each.target for each in proxy.asked] == [peer[0].place]
        # Other servers do not see our own session.
        assert all(secret().decode() not in str(each.headers) for each in proxy.asked)


def test_through_a_proxy_with_tls(transport, peer, tmp_path):
    theirs = Authority(HOSTS)
    roots = trusting(theirs, tmp_path)
    with http_proxy("me:pass", theirs.leaf("127.0.0.1")) as proxy:
        transport.begin(outbound=Outbound({"ALL_PROXY": proxy.url}, roots))
        assert fetched(transport, peer).endswith(b"x" * 3_000_000)
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("credentials", ["", "me:pass"])
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_through_socks(transport, peer, credentials, scheme):
    with socks_proxy(credentials) as proxy:
        through(transport, proxy.url.replace("socks5h", scheme))
        assert fetched(transport, peer).endswith(b"x" * 3_000_000)
        assert [each.target for each in proxy.asked] == [peer[0].place]


def test_no_proxy(transport, peer):
    with http_proxy() as proxy:
        through(transport, proxy.url, "127.0.0.0/8")
        assert fetched(transport, peer).endswith(b"x" * 3_000_000)
        assert proxy.asked == []


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("http://me:wrong@127.0.0.1:{port}", "HTTP status 407"),
        ("http://127.0.0.1:{closed}", "the proxy 127.0.0.1:{closed}: connection refused"),
        ("ftp://127.0.0.1", "HTTPS_PROXY: a proxy of the kind 'ftp' cannot be used"),
        ("http://[", "HTTPS_PROXY: not a valid URL"),
        ("https://127.0.0.1:{port}", "the proxy 127.0.0.1:{port}: TLS failed"),
        ("socks5://127.0.0.1:{closed}", "the proxy 127.0.0.1:{closed}: connection refused"),
        ("socks5://me:wrong@127.0.0.1:{socks}", "127.0.0.1:{socks}: user name or password is"),
        ("socks5h://127.0.0.1:{socks}", "the proxy 127.0.0.1:{socks}: accepts no way to log in"),
    ],
)
def test_proxies_that_do_not_work_are_named(transport, peer, variable, message):
    with socket.socket() as closed, http_proxy("me:right") as proxy, socks_proxy("a:b") as socks:
        closed.bind(("127.0.0.1", 0))
        ports = {"port": proxy.port, "closed": closed.getsockname()[1], "socks": socks.port}
        through(transport, variable.format(**ports))
        connection, status = transport.connect(peer[0].place)
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
        connection, status = transport.connect(place)
        with connection:
            assert everything(connection) == f"{place}: connection refused\n".encode()
    assert status == 502
    connection, status = transport.connect("does-not-exist.invalid:443")
    with connection:
        assert b"does-not-exist.invalid:443: the name cannot be resolved" in everything(connection)


class Peer:
    """A TCP server for one connection."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def accept(self):
        connection, _ = self.listening.accept()
        connection.settimeout(10)
        return connection


@pytest.fixture
def tcp():
    found = Peer()
    yield found
    found.listening.close()


def test_the_end_of_one_direction_is_passed_on(transport, tcp):
    connection, _ = transport.connect(tcp.place)
    with connection, tcp.accept() as other:
        connection.sendall(b"question")
        connection.shutdown(socket.SHUT_WR)
        assert everything(other) == b"question"
        other.sendall(b"answer" * 1000)
        other.shutdown(socket.SHUT_WR)
        assert everything(connection) == b"answer" * 1000


def test_bytes_with_the_request_are_passed_on(transport, tcp):
    connection, _ = transport.connect(tcp.place, more=b"early")
    with connection, tcp.accept() as other:
        assert other.recv(5) == b"early"


def test_a_slow_reader_holds_the_sender(transport, tcp):
    connection, _ = transport.connect(tcp.place)
    with connection, tcp.accept() as other:
        other.settimeout(0.5)
        sent = 0
        try:
            while sent < 200_000_000:
                sent += other.send(bytes(65536))
        except TimeoutError:
            pass
        assert sent < 100_000_000
        # A connection that waits there does not hold up others.
        assert transport.https("index.example", 443, "GET", "/")[0] == 200


def test_a_client_that_is_gone_ends_the_tunnel(transport, tcp):
    connection, _ = transport.connect(tcp.place)
    with tcp.accept() as other:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        assert everything(other) == b""
    wait_for(lambda: transport.transport.is_idle)


def test_a_slow_head_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy_server, "HEAD_SECONDS", 0.3)
    with running(tmp_path) as found, found.raw() as connection:
        connection.sendall(b"CONNECT index.exa")
        assert everything(connection) == b""


def test_a_slow_greeting_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy_server, "HEAD_SECONDS", 0.3)
    with running(tmp_path) as found:
        found.begin([INDEX])
        connection, status = found.connect("index.example:443")
        with connection:
            assert status == 200
            assert everything(connection) == b""


def test_many_unknown_clients_do_not_stop_known_ones(transport):
    silent = [transport.raw() for _ in range(proxy_server.PENDING + 40)]
    try:
        assert transport.https("index.example", 443, "GET", "/")[0] == 200
        wait_for(lambda: any(is_closed(each) for each in silent))
        assert sum(is_closed(each) for each in silent) <= 41
    finally:
        for each in silent:
            each.close()


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_many_at_once(transport, peer):
    found = []

    def ask(number):
        if number % 2:
            found.append(transport.https("index.example", 443, "GET", "/")[0])
        else:
            found.append(200 if fetched(transport, peer).endswith(b"x" * 1000) else 0)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * 20


def test_it_ends_with_open_connections(tmp_path, tcp):
    with running(tmp_path) as found:
        found.begin([INDEX])
        tunnelled, _ = found.connect(tcp.place)
        other = tcp.accept()
        connection, _ = found.connect("index.example:443")
        secured = found.tls(connection, "index.example")
        silent = found.raw()
    for each in (tunnelled, other, secured, silent):
        with each:
            assert everything(each) == b""

"""Sessions over real HTTP: limits, retries, redirects, credentials, cache."""

import hashlib
import os
import socket
import stat
import time

import pytest

from pep_variants.sources import Sources
from support.index_server import Resource, Server, served
from support.proxied_network import socks_proxy
from variants_index.cache import Store
from variants_index.errors import (
    AccessDenied,
    BadResponse,
    NotFound,
    PackageIndexError,
    Unreachable,
)
from variants_index.http.session import Session

QUIET = {"HOME": os.devnull, "PATH": os.defpath}


@pytest.fixture
def server():
    with served() as running:
        yield running


@pytest.fixture
def other():
    with served() as running:
        yield running


def session(server=None, environ=None, store=None, **options):
    sources = Sources(index_url=server.simple) if isinstance(server, Server) else server
    return Session(
        sources or Sources(),
        store=store,
        environ={**QUIET, **(environ or {})},
        first_pause=0.01,
        **options,
    )


def fetch(server, path="/a", limit=10**6, environ=None, store=None, **options):
    making = {name: options.pop(name) for name in ("retries",) if name in options}
    with_it = session(server, environ, store, **making)
    try:
        return with_it.fetch(server.url + path, limit=limit, **options).body
    finally:
        with_it.close()


class TestAnswers:
    def test_body_type_and_place(self, server):
        server.resources["/a"] = Resource.redirect("/b")
        server.resources["/b"] = Resource(b"body", kind="text/html; charset=utf-8")
        answer = session(server).fetch(f"{server.url}/a", limit=100)
        assert answer.body == b"body"
        assert answer.url == f"{server.url}/b"
        assert answer.content_type == "text/html; charset=utf-8"

    @pytest.mark.parametrize(
        ("status", "error"),
        [(404, NotFound), (410, NotFound), (401, AccessDenied), (403, AccessDenied),
         (418, BadResponse), (500, Unreachable)],
    )  # fmt: skip
    def test_status(self, server, status, error):
        server.resources["/a"] = Resource(b"no", status)
        with pytest.raises(error, match=f"{server.url}/a: .*{status}"):
            fetch(server, retries=1)

    def test_hash(self, server):
        server.resources["/a"] = Resource(b"body")
        right = {"sha256": hashlib.sha256(b"body").hexdigest(), "strange": "0"}
        assert fetch(server, hashes=right) == b"body"
        with pytest.raises(BadResponse, match="does not match its sha256 hash"):
            fetch(server, hashes={"sha256": "0" * 64})

    def test_file_urls(self, tmp_path):
        path = tmp_path / "a b.txt"
        path.write_bytes(b"body")
        assert session().fetch(path.as_uri(), limit=10).body == b"body"
        with pytest.raises(BadResponse, match="larger than 3 bytes"):
            session().fetch(path.as_uri(), limit=3)
        with pytest.raises(NotFound, match="no such file"):
            session().fetch((tmp_path / "none").as_uri(), limit=3)


class TestLimits:
    def test_too_large(self, server):
        server.resources["/a"] = Resource(b"x" * 1001)
        with pytest.raises(BadResponse, match="larger than 1000 bytes"):
            fetch(server, limit=1000)
        assert len(server.requests) == 1

    def test_redirects_to_another_host(self, server):
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        server.resources["/a"] = Resource.redirect(f"{elsewhere}/b")
        server.resources["/b"] = Resource(b"here")
        server.resources["/c"] = Resource.redirect("/b")
        asking = session(server)
        with pytest.raises(NotFound, match="/a: redirects to localhost"):
            asking.fetch(f"{server.url}/a", limit=10, same_host=True)
        assert server.paths == ["/a"]
        assert asking.fetch(f"{server.url}/c", limit=10, same_host=True).body == b"here"

    def test_redirects(self, server):
        server.resources["/a"] = Resource.redirect("/a")
        with pytest.raises(BadResponse, match="redirects more than 10 times"):
            fetch(server)
        assert len(server.requests) == 11

    @pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://host/", "http://["])
    def test_redirects_to_elsewhere(self, server, target):
        server.resources["/a"] = Resource.redirect(target)
        with pytest.raises(PackageIndexError):
            fetch(server, retries=0)
        assert len(server.requests) == 1


class TestPatience:
    @pytest.mark.parametrize("status", [429, 503])
    def test_a_busy_server_is_asked_again(self, server, status):
        server.resources["/a"] = Resource(b"body")
        server.faults["/a"] = [Resource(status=status)] * 2
        assert fetch(server) == b"body"
        assert len(server.requests) == 3

    def test_an_answer_that_breaks_off_is_asked_for_again(self, server):
        server.resources["/a"] = Resource(b"body")
        server.faults["/a"] = [Resource(b"bo", lie=2)] * 2
        assert fetch(server) == b"body"

    def test_not_for_ever(self, server):
        server.resources["/a"] = Resource(b"bo", lie=2)
        with pytest.raises(Unreachable, match="cut off"):
            fetch(server, retries=2)
        assert len(server.requests) == 3

    def test_retry_after_is_heeded(self, server):
        server.resources["/a"] = Resource(b"body")
        server.faults["/a"] = [Resource(status=429, headers={"Retry-After": "1"})]
        start = time.monotonic()
        assert fetch(server) == b"body"
        assert time.monotonic() - start >= 1

    @pytest.mark.parametrize("asked", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
    def test_a_long_retry_after_is_not_waited_for(self, server, asked):
        server.resources["/a"] = Resource(status=503, headers={"Retry-After": asked})
        with pytest.raises(Unreachable, match="503"):
            fetch(server)
        assert len(server.requests) == 1

    @pytest.mark.parametrize("asked", ["soon", "-5", "9" * 400])
    def test_nonsense_is_no_time(self, server, asked):
        server.resources["/a"] = Resource(b"body")
        server.faults["/a"] = [Resource(status=503, headers={"Retry-After": asked})]
        assert fetch(server) == b"body"

    def test_no_server(self):
        # Taken, so that no other process gets it, but without a listener.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
            with pytest.raises(Unreachable, match=f"{url}: cannot connect"):
                session(Sources(index_url=url), retries=1).fetch(url, limit=10)


def guarded(expected):
    """Return what answers 401 to requests without *expected*."""
    import base64

    token = f"Basic {base64.b64encode(expected.encode()).decode()}"

    def answer(headers):
        if headers.get("Authorization") == token:
            return Resource(b"body", etag=True)
        return Resource(b"who?", 401, headers={"WWW-Authenticate": "Basic"})

    return answer


def with_user(url, user):
    return url.replace("http://", f"http://{user}@")


class TestCredentials:
    @pytest.mark.skipif(os.name == "nt", reason="the fake command is a shell script")
    def test_from_keyring_once_the_index_asks(self, server, tmp_path):
        command = tmp_path / "keyring"
        command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho s3cr3t\n')
        command.chmod(command.stat().st_mode | stat.S_IEXEC)
        server.resources["/a"] = guarded("me:s3cr3t")
        server.resources["/open"] = Resource(b"body")
        sources = Sources(index_url=with_user(server.simple, "me"))
        asking = session(sources, environ={"PATH": f"{tmp_path}{os.pathsep}{os.defpath}"})
        asking.fetch(f"{server.url}/open", limit=10)
        assert not (tmp_path / "asked").exists()
        for _ in range(2):
            assert asking.fetch(f"{server.url}/a", limit=10).body == b"body"
        assert (tmp_path / "asked").read_text() == f"get {server.simple} me\n"

    def test_no_other_host_gets_them(self, server, other):
        server.resources["/a"] = Resource.redirect(f"{other.url}/b")
        other.resources["/b"] = Resource(b"body")
        sources = Sources(index_url=with_user(server.simple, "me:s3cr3t"))
        assert session(sources).fetch(f"{server.url}/a", limit=10).body == b"body"
        assert "Authorization" in server.requests[0][1]
        assert "Authorization" not in other.requests[0][1]

    @pytest.mark.parametrize("own", ["evil:pw", "evil", "me:wrong"])
    def test_a_link_cannot_set_them(self, server, own):
        """Its own count for that very request, and only where the user gave none."""
        server.resources["/a"] = guarded("me:s3cr3t")
        server.resources["/b"] = Resource(b"body")
        configured = Sources(index_url=with_user(server.simple, "me:s3cr3t"))
        with_them, without = session(configured), session(server)
        assert with_them.fetch(with_user(f"{server.url}/a", own), limit=10).body == b"body"
        for asking in (without, without):
            with pytest.raises(AccessDenied):
                asking.fetch(with_user(f"{server.url}/a", own), limit=10)
            asking.fetch(f"{server.url}/b", limit=10)
        assert with_them.fetch(f"{server.url}/a", limit=10).body == b"body"
        sent = [headers.get("Authorization") for path, headers in server.requests if path == "/b"]
        assert sent == [None, None]
        assert not without.is_authenticated(server.url)

    def test_those_of_a_link_count_for_it_alone(self, server, other):
        """As for pip; a redirect does not take them along, not even to the same host."""
        server.resources["/a"] = guarded("me:s3cr3t")
        server.resources["/b"] = Resource.redirect(f"{server.url}/a")
        asking = session(server)
        for path in ("/a", "/a"):
            url = with_user(f"{server.url}{path}", "me:s3cr3t")
            assert asking.fetch(url, limit=10).body == b"body"
        with pytest.raises(AccessDenied):
            asking.fetch(with_user(f"{server.url}/b", "me:s3cr3t"), limit=10)
        with pytest.raises(AccessDenied):
            asking.fetch(f"{server.url}/a", limit=10)

    @pytest.mark.parametrize("entry", ["machine 127.0.0.1", "default"])
    def test_netrc_is_not_for_every_port(self, server, other, tmp_path, entry):
        netrc = tmp_path / "netrc"
        netrc.write_text(f"{entry} login me password s3cr3t\n")
        other.resources["/a"] = Resource(b"body")
        server.resources["/a"] = Resource(b"body")
        sources = Sources(index_url=server.simple, trusted_hosts=("127.0.0.1",))
        asking = session(sources, environ={"NETRC": str(netrc)})
        for place in (server, other):
            asking.fetch(f"{place.url}/a", limit=10)
        assert server.requests[0][1].get("Authorization")
        assert other.requests[0][1].get("Authorization") is None

    def test_no_message_shows_them(self, server):
        sources = Sources(index_url=with_user(server.simple, "me:s3cr3t"))
        for status in (401, 403, 404, 503, 418):
            server.resources["/a"] = Resource(status=status)
            with pytest.raises(PackageIndexError) as caught:
                session(sources, retries=0).fetch(
                    with_user(f"{server.url}/a", "me:s3cr3t"), limit=10
                )
            assert "s3cr3t" not in str(caught.value)

    def test_no_message_shows_signatures(self, server):
        """Storage services are led to with a signature in the query of a redirect."""
        for status in (401, 403, 404, 503, 418, 200):
            server.resources["/b?sig=s3cr3t"] = Resource(b"x" * 20, status=status)
            for start in ("/a", "/b?sig=s3cr3t"):
                server.resources["/a"] = Resource.redirect(f"{server.url}/b?sig=s3cr3t")
                with pytest.raises(PackageIndexError) as caught:
                    session(server, retries=0).fetch(f"{server.url}{start}", limit=10)
                assert "s3cr3t" not in str(caught.value)

    def test_the_cache_never_has_them(self, server, tmp_path):
        server.resources["/a"] = guarded("me:s3cr3t")
        server.resources["/b"] = Resource.redirect("/c?signature=s3cr3t")
        server.resources["/c?signature=s3cr3t"] = Resource(
            b"body", headers={"Set-Cookie": "id=s3cr3t"}, etag=True
        )
        store = Store(tmp_path)
        asking = session(Sources(index_url=with_user(server.simple, "me:s3cr3t")), store=store)
        asking.fetch(with_user(f"{server.url}/a", "me:s3cr3t"), limit=10)
        asking.fetch(f"{server.url}/b", limit=10)
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert kept
        token = b"bWU6czNjcjN0"
        assert not any(
            secret in path.read_bytes() for path in kept for secret in (b"s3cr3t", token)
        )


class TestCache:
    def test_revalidated(self, server, tmp_path):
        server.resources["/a"] = Resource(b"body", etag=True)
        for _ in range(3):
            assert fetch(server, store=Store(tmp_path)) == b"body"
        assert ["If-None-Match" in headers for _, headers in server.requests] == [0, 1, 1]
        server.resources["/a"] = Resource(b"new", etag=True)
        assert fetch(server, store=Store(tmp_path)) == b"new"
        assert fetch(server, store=Store(tmp_path)) == b"new"

    def test_a_file_with_a_known_hash_is_not_asked_for_again(self, server, tmp_path):
        server.resources["/a"] = Resource(b"body")
        hashes = {"sha256": hashlib.sha256(b"body").hexdigest()}
        for _ in range(3):
            assert fetch(server, store=Store(tmp_path), hashes=hashes) == b"body"
        assert len(server.requests) == 1

    def test_a_wrong_hash_is_not_kept(self, server, tmp_path):
        server.resources["/a"] = Resource(b"bad", etag=True)
        hashes = {"sha256": hashlib.sha256(b"body").hexdigest()}
        with pytest.raises(BadResponse, match="sha256"):
            fetch(server, store=Store(tmp_path), hashes=hashes)
        assert fetch(server, store=Store(tmp_path)) == b"bad"
        server.resources["/a"] = Resource(b"body", etag=True)
        assert fetch(server, store=Store(tmp_path), hashes=hashes) == b"body"

    def test_a_redirect_that_leads_elsewhere_now(self, server, tmp_path):
        """Two files may have the same ETag."""
        for name in ("b", "c"):
            server.resources[f"/{name}"] = Resource(name.encode(), headers={"ETag": '"1"'})
            server.resources["/a"] = Resource.redirect(f"/{name}")
            assert fetch(server, store=Store(tmp_path)) == name.encode()

    def test_no_store(self, server, tmp_path):
        private = {"Cache-Control": "no-store"}
        server.resources["/a"] = Resource(b"body", headers=private, etag=True)
        for _ in range(2):
            fetch(server, store=Store(tmp_path))
        assert not [path for path in tmp_path.rglob("http/*/*") if path.is_file()]

    def test_what_breaks_off_is_not_kept(self, server, tmp_path):
        server.resources["/a"] = Resource(b"bo", lie=2, etag=True)
        with pytest.raises(Unreachable):
            fetch(server, store=Store(tmp_path), retries=0)
        assert not [path for path in tmp_path.rglob("http/*/*") if path.is_file()]


def test_proxy_of_the_environment(server, monkeypatch):
    """Of the one that it was given: a server has sessions of several users' commands."""
    server.resources["http://index.example/a"] = Resource(b"through the proxy")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    asking = session(environ={"http_proxy": server.url})
    assert asking.fetch("http://index.example/a", limit=100).body == b"through the proxy"


def test_a_socks_proxy(server):
    """httpx needs another library for SOCKS."""
    server.resources["/a"] = Resource(b"through the proxy")
    with socks_proxy("me:pass") as proxy:
        asking = session(environ={"ALL_PROXY": proxy.url})
        asking.add_index(server.url)
        assert asking.fetch(f"{server.url}/a", limit=100).body == b"through the proxy"
        assert [each.method for each in proxy.asked] == ["SOCKS"]

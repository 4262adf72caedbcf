"""Sessions over real HTTP: limits, retries, redirects, credentials, cache, proxies."""

import hashlib
import os
import socket
import stat
from base64 import b64encode
from contextlib import nullcontext

import pytest

from support.certificates import certified
from support.index import Answer, served
from support.proxied_network import http_proxy, socks_proxy
from variants_index._cache import Store
from variants_index._errors import (
    AccessDenied,
    BadResponse,
    NotFound,
    PackageIndexError,
    Unreachable,
)

BODY = {"sha256": hashlib.sha256(b"body").hexdigest()}
SECRET = "me:s3cr3t"


class TestResponses:
    def test_body_type_and_url(self, server, session):
        server.resources["/a"] = Answer.redirect("/b")
        server.resources["/b"] = Answer(body=b"body", kind="text/html; charset=utf-8")
        server.resources["/c"] = Answer.redirect("http://localhost/b")
        asking = session(server.url)
        with pytest.raises(NotFound, match="/c: redirects to localhost"):
            asking.fetch(f"{server.root}/c", limit=100, same_host=True)
        found = asking.fetch(f"{server.root}/a", limit=100, same_host=True)
        assert (found.body, found.url) == (b"body", f"{server.root}/b")
        assert found.content_type == "text/html; charset=utf-8"

    @pytest.mark.parametrize(
        ("resource", "error", "message", "requests"),
        [
            (Answer(404, b"no"), NotFound, "404", 1),
            (Answer(410, b"no"), NotFound, "410", 1),
            (Answer(401, b"no"), AccessDenied, "401", 1),
            (Answer(403, b"no"), AccessDenied, "403", 1),
            (Answer(407, b"no"), AccessDenied, "the proxy wants another user name or password", 1),
            (Answer(418, b"no"), BadResponse, "418", 1),
            (Answer(500, b"no"), Unreachable, "500", 5),
            (Answer.cut_off(b"bo"), Unreachable, "cut off", 5),
            (Answer(body=b"x" * 1001), BadResponse, "larger than 1000 bytes", 1),
            (Answer.redirect("/a"), BadResponse, "redirects more than 10 times", 11),
            (Answer.redirect("file:///etc/passwd"), BadResponse, "not http or https", 1),
            (Answer.redirect("http://["), Unreachable, "", 5),
            # A long time is not waited for.
            (Answer(503, headers={"Retry-After": "3600"}), Unreachable, "503", 1),
            (Answer(429, headers={"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}),
             Unreachable, "429", 1),
        ],
    )  # fmt: skip
    def test_errors(self, server, session, resource, error, message, requests):
        server.resources["/a"] = resource
        with pytest.raises(error, match=f"^{server.root}/a: .*{message}"):
            session(server.url).fetch(f"{server.root}/a", limit=1000)
        assert len(server.requests) == requests

    @pytest.mark.parametrize(
        "fault",
        [
            Answer(429),
            Answer.cut_off(b"bo"),
            *(Answer(503, headers={"Retry-After": it}) for it in ("x", "-5", "9" * 400)),
        ],
    )
    def test_temporary_failures(self, server, session, fault):
        server.resources["/a"] = Answer(body=b"body")
        server.faults["/a"] = [fault] * 2
        assert session(server.url).fetch(f"{server.root}/a", limit=10).body == b"body"
        assert len(server.requests) == 3

    def test_the_server_says_when_to_ask_again(self, server, session, monkeypatch):
        server.resources["/a"] = Answer(body=b"body")
        server.faults["/a"] = [Answer(429, headers={"Retry-After": "7"}), Answer(429)]
        asking, pauses = session(server.url), []
        monkeypatch.setattr(asking._closed, "wait", pauses.append)
        assert asking.fetch(f"{server.root}/a", limit=10).body == b"body"
        assert pauses[0] == 7
        assert 0.02 <= pauses[1] < 0.03

    def test_no_server(self, session):
        # Taken, so that no other process gets it, but without a listener.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
            with pytest.raises(Unreachable, match=f"{url}: cannot connect"):
                session(url, retries=1).fetch(url, limit=10)

    def test_a_host_that_was_not_reached(self, session, monkeypatch):
        """Its other pages are not asked for at once, whatever session wants them."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            root = f"http://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(Unreachable):
                session(root, retries=1).fetch(f"{root}/a", limit=10)
            asking, sent = session(root, retries=1), []
            monkeypatch.setattr(asking, "_send", lambda url, *_, **__: sent.append(url))
            with pytest.raises(Unreachable, match=f"{root}/b: cannot connect"):
                asking.fetch(f"{root}/b", limit=10)
            assert sent == []

    def test_a_place_that_fails(self, server, session):
        """It is asked again less often than an index, and once for its next page."""
        url, asking = f"{server.root}/a", session(server.url)
        server.resources["/b"] = Answer(body=b"body")
        for is_place, count in ((False, 5), (True, 3), (True, 1), (False, 5)):
            server.faults["/a"], before = Answer(500), len(server.requests)
            with pytest.raises(Unreachable, match="HTTP status 500"):
                asking.fetch(url, limit=10, is_place=is_place)
            assert len(server.requests) - before == count
        server.faults["/b"] = [Answer(500)]
        with pytest.raises(Unreachable):
            asking.fetch(f"{server.root}/b", limit=10, is_place=True)
        # What it answers ends that.
        for _ in range(2):
            assert asking.fetch(f"{server.root}/b", limit=10, is_place=True).body == b"body"
            server.faults["/b"] = [Answer(500)]

    def test_what_a_place_lacks(self, server, session):
        server.faults["/a"] = Answer(403)
        asking = session(server.url, retries=0)
        for is_place, kind in ((True, NotFound), (False, AccessDenied)):
            with pytest.raises(kind, match="HTTP status 403"):
                asking.fetch(f"{server.root}/a", limit=10, is_place=is_place)

    def test_file_urls(self, session, tmp_path):
        path = tmp_path / "a b.txt"
        path.write_bytes(b"body")
        assert session().fetch(path.as_uri(), limit=10).body == b"body"
        with pytest.raises(BadResponse, match="larger than 3 bytes"):
            session().fetch(path.as_uri(), limit=3)
        with pytest.raises(NotFound, match="no such file"):
            session().fetch((tmp_path / "none").as_uri(), limit=3)


def guarded(headers):
    """Answer 401 to requests without the user's login."""
    if headers.get("Authorization") == f"Basic {b64encode(SECRET.encode()).decode()}":
        return Answer(body=b"body", etag=True)
    return Answer(401, b"who?", headers={"WWW-Authenticate": "Basic"})


def with_user(url, user=SECRET):
    return url.replace("http://", f"http://{user}@")


class TestCredentials:
    @pytest.mark.skipif(os.name == "nt", reason="the fake command is a shell script")
    def test_from_keyring_once_the_index_asks(self, server, session, tmp_path):
        command = tmp_path / "keyring"
        command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho s3cr3t\n')
        command.chmod(command.stat().st_mode | stat.S_IEXEC)
        server.resources.update({"/a": guarded, "/open": Answer(body=b"body")})
        environ = {"PATH": f"{tmp_path}{os.pathsep}{os.defpath}"}
        asking = session(with_user(server.url, "me"), environ=environ)
        asking.fetch(f"{server.root}/open", limit=10)
        assert not (tmp_path / "asked").exists()
        for _ in range(2):
            assert asking.fetch(f"{server.root}/a", limit=10).body == b"body"
        assert (tmp_path / "asked").read_text() == f"get {server.url} me\n"

    def test_no_other_host_gets_them(self, server, other, session):
        server.resources["/a"] = Answer.redirect(f"{other.root}/b")
        other.resources["/b"] = Answer(body=b"body")
        found = session(with_user(server.url)).fetch(f"{server.root}/a", limit=10)
        assert found.body == b"body"
        assert "Authorization" in server.requests[0].headers
        assert "Authorization" not in other.requests[0].headers

    @pytest.mark.parametrize("own", ["evil:pw", "evil", "me:wrong"])
    def test_a_link_cannot_set_them(self, server, session, own):
        """Its own count for that very request, and only where the user gave none."""
        server.resources.update({"/a": guarded, "/b": Answer(body=b"body")})
        with_them, without = session(with_user(server.url)), session(server.url)
        assert with_them.fetch(with_user(f"{server.root}/a", own), limit=10).body == b"body"
        for _ in range(2):
            with pytest.raises(AccessDenied):
                without.fetch(with_user(f"{server.root}/a", own), limit=10)
            without.fetch(f"{server.root}/b", limit=10)
        assert with_them.fetch(f"{server.root}/a", limit=10).body == b"body"
        sent = [each.headers.get("Authorization") for each in server.requests if each == "/b"]
        assert sent == [None, None]
        assert not without.is_authenticated(server.root)

    def test_those_of_a_link_count_for_it_alone(self, server, session):
        """As for pip; a redirect does not take them along, not even to the same host."""
        server.resources.update({"/a": guarded, "/b": Answer.redirect(f"{server.root}/a")})
        asking = session(server.url)
        for _ in range(2):
            found = asking.fetch(with_user(f"{server.root}/a"), limit=10)
            assert found.body == b"body"
        for url in (with_user(f"{server.root}/b"), f"{server.root}/a"):
            with pytest.raises(AccessDenied):
                asking.fetch(url, limit=10)

    @pytest.mark.parametrize("status", [401, 403, 404, 503, 418, 200])
    def test_no_message_shows_them(self, server, session, status):
        """Nor signatures: storage services are led to with one in the query of a redirect."""
        server.resources["/a"] = Answer.redirect("/b?sig=s3cr3t")
        server.resources["/b?sig=s3cr3t"] = Answer(status, b"x" * 20)
        server.resources["/c"] = Answer(status, b"x" * 20)
        asking = session(with_user(server.url), retries=0)
        for url in (
            f"{server.root}/a",
            f"{server.root}/b?sig=s3cr3t",
            with_user(f"{server.root}/c"),
        ):
            with pytest.raises(PackageIndexError) as caught:
                asking.fetch(url, limit=10)
            assert "s3cr3t" not in str(caught.value)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


class TestCache:
    @pytest.fixture
    def fetch(self, server, session, store):
        """Fetch a path as a new command does, with what earlier ones stored."""

        def fetch(path="/a", **options):
            asking = session(server.url, retries=0, store=Store(store.root.parent))
            return asking.fetch(server.root + path, limit=10**6, **options).body

        return fetch

    def test_revalidated(self, server, fetch):
        server.resources["/a"] = Answer(body=b"body", etag=True)
        assert [fetch() for _ in range(3)] == [b"body"] * 3
        assert ["If-None-Match" in each.headers for each in server.requests] == [0, 1, 1]
        server.resources["/a"] = Answer(body=b"new", etag=True)
        assert [fetch() for _ in range(2)] == [b"new"] * 2

    def test_hashes(self, server, fetch):
        """A file with a known hash is not asked for again; with a wrong one it is not kept."""
        server.resources["/a"] = Answer(body=b"bad", etag=True)
        with pytest.raises(BadResponse, match="does not match its sha256 hash"):
            fetch(hashes=BODY)
        assert fetch() == b"bad"
        server.resources["/a"] = Answer(body=b"body")
        assert fetch(hashes={**BODY, "strange": "0"}) == b"body"
        asked = len(server.requests)
        assert fetch(hashes=BODY) == b"body"
        assert len(server.requests) == asked

    def test_a_redirect_that_leads_elsewhere_now(self, server, fetch):
        """Two files may have the same ETag."""
        for name in ("b", "c"):
            server.resources[f"/{name}"] = Answer(body=name.encode(), headers={"ETag": '"1"'})
            server.resources["/a"] = Answer.redirect(f"/{name}")
            assert fetch() == name.encode()

    @pytest.mark.parametrize(
        "resource",
        [
            Answer(body=b"body", headers={"Cache-Control": "no-store"}, etag=True),
            Answer.cut_off(b"bo", etag=True),
        ],
    )
    def test_what_is_not_kept(self, server, fetch, store, resource):
        server.resources["/a"] = resource
        with (
            pytest.raises(Unreachable) if resource.headers.get("Content-Length") else nullcontext()
        ):
            fetch()
        assert not [path for path in store.root.rglob("http/*/*") if path.is_file()]

    def test_no_credentials_are_kept(self, server, session, store):
        server.resources["/a"] = guarded
        server.resources["/b"] = Answer.redirect("/c?signature=s3cr3t")
        server.resources["/c?signature=s3cr3t"] = Answer(
            body=b"body", headers={"Set-Cookie": "id=s3cr3t"}, etag=True
        )
        asking = session(with_user(server.url), store=store)
        asking.fetch(with_user(f"{server.root}/a"), limit=10)
        asking.fetch(f"{server.root}/b", limit=10)
        kept = [path.read_bytes() for path in store.root.rglob("*") if path.is_file()]
        assert any(kept)
        token = b64encode(b"me:s3cr3t").strip(b"=")
        assert not any(secret in data for data in kept for secret in (b"s3cr3t", token))


class TestNetworks:
    """Proxies of the user, and certificates of a company."""

    URL = "https://index.example/simple/"

    @pytest.fixture
    def secure(self, tmp_path):
        """An HTTPS server, and the file with its authority."""
        certificates = certified(tmp_path, "index.example")
        with served(tls=certificates.context) as running:
            yield running, {"SSL_CERT_FILE": str(certificates.authority)}

    def failure(self, session, url, **environ):
        with pytest.raises(PackageIndexError) as error:
            session(url, environ=environ).fetch_page(f"{url}demo/")
        return str(error.value)

    def test_of_the_variables_that_it_was_given(self, server, session, monkeypatch):
        """A server has sessions of several users' commands."""
        server.resources["http://index.example/a"] = Answer(body=b"through the proxy")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        asking = session(environ={"http_proxy": server.root})
        assert asking.fetch("http://index.example/a", limit=100).body == b"through the proxy"

    def test_socks(self, server, session):
        """httpx needs another library for it."""
        server.resources["/a"] = Answer(body=b"through the proxy")
        with socks_proxy("me:pass") as proxy:
            asking = session(server.root, environ={"ALL_PROXY": proxy.url})
            assert asking.fetch(f"{server.root}/a", limit=100).body == b"through the proxy"
            assert [each.method for each in proxy.asked] == ["SOCKS"]

    def test_certificates(self, secure, session):
        running, trusted = secure
        place = running.root.removeprefix("https://")
        names = {"index.example:443": place, "other.example:443": place}
        with http_proxy(names=names) as proxy:
            message = self.failure(session, self.URL, HTTPS_PROXY=proxy.url)
            assert "not accepted (unable to get local issuer certificate)" in message
            assert "SSL_CERT_FILE" in message
            assert len(proxy.asked) == 1, "it is not tried again"
            url = self.URL.replace("index.", "other.")
            message = self.failure(session, url, HTTPS_PROXY=proxy.url, **trusted)
            assert "the certificate is not accepted (Hostname mismatch" in message

    def test_a_proxy_that_wants_another_password(self, secure, session):
        running, trusted = secure
        names = {"index.example:443": running.root.removeprefix("https://")}
        with http_proxy("me:right", names=names) as proxy:
            wrong = proxy.url.replace("right", "hunter2")
            message = self.failure(session, self.URL, HTTPS_PROXY=wrong, **trusted)
            assert message == (
                f"{self.URL}demo/: the proxy wants another user name or password: put them into "
                "the proxy's URL in the variable HTTPS_PROXY or HTTP_PROXY"
            )
            message = self.failure(session, self.URL, HTTPS_PROXY=proxy.url, **trusted)
            assert message == f"{self.URL}demo/: not found (HTTP status 404)"

    def test_no_redirect_from_https_to_http(self, secure, server, session):
        running, trusted = secure
        running.resources["/a"] = Answer.redirect(f"{server.root}/b")
        with pytest.raises(BadResponse, match="redirects from https to http"):
            session(running.url, environ=trusted).fetch(f"{running.root}/a", limit=10)
        assert server.requests == []

"""Where the links and redirects of an upstream may send the proxy."""

import socket

import pytest
from upstream_server import JSON
from worlds import APP, CU128, KEY

from variants_proxy import Upstream, index_url

PUBLIC = "93.184.216.34"
SECRET = b"secret"


@pytest.fixture
def public(upstream, monkeypatch):
    """The URL of *upstream* at a public address, and names that lead inside."""
    port = int(upstream.url.rpartition(":")[2])
    names = {"index.example": PUBLIC, "rebound.example": "127.0.0.1"}
    resolve, connect = socket.getaddrinfo, socket.create_connection

    def resolved(host, *args, **options):
        return resolve(names.get(host, host), *args, **options)

    def connected(address, *args, **options):
        if address[0] == PUBLIC:
            address = ("127.0.0.1", port)
        return connect(address, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "create_connection", connected)
    return Upstream("main", f"http://index.example:{port}/simple/")


@pytest.fixture
def inside(other):
    """The URL of a server of this machine under another name, and its requests."""
    other.faults["/secret"] = (200, {"Content-Type": "text/html"}, SECRET)
    return f"http://rebound.example:{other.url.rpartition(':')[2]}", other.requests


def refused(answer, requests):
    assert answer.status_code == 502, answer.text
    assert SECRET not in answer.content
    assert "not a public address" in answer.text
    assert requests == []


@pytest.mark.parametrize("path", ["", "app/"])
def test_a_page_redirects(public, inside, upstream, start, path):
    url, requests = inside
    upstream.faults[f"/simple/{path}"] = (302, {"Location": f"{url}/secret"}, b"")
    refused(start(public).get(f"{index_url(KEY)}{path}"), requests)


def test_a_wheel_is_inside(public, inside, upstream, start):
    url, requests = inside
    upstream.add_release()
    upstream.attributes[CU128] = {"url": f"{url}/files/app/{CU128}"}
    proxy = start(public)
    file = proxy.files()[APP]
    refused(proxy.get(file["url"]), requests)
    refused(proxy.get(f"{file['url']}.metadata"), requests)
    upstream.attributes.clear()
    upstream.faults[f"/files/app/{CU128}"] = (302, {"Location": f"{url}/secret"}, b"")
    again = start(public, cache=proxy.settings.cache / "2")
    refused(again.get(again.files()[APP]["url"]), requests)


def test_a_public_index_leads_to_another_index_of_the_user(public, upstream, other, start):
    """As in other clients; the login of that index does not go there."""
    upstream.add_release()
    upstream.attributes[CU128] = {"url": f"{other.url}/files/app/{CU128}"}
    other.files = upstream.files
    second = Upstream("second", other.simple.replace("http://", "http://user:password@"))
    proxy = start(public, second)
    answer = proxy.get(proxy.files()[APP]["url"], follow_redirects=True)
    assert answer.content == upstream.files["app"][CU128]
    assert not any("Authorization" in headers for _, headers in other.requests)


def test_scripts_of_an_upstream_do_not_run(upstream, start):
    """A page that is handed on as it is."""
    page = b"<script>alert(1)</script><a href='https://files.example/plain-1.0.tar.gz'>x</a>"
    upstream.faults["/simple/plain/"] = (200, {"Content-Type": "text/html"}, page)
    upstream.faults["/simple/x/"] = (200, {"Content-Type": "image/svg+xml"}, b"<svg/>")
    proxy = start(upstream)
    for project, accept in (("plain", "text/html"), ("plain", JSON), ("x", "text/html")):
        answer = proxy.get(f"{index_url(KEY)}{project}/", headers={"Accept": accept})
        assert answer.status_code == 200
        assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "svg" not in answer.headers["Content-Type"]

"""The index with one URL for all machines: the platform key is the user name."""

import hashlib

import httpx
import pytest
from upstream_server import JSON
from worlds import APP, BARE, CU128_HERE, KEY, key

from variants_proxy.index_urls import keyed_url, proxy_base


def asked(proxy, user, path="/simple/app/", agent="pip/26.0"):
    headers = {"Accept": JSON, "User-Agent": agent}
    return proxy.get(path, headers=headers, auth=(user, "v"), follow_redirects=True)


def entries(answer):
    return {file["filename"]: file for file in answer.json()["files"]}


def test_each_machine_gets_its_own(upstream, start):
    upstream.add_release("1.0")
    proxy = start(upstream)
    for _ in range(2):  # from memory as well
        gpu, bare = asked(proxy, KEY), asked(proxy, BARE)
        assert [*entries(gpu)] == [CU128_HERE]
        assert [*entries(bare)] == ["app-1.0-0_null-py3-none-any.whl"]
    assert KEY not in gpu.text
    assert "/p/" not in gpu.text
    assert {"name": "app"} in asked(proxy, KEY, "/simple/").json()["projects"]


def test_plain_wheels_for_hashes(upstream, start):
    """K1: pip takes them where a requirement has their hash alone; uv would lock them."""
    upstream.add_release("1.0", labels=("cu128",), plain=True)
    proxy = start(upstream)
    files = entries(asked(proxy, KEY))
    assert files.keys() == {APP, CU128_HERE}
    digest = hashlib.sha256(upstream.files["app"][APP]).hexdigest()
    assert files[APP]["hashes"] == {"sha256": digest}
    for agent in ("uv/0.9.0", "poetry/2.0", "pdm/2.29"):
        assert entries(asked(proxy, KEY, agent=agent)).keys() == {CU128_HERE}
    assert entries(asked(proxy, key(variant=["app=cu128"]))).keys() == {CU128_HERE}


@pytest.mark.parametrize("root", ["/simple/", "/i/index1/simple/"])
def test_files_of_another_machine(upstream, other, start, root):
    """A lock of one machine is installed on another."""
    for server in (upstream, other):
        server.add_release("2.0" if server is other else "1.0")
    proxy = start(upstream, other)
    ((name, file),) = entries(asked(proxy, KEY, f"{root}app/")).items()
    assert name.startswith("app-2.0" if "index1" in root else "app-1.0")
    for user in (KEY, BARE):
        path = f"{root}app/{file['url']}"
        assert asked(proxy, user, path).content[:2] == b"PK"
        assert b"Name: app" in asked(proxy, user, f"{path}.metadata").content


def test_wrong_and_missing_keys(upstream, start):
    upstream.add_release("1.0")
    proxy = start(upstream)
    for user in ("", "2~nonsense", "h100", "c~" + "0" * 32):
        answer = asked(proxy, user) if user else proxy.get("/simple/app/")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert answer.headers["cache-control"] == "no-store"
        assert "variants-proxy url --keyed" in answer.text
        assert "content-security-policy" in answer.headers


def test_addresses(upstream, start):
    upstream.add_release(labels=("null",))
    client = start(upstream).client
    for path, target in (
        ("/simple", "simple/"), ("/simple/app", "app/"), ("/i/main/simple", "simple/"),
    ):  # fmt: skip
        answer = client.get(path, auth=(KEY, "v"))
        assert answer.status_code == 307
        assert answer.headers["location"].endswith(f"/{target}")
    for text in ("https://a.example", "https://a.example/#", " https://a.example/?x#y "):
        assert proxy_base(text) == "https://a.example"
    url = httpx.URL(keyed_url("https://a.example:1/x/", "2~a_-", "t/k", "own"))
    assert (url.username, url.password) == ("2~a_-", "t/k")
    assert str(url.copy_with(userinfo=b"")) == "https://a.example:1/x/i/own/simple/"

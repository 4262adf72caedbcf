"""The index with one URL for all machines: the platform key is the user name."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import httpx
import pytest
from machines import NVIDIA
from upstream_server import JSON

from pep_variants.choose.preferences import Preferences
from pep_variants.model.platform import Platform, Support
from variants_proxy import Machine, Upstream, encode
from variants_proxy.index_urls import keyed_url, proxy_base
from variants_proxy.key import MAX_KEY, decode
from variants_proxy.server.middleware import TokenMiddleware

GPU = encode(Machine(NVIDIA, target="linux-x86_64"))
CPU = encode(Machine(Platform({}), target="linux-x86_64"))


def asked(proxy, key, path="/simple/app/"):
    return proxy.get(path, headers={"Accept": JSON}, auth=(key, "v"))


def names(answer):
    return {file["filename"]: file["url"] for file in answer.json()["files"]}


class TestPages:
    def test_each_machine_gets_its_own(self, upstream, start):
        upstream.add_release("1.0")
        proxy = start(upstream)
        gpu, cpu = asked(proxy, GPU), asked(proxy, CPU)
        assert gpu.status_code == cpu.status_code == 200
        assert any("cu128" in name for name in names(gpu))
        assert any("null" in name for name in names(cpu))
        assert not set(names(gpu)) & set(names(cpu))
        assert "Authorization" in gpu.headers["vary"]
        assert gpu.headers["cache-control"] == "private, no-cache"
        # In either order, from memory as well.
        assert names(asked(proxy, GPU)) == names(gpu)
        assert names(asked(proxy, CPU)) == names(cpu)

    def test_plain_wheels_for_hashes(self, upstream, start):
        """K1: pip takes them where a requirement has their hash alone; uv would lock them."""
        upstream.add_release("1.0", labels=("cu128",), plain=True)
        proxy = start(upstream)
        plain, variant = "app-1.0-py3-none-any.whl", "app-1.0-0_cu128-py3-none-any.whl"
        files = {file["filename"]: file for file in asked(proxy, GPU).json()["files"]}
        assert files.keys() == {plain, variant}
        digest = hashlib.sha256(upstream.files["app"][plain]).hexdigest()
        assert files[plain]["hashes"] == {"sha256": digest}
        for agent in ("uv/0.9.0", "poetry/2.0", "pdm/2.29"):
            headers = {"Accept": JSON, "User-Agent": agent}
            answer = proxy.get("/simple/app/", headers=headers, auth=(GPU, "v"))
            assert names(answer).keys() == {variant}
        forced = encode(replace(decode(GPU), preferences=Preferences(forced={"app": "cu128"})))
        assert names(asked(proxy, forced)).keys() == {variant}

    def test_no_key_in_a_page(self, upstream, start):
        upstream.add_release("1.0")
        proxy = start(upstream)
        text = asked(proxy, GPU).text
        assert GPU not in text
        assert "/p/" not in text

    def test_one_index(self, upstream, other, start):
        upstream.add_release("1.0")
        other.add_release("2.0")
        proxy = start(upstream, other)
        assert all("1.0" in name for name in names(asked(proxy, GPU)))
        assert all("2.0" in name for name in names(asked(proxy, GPU, "/i/index1/simple/app/")))

    def test_the_list_of_projects(self, upstream, start):
        upstream.add_release(labels=("null",))
        answer = asked(start(upstream), GPU, "/simple/")
        assert {"name": "app"} in answer.json()["projects"]


class TestFiles:
    @pytest.mark.parametrize("root", ["/simple/", "/i/main/simple/"])
    def test_of_another_machine(self, upstream, start, root):
        """A lock of one machine is installed on another."""
        upstream.add_release("1.0")
        proxy = start(upstream)
        ((_, url),) = names(asked(proxy, GPU, f"{root}app/")).items()
        for key in (GPU, CPU):
            answer = proxy.client.get(f"{root}app/{url}", auth=(key, "v"), follow_redirects=True)
            assert answer.status_code == 200
            assert answer.content[:2] == b"PK"
            metadata = proxy.client.get(
                f"{root}app/{url}.metadata", auth=(key, "v"), follow_redirects=True
            )
            assert b"Name: app" in metadata.content


class TestKeys:
    @pytest.mark.parametrize("key", ["", "2~nonsense", "h100", "uv", "c~" + "0" * 32])
    def test_wrong_and_missing(self, upstream, start, key):
        upstream.add_release("1.0")
        proxy = start(upstream)
        answer = asked(proxy, key) if key else proxy.get("/simple/app/")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert "variants-proxy url --keyed" in answer.text
        assert "content-security-policy" in answer.headers

    def test_a_named_platform(self, upstream, start, tmp_path):
        upstream.add_release("1.0")
        path = tmp_path / "h100.toml"
        path.write_text(
            '[[provider]]\nnamespace = "nvidia"\n'
            'properties = { cuda_version_lower_bound = ["12.8"] }\n'
        )
        proxy = start(upstream, platforms={"h100": path})
        assert any("cu128" in name for name in names(asked(proxy, "h100")))

    def test_the_longest(self, upstream, start):
        upstream.add_release("1.0")
        key, number = "", 10
        while True:
            values = tuple(f"{(n * 2654435761) % 2**32:08x}" for n in range(number))
            features = {**dict(NVIDIA.namespaces["nvidia"].features), "sm_arch": values}
            try:
                key = encode(Machine(Platform({"nvidia": Support(features)})))
            except Exception:
                break
            number += 10
        assert len(key) > MAX_KEY * 0.9
        proxy = start(upstream)
        assert any("cu128" in name for name in names(asked(proxy, key)))


class TestAddresses:
    @pytest.mark.parametrize(
        ("path", "target"),
        [
            ("/simple", "simple/"), ("/simple/app", "app/"), ("/i/main/simple", "simple/"),
            ("/i/main/simple/app", "app/"), ("/simple/..%2f", None),
        ],
    )  # fmt: skip
    def test_a_missing_slash(self, upstream, start, path, target):
        upstream.add_release(labels=("null",))
        answer = start(upstream).client.get(path, auth=(GPU, "v"))
        if target is None:
            assert answer.status_code in (301, 404)
        else:
            assert answer.status_code == 307
            assert answer.headers["location"].endswith(f"/{target}")

    @pytest.mark.parametrize(
        "text", ["https://a.example", "https://a.example/#", " https://a.example/?x#y "]
    )
    def test_what_is_copied_with_a_url(self, text):
        assert proxy_base(text) == "https://a.example"

    def test_a_url(self):
        url = httpx.URL(keyed_url("https://a.example:1/x/", "2~a_-", "t/k", "own"))
        assert (url.username, url.password) == ("2~a_-", "t/k")
        assert str(url.copy_with(userinfo=b"")) == "https://a.example:1/x/i/own/simple/"

    def test_the_landing_page(self, upstream, start):
        proxy = start(Upstream("a", "http://me:secret@127.0.0.1:1/<b>/"))
        answer = proxy.get("/")
        assert answer.headers["content-type"].startswith("text/html")
        assert "--keyed" in answer.text
        assert "&lt;b&gt;" in answer.text
        assert "secret" not in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.anyio
async def test_with_a_token():
    """The token is the password; the key goes on."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["state"]["user"], dict(scope["headers"])))

    async def send(message):
        seen.append(message.get("status"))

    application = TokenMiddleware(app, "token")
    for password in ("token", "other"):
        value = base64.b64encode(f"{GPU}:{password}".encode())
        scope = {
            "type": "http",
            "path": "/simple/",
            "headers": [(b"authorization", b"Basic " + value)],
        }
        await application(scope, None, send)
    assert seen == [(GPU, {}), 401, None]

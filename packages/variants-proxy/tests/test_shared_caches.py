"""What caches before a proxy may keep, and for whom."""

from __future__ import annotations

import base64

import httpx
import pytest
from machines import NVIDIA
from test_cli import serving
from upstream_server import JSON

from pep_variants.model.platform import Platform
from variants_proxy import Machine, encode, index_url
from variants_proxy.headers import for_one_client

GPU = encode(Machine(NVIDIA, target="linux-x86_64"))
CPU = encode(Machine(Platform({}), target="linux-x86_64"))


@pytest.mark.parametrize(
    ("control", "private"),
    [
        ("public, max-age=31536000, immutable", "private, max-age=31536000, immutable"),
        ("private, max-age=60", "private, max-age=60"),
        ("no-cache", "private, no-cache"),
        ("no-store", "no-store"),
    ],
)
def test_for_one_client(control, private):
    given = [(b"content-type", b"x/y"), (b"cache-control", control.encode()), (b"vary", b"Accept")]
    headers = httpx.Headers(for_one_client(for_one_client(given)))
    assert headers.get_list("cache-control") == [private]
    assert {"Accept", "Authorization"} <= set(headers["vary"].split(", "))
    assert headers["content-type"] == "x/y"


def asked(proxy, path, key=""):
    auth = (key, "v") if key else None
    return proxy.get(path, headers={"Accept": JSON}, auth=auth)


class TestOpenProxy:
    def test_the_path_of_a_key_is_for_every_cache(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        page = asked(proxy, f"{index_url(GPU)}app/")
        assert page.headers["cache-control"] == "no-cache"
        assert "Authorization" not in page.headers["vary"]
        missing = asked(proxy, f"{index_url(GPU)}missing/")
        assert missing.status_code == 404
        assert missing.headers["cache-control"] == "no-store"

    def test_the_url_for_all_machines_is_for_caches_that_know_authorization(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        for key in (GPU, CPU):
            page = asked(proxy, "/simple/app/", key)
            assert "Authorization" in page.headers["vary"]
            assert page.headers["cache-control"] == "private, no-cache"
            known = proxy.get(
                "/simple/app/",
                headers={"Accept": JSON, "If-None-Match": page.headers["etag"]},
                auth=(key, "v"),
            )
            assert known.status_code == 304
            assert known.headers["cache-control"] == "private, no-cache"
            assert "Authorization" in known.headers["vary"]
        (file,) = page.json()["files"]
        wheel = asked(proxy, f"/simple/app/{file['url']}", GPU)
        assert (wheel.status_code, wheel.headers["cache-control"]) == (307, "private, no-cache")
        refused = asked(proxy, "/simple/app/")
        assert refused.status_code == 401
        assert refused.headers["cache-control"] == "no-store"

    def test_an_error_of_the_upstream_is_for_no_cache(self, upstream, start):
        upstream.faults["/simple/app/"] = (500, {}, b"broken")
        proxy = start(upstream)
        for answer in (
            asked(proxy, "/simple/app/", GPU),
            asked(proxy, f"{index_url(GPU)}app/"),
        ):
            assert answer.status_code >= 500
            assert answer.headers["cache-control"] == "no-store"


def test_with_a_token_nothing_is_public(upstream, tmp_path):
    upstream.add_release()
    arguments = ("--index", f"own={upstream.simple}")
    with serving(tmp_path, *arguments, VARIANTS_PROXY_TOKEN="s3cret") as (url, _):
        with httpx.Client(base_url=url, trust_env=False) as client:
            bearer = {"Authorization": "Bearer s3cret", "Accept": JSON}
            basic = base64.b64encode(f"{GPU}:s3cret".encode()).decode()
            for path, headers in [
                (f"{index_url(GPU)}app/", bearer),
                ("/simple/app/", {"Authorization": f"Basic {basic}", "Accept": JSON}),
            ]:
                answer = client.get(path, headers=headers)
                assert answer.headers["cache-control"].startswith("private, ")
                assert "Authorization" in answer.headers["vary"]
            refused = client.get(f"{index_url(GPU)}app/")
            assert refused.status_code == 401
            assert refused.headers["cache-control"] == "no-store"

"""What caches before a proxy may keep, and for whom."""

import base64

import httpx
import pytest
from test_cli import serving
from upstream_server import JSON
from worlds import BARE, KEY

from variants_proxy import index_url
from variants_proxy.headers import for_one_client


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


def test_open_proxy(upstream, start):
    """The path of a key is for every cache, one URL for all for those that know Authorization."""
    upstream.add_release()
    upstream.faults["/simple/broken/"] = (500, {}, b"broken")
    proxy = start(upstream)

    def asked(path, key="", **headers):
        auth = (key, "v") if key else None
        return proxy.get(path, headers={"Accept": JSON, **headers}, auth=auth)

    page = asked(f"{index_url(KEY)}app/")
    assert page.headers["cache-control"] == "no-cache"
    assert "Authorization" not in page.headers["vary"]
    for key in (KEY, BARE):
        page = asked("/simple/app/", key)
        known = asked("/simple/app/", key, **{"If-None-Match": page.headers["etag"]})
        assert known.status_code == 304
        (file,) = page.json()["files"]
        wheel = asked(f"/simple/app/{file['url']}", KEY)
        assert wheel.status_code == 307
        for answer in (page, known, wheel):
            assert "Authorization" in answer.headers["vary"]
            assert answer.headers["cache-control"] == "private, no-cache"
    for answer in (
        asked(f"{index_url(KEY)}missing/"),
        asked("/simple/app/"),
        asked("/simple/broken/", KEY),
        asked(f"{index_url(KEY)}broken/"),
    ):
        assert answer.status_code >= 400
        assert answer.headers["cache-control"] == "no-store"


def test_with_a_token_nothing_is_public(upstream, tmp_path):
    upstream.add_release()
    arguments = ("--index", f"own={upstream.simple}")
    with serving(tmp_path, *arguments, VARIANTS_PROXY_TOKEN="s3cret") as (url, _):
        with httpx.Client(base_url=url, trust_env=False) as client:
            bearer = {"Authorization": "Bearer s3cret", "Accept": JSON}
            basic = base64.b64encode(f"{KEY}:s3cret".encode()).decode()
            for path, headers in [
                (f"{index_url(KEY)}app/", bearer),
                ("/simple/app/", {"Authorization": f"Basic {basic}", "Accept": JSON}),
            ]:
                answer = client.get(path, headers=headers)
                assert answer.status_code == 200
                assert answer.headers["cache-control"].startswith("private, ")
                assert "Authorization" in answer.headers["vary"]
            refused = client.get(f"{index_url(KEY)}app/")
            assert refused.status_code == 401
            assert refused.headers["cache-control"] == "no-store"

"""A variant wheel is served only if it is inside what the index says of its label."""

import hashlib
import json

import httpx
import pytest
from upstream_server import document, wheel
from worlds import APP, CU128, CU128_HERE, MARKED, Asked, key

from variants_proxy import Limits


def another_level():
    found = document("12.6", "12.8", "13.0")
    found["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["11.0"]}}
    return found


def another_label():
    found = document("12.6", "12.8", "13.0")
    found["variants"] = {"cu128": found["variants"]["cu126"]}
    return found


LIES = {"another level": another_level(), "another label": another_label(), "nothing": None}


@pytest.mark.parametrize(
    ("requires", "ranges", "lie"),
    [
        ((), True, "another level"),
        ((), True, "another label"),
        ((), False, "nothing"),
        (MARKED, True, "another level"),
    ],
)
def test_a_wheel_that_lies_never_arrives(upstream, start, lie, requires, ranges):
    upstream.add_release("1.0", *requires)
    upstream.add("app", CU128, wheel(CU128, *requires, variants=LIES[lie]))
    upstream.ranges = ranges
    proxy = start(upstream)
    url = proxy.files()[APP]["url"]
    started = start(upstream)
    started.files()
    # A cache does not change that.
    for running, at in ((proxy, url), (proxy, url), (started, url.replace(proxy.url, started.url))):
        answer = running.get(at)
        assert answer.status_code == 409
        assert CU128 in answer.text
    in_place = Asked(started, hashes=False)
    assert in_place.get(f".variant/cu128/{CU128_HERE}").status_code == 409
    # Other variants are there.
    file = proxy.files(key=key(variant=["app=cu126"]))[APP]
    assert proxy.get(file["url"], follow_redirects=True).status_code == 200


@pytest.mark.parametrize("ranges", [True, False])
def test_it_is_looked_into_once(upstream, start, monkeypatch, tmp_path, ranges):
    """By its end, or as a copy in the cache: temporary files may lie in memory."""
    upstream.add_release()
    upstream.ranges = ranges
    proxy = start(upstream)
    url = proxy.files()[APP]["url"]
    upstream.requests.clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    assert proxy.get(url).status_code == 307
    assert set(upstream.paths) == {f"/files/app/{CU128}"}
    assert not [path for path in (tmp_path / "cache").rglob("tmp*") if path.is_file()]
    upstream.requests.clear()
    assert proxy.get(url).status_code == 307
    started = start(upstream)
    started.files()
    upstream.requests.clear()
    assert started.get(url.replace(proxy.url, started.url)).status_code == 307
    assert upstream.paths == []


def test_the_index_says_something_else_later(upstream, start):
    upstream.add_release()
    proxy = start(upstream, fresh_seconds=0.0)
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 307
    said = document("12.6", "12.8", "13.0")
    said["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["12.7"]}}
    upstream.add("app", "app-1.0-variants.json", json.dumps(said).encode())
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 409


def test_an_old_version_that_a_lock_file_names(upstream, start):
    """Beyond the versions that are looked at."""
    upstream.add_release("1.0")
    upstream.add_release("2.0")
    upstream.add("app", CU128, wheel(CU128, variants=LIES["another level"]))
    proxy = start(upstream, limits=Limits(versions=1))
    url = proxy.files()["app-2.0-py3-none-any.whl"]["url"].replace("app-2.0", "app-1.0")
    assert proxy.get(url).status_code == 409


class TestHashesThatPagesDoNotSay:
    """Where a page has no hash, the proxy verifies the hash of the index."""

    @pytest.mark.parametrize("ranges", [True, False], ids=["parts", "whole"])
    def test_a_wheel_that_is_not_looked_into(self, upstream, start, ranges):
        upstream.add_release()
        upstream.ranges = ranges
        upstream.core_metadata = True
        upstream.faults[f"/files/app/{CU128}.metadata"] = (200, {}, b"another")
        upstream.lies.add(CU128)
        proxy = start(upstream)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        try:
            status = proxy.get(file["url"]).status_code
        except httpx.RemoteProtocolError:
            status = 599  # it was cut off
        assert status in (502, 599)

    def test_a_wheel_that_is_right_arrives_whole(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        upstream.ranges = False
        proxy = start(upstream)
        file = proxy.files()[APP]
        answer = proxy.get(file["url"])
        assert hashlib.sha256(answer.content).hexdigest() == file["hashes"]["sha256"]

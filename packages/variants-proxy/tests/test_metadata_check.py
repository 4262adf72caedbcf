"""A variant wheel is served only if it is inside what the index says of its label."""

import hashlib
import json

import httpx
import pytest
from in_place_client import CU128_HERE, registered
from machines import NVIDIA
from upstream_server import document, wheel

from pep_variants.choose.preferences import preferences_from_options
from variants_proxy import Limits, Machine, Upstream, encode

APP = "app-1.0-py3-none-any.whl"
CU128 = "app-1.0-py3-none-any-cu128.whl"
KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
MARKED = ("a; 'nvidia' in variant_namespaces",)


def another_level():
    found = document("12.6", "12.8", "13.0")
    found["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["11.0"]}}
    return found


def another_label():
    found = document("12.6", "12.8", "13.0")
    found["variants"] = {"cu128": found["variants"]["cu126"]}
    return found


LIES = {
    "another level": another_level(),
    "the level of another label": another_label(),
    "no variant.json": None,
}


@pytest.fixture(params=LIES, ids=lambda name: name.replace(" ", "-"))
def lie(request):
    return LIES[request.param]


def refused(proxy, url):
    answer = proxy.get(url)
    assert answer.status_code == 409, answer.text
    assert CU128 in answer.text


@pytest.mark.parametrize(
    ("requires", "ranges"),
    [((), True), ((), False), (MARKED, True)],
    ids=["parts", "whole", "marked"],
)
def test_a_wheel_that_lies_never_arrives(upstream, start, lie, requires, ranges):
    upstream.add_release("1.0", *requires)
    upstream.add("app", CU128, wheel(CU128, *requires, variants=lie))
    upstream.ranges = ranges
    proxy = start(upstream)
    url = proxy.files()[APP]["url"]
    for _ in range(2):  # a cache does not change that
        refused(proxy, url)
    started = start(upstream)
    refused(started, url.replace(proxy.url, started.url))
    in_place = registered(started, hashes=False)
    assert in_place.get(f".variant/cu128/{CU128_HERE}").status_code == 409
    # Other variants are there.
    options = preferences_from_options({"variant": ["app=cu126"]})
    other = encode(Machine(NVIDIA, target="linux-x86_64", preferences=options))
    answer = proxy.get(proxy.files(key=other)[APP]["url"], follow_redirects=True)
    assert answer.status_code == 200


def test_a_copy_lies_in_the_cache(upstream, start, monkeypatch, tmp_path):
    """The system's temporary files may lie in memory, where there is no room for a large wheel."""
    upstream.add_release()
    upstream.ranges = False
    proxy = start(upstream)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 307
    assert not [path for path in (tmp_path / "cache").rglob("tmp*") if path.is_file()]


def test_it_is_looked_into_once(upstream, start):
    upstream.add_release()
    proxy = start(upstream)
    url = proxy.files()[APP]["url"]
    upstream.requests.clear()
    assert proxy.get(url).status_code == 307
    assert upstream.paths == [f"/files/app/{CU128}"]  # its end
    assert proxy.get(url).status_code == 307
    started = start(upstream)
    started.files()
    upstream.requests.clear()
    assert started.get(url.replace(proxy.url, started.url)).status_code == 307
    assert upstream.paths == []


def test_without_parts_it_is_downloaded_once(upstream, start):
    upstream.add_release()
    upstream.ranges = False
    proxy = start(upstream)
    url = proxy.files()[APP]["url"]
    assert proxy.get(url).status_code == 307
    upstream.requests.clear()
    assert proxy.get(url).status_code == 307
    assert upstream.paths == []


def test_the_index_says_something_else_later(upstream, start):
    upstream.add_release()
    proxy = start(upstream, fresh_seconds=0.0)
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 307
    said = document("12.6", "12.8", "13.0")
    said["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["12.7"]}}
    upstream.add("app", "app-1.0-variants.json", json.dumps(said).encode())
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 409


def test_an_old_version_that_a_lock_file_names(upstream, start, lie):
    """Beyond the versions that are looked at."""
    upstream.add_release("1.0")
    upstream.add_release("2.0")
    upstream.add("app", CU128, wheel(CU128, variants=lie))
    proxy = start(upstream, limits=Limits(versions=1))
    url = proxy.files()["app-2.0-py3-none-any.whl"]["url"].replace("app-2.0", "app-1.0")
    assert proxy.get(url).status_code == 409


def test_local_files(upstream, start, tmp_path, lie):
    upstream.add_release()
    upstream.add("app", CU128, wheel(CU128, variants=lie))
    for name, data in upstream.files["app"].items():
        (tmp_path / name).write_bytes(data)
    proxy = start(Upstream("dir", tmp_path.as_uri(), "find-links"))
    assert proxy.get(proxy.files(index="dir")[APP]["url"]).status_code == 409


def test_what_is_right_arrives_whole(upstream, start):
    upstream.add_release("1.0", *MARKED)
    for ranges in (True, False):
        upstream.ranges = ranges
        proxy = start(upstream)
        file = proxy.files()[APP]
        answer = proxy.get(file["url"])
        assert hashlib.sha256(answer.content).hexdigest() == file["hashes"]["sha256"]


def status_of(proxy, url):
    """Return the status of the answer, 599 for one that is cut off."""
    try:
        return proxy.get(url).status_code
    except httpx.RemoteProtocolError:
        return 599


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
        assert status_of(proxy, file["url"]) in (502, 599)

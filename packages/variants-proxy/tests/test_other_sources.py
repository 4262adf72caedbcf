"""Find-links places and indexes that both have files of one version: judged together, as by pip."""

import pytest
from upstream_server import wheel
from worlds import APP, CU128_HERE, KEY

from support.index import JSON, Answer
from variants_proxy.settings import Upstream
from variants_proxy.urls import links_url

SPECIFIC = "app-1.0-cp310-abi3-manylinux_2_17_x86_64.whl"
REQUESTED = frozenset(("app",))


def linked(proxy):
    """Return the filenames of the find-links page."""
    page = proxy.get(links_url(KEY, "links"), headers={"Accept": JSON}).json()
    return [file["filename"] for file in page["files"]]


@pytest.fixture
def both(upstream, other, start):
    """Start a proxy before an index and a find-links page, the page of `app` of another server."""

    def begin(**options):
        links = Upstream("links", f"{other.url}app/", "find-links")
        return start(Upstream("main", upstream.url), links, **options)

    return begin


@pytest.mark.parametrize("plain", [APP, SPECIFIC])
def test_a_wheel_of_the_index_gives_way_to_a_variant(upstream, other, both, plain):
    upstream.add("app", plain, wheel(plain))
    other.add_release(labels=["cu128"])
    proxy = both()
    assert list(proxy.files()) == []
    assert linked(proxy) == [CU128_HERE]


def test_a_wheel_of_the_index_stays_where_no_variant_fits(upstream, other, both):
    upstream.add("app", APP, wheel(APP))
    other.add_release(labels=["cu130"])
    proxy = both()
    assert list(proxy.files()) == [APP]
    assert linked(proxy) == []


@pytest.mark.parametrize(("requested", "shown"), [(REQUESTED, []), (frozenset(), [APP])])
def test_the_index_is_asked_for_what_is_requested_only(upstream, other, both, requested, shown):
    """Names of a private find-links place are none of an index's business."""
    upstream.add_release(labels=["cu128"])
    other.add("app", APP, wheel(APP))
    proxy = both(requested=requested)
    assert linked(proxy) == shown
    assert ("/simple/app/" in upstream.requests) == bool(requested)


def test_equals_stay_in_both_places(upstream, other, both):
    """Hashes that are required may admit one of them only."""
    upstream.add_release(labels=["cu128"])
    other.add_release(labels=["cu128"])
    proxy = both(requested=REQUESTED)
    assert list(proxy.files()) == [APP]
    assert linked(proxy) == [CU128_HERE]


def test_a_find_links_place_goes_without_an_index_that_fails(upstream, other, both):
    upstream.faults["/simple/app/"] = Answer(500)
    other.add_release(labels=["cu128"])
    proxy = both(requested=REQUESTED, allow_missing_sources=True)
    assert linked(proxy) == [CU128_HERE]
    upstream.faults["/simple/app/"] = Answer(403)
    assert linked(both(requested=REQUESTED)) == [CU128_HERE]
    upstream.faults["/simple/app/"] = Answer(503)
    assert both(requested=REQUESTED).get(links_url(KEY, "links")).status_code == 503

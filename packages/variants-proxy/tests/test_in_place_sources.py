"""In-place pages of find-links places, and what the command has to tell the user afterwards."""

import json

import pytest
from in_place_client import CU128, CU128_HERE, Asked, listed, registered
from machines import NVIDIA
from upstream_server import wheel

from pep_variants.errors import PluginFailed
from variants_proxy import Machine, Upstream, encode

APP = "app-1.0-py3-none-any.whl"

REQUESTED = frozenset(("app",))


@pytest.fixture
def both(upstream, other, start):
    """Start a proxy before an index and a find-links page; return what clients see of both."""

    def begin(**options):
        links = Upstream("links", f"{other.simple}app/", "find-links")
        proxy = start(Upstream("main", upstream.simple), links, requested=REQUESTED, **options)
        return Asked(proxy), Asked(proxy, index="links")

    return begin


def test_a_page_of_links(upstream, other, both):
    other.add_release()
    other.add("app", "app-1.0.tar.gz", b"source")
    _, links = both()
    upstream.add("app", APP, wheel(APP))
    files = links.files("")
    assert set(files) == {CU128_HERE, "app-1.0.tar.gz"}
    assert files["app-1.0.tar.gz"]["url"] == f"{other.url}/files/app/app-1.0.tar.gz"
    answer = links.get(files[CU128_HERE]["url"], "", follow_redirects=True)
    assert answer.content == other.files["app"][CU128]
    assert links.get(f"{files[CU128_HERE]['url']}.metadata", "").status_code == 200


class TestNotices:
    """What the command has to tell the user afterwards (U16)."""

    def report(self, asked):
        service = asked.proxy.service
        asked.files()
        noted = service.noted.has(service.clients.client(asked.key), "app")
        tree = asked.proxy.get(f"/p/{asked.key}/i/main/variants/app/").json()
        return noted, tree["versions"][0]

    def test_broken_json(self, upstream, start):
        upstream.add_release(plain=True)
        upstream.files["app"]["app-1.0-variants.json"] = b"{"
        asked = registered(start(upstream))
        noted, version = self.report(asked)
        assert noted
        (problem,) = version["problems"]
        assert "app-1.0-variants.json" in problem
        assert listed(asked) == {"py3-none-any": None}

    def test_everything_is_rejected(self, upstream, start):
        upstream.add_release(labels=["cu130"])
        noted, version = self.report(registered(start(upstream)))
        assert noted
        assert "cu130" in version["unfit"]
        assert "13.0" in version["unfit"]

    def test_a_plugin_that_is_not_allowed(self, upstream, start):
        upstream.add_release(labels=["cu128", "null"])
        tree = json.loads(upstream.files["app"]["app-1.0-variants.json"])
        tree["providers"]["nvidia"] = {"requires": ["acme-provider"], "plugin-api": "acme:Plugin"}
        upstream.files["app"]["app-1.0-variants.json"] = json.dumps(tree).encode()
        detected = encode(Machine(detected=NVIDIA, target="linux-x86_64"))
        asked = registered(start(upstream), detected)
        noted, version = self.report(asked)
        assert noted
        assert any("acme-provider" in text for text in version["notices"]), version
        assert version["providers"]["nvidia"]["requires"] == ["acme-provider"]

    def test_a_plugin_that_failed(self, upstream, start):
        from pep_variants.detect.detector import provider_id
        from pep_variants.formats.reader import read_metadata

        upstream.add_release()
        text = upstream.files["app"]["app-1.0-variants.json"]
        provider = read_metadata(text, "x").providers["nvidia"]
        name = provider_id("nvidia", provider.requires, provider.plugin_api)
        failures = {name: PluginFailed("nvidia", "it crashed", "")}
        bare = encode(Machine(target="linux-x86_64"))
        asked = registered(start(upstream, failures=failures), bare)
        answer = asked.get()
        assert answer.status_code == 424
        assert "it crashed" in answer.text

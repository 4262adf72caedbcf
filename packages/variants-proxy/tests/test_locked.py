"""In-place pages for clients with locks and hashes, and what the command tells the user."""

import hashlib
import json

import pytest
from upstream_server import wheel
from worlds import APP, BARE, CU128, CU128_HERE, KEY, MARKED, NVIDIA, Asked, key

from pep_variants._detect.detector import provider_id
from pep_variants._formats.reader import read_metadata
from pep_variants.errors import PluginFailed
from variants_proxy.settings import Limits
from variants_proxy.urls import Machine, encode

LINUX, MAC = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-macosx_11_0_arm64"
OLD_LINUX, NEWER = "cp312-cp312-manylinux_2_17_x86_64", "cp313-cp313-manylinux_2_28_x86_64"


def at(tag, label):
    return f"https://index.example/simple/app/.variant/{label}/app-1.0-0_{label}-{tag}.whl"


class TestLocked:
    def test_labels_stay(self, upstream, start):
        upstream.add_release(tags=[LINUX, MAC, NEWER], plain=True)
        proxy = start(upstream)
        for items, expected in (
            # Labels: every tag set that has one.
            (("cu126",), ("cu126", "cu126", "cu126")),
            (("cu130", "null"), ("cu130", "cu130", "cu130")),
            (("cu999",), ("cu128", "null", "cu128")),
            # URLs: these tags alone, and later ones of the platform.
            ((at(LINUX, "cu126"), at(MAC, "null")), ("cu126", "null", "cu126")),
            ((at(LINUX, "null"), at(NEWER, "cu126")), ("null", "null", "cu126")),
            ((at(MAC, "cu128"),), ("cu128", "cu128", "cu128")),
            # A wheel without label.
            ((f"https://files.example/app-1.0-{LINUX}.whl",), (None, "null", None)),
        ):
            asked = Asked(proxy, locked={"App": {"1.0.0": items}})
            assert asked.labels() == dict(zip((LINUX, MAC, NEWER), expected, strict=True)), items

    def test_nothing_is_taken_in_place_of_it(self, upstream, start):
        """A newer libc's tag would come first."""
        upstream.add_release(tags=[OLD_LINUX], labels=["cu126"])
        upstream.add_release(tags=[LINUX], labels=["cu128"])
        asked = Asked(start(upstream), locked={"app": {"1.0": (at(OLD_LINUX, "cu126"),)}})
        assert asked.labels() == {OLD_LINUX: "cu126"}

    def test_preferences(self, upstream, start):
        """A forced label goes before a locked one, and so does no variant."""
        upstream.add_release(plain=True)
        proxy = start(upstream)
        for options, label in (
            ({"variant": ["app=cu126"]}, "cu126"),
            ({"variant-prefer": ["nvidia::cuda_version_lower_bound::12.6"]}, "cu130"),
            ({"no-variants": True}, None),
        ):
            asked = Asked(proxy, key(**options), locked={"app": {"1.0": ("cu130",)}})
            assert asked.labels() == {"py3-none-any": label}

    def test_an_old_version_is_evaluated(self, upstream, start):
        for number in range(1, 6):
            upstream.add_release(f"{number}.0")
        proxy = start(upstream, limits=Limits(versions=2))
        without = Asked(proxy).files()
        assert "app-1.0-0_null-py3-none-any.whl" in without
        files = Asked(proxy, locked={"app": {"1.0": ("cu128",)}}).files()
        assert set(files) - set(without) == {CU128_HERE}
        assert set(without) - set(files) == {"app-1.0-0_null-py3-none-any.whl"}

    def test_broken_metadata(self, upstream, start):
        upstream.add_release()
        upstream.files["app"]["app-1.0-variants.json"] = b"{"
        asked = Asked(start(upstream), locked={"app": {"1.0": ("cu128",)}})
        assert asked.labels() == {"py3-none-any": "cu128"}

    def test_the_same_bytes_for_everyone(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream)
        found = set()
        for given in (KEY, BARE):
            asked = Asked(proxy, given, locked={"app": {"1.0": ("cu128",)}})
            file = asked.files()[CU128_HERE]
            data = asked.get(file["url"]).content
            assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
            found.add(data)
        assert len(found) == 1

    @pytest.mark.parametrize(
        ("given", "label", "fits", "why", "instead"),
        [
            (KEY, "cu126", True, "", "cu128"),
            (BARE, "cu128", False, "no NVIDIA driver", "null"),
            (KEY, "cu130", False, "13.0", "cu128"),
        ],
    )
    def test_the_report(self, upstream, start, given, label, fits, why, instead):
        upstream.add_release()
        asked = Asked(start(upstream), given, locked={"app": {"1.0": (label,)}})
        (version,) = asked.report()["versions"]
        assert version["files"] == {APP: label}
        (locked,) = version["locked"]
        assert why in locked.pop("why")
        assert locked == {"label": label, "fits": fits, "instead": instead}
        verdicts = {row["label"]: row["verdict"] for row in version["variants"]}
        assert verdicts[label] == "locked"
        assert "chosen" not in verdicts.values()
        service = asked.proxy.service
        assert service.noted.has(service.clients.client(asked.key), "app") is not fits


def test_what_the_url_of_a_client_depends_on(upstream, start):
    proxy = start(upstream)
    locked = {"app": {"1.0": ("cu128",)}}
    keys = [
        Asked(proxy, given, **settings).key
        for given, settings in (
            (KEY, {"locked": locked}),
            (KEY, {"locked": locked}),
            (KEY, {}),
            (KEY, {"locked": {"app": {"1.0": ("cu126",)}}}),
            (KEY, {"locked": {"app": {"1.1": ("cu128",)}}}),
            (KEY, {"locked": locked, "hashes": False}),
            (BARE, {"locked": locked}),
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 6


def test_the_final_release_is_listed_and_refused(upstream, start):
    """K5: pre-releases are all that fits."""
    upstream.add_release("1.0", labels=("cu130",))
    upstream.add_release("2.0rc1", labels=("cu128",))
    proxy = start(upstream)
    for asked in (Asked(proxy), Asked(proxy, hashes=False)):
        file = asked.files()[APP]
        assert not file["hashes"]
        for suffix in ("", ".metadata"):
            answer = asked.get(file["url"] + suffix)
            assert answer.status_code == 409
            assert "None of the variants of app 1.0 fits" in answer.text
            assert "app==2.0rc1" in answer.text
    assert proxy.get(proxy.files()[APP]["url"]).status_code == 409


class TestHashes:
    """K1: the user gives hashes of a project's files."""

    @pytest.mark.parametrize(
        ("names", "requires", "found"),
        [
            ([APP], (), None),
            (["app-1.0-py3-none-any-cu126.whl"], (), "cu126"),
            ([APP], MARKED, None),
        ],
    )
    def test_of_files(self, upstream, start, names, requires, found):
        upstream.add_release("1.0", *requires, labels=("cu126", "cu128"))
        upstream.add("app", APP, wheel(APP))
        given = {hashlib.sha256(upstream.files["app"][name]).hexdigest() for name in names}
        asked = Asked(start(upstream, hashes={"app": frozenset(given)}), hashes=False)
        assert asked.labels() == {"py3-none-any": found}

    @pytest.mark.parametrize("names", [[CU128], [CU128, APP]])
    def test_of_a_file_that_is_rewritten(self, upstream, start, names):
        """What would be served has another hash than the one that is given: a line says so."""
        upstream.add_release("1.0", *MARKED, labels=("cu126", "cu128"))
        upstream.add("app", APP, wheel(APP))
        given = {hashlib.sha256(upstream.files["app"][name]).hexdigest() for name in names}
        proxy = start(upstream, hashes={"app": frozenset(given)})
        asked = Asked(proxy, hashes=False)
        file = asked.files()[APP]
        assert not file["hashes"]
        for suffix in ("", ".metadata"):
            answer = asked.get(file["url"] + suffix)
            assert answer.status_code == 409
            assert f"{CU128} cannot be installed with its own hash, which is given" in answer.text
        # A lock has the hash of what is served.
        assert Asked(proxy).labels() == {"py3-none-any": "cu128"}

    def test_as_it_is_rewritten(self, upstream, start):
        """As an export of uv-variants has it, beside the hashes of files that stay as they are."""
        upstream.add_release("1.0", *MARKED, labels=("cu128", "cu126"))
        upstream.add("app", APP, wheel(APP))
        before = Asked(start(upstream))
        served = before.get(before.files()[CU128_HERE]["url"]).content
        given = {hashlib.sha256(data).hexdigest() for data in (served, upstream.files["app"][APP])}
        proxy = start(upstream, hashes={"app": frozenset(given)})
        assert Asked(proxy, hashes=False).labels() == {"py3-none-any": "cu128"}


class TestNotices:
    """What the command has to tell the user afterwards (U16)."""

    def report(self, asked):
        service = asked.proxy.service
        asked.files()
        assert service.noted.has(service.clients.client(asked.key), "app")
        return asked.report()["versions"][0]

    def test_broken_json(self, upstream, start):
        upstream.add_release(plain=True)
        upstream.files["app"]["app-1.0-variants.json"] = b"{"
        (problem,) = self.report(Asked(start(upstream)))["problems"]
        assert "app-1.0-variants.json" in problem

    def test_everything_is_rejected(self, upstream, start):
        upstream.add_release(labels=["cu130"])
        unfit = self.report(Asked(start(upstream)))["unfit"]
        assert "cu130" in unfit
        assert "13.0" in unfit

    def test_a_plugin_that_is_not_allowed(self, upstream, start):
        upstream.add_release(labels=["cu128", "null"])
        tree = json.loads(upstream.files["app"]["app-1.0-variants.json"])
        tree["providers"]["nvidia"] = {"requires": ["acme-provider"], "plugin-api": "acme:Plugin"}
        upstream.files["app"]["app-1.0-variants.json"] = json.dumps(tree).encode()
        detected = encode(Machine(detected=NVIDIA, target="linux-x86_64"))
        version = self.report(Asked(start(upstream), detected))
        assert any("acme-provider" in text for text in version["notices"]), version
        assert version["providers"]["nvidia"]["requires"] == ["acme-provider"]

    def test_a_plugin_that_failed(self, upstream, start):
        upstream.add_release()
        text = upstream.files["app"]["app-1.0-variants.json"]
        provider = read_metadata(text, "x").providers["nvidia"]
        name = provider_id("nvidia", provider.requires, provider.plugin_api)
        failures = {name: PluginFailed("nvidia", "it crashed", "")}
        answer = Asked(start(upstream, failures=failures), BARE).get()
        assert answer.status_code == 424
        assert "it crashed" in answer.text

"""In-place pages: what stands in for an index's own page, and the files that it links to."""

import hashlib
import json
import re
from urllib.parse import urljoin

import httpx
import pytest
from upstream_server import JSON, document, metadata_of, wheel
from worlds import APP, BARE, CU128, CU128_HERE, KEY, MARKED, NVIDIA, Asked, key

from pep_variants.detect.detector import provider_id
from pep_variants.errors import PluginFailed
from pep_variants.formats.platform_file import write_platform
from pep_variants.formats.reader import read_metadata
from pep_variants.model.platform import Platform
from variants_proxy import Limits, Machine, Upstream, encode

PLAIN, OLD = "plain-1.0-py3-none-any.whl", "app-0.9-py3-none-any.whl"


class TestPages:
    def test_a_variant_is_beside_the_page(self, upstream, start):
        upstream.add_release()
        upstream.add("app", "app-1.0.tar.gz", b"source")
        asked = Asked(start(upstream))
        files = asked.files()
        assert set(files) == {CU128_HERE, "app-1.0.tar.gz"}
        data = upstream.files["app"][CU128]
        assert files[CU128_HERE]["url"] == f".variant/cu128/{CU128_HERE}"
        assert files[CU128_HERE]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert files["app-1.0.tar.gz"]["url"] == f"{upstream.url}/files/app/app-1.0.tar.gz"
        answer = asked.get()
        assert answer.headers["Cache-Control"] == "no-cache"
        again = asked.get(headers={"Accept": JSON, "If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304
        assert asked.get(project="nothing").status_code == 404
        assert asked.get(project="").status_code == 404

    @pytest.mark.parametrize(
        ("base", "html"), [("", False), ("absolute", True), ("../..", False), ("../..", True)]
    )
    def test_without_variants_it_lists_what_the_upstream_does(self, upstream, start, html, base):
        """With and without credentials, which the client sends itself."""
        data = upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.base, upstream.html = upstream.url if base == "absolute" else base, html
        for token in ("", "token"):
            upstream.credentials = token and f"Bearer {token}"
            proxy = start(Upstream("main", upstream.simple, token=token))
            (file,) = Asked(proxy).files("plain").values()
            # Relative links are as the index has them: the client is at its URL.
            url = urljoin(f"{upstream.simple}plain/", file["url"])
            assert url == f"{upstream.url}/files/plain/{PLAIN}"
            assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    @pytest.mark.parametrize("etags", [False, True])
    def test_a_page_without_variants_is_the_index_s_own(self, upstream, start, monkeypatch, etags):
        """Another process that knows its contents does not read them, nor any METADATA."""
        upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.core_metadata, upstream.etags = True, etags
        own = httpx.get(f"{upstream.simple}plain/", headers={"Accept": JSON})
        answer = Asked(start(upstream)).get(project="plain")
        assert (answer.content, answer.headers["Content-Type"]) == (own.content, JSON)
        assert answer.headers["Cache-Control"] == "no-cache"
        tag = answer.headers["ETag"]
        assert tag == own.headers.get("ETag", tag)
        upstream.requests.clear()
        monkeypatch.setattr("variants_proxy.upstream.upstream_pages.read_page", None)
        asked = Asked(start(upstream))
        known = {"Accept": JSON, "If-None-Match": tag}
        assert asked.get(project="plain", headers=known).status_code == 304
        assert asked.get(project="plain").content == own.content
        assert upstream.paths == ["/simple/plain/"] * 2

    def test_variants_come_to_a_page_that_had_none(self, upstream, start):
        """A project is plain as long as each of its pages was."""
        upstream.add("app", OLD, wheel(OLD))
        upstream.add("plain", PLAIN, wheel(PLAIN))
        asked = Asked(proxy := start(upstream))
        plain, client = proxy.service.plain, proxy.service.clients.client(asked.key)
        assert plain.is_plain(client, "app") is None
        tag = asked.get().headers["ETag"]
        assert len(asked.files()) == len(asked.files("plain")) == 1
        assert plain.is_plain(client, "app") is True
        assert Asked(proxy, key(variant=["app=cu128"])).files() == {}
        before = dict(upstream.files["app"])
        upstream.add_release()
        answer = asked.get(headers={"Accept": JSON, "If-None-Match": tag})
        assert CU128_HERE in answer.text
        assert answer.headers["ETag"] != tag
        upstream.files["app"] = before
        assert len(asked.files()) == 1
        assert plain.is_plain(client, "app") is False
        assert plain.is_plain(client, "plain") is True

    def test_relative_links_after_a_redirect(self, upstream, start):
        upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.base = "../.."
        body = httpx.get(f"{upstream.simple}plain/", headers={"Accept": JSON}).content
        upstream.faults["/elsewhere/below/plain/"] = (200, {"Content-Type": JSON}, body)
        upstream.faults["/simple/plain/"] = (302, {"Location": "/elsewhere/below/plain/"}, b"")
        file = Asked(start(upstream)).files("plain")[PLAIN]
        assert file["url"] == f"{upstream.url}/elsewhere/files/plain/{PLAIN}"


class TestFiles:
    def test_every_label(self, upstream, start):
        """Also what does not fit here: it is in another user's lock file."""
        upstream.add_release()
        asked = Asked(start(upstream))
        for label in ("cu126", "cu128", "cu130", "null"):
            path = f".variant/{label}/app-1.0-0_{label}-py3-none-any.whl"
            answer = asked.get(path, follow_redirects=True)
            assert answer.content == upstream.files["app"][f"app-1.0-py3-none-any-{label}.whl"]
        for path in (
            f".variant/cu126/{CU128_HERE}",
            f".variant/cu128/{CU128}",
            ".variant/cu999/app-1.0-0_cu999-py3-none-any.whl",
            ".variant/cu128/app-2.0-0_cu128-py3-none-any.whl",
            ".variant/cu128/app-1.0-0_cu128-py3-none-any.tar.gz",
            ".variant/no-variant-fits/app-1.0-py3-none-any.whl",  # it fits by now
        ):
            assert asked.get(path).status_code == 404, path
            assert asked.get(f"{path}.metadata").status_code == 404, path

    def test_values_that_a_machine_does_not_support(self, upstream, start):
        """A lock file is for all machines; what is installed follows PEP 825 on this one."""
        variants = document("12.6")
        lower_bounds = {"nvidia": {"cuda_version_lower_bound": ["12.6", "13.0"]}}
        variants["variants"] = {"cu": lower_bounds}
        name = "app-1.0-py3-none-any-cu.whl"
        requires = [
            f"{dependency}; 'nvidia :: cuda_version_lower_bound :: {version}' in variant_properties"
            for dependency, version in {"a": "12.6", "b": "13.0"}.items()
        ]
        upstream.add("app", name, wheel(name, *requires, variants=variants))
        upstream.add("app", "app-1.0-variants.json", json.dumps(variants).encode())
        proxy = start(upstream)
        for hashes, expected in ((True, [b"a", b"b"]), (False, [b"a"])):
            asked = Asked(proxy, hashes=hashes)
            file = asked.files()["app-1.0-0_cu-py3-none-any.whl"]
            metadata = asked.get(f"{file['url']}.metadata").content
            assert metadata == metadata_of(asked.get(file["url"]).content)
            assert re.findall(rb"Requires-Dist: (.*)\n", metadata) == expected


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
            (BARE, "cu128", False, "nothing of nvidia", "null"),
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


class TestBytes:
    """What is read of the upstream before a version is known."""

    SIZE = 2**20
    NEWEST = "app-5.0-0_cu128-py3-none-any.whl"

    @pytest.fixture
    def sent(self, upstream, monkeypatch):
        """Bytes that the upstream sends, by path, of a project with five versions."""
        monkeypatch.setattr(
            "upstream_server.wheel",
            lambda *args, **kinds: wheel(*args, **kinds, payload=b"x" * self.SIZE, compression=0),
        )
        for number in range(1, 6):
            upstream.add_release(f"{number}.0", *MARKED, labels=("null", "cu128"))
        upstream.base = upstream.url
        found = {}
        answer = upstream.answer

        def counted(path, headers):
            result = answer(path, headers)
            found[path] = found.get(path, 0) + len(result[2])
            return result

        monkeypatch.setattr(upstream, "answer", counted)
        return found

    @pytest.mark.parametrize("beside", [False, True])
    def test_an_install_reads_no_wheels(self, upstream, start, sent, beside):
        upstream.core_metadata = beside
        asked = Asked(start(upstream, fresh_seconds=0), hashes=False)
        file = asked.files()[self.NEWEST]
        assert not any(path.endswith(".whl") for path in sent)
        assert sum(sent.values()) < 20_000
        assert file["hashes"] == {}
        assert file["core-metadata"]
        metadata = asked.get(f"{file['url']}.metadata").content
        assert b"Requires-Dist: a\n" in metadata
        assert sum(sent.values()) < 100_000  # of one wheel its end
        data = asked.get(file["url"]).content
        assert metadata_of(data) == metadata
        assert self.SIZE < sum(sent.values()) < self.SIZE + 300_000
        if beside:  # what is known is announced
            digests = {name: file["hashes"] for name, file in asked.files().items()}
            assert digests.pop(self.NEWEST) == {"sha256": hashlib.sha256(data).hexdigest()}
            assert list(digests.values()) == [{}] * 4

    def test_what_is_not_inspected_is_compared(self, upstream, start, sent):
        """The page has no hash, so the proxy has to."""
        upstream.lies.add("app-5.0-py3-none-any-cu128.whl")
        asked = Asked(start(upstream), hashes=False)
        file = asked.files()[self.NEWEST]
        assert asked.get(f"{file['url']}.metadata").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            asked.get(file["url"])

    @pytest.mark.parametrize(
        ("versions", "locked", "expected"),
        [(1, {}, NEWEST), (0, {"app": {"2.0": ("null",)}}, "app-2.0-0_null-py3-none-any.whl")],
    )
    def test_a_lock_reads_what_is_locked_and_the_newest(
        self, upstream, start, sent, versions, locked, expected
    ):
        upstream.core_metadata = True
        asked = Asked(start(upstream, limits=Limits(hashed_versions=versions)), locked=locked)
        assert {name for name, file in asked.files().items() if file["hashes"]} == {expected}
        assert sum(sent.values()) < self.SIZE + 200_000


class TestClients:
    def test_a_url_means_the_same(self, upstream, start, tmp_path):
        """A platform file that changes is another client."""
        path = tmp_path / "box.toml"
        path.write_text(write_platform(NVIDIA, "me"))
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream, platforms={"box": path})
        before = Asked(proxy, "box")
        path.write_text(write_platform(Platform({}), "me"))
        after = Asked(proxy, "box")
        assert before.key != after.key
        assert before.labels() == {"py3-none-any": "cu128"}
        assert after.labels() == {"py3-none-any": "null"}
        path.write_text(f"{write_platform(NVIDIA, 'me')}# another size and time")
        assert Asked(proxy, "box").key == before.key

    def test_what_it_depends_on(self, upstream, start):
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
            ([CU128], MARKED, "cu128"),  # nothing else has it either
            ([CU128, APP], MARKED, None),  # what is served is not the file that has the hash
        ],
    )
    def test_of_files(self, upstream, start, names, requires, found):
        upstream.add_release("1.0", *requires, labels=("cu126", "cu128"))
        upstream.add("app", APP, wheel(APP))
        given = {hashlib.sha256(upstream.files["app"][name]).hexdigest() for name in names}
        asked = Asked(start(upstream, hashes={"app": frozenset(given)}), hashes=False)
        assert asked.labels() == {"py3-none-any": found}

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

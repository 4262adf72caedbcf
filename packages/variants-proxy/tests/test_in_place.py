"""In-place pages: what stands in for an index's own page, and the files that it links to."""

import hashlib
import json
import re
from urllib.parse import urljoin

import httpx
import pytest
from in_place_client import BARE, CU128, CU128_HERE, KEY, MARKED, Asked, key, listed, registered
from machines import NVIDIA
from upstream_server import JSON, document, metadata_of, wheel

from pep_variants.formats.platform_file import write_platform
from pep_variants.model.platform import Platform
from variants_proxy import Limits, Upstream


class TestPages:
    def test_a_variant_is_beside_the_page(self, upstream, start):
        upstream.add_release()
        upstream.add("app", "app-1.0.tar.gz", b"source")
        files = Asked(start(upstream)).files()
        assert set(files) == {CU128_HERE, "app-1.0.tar.gz"}
        data = upstream.files["app"][CU128]
        assert files[CU128_HERE]["url"] == f".variant/cu128/{CU128_HERE}"
        assert files[CU128_HERE]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert files[CU128_HERE]["size"] == len(data)
        assert files["app-1.0.tar.gz"]["url"] == f"{upstream.url}/files/app/app-1.0.tar.gz"

    def test_the_page_is_asked_for_again(self, upstream, start):
        upstream.add_release()
        asked = Asked(start(upstream))
        answer = asked.get()
        assert answer.headers["Cache-Control"] == "no-cache"
        again = asked.get(headers={"Accept": JSON, "If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304

    @pytest.mark.parametrize("html", [False, True])
    @pytest.mark.parametrize("base", ["", "absolute", "../.."])
    def test_without_variants_it_lists_what_the_upstream_does(self, upstream, start, html, base):
        """With and without credentials, which the client sends itself."""
        upstream.add("plain", "plain-1.0-py3-none-any.whl", wheel("plain-1.0-py3-none-any.whl"))
        upstream.base, upstream.html = upstream.url if base == "absolute" else base, html
        data = upstream.files["plain"]["plain-1.0-py3-none-any.whl"]
        token = "Bearer token"
        for credentials in ("", token):
            upstream.credentials = credentials
            at = Upstream("main", upstream.simple, token="token" if credentials else "")
            (file,) = Asked(start(at)).files("plain").values()
            # Relative links are as the index has them: the client is at its URL.
            url = urljoin(f"{upstream.simple}plain/", file["url"])
            assert url == f"{upstream.url}/files/plain/plain-1.0-py3-none-any.whl"
            assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    @pytest.mark.parametrize("etags", [False, True])
    def test_a_page_without_variants_is_the_index_s_own(self, upstream, start, monkeypatch, etags):
        """Another process that knows its contents does not read them, nor any METADATA."""
        upstream.add("plain", "plain-1.0-py3-none-any.whl", wheel("plain-1.0-py3-none-any.whl"))
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
        upstream.add("app", "app-0.9-py3-none-any.whl", wheel("app-0.9-py3-none-any.whl"))
        asked = Asked(start(upstream))
        tag = asked.get().headers["ETag"]
        upstream.add_release()
        answer = asked.get(headers={"Accept": JSON, "If-None-Match": tag})
        assert CU128_HERE in answer.text
        assert answer.headers["ETag"] != tag

    def test_a_project_is_plain_while_each_of_its_pages_was(self, upstream, start):
        upstream.add("app", "app-0.9-py3-none-any.whl", wheel("app-0.9-py3-none-any.whl"))
        upstream.add("other", "other-0.9-py3-none-any.whl", wheel("other-0.9-py3-none-any.whl"))
        proxy = start(upstream)
        asked = Asked(proxy)
        service, client = proxy.service, proxy.service.clients.client(asked.key)
        assert service.plain.is_plain(client, "app") is None
        assert len(asked.files()) == len(asked.files("other")) == 1
        assert service.plain.is_plain(client, "app") is True
        before = dict(upstream.files["app"])
        upstream.add_release()
        assert len(asked.files()) == 2
        upstream.files["app"] = before
        assert len(asked.files()) == 1
        assert service.plain.is_plain(client, "app") is False
        assert service.plain.is_plain(client, "other") is True

    def test_a_forced_label_counts_on_a_known_page(self, upstream, start):
        upstream.add("app", "app-0.9-py3-none-any.whl", wheel("app-0.9-py3-none-any.whl"))
        proxy = start(upstream)
        assert len(Asked(proxy).files()) == 1
        assert Asked(proxy, key(variant=["app=cu128"])).files() == {}

    def test_relative_links_after_a_redirect(self, upstream, start):
        name = "plain-1.0-py3-none-any.whl"
        upstream.add("plain", name, wheel(name))
        upstream.base = "../.."
        body = httpx.get(f"{upstream.simple}plain/", headers={"Accept": JSON}).content
        upstream.faults["/elsewhere/below/plain/"] = (200, {"Content-Type": JSON}, body)
        upstream.faults["/simple/plain/"] = (302, {"Location": "/elsewhere/below/plain/"}, b"")
        file = Asked(start(upstream)).files("plain")[name]
        assert file["url"] == f"{upstream.url}/elsewhere/files/plain/{name}"

    def test_no_project(self, upstream, start):
        asked = Asked(start(upstream))
        assert asked.get(project="nothing").status_code == 404
        assert asked.get(project="").status_code == 404


class TestFiles:
    @pytest.mark.parametrize("label", ["cu126", "cu128", "cu130", "null"])
    def test_every_label(self, upstream, start, label):
        """Also what does not fit here: it is in another user's lock file."""
        upstream.add_release()
        path = f".variant/{label}/app-1.0-0_{label}-py3-none-any.whl"
        answer = Asked(start(upstream)).get(path, follow_redirects=True)
        assert answer.content == upstream.files["app"][f"app-1.0-py3-none-any-{label}.whl"]

    @pytest.mark.parametrize(
        "path",
        [
            f".variant/cu126/{CU128_HERE}",
            ".variant/here/app-1.0-0_here-py3-none-any.whl",  # of a floating lock
            f".variant/cu128/{CU128}",
            ".variant/cu999/app-1.0-0_cu999-py3-none-any.whl",
            ".variant/cu128/app-2.0-0_cu128-py3-none-any.whl",
            ".variant/cu128/app-1.0-0_cu128-py3-none-any.tar.gz",
        ],
    )
    def test_not_there(self, upstream, start, path):
        upstream.add_release()
        asked = Asked(start(upstream))
        assert asked.get(path).status_code == 404
        assert asked.get(f"{path}.metadata").status_code == 404

    def test_markers(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        asked = Asked(start(upstream))
        file = asked.files()[CU128_HERE]
        answer = asked.get(file["url"])
        assert hashlib.sha256(answer.content).hexdigest() == file["hashes"]["sha256"]
        assert "immutable" in answer.headers["Cache-Control"]
        metadata = asked.get(f"{file['url']}.metadata").content
        assert metadata == metadata_of(answer.content)
        assert b"Requires-Dist: a\n" in metadata
        assert b"Requires-Dist: b" not in metadata

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
        found = {}
        for hashes in (True, False):
            asked = registered(proxy, hashes=hashes)
            file = asked.files()["app-1.0-0_cu-py3-none-any.whl"]
            metadata = asked.get(f"{file['url']}.metadata").content
            assert metadata == metadata_of(asked.get(file["url"]).content)
            found[hashes] = re.findall(rb"Requires-Dist: (.*)\n", metadata)
        assert found == {True: [b"a", b"b"], False: [b"a"]}


LINUX, MAC = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-macosx_11_0_arm64"
OLD_LINUX, NEWER = "cp312-cp312-manylinux_2_17_x86_64", "cp313-cp313-manylinux_2_28_x86_64"


def at(tag, label):
    return f"https://index.example/simple/app/.variant/{label}/app-1.0-0_{label}-{tag}.whl"


class TestLocked:
    @pytest.mark.parametrize(
        ("items", "expected"),
        [
            # Labels: every tag set that has one.
            (["cu126"], {LINUX: "cu126", MAC: "cu126", NEWER: "cu126"}),
            (["cu130"], {LINUX: "cu130", MAC: "cu130", NEWER: "cu130"}),
            (["cu130", "null"], {LINUX: "cu130", MAC: "cu130", NEWER: "cu130"}),
            (["cu999"], {LINUX: "cu128", MAC: "null", NEWER: "cu128"}),
            # URLs: these tags alone, and later ones of the platform.
            (
                [at(LINUX, "cu126"), at(MAC, "null")],
                {LINUX: "cu126", MAC: "null", NEWER: "cu126"},
            ),
            ([at(LINUX, "null"), at(NEWER, "cu126")],
             {LINUX: "null", MAC: "null", NEWER: "cu126"}),
            ([at(MAC, "cu128")], {LINUX: "cu128", MAC: "cu128", NEWER: "cu128"}),
            # A wheel without label.
            ([f"https://files.example/app-1.0-{LINUX}.whl"],
             {LINUX: None, MAC: "null", NEWER: None}),
            # What is selected on request is not locked.
            ([at(LINUX, "here")], {LINUX: "cu128", MAC: "null", NEWER: "cu128"}),
        ],
    )  # fmt: skip
    def test_labels_stay(self, upstream, start, items, expected):
        upstream.add_release(tags=[LINUX, MAC, NEWER], plain=True)
        asked = registered(start(upstream), locked={"App": {"1.0.0": tuple(items)}})
        assert listed(asked) == expected

    def test_other_versions_are_chosen_as_usual(self, upstream, start):
        upstream.add_release("1.0")
        upstream.add_release("2.0")
        files = registered(start(upstream), locked={"app": {"1.0": ("cu126",)}}).files()
        assert set(files) == {
            "app-1.0-0_cu126-py3-none-any.whl",
            "app-2.0-0_cu128-py3-none-any.whl",
        }

    def test_nothing_is_taken_in_place_of_it(self, upstream, start):
        """A newer libc's tag would come first."""
        upstream.add_release(tags=[OLD_LINUX], labels=["cu126"])
        upstream.add_release(tags=[LINUX], labels=["cu128"])
        asked = registered(start(upstream), locked={"app": {"1.0": (at(OLD_LINUX, "cu126"),)}})
        assert listed(asked) == {OLD_LINUX: "cu126"}

    @pytest.mark.parametrize(
        ("options", "label"),
        [
            ({"variant": ["app=cu126"]}, "cu126"),
            ({"variant-prefer": ["nvidia::cuda_version_lower_bound::12.6"]}, "cu130"),
        ],
    )
    def test_a_forced_label_wins(self, upstream, start, options, label):
        upstream.add_release()
        asked = registered(start(upstream), key(**options), locked={"app": {"1.0": ("cu130",)}})
        assert listed(asked) == {"py3-none-any": label}

    def test_no_variants_wins(self, upstream, start):
        upstream.add_release(plain=True)
        asked = registered(
            start(upstream), key(**{"no-variants": True}), locked={"app": {"1.0": ("cu128",)}}
        )
        assert listed(asked) == {"py3-none-any": None}

    def test_an_old_version_is_evaluated(self, upstream, start):
        for number in range(1, 6):
            upstream.add_release(f"{number}.0")
        proxy = start(upstream, limits=Limits(versions=2))
        without = Asked(proxy).files()
        assert "app-1.0-0_null-py3-none-any.whl" in without
        files = registered(proxy, locked={"app": {"1.0": ("cu128",)}}).files()
        assert set(files) - set(without) == {CU128_HERE}
        assert set(without) - set(files) == {"app-1.0-0_null-py3-none-any.whl"}

    def test_broken_metadata(self, upstream, start):
        upstream.add_release()
        upstream.files["app"]["app-1.0-variants.json"] = b"{"
        asked = registered(start(upstream), locked={"app": {"1.0": ("cu128",)}})
        assert listed(asked) == {"py3-none-any": "cu128"}

    def test_the_same_bytes_for_everyone(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream)
        locked = {"app": {"1.0": ("cu128",)}}
        found = []
        for given in (KEY, BARE, key(variant_prefer=[])):
            asked = registered(proxy, given, locked=locked)
            file = asked.files()[CU128_HERE]
            data = asked.get(file["url"]).content
            assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
            found.append(data)
        assert len(set(found)) == 1
        assert b"Requires-Dist: a\n" in metadata_of(found[0])

    @pytest.mark.parametrize(
        ("given", "label", "fits", "why", "instead"),
        [
            (KEY, "cu126", True, "", "cu128"),
            (KEY, "cu128", True, "", "cu128"),
            (BARE, "cu128", False, "nothing of nvidia", "null"),
            (KEY, "cu130", False, "13.0", "cu128"),
            (BARE, "null", True, "", "null"),
        ],
    )
    def test_the_report(self, upstream, start, given, label, fits, why, instead):
        upstream.add_release()
        asked = registered(start(upstream), given, locked={"app": {"1.0": (label,)}})
        report = asked.proxy.get(f"/p/{asked.key}/i/main/variants/app/").json()
        (version,) = report["versions"]
        assert version["files"] == {"app-1.0-py3-none-any.whl": label}
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
        asked = registered(start(upstream), hashes=False)
        files = asked.files()
        assert not any(path.endswith(".whl") for path in sent)
        assert sum(sent.values()) < 20_000
        file = files["app-5.0-0_cu128-py3-none-any.whl"]
        assert file["hashes"] == {}
        assert file["core-metadata"]
        metadata = asked.get(f"{file['url']}.metadata").content
        assert b"Requires-Dist: a\n" in metadata
        assert sum(sent.values()) < 100_000  # of one wheel its end
        assert metadata_of(asked.get(file["url"]).content) == metadata
        assert self.SIZE < sum(sent.values()) < self.SIZE + 300_000

    def test_without_ranges(self, upstream, start, sent):
        upstream.ranges = False
        asked = registered(start(upstream), hashes=False)
        file = asked.files()["app-4.0-0_cu128-py3-none-any.whl"]
        assert not any(path.endswith(".whl") for path in sent)
        assert b"Requires-Dist: a\n" in asked.get(f"{file['url']}.metadata").content
        assert [path for path in sent if path.endswith(".whl")] == [
            "/files/app/app-4.0-py3-none-any-cu128.whl"
        ]

    def test_what_is_not_inspected_is_compared(self, upstream, start, sent):
        """The page has no hash, so the proxy has to."""
        upstream.lies.add("app-5.0-py3-none-any-cu128.whl")
        asked = registered(start(upstream), hashes=False)
        file = asked.files()["app-5.0-0_cu128-py3-none-any.whl"]
        assert asked.get(f"{file['url']}.metadata").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            asked.get(file["url"])

    def test_what_is_known_is_announced(self, upstream, start, sent):
        upstream.core_metadata = True
        proxy = start(upstream, fresh_seconds=0)
        asked = registered(proxy, hashes=False)
        name = "app-5.0-0_cu128-py3-none-any.whl"
        data = asked.get(asked.files()[name]["url"]).content
        assert asked.files()[name]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        others = [file["hashes"] for file in asked.files().values() if file["filename"] != name]
        assert others == [{}] * 4

    def test_a_lock_reads_the_newest(self, upstream, start, sent):
        upstream.core_metadata = True
        asked = registered(start(upstream, limits=Limits(hashed_versions=1)))
        hashed = {name for name, file in asked.files().items() if file["hashes"]}
        assert hashed == {"app-5.0-0_cu128-py3-none-any.whl"}
        assert sum(sent.values()) < self.SIZE + 200_000

    def test_a_lock_reads_what_is_locked(self, upstream, start, sent):
        upstream.core_metadata = True
        proxy = start(upstream, limits=Limits(hashed_versions=0))
        asked = registered(proxy, locked={"app": {"2.0": ("null",)}})
        hashed = {name for name, file in asked.files().items() if file["hashes"]}
        assert hashed == {"app-2.0-0_null-py3-none-any.whl"}


class TestClients:
    def test_a_url_means_the_same(self, upstream, start, tmp_path):
        """A platform file that changes is another client."""
        path = tmp_path / "box.toml"
        path.write_text(write_platform(NVIDIA, "me"))
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream, platforms={"box": path})
        before = registered(proxy, "box")
        assert listed(before) == {"py3-none-any": "cu128"}
        path.write_text(write_platform(Platform({}), "me"))
        after = registered(proxy, "box")
        assert before.key != after.key
        assert listed(before) == {"py3-none-any": "cu128"}
        assert listed(after) == {"py3-none-any": "null"}
        assert registered(proxy, "box").key == after.key
        path.write_text(f"{write_platform(NVIDIA, 'me')}# another size and time")
        assert registered(proxy, "box").key == before.key

    def test_what_it_depends_on(self, upstream, start):
        proxy = start(upstream)
        one = registered(proxy, locked={"app": {"1.0": ("cu128",)}}).key
        assert registered(proxy, locked={"app": {"1.0": ("cu128",)}}).key == one
        others = [
            registered(proxy, **settings).key
            for settings in (
                {},
                {"locked": {"app": {"1.0": ("cu126",)}}},
                {"locked": {"app": {"1.1": ("cu128",)}}},
                {"locked": {"app": {"1.0": ("cu128",)}}, "hashes": False},
                {"given": BARE, "locked": {"app": {"1.0": ("cu128",)}}},
            )
        ]
        assert len({one, *others}) == 6


class TestPreReleases:
    """K5: pre-releases are all that fits."""

    def test_the_final_release_is_listed_and_refused(self, upstream, start):
        upstream.add_release("1.0", labels=("cu130",))
        upstream.add_release("2.0rc1", labels=("cu128",))
        proxy = start(upstream)
        for asked in (registered(proxy), registered(proxy, hashes=False)):
            file = asked.files()["app-1.0-py3-none-any.whl"]
            assert not file["hashes"]
            for suffix in ("", ".metadata"):
                answer = asked.get(file["url"] + suffix)
                assert answer.status_code == 409
                assert "None of the variants of app 1.0 fits" in answer.text
                assert "app==2.0rc1" in answer.text
        file = proxy.files()["app-1.0-py3-none-any.whl"]
        assert proxy.get(file["url"]).status_code == 409

    def test_the_same_url_where_it_fits(self, upstream, start):
        """Of another machine, or once the final release has another variant."""
        upstream.add_release("1.0", labels=("cu128",))
        asked = registered(start(upstream))
        answer = asked.get(".variant/no-variant-fits/app-1.0-py3-none-any.whl")
        assert answer.status_code == 404


class TestHashes:
    """K1: the user gives hashes of a project's files."""

    @pytest.mark.parametrize(
        ("label", "requires", "found"),
        [
            ("", (), None),
            ("cu126", (), "cu126"),
            ("cu128", (), "cu128"),
            # Nothing else has it either.
            ("cu128", MARKED, "cu128"),
        ],
    )
    def test_of_one_file(self, upstream, start, label, requires, found):
        upstream.add_release("1.0", *requires, labels=("cu126", "cu128"), plain=True)
        name = f"app-1.0-py3-none-any{label and '-'}{label}.whl"
        given = hashlib.sha256(upstream.files["app"][name]).hexdigest()
        asked = registered(start(upstream, hashes={"app": frozenset([given])}), hashes=False)
        assert listed(asked) == {"py3-none-any": found}

    def test_of_a_wheel_that_is_rewritten(self, upstream, start):
        """What is served is not the file that has the hash."""
        upstream.add_release("1.0", *MARKED, labels=("cu128",))
        plain = "app-1.0-py3-none-any.whl"
        upstream.add("app", plain, wheel(plain))
        given = {hashlib.sha256(upstream.files["app"][name]).hexdigest() for name in (CU128, plain)}
        proxy = start(upstream, hashes={"app": frozenset(given)})
        assert listed(registered(proxy, hashes=False)) == {"py3-none-any": None}

    def test_as_it_is_rewritten(self, upstream, start):
        """As an export of uv-variants has it, beside the hashes of files that stay as they are."""
        upstream.add_release("1.0", *MARKED, labels=("cu128", "cu126"))
        plain = "app-1.0-py3-none-any.whl"
        upstream.add("app", plain, wheel(plain))
        before = registered(start(upstream))
        served = before.get(before.files()[CU128_HERE]["url"]).content
        given = {
            hashlib.sha256(data).hexdigest() for data in (served, upstream.files["app"][plain])
        }
        proxy = start(upstream, hashes={"app": frozenset(given)})
        assert listed(registered(proxy, hashes=False)) == {"py3-none-any": "cu128"}

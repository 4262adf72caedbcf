"""Which files each client gets: of variants, preferences, machines and upstreams."""

import hashlib
import io
import json
import logging
import zipfile
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from upstream_server import wheel
from worlds import APP, BARE, CU128, CU128_HERE, KEY, MARKED, NVIDIA, Asked, key, label_of

from pep_variants._formats.platform_file import write_platform
from support.index import JSON, Answer, metadata_of
from variants_index._http.credentials import Credentials
from variants_proxy._index_urls import keyed_url, proxy_base, read_upstreams
from variants_proxy.errors import InvalidSetting
from variants_proxy.settings import Limits, Upstream
from variants_proxy.urls import Machine, encode, host_target, index_url, links_url

PLAIN, OLD = "plain-1.0-py3-none-any.whl", "app-0.9-py3-none-any.whl"
PAGE = f"{index_url(KEY)}app/"


@pytest.mark.parametrize("beside", [False, True])
def test_a_variant(upstream, start, beside):
    """Under a name of its own, with what its index says of it; the file is at its index."""
    upstream.add_release()
    upstream.add("app", "app-1.0.tar.gz", b"source")
    upstream.core_metadata = beside
    for filename in upstream.files["app"]:
        upstream.attributes[filename] = {"yanked": "broken"}
    upstream.attributes[CU128] = {
        "yanked": "broken", "requires-python": ">=3.10", "upload-time": "2026-01-01T00:00:00Z",
        "provenance": "https://files.example/provenance",
    }  # fmt: skip
    proxy = start(upstream)
    files = proxy.files()
    assert set(files) == {APP, "app-1.0.tar.gz"}
    file, data = files[APP], upstream.files["app"][CU128]
    assert file["filename"] == CU128_HERE
    assert file["url"].endswith(f"/simple/app/.variant/cu128/{CU128_HERE}")
    assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
    assert file["size"] == len(data)
    assert upstream.attributes[CU128].items() <= file.items()
    asked = len(upstream.requests)
    answer = proxy.get(f"{file['url']}.metadata")
    assert answer.content == metadata_of(data)
    assert file["core-metadata"] == {"sha256": hashlib.sha256(answer.content).hexdigest()}
    assert len(upstream.requests) == asked  # it was read for the page
    answer = proxy.get(file["url"])
    assert answer.status_code == 307
    assert answer.headers["Location"] == f"{upstream.root}/files/app/{CU128}"


def test_preferences_are_in_the_key(upstream, start):
    upstream.add_release(plain=True)
    upstream.add("app", "app-2.0.tar.gz", b"source")
    upstream.add("plain", PLAIN, b"x")
    proxy = start(upstream)
    for options, label in (
        ({"variant": ["app=cu126"]}, "cu126"),
        ({"variant-exclude": ["nvidia"]}, "null"),
        ({"no-variants": True}, None),
        ({"variant": ["app="]}, None),
    ):
        assert label_of(proxy.files(key=key(**options))[APP]) == label, options
    assert proxy.files(key=key(variant=["app=cu999"])) == {}
    assert proxy.files("plain", key(variant=["plain=cu128"])) == {}
    assert len(proxy.files("plain", key(variant=["plain="]))) == 1


@pytest.mark.parametrize(
    ("problem", "label"), [("missing", "cu128"), ("broken", None), ("another hash", None)]
)
def test_the_metadata_file(upstream, start, problem, label):
    upstream.add_release(plain=True)
    name = "app-1.0-variants.json"
    if problem == "missing":
        del upstream.files["app"][name]
    elif problem == "broken":
        upstream.add("app", name, b"{")
    else:
        upstream.wrong_hashes.add(name)
    assert label_of(start(upstream).files()[APP]) == label


def test_a_fault_of_ours_costs_the_variants(upstream, start, monkeypatch):
    upstream.add_release(plain=True)
    monkeypatch.setattr(
        "variants_proxy._choice.choice.wheel_selection.select", lambda *_, **__: 1 / 0
    )
    proxy = start(upstream)
    assert proxy.files()[APP]["url"] == f"{upstream.root}/files/app/{APP}"
    assert proxy.get(f"{index_url(key(variant=['app=cu128']))}app/").status_code == 500


def test_list_of_projects(upstream, other, start):
    """It may be larger than pages."""
    other.add("a", "a-1.0-py3-none-any.whl", b"x")
    entries = [{"name": f"project-{number}"} for number in range(5_000)]
    tree = {"meta": {"api-version": "1.1"}, "projects": entries}
    upstream.faults["/simple/"] = Answer(200, json.dumps(tree).encode(), JSON)
    proxy = start(upstream, other, limits=Limits(page_bytes=1000))
    found = proxy.get(index_url(KEY), headers={"Accept": JSON}).json()["projects"]
    assert found[:2] == [{"name": "a"}, {"name": "project-0"}]
    assert len(found) == 5_001


class TestDirectories:
    @pytest.fixture
    def folder(self, upstream, tmp_path):
        upstream.add_release("1.0", *MARKED)
        upstream.add("other", "other-1.0.tar.gz", b"source")
        folder = tmp_path / "wheels"
        folder.mkdir()
        for files in upstream.files.values():
            for name, data in files.items():
                (folder / name).write_bytes(data)
        return folder

    def test_find_links(self, folder, start):
        proxy = start(Upstream("dir", folder.as_uri(), "find-links"), fresh_seconds=0.0)
        answer = proxy.get(proxy.files()[APP]["url"])
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.read("app/__init__.py") == b"LABEL = 'cu128'\n"
        page = proxy.get(links_url(KEY, "dir"), headers={"Accept": "text/html"}).text
        assert f'href=".variant/cu128/{CU128_HERE}' in page
        source = proxy.get(f"{links_url(KEY, 'dir')}.variant/-/other-1.0.tar.gz")
        assert source.content == b"source"
        (folder / CU128).unlink()
        (folder / "app-1.0-variants.json").unlink()
        assert label_of(proxy.files()[APP]) == "cu126"

    def test_find_links_of_a_server(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        upstream.api = "html"
        proxy = start(Upstream("links", f"{upstream.url}app/", "find-links"))
        file = proxy.files()[APP]
        data = proxy.get(file["url"]).content
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert proxy.get(f"{index_url(KEY)}other/").status_code == 404

    def test_simple(self, folder, start, tmp_path):
        root = tmp_path / "simple"
        root.mkdir()
        folder.rename(root / "app")
        proxy = start(Upstream("dir", root.as_uri()))
        assert label_of(proxy.files()[APP]) == "cu128"
        assert proxy.get(f"{index_url(KEY)}nothing/").status_code == 404
        tree = proxy.get(index_url(KEY), headers={"Accept": JSON}).json()
        assert tree["projects"] == [{"name": "app"}]


class TestUpstreams:
    def test_the_first_that_has_it_has_all_of_it(self, upstream, other, start):
        upstream.add("app", APP, b"x")
        other.add("app", "app-2.0-py3-none-any.whl", b"x")
        other.add("plain", PLAIN, b"x")
        proxy = start(upstream, other)
        assert set(proxy.files()) == {APP}
        upstream.faults["/simple/fails/"] = Answer(500)  # one that fails is not passed over
        assert proxy.get(f"{index_url(KEY)}fails/").status_code == 500
        assert other.requests == []
        assert set(proxy.files("plain")) == {PLAIN}
        answer = proxy.get(f"{index_url(KEY)}nothing/")
        assert (answer.status_code, answer.text) == (404, "no index has the project nothing\n")

    def test_explicit_ones_are_only_under_their_name(self, upstream, other, start):
        other.add("app", "app-2.0-py3-none-any.whl", b"x")
        proxy = start(upstream, Upstream("own", other.url, explicit=True))
        assert proxy.get(PAGE).status_code == 404
        assert set(proxy.files(index="own")) == {"app-2.0-py3-none-any.whl"}

    def test_settings_are_checked(self, start):
        for options in ({"name": "a/b", "url": "http://x"}, {"name": "a", "url": "ftp://x"}):
            with pytest.raises(InvalidSetting):
                Upstream(**options)
        with pytest.raises(InvalidSetting, match="two indexes"):
            start(Upstream("a", "http://x"), Upstream("a", "http://y"))
        found = read_upstreams(["own=http://a/s/", "http://a/?k=v"], [], Path())
        assert [each.url for each in found] == ["http://a/s/", "http://a/?k=v/"]

    @pytest.mark.parametrize("kind", ["basic", "url", "bearer"])
    def test_files_that_need_credentials_pass_through(self, upstream, other, start, kind, caplog):
        upstream.add_release(plain=True)
        upstream.add("app", OLD, b"old")
        upstream.attributes[OLD] = {"url": f"{other.root}/elsewhere.whl"}
        upstream.credentials = "s3cr3t" if kind == "bearer" else "me:s3cr3t"
        given = {
            "basic": Upstream("main", upstream.url, credentials=Credentials("me", "s3cr3t")),
            "url": Upstream("main", upstream.url.replace("//", "//me:s3cr3t@")),
            "bearer": Upstream("main", upstream.url, token="s3cr3t"),
        }[kind]
        with caplog.at_level(logging.DEBUG, "variants_proxy"):
            proxy = start(given)
            page = proxy.get(PAGE, headers={"Accept": JSON})
            files = proxy.files()
            wheel = proxy.get(files[APP]["url"])
        assert wheel.content == upstream.files["app"][CU128]
        for answer in (page, wheel):
            assert answer.headers["Cache-Control"].startswith("private")
        assert files[OLD]["url"] == f"{other.root}/elsewhere.whl"
        assert "s3cr3t" not in page.text + caplog.text + repr(given)
        answer = start(upstream).get(PAGE)  # without them the answer says what to do
        assert answer.status_code == 403
        assert "netrc" in answer.text


class TestPlainPages:
    @pytest.mark.parametrize("api", ["json", "html"])
    @pytest.mark.parametrize("base", ["absolute", "../.."])
    def test_lists_what_the_upstream_does(self, upstream, start, api, base):
        """With and without credentials, which clients of in-place pages send themselves."""
        data = upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.files_url, upstream.api = upstream.root if base == "absolute" else base, api
        for token in ("", "token"):
            upstream.credentials = token
            proxy = start(Upstream("main", upstream.url, token=token))
            (file,) = Asked(proxy).files("plain").values()
            # Relative links are as the index has them: the client is at its URL.
            url = urljoin(f"{upstream.url}plain/", file["url"])
            (elsewhere,) = proxy.page("plain")["files"]
            assert (url == elsewhere["url"]) is not bool(token)
            assert url == f"{upstream.root}/files/plain/{PLAIN}"
            assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
            assert b"<a href=" in proxy.get(f"{index_url(KEY)}plain/").content

    @pytest.mark.parametrize("etags", [False, True])
    def test_in_place_it_is_the_index_s_own(self, upstream, start, monkeypatch, etags):
        """Another process that knows its contents does not read them, nor any METADATA."""
        upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.core_metadata, upstream.etags = True, etags
        own = httpx.get(f"{upstream.url}plain/", headers={"Accept": JSON})
        answer = Asked(start(upstream)).get(project="plain")
        assert (answer.content, answer.headers["Content-Type"]) == (own.content, JSON)
        assert answer.headers["Cache-Control"] == "no-cache"
        tag = answer.headers["ETag"]
        assert tag == own.headers.get("ETag", tag)
        upstream.requests.clear()
        monkeypatch.setattr("variants_proxy._upstream.upstream_pages.index_pages.read_page", None)
        asked = Asked(start(upstream))
        known = {"Accept": JSON, "If-None-Match": tag}
        assert asked.get(project="plain", headers=known).status_code == 304
        assert asked.get(project="plain").content == own.content
        assert upstream.requests == ["/simple/plain/"] * 2

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
        upstream.files_url = "../.."
        body = httpx.get(f"{upstream.url}plain/", headers={"Accept": JSON}).content
        upstream.faults["/elsewhere/below/plain/"] = Answer(200, body, JSON)
        upstream.faults["/simple/plain/"] = Answer.redirect("/elsewhere/below/plain/")
        file = Asked(start(upstream)).files("plain")[PLAIN]
        assert file["url"] == f"{upstream.root}/elsewhere/files/plain/{PLAIN}"


def test_in_place(upstream, start):
    """A variant is beside the page of its index."""
    upstream.add_release()
    upstream.add("app", "app-1.0.tar.gz", b"source")
    asked = Asked(start(upstream))
    files = asked.files()
    assert set(files) == {CU128_HERE, "app-1.0.tar.gz"}
    digest = hashlib.sha256(upstream.files["app"][CU128]).hexdigest()
    assert files[CU128_HERE]["url"] == f".variant/cu128/{CU128_HERE}"
    assert files[CU128_HERE]["hashes"] == {"sha256": digest}
    assert files["app-1.0.tar.gz"]["url"] == f"{upstream.root}/files/app/app-1.0.tar.gz"
    assert asked.get(project="nothing").status_code == 404
    assert asked.get(project="").status_code == 404


class TestKeyed:
    """The index with one URL for all machines: the platform key is the user name."""

    @pytest.fixture
    def asked(self, upstream, other, start):
        """Ask for a path as a user, of a proxy for both upstreams."""
        upstream.add_release("1.0", labels=("cu128", "null"))
        other.add_release("2.0")
        proxy = start(upstream, other)

        def asked(user, path="/simple/app/", agent="pip/26.0"):
            headers, auth = {"Accept": JSON, "User-Agent": agent}, (user, "v") if user else None
            return proxy.get(path, headers=headers, auth=auth, follow_redirects=True)

        return asked

    def entries(self, answer):
        return {file["filename"]: file for file in answer.json()["files"]}

    def test_each_machine_gets_its_own(self, asked):
        for _ in range(2):  # from memory as well
            gpu, bare = asked(KEY), asked(BARE)
            assert [*self.entries(gpu)] == [CU128_HERE]
            assert [*self.entries(bare)] == ["app-1.0-0_null-py3-none-any.whl"]
        assert KEY not in gpu.text
        assert "/p/" not in gpu.text
        assert {"name": "app"} in asked(KEY, "/simple/").json()["projects"]

    def test_plain_wheels_for_hashes(self, upstream, asked):
        """K1: pip takes them where a requirement has their hash alone; uv would lock them."""
        data = upstream.add("app", APP, wheel(APP))
        files = self.entries(asked(KEY))
        assert files.keys() == {APP, CU128_HERE}
        assert files[APP]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        for agent in ("uv/0.9.0", "poetry/2.0", "pdm/2.29"):
            assert self.entries(asked(KEY, agent=agent)).keys() == {CU128_HERE}
        assert self.entries(asked(key(variant=["app=cu128"]))).keys() == {CU128_HERE}

    @pytest.mark.parametrize("root", ["/simple/", "/i/index1/simple/"])
    def test_files_of_another_machine(self, asked, root):
        """A lock of one machine is installed on another."""
        ((name, file),) = self.entries(asked(KEY, f"{root}app/")).items()
        assert name.startswith("app-2.0" if "index1" in root else "app-1.0")
        for user in (KEY, BARE):
            path = f"{root}app/{file['url']}"
            assert asked(user, path).content[:2] == b"PK"
            assert b"Name: app" in asked(user, f"{path}.metadata").content

    @pytest.mark.parametrize("user", ["", "2~nonsense", "h100", "c~" + "0" * 32])
    def test_wrong_and_missing_keys(self, asked, user):
        answer = asked(user)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert answer.headers["cache-control"] == "no-store"
        assert "variants-proxy url --keyed" in answer.text
        assert "content-security-policy" in answer.headers

    def test_urls(self, upstream, start):
        upstream.add("my-app", "my_app-1.0-py3-none-any.whl", b"x")
        client = start(upstream).client
        for path, status, target in (
            ("/simple", 307, "simple/"), ("/simple/app", 307, "app/"),
            ("/i/main/simple", 307, "simple/"), ("/simple/My_App/", 301, "../my-app/"),
        ):  # fmt: skip
            answer = client.get(path, auth=(KEY, "v"))
            assert answer.status_code == status
            assert answer.headers["location"].endswith(target)
        for text in ("https://a.example", "https://a.example/#", " https://a.example/?x#y "):
            assert proxy_base(text) == "https://a.example"
        url = httpx.URL(keyed_url("https://a.example:1/x/", "2~a_-", "t/k", "own"))
        assert (url.username, url.password) == ("2~a_-", "t/k")
        assert str(url.copy_with(userinfo=b"")) == "https://a.example:1/x/i/own/simple/"


class TestMachines:
    def test_a_platform_file_by_its_name(self, upstream, start, tmp_path):
        """In-place URLs always mean the same: a file that changes is another client."""
        upstream.add_release()
        path = tmp_path / "gpu.toml"
        path.write_text(write_platform(NVIDIA, "a test"))
        proxy = start(upstream, platforms={"gpu": path})
        before = Asked(proxy, "gpu")
        assert label_of(proxy.files(key="gpu")[APP]) == "cu128"
        path.write_text(write_platform(type(NVIDIA)({}), "a test of another length"))
        described = encode(Machine(name="gpu", target=host_target()))
        assert label_of(proxy.files(key=described)[APP]) == "null"
        after = Asked(proxy, "gpu")
        assert before.key != after.key
        assert before.labels() == {"py3-none-any": "cu128"}
        assert after.labels() == {"py3-none-any": "null"}
        path.write_text(f"{write_platform(NVIDIA, 'a test')}# another size and time")
        assert Asked(proxy, "gpu").key == before.key

    def test_known_machines_facts_and_names_of_the_proxy(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream, platforms={"gpu": "cuda=12.8,sm=9.0", "zen4": "cpu-zen4"})
        for name, label in {
            "h100-zen4": "cu128",
            "cuda=12.8,sm=8.6+9.0,cpu=zen4": "cu128",
            "cpu-zen4,cuda=12.8,sm=9.0": "cu128",
            "cuda=11.8,sm=9.0": "null",
            "gpu": "cu128",
            "zen4": "null",
        }.items():
            described = encode(Machine(name=name, target=host_target()))
            for each in (name, described):
                assert label_of(proxy.files(key=each)[APP]) == label, each
            assert proxy.get("/simple/app/", auth=(name, "v")).status_code == 200
        text = proxy.get("/").text
        assert "gpu — cuda=12.8,sm=9.0" in text
        assert "zen4 — AMD Zen 4 CPU" in text

    def test_no_machine(self, upstream, start, tmp_path, monkeypatch):
        """Files of the proxy's own machine are never read for a client."""
        monkeypatch.chdir(tmp_path)
        for name in ("local", "local.toml"):
            (tmp_path / name).write_text(write_platform(NVIDIA, "a test"))
        proxy = start(upstream, platforms={"gpu": tmp_path})
        for name, words in {
            "h100-zen5": "did you mean h100-zen4",
            "tpu": "did you mean gpu",
            "cuda=9.0": "cuda=9.0 is outside 11.0 to 15.20",
            "gpu=9.0": "'gpu' is not known; there are cuda",
            "local.toml": "unknown platform 'local.toml'",
            "local": "unknown platform 'local'",
            "..%2Flocal.toml": "Not Found",
            "x" * 300 + "=1": "is not a valid platform key",
        }.items():
            answer = proxy.get(f"/p/{name}/simple/app/")
            assert answer.status_code == 404
            assert words in answer.text, name

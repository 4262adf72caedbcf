"""The proxy over real HTTP, upstreams well-behaved and otherwise."""

import hashlib
import io
import itertools
import json
import logging
import random
import socket
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from upstream_server import JSON, bomb, document, metadata_of, wheel
from worlds import APP, BARE, CU128, CU128_HERE, KEY, MARKED, NVIDIA, key, label_of

from pep_variants.formats.platform_file import write_platform
from variants_index.http.credentials import Credentials
from variants_proxy import Limits, Machine, Upstream, encode, host_target, index_url, links_url
from variants_proxy.errors import InvalidSetting

PLAIN = "plain-1.0-py3-none-any.whl"
PAGE = f"{index_url(KEY)}app/"


class TestPages:
    @pytest.mark.parametrize("beside", [False, True])
    def test_a_variant(self, upstream, start, beside):
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
        assert answer.headers["Location"] == f"{upstream.url}/files/app/{CU128}"

    @pytest.mark.parametrize("html", [False, True])
    def test_a_page_without_variants_has_what_the_upstream_lists(self, upstream, start, html):
        upstream.add("plain", PLAIN, b"x")
        upstream.base, upstream.html = "../..", html
        proxy = start(upstream)
        (file,) = proxy.page("plain")["files"]
        assert file["url"] == f"{upstream.url}/files/plain/{PLAIN}"
        assert file["hashes"] == {"sha256": hashlib.sha256(b"x").hexdigest()}
        assert b"<a href=" in proxy.get(f"{index_url(KEY)}plain/").content

    def test_preferences_are_in_the_key(self, upstream, start):
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
    def test_the_metadata_file(self, upstream, start, problem, label):
        upstream.add_release(plain=True)
        name = "app-1.0-variants.json"
        if problem == "missing":
            del upstream.files["app"][name]
        elif problem == "broken":
            upstream.add("app", name, b"{")
        else:
            upstream.lies.add(name)
        assert label_of(start(upstream).files()[APP]) == label

    def test_names_are_normalized(self, upstream, start):
        upstream.add("my-app", "my_app-1.0-py3-none-any.whl", b"x")
        answer = start(upstream).get(f"{index_url(KEY)}My_App/")
        assert (answer.status_code, answer.headers["Location"]) == (301, "../my-app/")

    def test_list_of_projects(self, upstream, other, start):
        """It may be larger than pages."""
        other.add("a", "a-1.0-py3-none-any.whl", b"x")
        entries = [{"name": f"project-{number}"} for number in range(5_000)]
        tree = {"meta": {"api-version": "1.1"}, "projects": entries}
        upstream.faults["/simple/"] = (200, {"Content-Type": JSON}, json.dumps(tree).encode())
        proxy = start(upstream, other, limits=Limits(page_bytes=1000))
        found = proxy.get(index_url(KEY), headers={"Accept": JSON}).json()["projects"]
        assert found[:2] == [{"name": "a"}, {"name": "project-0"}]
        assert len(found) == 5_001

    def test_a_fault_of_ours_costs_the_variants(self, upstream, start, monkeypatch):
        upstream.add_release(plain=True)
        monkeypatch.setattr("variants_proxy.choice.choice.select", lambda *_, **__: 1 / 0)
        proxy = start(upstream)
        assert proxy.files()[APP]["url"] == f"{upstream.url}/files/app/{APP}"
        assert proxy.get(f"{index_url(key(variant=['app=cu128']))}app/").status_code == 500


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
            assert archive.read("app.py") == b"LABEL = 'cu128'\n"
        page = proxy.get(links_url(KEY, "dir"), headers={"Accept": "text/html"}).text
        assert f'href=".variant/cu128/{CU128_HERE}' in page
        source = proxy.get(f"{links_url(KEY, 'dir')}.variant/-/other-1.0.tar.gz")
        assert source.content == b"source"
        (folder / CU128).unlink()
        (folder / "app-1.0-variants.json").unlink()
        assert label_of(proxy.files()[APP]) == "cu126"

    def test_find_links_of_a_server(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        upstream.html = True
        proxy = start(Upstream("links", f"{upstream.url}/simple/app/", "find-links"))
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
        upstream.faults["/simple/fails/"] = (500, {}, b"")  # one that fails is not passed over
        assert proxy.get(f"{index_url(KEY)}fails/").status_code == 500
        assert other.paths == []
        assert set(proxy.files("plain")) == {PLAIN}
        answer = proxy.get(f"{index_url(KEY)}nothing/")
        assert (answer.status_code, answer.text) == (404, "no index has the project nothing\n")

    def test_explicit_ones_are_only_under_their_name(self, upstream, other, start):
        other.add("app", "app-2.0-py3-none-any.whl", b"x")
        proxy = start(upstream, Upstream("own", other.simple, explicit=True))
        assert proxy.get(PAGE).status_code == 404
        assert set(proxy.files(index="own")) == {"app-2.0-py3-none-any.whl"}

    def test_settings_are_checked(self, start):
        for options in ({"name": "a/b", "url": "http://x"}, {"name": "a", "url": "ftp://x"}):
            with pytest.raises(InvalidSetting):
                Upstream(**options)
        with pytest.raises(InvalidSetting, match="two indexes"):
            start(Upstream("a", "http://x"), Upstream("a", "http://y"))

    @pytest.mark.parametrize("kind", ["basic", "url", "bearer"])
    def test_files_that_need_credentials_pass_through(self, upstream, other, start, kind, caplog):
        upstream.add_release(plain=True)
        upstream.add("app", "app-0.9-py3-none-any.whl", b"old")
        upstream.attributes["app-0.9-py3-none-any.whl"] = {"url": f"{other.url}/elsewhere.whl"}
        upstream.credentials = "Bearer s3cr3t" if kind == "bearer" else "Basic bWU6czNjcjN0"
        given = {
            "basic": Upstream("main", upstream.simple, credentials=Credentials("me", "s3cr3t")),
            "url": Upstream("main", upstream.simple.replace("//", "//me:s3cr3t@")),
            "bearer": Upstream("main", upstream.simple, token="s3cr3t"),
        }[kind]
        with caplog.at_level(logging.DEBUG, "variants_proxy"):
            proxy = start(given)
            page = proxy.get(PAGE, headers={"Accept": JSON})
            files = proxy.files()
            wheel = proxy.get(files[APP]["url"])
        assert wheel.content == upstream.files["app"][CU128]
        for answer in (page, wheel):
            assert answer.headers["Cache-Control"].startswith("private")
        assert files["app-0.9-py3-none-any.whl"]["url"] == f"{other.url}/elsewhere.whl"
        assert "s3cr3t" not in page.text + caplog.text + repr(given)
        answer = start(upstream).get(PAGE)  # without them the answer says what to do
        assert answer.status_code == 403
        assert "netrc" in answer.text


class TestMarkers:
    @pytest.fixture
    def marked(self, upstream):
        upstream.core_metadata = True
        upstream.add_release("1.0", *MARKED)
        return upstream

    @pytest.mark.parametrize("beside", [True, False])
    def test_the_wheel_is_what_the_page_says(self, marked, start, beside):
        marked.core_metadata = beside
        proxy = start(marked)
        file = proxy.files()[APP]
        answer = proxy.get(file["url"])
        data = answer.content
        assert answer.status_code == 200
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert file["size"] == len(data) == int(answer.headers["Content-Length"])
        metadata = proxy.get(f"{file['url']}.metadata").content
        assert file["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
        assert metadata == metadata_of(data)
        assert b"Requires-Dist: a\n" in metadata
        assert b"variant_" not in metadata.split(b"\n\n")[0]
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None
            assert "app-1.0.dist-info/variant.json" in archive.namelist()
        # Parts cannot be verified: it is sent whole.
        part = proxy.get(file["url"], headers={"Range": "bytes=0-9"})
        assert (part.status_code, part.content) == (200, data)
        known = {"If-None-Match": answer.headers["ETag"]}
        assert proxy.get(file["url"], headers=known).status_code == 304
        head = proxy.client.head(file["url"])
        assert (head.headers["Content-Length"], head.content) == (str(len(data)), b"")

    @pytest.mark.parametrize("absolute", [False, True])
    def test_versions_without_variants(self, upstream, start, absolute):
        upstream.core_metadata = True
        upstream.base = upstream.url if absolute else ""
        for version, requires in (("1.0", ()), ("2.0", MARKED), ("2.1", MARKED), ("3.0", MARKED)):
            name = f"app-{version}-py3-none-any.whl"
            upstream.add("app", name, wheel(name, *requires))
        proxy = start(upstream, limits=Limits(hashed_versions=3))
        files = proxy.files()
        data = upstream.files["app"][APP]
        assert files[APP]["url"] == f"{upstream.url}/files/app/{APP}"
        assert files[APP]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        for version in ("2.0", "2.1", "3.0"):
            file = files[f"app-{version}-py3-none-any.whl"]
            answer = proxy.get(file["url"])
            assert file["hashes"] == {"sha256": hashlib.sha256(answer.content).hexdigest()}
            metadata = proxy.get(f"{file['url']}.metadata").content
            assert metadata == metadata_of(answer.content)
            assert metadata.split(b"\n\n")[0].endswith(b"Requires-Dist: b")

    def test_it_takes_one_look_to_see_that_there_are_none(self, upstream, start):
        upstream.core_metadata, upstream.base = True, upstream.url
        for version in ("1.0", "10.0", "9.0"):
            name = f"app-{version}-py3-none-any.whl"
            upstream.add("app", name, wheel(name, "b"))
        start(upstream).files()
        page, look = upstream.paths
        assert look == "/files/app/app-10.0-py3-none-any.whl.metadata"
        start(upstream).files()  # the look is remembered, the page is asked for again
        assert upstream.paths[2:] == [page]

    @pytest.mark.parametrize("beside", [False, True])
    def test_metadata_that_is_not_cheap_or_not_there_changes_nothing(self, upstream, start, beside):
        upstream.core_metadata, upstream.base = beside, upstream.url
        upstream.add("app", APP, wheel(APP, *MARKED))
        upstream.faults[f"/files/app/{APP}.metadata"] = 403, {}, b""
        (file,) = start(upstream).page()["files"]
        assert file["url"] == f"{upstream.url}/files/app/{APP}"
        assert len(upstream.paths) == 1 + beside

    def test_versions_without_variants_beside_others(self, upstream, start):
        upstream.add_release("1.0")
        name = "app-2.0-py3-none-any.whl"
        upstream.add("app", name, wheel(name, *MARKED))
        proxy = start(upstream)
        data = proxy.get(proxy.files()[name]["url"]).content
        assert b"variant_" not in metadata_of(data).split(b"\n\n")[0]
        # Neither is where variants are switched off.
        plain = proxy.files(key=key(variant=["app="]))[name]
        assert proxy.get(plain["url"]).content == data

    def test_a_large_wheel_has_its_hash_when_it_has_passed(self, marked, start):
        proxy = start(marked, limits=Limits(hashed_bytes=10), fresh_seconds=0.0)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        data = proxy.get(file["url"]).content
        assert proxy.files()[APP]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    def test_one_that_is_not_what_was_promised_never_arrives(self, marked, start):
        proxy = start(marked, limits=Limits(hashed_bytes=10))
        url = proxy.files()[APP]["url"]
        changed = bytearray(marked.files["app"][CU128])
        changed[40] ^= 1
        marked.files["app"][CU128] = bytes(changed)
        with pytest.raises(httpx.RemoteProtocolError):
            proxy.get(url)
        marked.add("app", CU128, wheel(CU128, "c"))  # with other METADATA than beside it
        answer = proxy.get(url)
        assert answer.status_code == 409
        assert "its METADATA differs from" in answer.text

    @pytest.mark.parametrize("limits", [Limits(inspected=0), Limits(hashed=0)])
    def test_what_is_beyond_the_limits_has_no_hash(self, marked, start, limits):
        proxy = start(marked, limits=limits)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        assert b"Requires-Dist: a\n" in metadata_of(proxy.get(file["url"]).content)

    def test_one_that_cannot_be_looked_into(self, upstream, start):
        upstream.add_release()
        upstream.add("app", CU128, b"no archive")
        proxy = start(upstream)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        answer = proxy.get(file["url"])
        assert answer.status_code == 502
        assert "not a usable zip archive" in answer.text
        assert proxy.get(f"{file['url']}.metadata").status_code == 502

    def test_the_upstream_is_let_go_when_the_client_goes(self, marked, start):
        payload = random.Random(0).randbytes(40 * 2**20)
        data = wheel(CU128, *MARKED, variants=document("12.6", "12.8", "13.0"), payload=payload,
                     compression=zipfile.ZIP_STORED)  # fmt: skip
        marked.add("app", CU128, data)
        proxy, answer, sent, ended = start(marked), marked.answer, [], threading.Event()
        path = proxy.files()[APP]["url"].removeprefix(proxy.url)

        def parts():
            try:
                for place in range(0, len(data), 2**16):
                    yield data[place : place + 2**16]
                    sent.append(place)
            finally:
                ended.set()

        def counted(asked, headers):
            is_whole = asked == f"/files/app/{CU128}" and "Range" not in headers
            return (200, {}, parts()) if is_whole else answer(asked, headers)

        marked.answer = counted
        with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            client.recv(1000)
        assert ended.wait(20)
        assert sent[-1] < len(data) / 2

    def test_the_plain_wheel_of_such_a_version(self, marked, start):
        marked.add("app", APP, wheel(APP, *MARKED))
        file = (proxy := start(marked)).files(key=key(variant=["app="]))[APP]
        assert file["url"].split("/")[-2] == "-"
        assert b"Requires-Dist: b\n" in metadata_of(proxy.get(file["url"]).content)
        del marked.files["app"]["app-1.0-py3-none-any-null.whl"]
        proxy = start(marked, cache=proxy.settings.cache / "2")
        file = proxy.files(key=BARE)[APP]  # where no variant fits
        assert file["url"].split("/")[-2] == "-"
        assert b"Requires-Dist: b\n" in metadata_of(proxy.get(file["url"]).content)
        # A variant that a lock file has is there for every machine.
        pinned = ".variant/cu130/app-1.0-0_cu130-py3-none-any.whl"
        assert proxy.get(f"{index_url(BARE)}app/{pinned}").status_code == 200


class TestCaching:
    def test_one_request_for_many(self, upstream, start):
        upstream.add_release()
        upstream.delay = 0.1
        proxy = start(upstream)
        with ThreadPoolExecutor(8) as pool:
            pages = list(pool.map(lambda _: json.dumps(proxy.page()), range(8)))
        assert len(set(pages)) == 1
        assert upstream.paths.count("/simple/app/") == 1

    @pytest.mark.parametrize("plain", [False, True])
    def test_a_new_process_asks_whether_a_page_has_changed(self, upstream, start, plain):
        upstream.etags = True
        upstream.add_release(labels=() if plain else ("null", "cu128"), plain=plain)
        names = [file["filename"] for file in start(upstream).page()["files"]]
        asked = len(upstream.requests)
        assert [file["filename"] for file in start(upstream).page()["files"]] == names
        (headers,) = (h for path, h in upstream.requests[asked:] if path == "/simple/app/")
        assert "If-None-Match" in headers
        upstream.add_release("2.0")
        assert len(start(upstream).page()["files"]) > len(names)

    def test_a_page_that_moved_is_asked_for_again(self, upstream, other, start):
        """Links of a page are relative to where it is, although its tag is the same."""
        upstream.etags = other.etags = True
        for server in (upstream, other):
            server.add_release()
        proxy = start(upstream, fresh_seconds=0.0)
        proxy.page()
        upstream.faults["/simple/app/"] = (302, {"Location": f"{other.simple}app/"}, b"")
        proxy.page()
        asked = [headers for path, headers in other.requests if path == "/simple/app/"]
        assert ["If-None-Match" in headers for headers in asked] == [True, False]

    @pytest.mark.parametrize("begin", [(), ("1.0",)])
    @pytest.mark.parametrize("path", [index_url(KEY), index_url(KEY, "main")])
    def test_what_was_published_a_moment_ago(self, upstream, start, begin, path):
        """The upstream is asked again whenever a client asks, whatever it said before."""
        upstream.etags = True
        upstream.cache_control = "max-age=600"
        for version in begin:
            upstream.add_release(version)
        proxy = start(upstream)
        assert proxy.get(f"{path}app/").status_code == (200 if begin else 404)
        upstream.add_release("2.0")
        assert "app-2.0-" in proxy.get(f"{path}app/").text
        asked = len(upstream.requests)
        assert "app-2.0-" in proxy.get(f"{path}app/").text
        (headers,) = (h for asked_for, h in upstream.requests[asked:] if "simple" in asked_for)
        assert "If-None-Match" in headers

    def test_two_proxies_beside_each_other_answer_the_same(self, upstream, start):
        """The second one reads no file; files are found without asking for the page again."""
        upstream.add_release("1.0", *MARKED)
        upstream.core_metadata = True
        proxy = start(upstream)
        first = proxy.get(PAGE, headers={"Accept": JSON})
        asked = len(upstream.paths)
        assert proxy.get(proxy.url + PAGE + f".variant/cu128/{CU128_HERE}").status_code == 200
        assert "/simple/app/" not in upstream.paths[asked:]
        asked = len(upstream.paths)
        second = start(upstream).get(PAGE, headers={"Accept": JSON})
        assert not [path for path in upstream.paths[asked:] if "/files/" in path]
        assert first.content == second.content
        tag = second.headers["ETag"]
        assert first.headers["ETag"] == tag
        known = {"Accept": JSON, "If-None-Match": tag}
        assert proxy.get(PAGE, headers=known).status_code == 304


class TestMachines:
    def test_a_platform_file_by_its_name(self, upstream, start, tmp_path):
        upstream.add_release()
        path = tmp_path / "gpu.toml"
        path.write_text(write_platform(NVIDIA, "a test"))
        proxy = start(upstream, platforms={"gpu": path})
        assert label_of(proxy.files(key="gpu")[APP]) == "cu128"
        path.write_text(write_platform(type(NVIDIA)({}), "a test of another length"))
        described = encode(Machine(name="gpu", target=host_target()))
        assert label_of(proxy.files(key=described)[APP]) == "null"

    def test_known_machines_facts_and_names_of_the_proxy(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream, platforms={"gpu": "cuda=12.8,sm=9.0", "zen4": "cpu-zen4"})
        for name, label in {
            "h100-zen4": "cu128",
            "cpu-zen4": "null",
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


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "status"),
        [
            pytest.param((200, {"Content-Type": JSON}, b"{"), 502, id="no json"),
            pytest.param((200, {"Content-Type": JSON, "Content-Length": "9"}, b"{"), 502, id="cut"),
            pytest.param((200, {"Content-Type": JSON}, itertools.repeat(b" " * 65536)), 502,
                         id="endless"),
            pytest.param((200, {"Content-Type": JSON, "Content-Encoding": "gzip"}, bomb(1 << 26)),
                         502, id="bomb"),
            pytest.param((302, {"Location": "/simple/app/"}, b""), 502, id="loop"),
            pytest.param((302, {"Location": "file:///etc/passwd"}, b""), 502, id="file"),
            *[pytest.param((given, {}, b""), status, id=str(given)) for given, status in (
                (500, 500), (429, 429), (451, 451), (401, 403), (404, 404), (410, 404))],
        ],
    )  # fmt: skip
    def test_pages(self, upstream, start, fault, status):
        upstream.faults["/simple/app/"] = fault
        proxy = start(upstream, limits=Limits(page_bytes=2**20))
        assert proxy.get(PAGE).status_code == status
        assert proxy.get("/health").json() == {"status": "ok", "upstreams": 1}

    def test_an_upstream_that_is_not_there(self, start):
        # Taken, so that no other process gets it, but without a listener.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            answer = start(Upstream("main", f"http://127.0.0.1:{port}/simple/")).get(PAGE)
        assert answer.status_code == 502
        assert str(port) in answer.text

    def test_paths_that_lead_nowhere(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        for path in (
            "//", "/p/", "/p/../simple/app/", "/p/2~AAAA/simple/app/", "KEY/i/no/simple/app/",
            "KEY/simple/../../etc/passwd/", "KEY/simple/..%2f..%2fetc/", "KEY/simple/%00/",
            "KEY/simple/a%20b/", "KEY/simple/app/.variant/-/..%2f..%2fetc%2fpasswd",
            f"KEY/simple/../app/.variant/x/{CU128_HERE}",
            f"KEY/i/no/simple/app/.variant/cu128/{CU128_HERE}",
            "KEY/simple/app/.variant/cu128/x.whl", f"KEY/simple/app/.variant/cu999/{CU128_HERE}",
            "KEY/simple/app/.variant/~/nothing.whl",
        ):  # fmt: skip
            path = path.replace("KEY", f"/p/{KEY}")
            answer = raw(proxy, f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 404"), (path, answer)

    def test_only_its_own_names_are_answered(self, upstream, start):
        proxy = start(upstream, hosts=("proxy.example",))
        for host, status in (
            ("127.0.0.1", 200), ("localhost:1", 200), ("[::1]:80", 200), ("PROXY.example", 200),
            ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421), ("[::1", 421),
            ("localhost:1@evil.example", 421), ("evil.example@localhost", 421),  # T6
        ):  # fmt: skip
            assert proxy.get("/health", headers={"Host": host}).status_code == status, host
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            assert proxy.client.request(method, "/health").status_code == 405

    @pytest.mark.parametrize(
        "head",
        [
            "Content-Length: 44\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Content-Length: +3\r\n",
        ],
    )
    def test_no_request_hides_in_another(self, upstream, start, head):
        hidden = "0\r\n\r\nGET /p/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        request = f"GET /health HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{hidden}"
        answer = raw(start(upstream), request)
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


def raw(proxy, request):
    """Return what the proxy answers to a request until it closes the connection."""
    with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as connection:
        connection.settimeout(5)
        connection.sendall(request.encode())
        return connection.makefile("rb").read()


def test_what_has_begun_is_finished_when_the_proxy_is_told_to_stop(upstream, start):
    upstream.add_release("1.0", *MARKED)
    proxy = start(upstream)
    file = proxy.files()[APP]
    data, answer = upstream.files["app"][CU128], upstream.answer

    def slowly():
        for place in range(0, len(data), 200):
            time.sleep(0.05)
            yield data[place : place + 200]

    def whole_ones_are_slow(asked, headers):
        is_whole = asked == f"/files/app/{CU128}" and "Range" not in headers
        return (200, {}, slowly()) if is_whole else answer(asked, headers)

    upstream.answer = whole_ones_are_slow
    with proxy.client.stream("GET", file["url"]) as response:
        proxy.server.should_exit = True
        found = b"".join(response.iter_bytes())
    assert hashlib.sha256(found).hexdigest() == file["hashes"]["sha256"]

"""The proxy over real HTTP, upstreams well-behaved and otherwise."""

import hashlib
import io
import itertools
import json
import logging
import random
import socket
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from machines import NVIDIA
from upstream_server import JSON, bomb, document, metadata_of, wheel

from pep_variants.choose.preferences import preferences_from_options
from pep_variants.formats.platform_file import write_platform
from variants_index.http.credentials import Credentials
from variants_proxy import Limits, Machine, Upstream, encode, host_target, index_url, links_url
from variants_proxy.errors import InvalidSetting

KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
APP = "app-1.0-py3-none-any.whl"
CU128 = "app-1.0-py3-none-any-cu128.whl"
HERE = "app-1.0-0_cu128-py3-none-any.whl"
MARKED = ("a; 'nvidia' in variant_namespaces", "b; variant_label == ''")


def key(**options):
    return encode(
        Machine(NVIDIA, target="linux-x86_64", preferences=preferences_from_options(options))
    )


class TestPages:
    def test_the_best_variant_in_place_of_the_plain_name(self, upstream, start):
        upstream.add_release()
        upstream.add("app", "app-1.0.tar.gz", b"source")
        files = start(upstream).files()
        assert set(files) == {APP, "app-1.0.tar.gz"}
        assert files[APP]["filename"] == HERE
        assert files[APP]["url"].endswith(f"/simple/app/.variant/cu128/{HERE}")
        data = upstream.files["app"][CU128]
        assert files[APP]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert files[APP]["size"] == len(data)

    def test_a_file_without_variants_is_where_it_was(self, upstream, start):
        upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
        (file,) = start(upstream).page("plain")["files"]
        assert file["url"] == f"{upstream.url}/files/plain/plain-1.0-py3-none-any.whl"

    @pytest.mark.parametrize("html", [False, True])
    def test_a_page_without_variants_has_what_the_upstream_lists(self, upstream, start, html):
        upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
        upstream.base, upstream.html = "../..", html
        url = f"{index_url(KEY)}plain/"
        proxy = start(upstream)
        (file,) = proxy.page("plain")["files"]
        assert file["url"] == f"{upstream.url}/files/plain/plain-1.0-py3-none-any.whl"
        assert file["hashes"] == {"sha256": hashlib.sha256(b"x").hexdigest()}
        assert b"<a href=" in proxy.get(url).content

    def test_nobody_is_sent_to_where_credentials_are_wanted(self, upstream, start):
        upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
        upstream.base, upstream.credentials = upstream.url, "Bearer token"
        proxy = start(Upstream("main", upstream.simple, token="token"))
        (file,) = proxy.page("plain")["files"]
        assert file["url"].startswith(proxy.url)

    def test_a_variant_that_was_asked_for_is_nowhere(self, upstream, start):
        upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
        upstream.base = upstream.url
        proxy = start(upstream)
        assert proxy.page("plain", key(variant=["plain=cu128"]))["files"] == []
        assert len(proxy.page("plain", key(variant=["plain="]))["files"]) == 1

    def test_the_file_is_behind_a_redirect(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        answer = proxy.get(proxy.files()[APP]["url"])
        assert answer.status_code == 307
        assert answer.headers["Location"] == f"{upstream.url}/files/app/{CU128}"

    @pytest.mark.parametrize("beside", [False, True])
    def test_its_metadata_is_there_whether_the_upstream_has_it_or_not(
        self, upstream, start, beside
    ):
        upstream.add_release()
        upstream.core_metadata = beside
        proxy = start(upstream)
        file = proxy.files()[APP]
        answer = proxy.get(f"{file['url']}.metadata", follow_redirects=True)
        assert answer.content == metadata_of(upstream.files["app"][CU128])
        assert file["core-metadata"] == {"sha256": hashlib.sha256(answer.content).hexdigest()}

    def test_its_metadata_is_one_request(self, upstream, start):
        """As without the proxy, which has read it for the page."""
        upstream.add_release()
        upstream.core_metadata = True
        proxy = start(upstream)
        file = proxy.files()[APP]
        before = len(upstream.requests)
        answer = proxy.get(f"{file['url']}.metadata")
        assert answer.status_code == 200
        assert answer.content == metadata_of(upstream.files["app"][CU128])
        assert len(upstream.requests) == before

    def test_attributes_are_kept(self, upstream, start):
        upstream.add_release()
        for filename in upstream.files["app"]:
            upstream.attributes[filename] = {"yanked": "broken"}
        upstream.attributes[CU128] = {
            "yanked": "broken", "requires-python": ">=3.10", "upload-time": "2026-01-01T00:00:00Z",
            "provenance": "https://files.example/provenance",
        }  # fmt: skip
        file = start(upstream).files()[APP]
        assert upstream.attributes[CU128].items() <= file.items()

    def test_html(self, upstream, start):
        upstream.add_release()
        upstream.html = True
        proxy = start(upstream)
        answer = proxy.get(f"{index_url(KEY)}app/", headers={"Accept": "text/html"})
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        digest = hashlib.sha256(upstream.files["app"][CU128]).hexdigest()
        assert f'href=".variant/cu128/{HERE}#sha256={digest}"' in answer.text

    @pytest.mark.parametrize(
        ("options", "label"),
        [
            ({"variant": ["app=cu126"]}, "cu126"),
            ({"variant-exclude": ["nvidia"]}, "null"),
            ({"no-variants": True}, None),
            ({"variant": ["app="]}, None),
        ],
    )
    def test_wishes_are_in_the_key(self, upstream, start, options, label):
        upstream.add_release(plain=True)
        url = start(upstream).files(key=key(**options))[APP]["url"]
        plain = f"{upstream.url}/files/app/{APP}"
        assert url == plain if label is None else url.split("/")[-2] == label

    def test_a_forced_variant_that_is_not_there(self, upstream, start):
        upstream.add_release(plain=True)
        upstream.add("app", "app-2.0.tar.gz", b"source")
        assert start(upstream).files(key=key(variant=["app=cu999"])) == {}

    def test_variants_without_a_metadata_file_are_looked_into(self, upstream, start):
        upstream.add_release()
        del upstream.files["app"]["app-1.0-variants.json"]
        assert start(upstream).files()[APP]["url"].split("/")[-2] == "cu128"

    @pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'{"variants": 3}'])
    def test_broken_metadata_costs_the_variants(self, upstream, start, body):
        upstream.add_release(plain=True)
        upstream.add("app", "app-1.0-variants.json", body)
        proxy = start(upstream)
        assert proxy.files()[APP]["url"] == f"{upstream.url}/files/app/{APP}"

    def test_metadata_with_another_hash_costs_the_variants(self, upstream, start):
        upstream.add_release(plain=True)
        upstream.lies.add("app-1.0-variants.json")
        assert start(upstream).files()[APP]["url"] == f"{upstream.url}/files/app/{APP}"

    def test_names_are_normalized(self, upstream, start):
        upstream.add("my-app", "my_app-1.0-py3-none-any.whl", b"x")
        answer = start(upstream).get(f"{index_url(KEY)}My_App/")
        assert (answer.status_code, answer.headers["Location"]) == (301, "../my-app/")

    def test_list_of_projects(self, upstream, other, start):
        upstream.add("b", "b-1.0-py3-none-any.whl", b"x")
        other.add("a", "a-1.0-py3-none-any.whl", b"x")
        proxy = start(upstream, other)
        tree = proxy.get(index_url(KEY), headers={"Accept": JSON}).json()
        assert tree["projects"] == [{"name": "a"}, {"name": "b"}]

    def test_a_list_of_projects_may_be_larger_than_their_pages(self, upstream, start):
        upstream.add("b", "b-1.0-py3-none-any.whl", b"x")
        entries = [{"name": f"project-{number}"} for number in range(5_000)]
        tree = {"meta": {"api-version": "1.1"}, "projects": entries}
        upstream.faults["/simple/"] = (200, {"Content-Type": JSON}, json.dumps(tree).encode())
        proxy = start(upstream, limits=Limits(page_bytes=1000))
        answer = proxy.get(index_url(KEY), headers={"Accept": JSON})
        assert len(answer.json()["projects"]) == 5_000
        assert list(proxy.files("b")) == ["b-1.0-py3-none-any.whl"]

    def test_what_the_upstream_says_of_the_project(self, upstream, start):
        """A page of version 1.0 stays one."""
        upstream.add_release()
        entries = [
            {"filename": name, "url": f"{upstream.url}/files/app/{name}", "hashes": {}}
            for name in upstream.files["app"]
        ]
        tree = {"meta": {"api-version": "1.0"}, "files": entries}
        page = (200, {"Content-Type": JSON}, json.dumps(tree).encode())
        upstream.faults["/simple/app/"] = page
        found = start(upstream).page()
        assert found["meta"] == {"api-version": "1.0"}
        assert [file["filename"] for file in found["files"]] == [HERE]

    def test_what_was_decided(self, upstream, start):
        upstream.add_release()
        tree = start(upstream).get(f"/p/{KEY}/i/main/variants/app/").json()
        (version,) = tree["versions"]
        assert version["files"] == {APP: "cu128"}
        assert version["variants"][0] == {
            "label": "cu128", "verdict": "chosen", "why": "CUDA driver 12.8 or newer",
        }  # fmt: skip
        assert "12.8" in version["variants"][-1]["why"]


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
        proxy = start(Upstream("dir", folder.as_uri(), "find-links"))
        url = proxy.files()[APP]["url"]
        answer = proxy.get(url)
        assert answer.status_code == 200
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.read("app.py") == b"LABEL = 'cu128'\n"
        page = proxy.get(links_url(KEY, "dir"), headers={"Accept": "text/html"}).text
        assert f'href=".variant/cu128/{HERE}' in page
        source = proxy.get(f"{links_url(KEY, 'dir')}.variant/-/other-1.0.tar.gz")
        assert source.content == b"source"

    @pytest.mark.parametrize("html", [False, True])
    def test_find_links_of_a_server(self, upstream, start, html):
        upstream.add_release("1.0", *MARKED)
        upstream.html = html
        proxy = start(Upstream("links", f"{upstream.url}/simple/app/", "find-links"))
        file = proxy.files()[APP]
        data = proxy.get(file["url"]).content
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert proxy.get(f"{index_url(KEY)}other/").status_code == 404

    def test_what_is_replaced_is_seen(self, folder, start):
        proxy = start(Upstream("dir", folder.as_uri(), "find-links"), fresh_seconds=0.0)
        assert proxy.files()[APP]["url"].split("/")[-2] == "cu128"
        (folder / CU128).unlink()
        (folder / "app-1.0-variants.json").unlink()
        assert proxy.files()[APP]["url"].split("/")[-2] == "cu126"

    def test_simple(self, folder, start, tmp_path):
        root = tmp_path / "simple"
        root.mkdir()
        folder.rename(root / "app")
        proxy = start(Upstream("dir", root.as_uri()))
        assert proxy.files()[APP]["url"].split("/")[-2] == "cu128"
        assert proxy.get(f"{index_url(KEY)}nothing/").status_code == 404
        tree = proxy.get(index_url(KEY), headers={"Accept": JSON}).json()
        assert tree["projects"] == [{"name": "app"}]


class TestUpstreams:
    def test_the_first_that_has_it_has_all_of_it(self, upstream, other, start):
        upstream.add("app", "app-1.0-py3-none-any.whl", b"x")
        other.add("app", "app-2.0-py3-none-any.whl", b"x")
        other.add("more", "more-1.0-py3-none-any.whl", b"x")
        proxy = start(upstream, other)
        assert set(proxy.files()) == {APP}
        assert other.paths == []
        assert set(proxy.files("more")) == {"more-1.0-py3-none-any.whl"}

    def test_one_that_fails_is_not_passed_over(self, upstream, other, start):
        upstream.faults["/simple/app/"] = (500, {}, b"")
        other.add("app", "app-2.0-py3-none-any.whl", b"evil")
        proxy = start(upstream, other)
        assert proxy.get(f"{index_url(KEY)}app/").status_code == 500
        assert other.paths == []

    def test_explicit_ones_are_only_under_their_name(self, upstream, other, start):
        other.add("app", "app-2.0-py3-none-any.whl", b"x")
        proxy = start(upstream, Upstream("own", other.simple, explicit=True))
        assert proxy.get(f"{index_url(KEY)}app/").status_code == 404
        assert set(proxy.files(index="own")) == {"app-2.0-py3-none-any.whl"}

    def test_nobody_has_it(self, upstream, start):
        answer = start(upstream).get(f"{index_url(KEY)}app/")
        assert (answer.status_code, answer.text) == (404, "no index has the project app\n")

    def test_settings_are_checked(self, tmp_path, start):
        for options in ({"name": "a/b", "url": "http://x"}, {"name": "a", "url": "ftp://x"}):
            with pytest.raises(InvalidSetting):
                Upstream(**options)
        with pytest.raises(InvalidSetting, match="two indexes"):
            start(Upstream("a", "http://x"), Upstream("a", "http://y"))

    @pytest.mark.parametrize("kind", ["basic", "url", "bearer", "netrc"])
    def test_credentials(self, upstream, other, start, kind, tmp_path, caplog):
        upstream.add_release()
        upstream.base = other.url  # another host: requests to it have no credentials
        other.files = upstream.files
        environ = {"HOME": str(tmp_path), "PATH": ""}
        given = Upstream("main", upstream.simple)
        upstream.credentials = "Basic bWU6czNjcjN0"
        if kind == "basic":
            given = Upstream("main", upstream.simple, credentials=Credentials("me", "s3cr3t"))
        elif kind == "url":
            given = Upstream("main", upstream.simple.replace("//", "//me:s3cr3t@"))
        elif kind == "bearer":
            upstream.credentials = "Bearer s3cr3t"
            given = Upstream("main", upstream.simple, token="s3cr3t")
        else:
            (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cr3t\n")
            environ["NETRC"] = str(tmp_path / "netrc")
        with caplog.at_level(logging.DEBUG, "uv_variants"):
            proxy = start(given, environ=environ, access_log=True)
            answer = proxy.get(f"{index_url(KEY)}app/", headers={"Accept": JSON})
        assert answer.headers["Cache-Control"].startswith("private")
        if kind != "netrc":  # which is by host, and both are on the same one
            assert all("Authorization" not in headers for _, headers in other.requests)
        assert "s3cr3t" not in answer.text + caplog.text + repr(given)

    def test_files_that_need_credentials_pass_through(self, upstream, start):
        upstream.add_release(plain=True)
        upstream.add("app", "app-0.9-py3-none-any.whl", b"old")
        upstream.credentials = "Basic bWU6czNjcjN0"
        proxy = start(Upstream("main", upstream.simple, credentials=Credentials("me", "s3cr3t")))
        files = proxy.files()
        for name, data in (
            (APP, upstream.files["app"][CU128]),
            ("app-0.9-py3-none-any.whl", b"old"),
        ):
            answer = proxy.get(files[name]["url"])
            assert (answer.status_code, answer.content) == (200, data)
            assert answer.headers["Cache-Control"].startswith("private")

    def test_without_them_the_answer_says_what_to_do(self, upstream, start):
        upstream.add_release()
        upstream.credentials = "Basic x"
        answer = start(upstream).get(f"{index_url(KEY)}app/")
        assert answer.status_code == 403
        assert "netrc" in answer.text


class TestMarkers:
    @pytest.fixture(params=[True, False], ids=["beside", "inside"])
    def marked(self, upstream, request):
        upstream.core_metadata = request.param
        upstream.add_release("1.0", *MARKED)
        return upstream

    def test_the_wheel_is_what_the_page_says(self, marked, start):
        proxy = start(marked)
        file = proxy.files()[APP]
        answer = proxy.get(file["url"])
        assert answer.status_code == 200
        assert file["hashes"] == {"sha256": hashlib.sha256(answer.content).hexdigest()}
        assert file["size"] == len(answer.content) == int(answer.headers["Content-Length"])
        metadata = proxy.get(f"{file['url']}.metadata").content
        assert file["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
        assert metadata == metadata_of(answer.content)
        assert b"Requires-Dist: a\n" in metadata
        assert b"variant_" not in metadata.split(b"\n\n")[0]
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            assert "app-1.0.dist-info/variant.json" in archive.namelist()

    @pytest.mark.parametrize("absolute", [False, True])
    def test_versions_without_variants(self, upstream, start, absolute):
        upstream.core_metadata = True
        upstream.base = upstream.url if absolute else ""
        for version, requires in (("1.0", ()), ("2.0", MARKED), ("2.1", MARKED), ("3.0", MARKED)):
            name = f"app-{version}-py3-none-any.whl"
            upstream.add("app", name, wheel(name, *requires))
        proxy = start(upstream, limits=Limits(hashed_versions=3))
        files = proxy.files()
        old = files[APP]
        assert old["url"] == f"{upstream.url}/files/app/{APP}"
        data = upstream.files["app"][APP]
        assert old["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
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

    def test_nobody_fishes_for_metadata_where_there_are_no_variants(self, upstream, start):
        upstream.add("app", APP, wheel(APP, *MARKED))
        (file,) = start(upstream).page()["files"]
        assert file["url"] == f"{upstream.url}/files/app/{APP}"
        assert upstream.paths == ["/simple/app/"]

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

    def test_metadata_that_cannot_be_had_changes_nothing(self, upstream, start):
        upstream.core_metadata, upstream.base = True, upstream.url
        upstream.add("app", APP, wheel(APP, *MARKED))
        upstream.faults[f"/files/app/{APP}.metadata"] = 403, {}, b""
        (file,) = start(upstream).page()["files"]
        assert file["url"] == f"{upstream.url}/files/app/{APP}"

    def test_a_wheel_is_sent_whole(self, marked, start):
        proxy = start(marked)
        url = proxy.files()[APP]["url"]
        whole = proxy.get(url)
        data = whole.content
        # Parts cannot be verified.
        answer = proxy.get(url, headers={"Range": "bytes=0-9"})
        assert (answer.status_code, answer.content) == (200, data)
        assert proxy.get(url, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304
        head = proxy.client.head(url)
        assert (head.headers["Content-Length"], head.content) == (str(len(data)), b"")

    def test_a_large_wheel_has_its_hash_when_it_has_passed(self, marked, start):
        proxy = start(marked, limits=Limits(hashed_bytes=10), fresh_seconds=0.0)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        data = proxy.get(file["url"]).content
        assert proxy.files()[APP]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    def test_one_that_is_not_what_was_promised_never_arrives(self, marked, start, tmp_path):
        proxy = start(marked, limits=Limits(hashed_bytes=10))
        url = proxy.files()[APP]["url"]
        changed = bytearray(marked.files["app"][CU128])
        changed[40] ^= 1
        marked.files["app"][CU128] = bytes(changed)
        with pytest.raises(httpx.RemoteProtocolError):
            proxy.get(url)
        assert proxy.get("/health").status_code == 200

    def test_one_that_is_another_variant_inside(self, marked, start):
        lying = document("12.6", "12.8", "13.0")
        lying["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["11.0"]}}
        marked.add("app", CU128, wheel(CU128, *MARKED, variants=lying))
        proxy = start(marked, limits=Limits(hashed_bytes=10))
        answer = proxy.get(proxy.files()[APP]["url"])
        assert answer.status_code == 409
        assert "12.8" in answer.text
        assert "11.0" in answer.text

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

    def test_one_with_other_metadata_than_beside_it(self, upstream, start):
        upstream.core_metadata = True
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream, limits=Limits(hashed_bytes=10))
        url = proxy.files()[APP]["url"]
        other = wheel(CU128, "c", variants=document("12.6", "12.8", "13.0"))
        upstream.add("app", CU128, other)
        answer = proxy.get(url)
        assert answer.status_code == 409
        assert "its METADATA differs from" in answer.text

    def test_the_upstream_is_let_go_when_the_client_goes(self, marked, start, caplog):
        payload = random.Random(0).randbytes(40 * 2**20)
        data = wheel(CU128, *MARKED, variants=document("12.6", "12.8", "13.0"), payload=payload,
                     compression=zipfile.ZIP_STORED)  # fmt: skip
        marked.add("app", CU128, data)
        caplog.set_level(logging.INFO, "variants_proxy.access")
        proxy = start(marked, access_log=True)
        with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as raw:
            path = proxy.files()[APP]["url"].removeprefix(proxy.url)
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            raw.recv(1000)
        lines = []
        for _ in range(100):
            lines = [json.loads(r.getMessage()) for r in caplog.records if path in r.getMessage()]
            if lines:
                break
            time.sleep(0.05)
        assert lines[0]["bytes"] < len(data)

    def test_the_plain_wheel_of_such_a_version(self, marked, start):
        marked.add("app", APP, wheel(APP, *MARKED))
        proxy = start(marked)
        file = proxy.files(key=key(variant=["app="]))[APP]
        assert file["url"].split("/")[-2] == "-"
        assert b"Requires-Dist: b\n" in metadata_of(proxy.get(file["url"]).content)
        exclude = encode(Machine(target="linux-x86_64"))
        for name in list(marked.files["app"]):
            if "-null" in name:
                del marked.files["app"][name]
        proxy = start(marked, cache=proxy.settings.cache / "2")
        file = proxy.files(key=exclude)[APP]
        assert file["url"].split("/")[-2] == "-"
        assert b"Requires-Dist: b\n" in metadata_of(proxy.get(file["url"]).content)

    def test_a_pinned_variant_is_there_for_everybody(self, marked, start):
        proxy = start(marked)
        other = encode(Machine(target="linux-x86_64"))
        pinned = ".variant/cu130/app-1.0-0_cu130-py3-none-any.whl"
        answer = proxy.get(f"{index_url(other)}app/{pinned}")
        assert answer.status_code == 200


class TestCaching:
    def test_one_request_for_many(self, upstream, start):
        upstream.add_release()
        upstream.delay = 0.1
        proxy = start(upstream)
        with ThreadPoolExecutor(8) as pool:
            pages = list(pool.map(lambda _: json.dumps(proxy.page()), range(8)))
        assert len(set(pages)) == 1
        assert upstream.paths.count("/simple/app/") == 1

    def test_revalidation(self, upstream, start):
        upstream.add_release()
        upstream.etags = True
        proxy = start(upstream, fresh_seconds=0.0)
        first = proxy.page()
        assert proxy.page() == first
        assert "If-None-Match" in upstream.requests[-1][1]
        upstream.add_release("2.0")
        assert len(proxy.files()) == 2

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
        moved = {"Location": f"{other.simple}app/"}
        upstream.faults["/simple/app/"] = (302, moved, b"")
        proxy.page()
        asked = [headers for path, headers in other.requests if path == "/simple/app/"]
        assert ["If-None-Match" in headers for headers in asked] == [True, False]

    @pytest.mark.parametrize("begin", [(), ("1.0",)])
    @pytest.mark.parametrize("path", [index_url(KEY), index_url(KEY, "main")])
    def test_what_was_published_a_moment_ago(self, upstream, start, begin, path):
        """V2: the upstream is asked again whenever a client asks, whatever it said before."""
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

    def test_files_are_found_without_asking_for_the_page_again(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        url = proxy.files()[APP]["url"]
        asked = len(upstream.paths)
        assert proxy.get(url).status_code == 307
        assert "/simple/app/" not in upstream.paths[asked:]

    def test_not_modified(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        url = f"{index_url(KEY)}app/"
        tag = proxy.get(url).headers["ETag"]
        assert proxy.get(url, headers={"If-None-Match": tag}).status_code == 304

    @pytest.mark.parametrize("again", [False, True])
    def test_an_old_page_serves_while_the_upstream_fails(self, upstream, start, again, tmp_path):
        upstream.add_release()
        proxy = start(upstream, fresh_seconds=0.0)
        first = proxy.get(f"{index_url(KEY)}app/").text
        upstream.faults["/simple/app/"] = (503, {}, b"")
        if again:
            proxy = start(upstream, fresh_seconds=0.0)
        assert proxy.get(f"{index_url(KEY)}app/").text == first

    def test_two_proxies_beside_each_other_answer_the_same(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        url = f"{index_url(KEY)}app/"
        answers = [start(upstream).get(url, headers={"Accept": JSON}) for _ in range(2)]
        assert answers[0].content == answers[1].content
        assert answers[0].headers["ETag"] == answers[1].headers["ETag"]

    def test_small_files_are_fetched_once_for_good(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        upstream.core_metadata = True
        start(upstream).page()
        asked = len(upstream.paths)
        start(upstream).page()
        assert not [path for path in upstream.paths[asked:] if "/files/" in path]


class TestMachines:
    def test_a_platform_file_by_its_name(self, upstream, start, tmp_path):
        upstream.add_release()
        path = tmp_path / "gpu.toml"
        path.write_text(write_platform(NVIDIA, "a test"))
        proxy = start(upstream, platforms={"gpu": path})
        assert proxy.files(key="gpu")[APP]["url"].split("/")[-2] == "cu128"
        path.write_text(write_platform(type(NVIDIA)({}), "a test of another length"))
        assert proxy.files(key=encode(Machine(name="gpu", target=host_target())))[APP][
            "url"
        ].split("/")[-2] == "null"  # fmt: skip

    def test_a_name_that_nobody_knows(self, upstream, start, tmp_path):
        answer = start(upstream, platforms={"gpu": tmp_path}).get(f"{index_url('tpu')}app/")
        assert answer.status_code == 404
        assert "gpu" in answer.text

    @pytest.mark.parametrize(
        ("key", "label"),
        [
            ("h100-zen4", "cu128"),
            ("cpu-zen4", "null"),
            ("cuda=12.8,sm=9.0", "cu128"),
            ("cuda=12.8,sm=8.6+9.0,cpu=zen4", "cu128"),
            ("cpu-zen4,cuda=12.8,sm=9.0", "cu128"),
            ("cuda=11.8,sm=9.0", "null"),
        ],
    )
    def test_known_machines_and_facts(self, upstream, start, key, label):
        upstream.add_release()
        proxy = start(upstream)
        assert proxy.files(key=key)[APP]["url"].split("/")[-2] == label
        assert proxy.get(f"/p/{key}/simple/app/").status_code == 200
        described = encode(Machine(name=key, target=host_target()))
        assert proxy.files(key=described)[APP]["url"].split("/")[-2] == label
        keyed = proxy.get("/simple/app/", headers={"Accept": JSON}, auth=(key, "v"))
        assert keyed.status_code == 200

    def test_a_machine_by_a_name_of_the_proxy(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream, platforms={"gpu": "cuda=12.8,sm=9.0", "zen4": "cpu-zen4"})
        assert proxy.files(key="gpu")[APP]["url"].split("/")[-2] == "cu128"
        assert proxy.files(key="zen4")[APP]["url"].split("/")[-2] == "null"
        text = proxy.get("/").text
        assert "gpu — cuda=12.8,sm=9.0" in text
        assert "zen4 — AMD Zen 4 CPU" in text

    @pytest.mark.parametrize(
        ("key", "words"),
        [
            ("h100-zen5", "did you mean h100-zen4"),
            ("cuda=9.0", "cuda=9.0 is outside 11.0 to 15.20"),
            ("gpu=9.0", "'gpu' is not known; there are cuda"),
            ("local.toml", "unknown platform 'local.toml'"),
            ("local", "unknown platform 'local'"),
            ("..%2Flocal.toml", "Not Found"),
            ("x" * 300 + "=1", "is not a valid platform key"),
        ],
    )
    def test_no_machine(self, upstream, start, tmp_path, monkeypatch, key, words):
        """Files of the proxy's own machine are never read for a client."""
        monkeypatch.chdir(tmp_path)
        for name in ("local", "local.toml"):
            (tmp_path / name).write_text(write_platform(NVIDIA, "a test"))
        answer = start(upstream).get(f"/p/{key}/simple/app/")
        assert answer.status_code == 404
        assert words in answer.text

    def test_machines_do_not_mix(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream)
        found = {name: proxy.files(key=name)[APP]["url"].split("/")[-2]
                 for name in (KEY, encode(Machine(target="linux-x86_64")))}  # fmt: skip
        assert list(found.values()) == ["cu128", "null"]


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "status"),
        [
            ((200, {"Content-Type": JSON}, b"{"), 502),
            ((200, {"Content-Type": JSON}, b'{"meta": {"api-version": "2.0"}, "files": []}'), 502),
            ((200, {"Content-Type": JSON, "Content-Length": "1000"}, b"{"), 502),
            ((200, {"Content-Type": JSON}, itertools.repeat(b" " * 65536)), 502),
            ((200, {"Content-Type": JSON, "Content-Encoding": "gzip"}, bomb(1 << 28)), 502),
            ((302, {"Location": "/simple/app/"}, b""), 502),
            ((302, {"Location": "file:///etc/passwd"}, b""), 502),
            ((500, {}, b""), 500),
            ((429, {}, b""), 429),
            ((451, {}, b""), 451),
            ((401, {}, b""), 403),
            ((404, {}, b""), 404),
            ((410, {}, b""), 404),
        ],
        ids=[
            "no json",
            "version",
            "cut off",
            "endless",
            "bomb",
            "loop",
            "file",
            "500",
            "429",
            "451",
            "401",
            "404",
            "410",
        ],
    )
    def test_pages(self, upstream, start, fault, status):
        upstream.faults["/simple/app/"] = fault
        proxy = start(upstream, limits=Limits(page_bytes=2**20))
        assert proxy.get(f"{index_url(KEY)}app/").status_code == status
        assert proxy.get("/health").json()["status"] == "ok"

    def test_slow_pages(self, upstream, start):
        def trickle():
            while True:
                time.sleep(0.05)
                yield b" "

        upstream.faults["/simple/app/"] = (200, {"Content-Type": JSON}, trickle())
        proxy = start(upstream, limits=Limits(page_seconds=0.5))
        assert proxy.get(f"{index_url(KEY)}app/").status_code == 504

    def test_an_upstream_that_is_not_there(self, start):
        # Taken, so that no other process gets it, but without a listener.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            answer = start(Upstream("main", f"http://127.0.0.1:{port}/simple/")).get(
                f"{index_url(KEY)}app/"
            )
        assert answer.status_code == 502
        assert str(port) in answer.text

    @pytest.mark.parametrize(
        "path",
        [
            "//", "/p/", "/p/../simple/app/", "/p/2~AAAA/simple/app/", "KEY/i/no/simple/app/",
            "KEY/simple/../../etc/passwd/", "KEY/simple/..%2f..%2fetc/", "KEY/simple/%00/",
            "KEY/simple/a b/", "KEY/simple/app/.variant/-/..%2f..%2fetc%2fpasswd",
            f"KEY/simple/../app/.variant/x/{HERE}", f"KEY/i/no/simple/app/.variant/cu128/{HERE}",
            "KEY/simple/app/.variant/cu128/x.whl", f"KEY/simple/app/.variant/cu999/{HERE}",
            "KEY/simple/app/.variant/~/nothing.whl", "KEY/simple/app/.variant/here/nothing.whl",
        ],
    )  # fmt: skip
    def test_paths_that_lead_nowhere(self, upstream, start, path):
        upstream.add_release()
        proxy = start(upstream)
        with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as raw:
            raw.sendall(
                f"GET {path.replace(' ', '%20')} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
            )
            answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 404"), answer

    def test_only_its_own_names_are_answered(self, upstream, start):
        proxy = start(upstream, hosts=("proxy.example",))
        for host, status in (
            ("127.0.0.1", 200), ("localhost:1", 200), ("[::1]:80", 200), ("PROXY.example", 200),
            ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421),
            ("localhost:1@evil.example", 421), ("evil.example@localhost", 421),  # T6
        ):  # fmt: skip
            assert proxy.get("/health", headers={"Host": host}).status_code == status, host

    def test_only_reading(self, upstream, start):
        proxy = start(upstream)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            assert proxy.client.request(method, "/health").status_code == 405

    @pytest.mark.parametrize(
        "head",
        [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 44\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Content-Length: +3\r\n",
        ],
    )
    def test_no_request_hides_in_another(self, upstream, start, head):
        proxy = start(upstream)
        with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as raw:
            hidden = "0\r\n\r\nGET /p/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
            raw.sendall(f"GET /health HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{hidden}".encode())
            raw.settimeout(5)
            answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"uv_variants_" not in answer

    def test_an_answer_nobody_waits_for(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        proxy = start(upstream)
        url = proxy.files()[APP]["url"]
        for _ in range(5):
            with proxy.client.stream("GET", url):
                pass  # goes away in the middle
        assert proxy.get(url).status_code == 200


def test_health(upstream, start):
    assert start(upstream).get("/health").json() == {"status": "ok", "upstreams": 1}


def test_access_log(upstream, start, caplog):
    upstream.add_release()
    with caplog.at_level(logging.INFO, "variants_proxy.access"):
        proxy = start(upstream, access_log=True)
        proxy.get(f"{index_url(KEY)}app/?token=s3cr3t", headers={"Authorization": "Basic s3cr3t"})
        proxy.get("/health")  # the line is written when the answer has gone out
    record, *_ = (record for record in caplog.records if record.name == "variants_proxy.access")
    line = json.loads(record.getMessage())
    assert (line["method"], line["path"], line["status"]) == ("GET", f"{index_url(KEY)}app/", 200)
    assert "s3cr3t" not in record.getMessage()


def test_what_has_begun_is_finished_when_the_proxy_is_told_to_stop(upstream, start):
    upstream.add_release("1.0", *MARKED)
    proxy = start(upstream)
    file = proxy.files()[APP]
    path = f"/files/app/{CU128}"
    data = upstream.files["app"][CU128]

    def slowly():
        for place in range(0, len(data), 200):
            time.sleep(0.05)
            yield data[place : place + 200]

    answer = upstream.answer

    def whole_ones_are_slow(asked, headers):
        is_whole = asked == path and "Range" not in headers
        return (200, {}, slowly()) if is_whole else answer(asked, headers)

    upstream.answer = whole_ones_are_slow
    with proxy.client.stream("GET", file["url"]) as response:
        proxy.server.should_exit = True
        found = b"".join(response.iter_bytes())
    assert hashlib.sha256(found).hexdigest() == file["hashes"]["sha256"]
    for _ in range(100):
        try:
            httpx.get(f"{proxy.url}/health", trust_env=False)
        except httpx.TransportError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("it still answers")


def test_a_fault_of_ours_costs_the_variants(upstream, start, monkeypatch):
    upstream.add_release(plain=True)
    monkeypatch.setattr("variants_proxy.choice.choice.select", lambda *_, **__: 1 / 0)
    proxy = start(upstream)
    assert proxy.files()[APP]["url"] == f"{upstream.url}/files/app/{APP}"
    forced = proxy.get(f"{index_url(key(variant=['app=cu128']))}app/")
    assert forced.status_code == 500

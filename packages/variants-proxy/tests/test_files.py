"""The wheels that pages list, and their METADATA: what was announced, or never complete."""

import hashlib
import json
import random
import socket
import threading
import zipfile
from io import BytesIO

import httpx
import pytest
from upstream_server import document, wheel
from worlds import APP, BARE, CU128, CU128_HERE, KEY, MARKED, Asked, key

from pep_variants._wheelfile.core_metadata import requirements_of
from support.index import Answer, metadata_of
from variants_proxy.settings import Limits
from variants_proxy.urls import index_url


def sha256(data):
    return {"sha256": hashlib.sha256(data).hexdigest()}


def rewritten(proxy, file, *requires):
    """Check that a wheel has these dependencies, and is what its page says; return its bytes."""
    answer = proxy.get(file["url"])
    data = answer.content
    assert answer.status_code == 200
    assert file["hashes"] in ({}, sha256(data))
    assert file.get("size") in (None, len(data))
    metadata = proxy.get(f"{file['url']}.metadata").content
    assert metadata == metadata_of(data)
    assert file["core-metadata"] in (True, sha256(metadata))
    assert requirements_of(metadata) == requires
    return data


@pytest.fixture
def marked(upstream):
    """An index of a version whose wheels have variant markers, with METADATA beside them."""
    upstream.core_metadata = True
    upstream.add_release("1.0", *MARKED)
    return upstream


class TestMarkers:
    @pytest.mark.parametrize("beside", [True, False])
    def test_the_wheel_is_what_the_page_says(self, marked, start, beside):
        marked.core_metadata = beside
        proxy = start(marked)
        file = proxy.files()[APP]
        data = rewritten(proxy, file, "a")
        assert file["hashes"] == sha256(data)
        assert file["size"] == len(data)
        assert file["core-metadata"] == sha256(metadata_of(data))
        with zipfile.ZipFile(BytesIO(data)) as archive:
            assert archive.testzip() is None
            assert "app-1.0.dist-info/variant.json" in archive.namelist()
        # Parts cannot be verified: it is sent whole.
        part = proxy.get(file["url"], headers={"Range": "bytes=0-9"})
        assert (part.status_code, part.content) == (200, data)
        known = {"If-None-Match": part.headers["ETag"]}
        assert proxy.get(file["url"], headers=known).status_code == 304
        head = proxy.client.head(file["url"])
        assert (head.headers["Content-Length"], head.content) == (str(len(data)), b"")

    @pytest.mark.parametrize("absolute", [False, True])
    def test_versions_without_variants(self, upstream, start, absolute):
        upstream.core_metadata = True
        upstream.files_url = upstream.root if absolute else ""
        for version, requires in (("1.0", ()), ("2.0", MARKED), ("2.1", MARKED), ("3.0", MARKED)):
            name = f"app-{version}-py3-none-any.whl"
            upstream.add("app", name, wheel(name, *requires))
        proxy = start(upstream, limits=Limits(hashed_versions=3))
        files = proxy.files()
        assert files[APP]["url"] == f"{upstream.root}/files/app/{APP}"
        assert files[APP]["hashes"] == sha256(upstream.files["app"][APP])
        for version in ("2.0", "2.1", "3.0"):
            file = files[f"app-{version}-py3-none-any.whl"]
            assert file["hashes"] == sha256(rewritten(proxy, file, "b"))

    def test_it_takes_one_look_to_see_that_there_are_none(self, upstream, start):
        upstream.core_metadata, upstream.files_url = True, upstream.root
        for version in ("1.0", "10.0", "9.0"):
            name = f"app-{version}-py3-none-any.whl"
            upstream.add("app", name, wheel(name, "b"))
        start(upstream).files()
        page, look = upstream.requests
        assert look == "/files/app/app-10.0-py3-none-any.whl.metadata"
        start(upstream).files()  # the look is remembered, the page is asked for again
        assert upstream.requests[2:] == [page]

    @pytest.mark.parametrize("beside", [False, True])
    def test_metadata_that_is_not_cheap_or_not_there_changes_nothing(self, upstream, start, beside):
        upstream.core_metadata, upstream.files_url = beside, upstream.root
        upstream.add("app", APP, wheel(APP, *MARKED))
        upstream.faults[f"/files/app/{APP}.metadata"] = Answer(403)
        (file,) = start(upstream).page()["files"]
        assert file["url"] == f"{upstream.root}/files/app/{APP}"
        assert len(upstream.requests) == 1 + beside

    def test_versions_without_variants_beside_others(self, upstream, start):
        upstream.add_release("1.0")
        name = "app-2.0-py3-none-any.whl"
        upstream.add("app", name, wheel(name, *MARKED))
        proxy = start(upstream)
        data = rewritten(proxy, proxy.files()[name], "b")
        # Neither is where variants are switched off.
        plain = proxy.files(key=key(variant=["app="]))[name]
        assert proxy.get(plain["url"]).content == data

    def test_the_plain_wheel_of_such_a_version(self, marked, start):
        marked.add("app", APP, wheel(APP, *MARKED))
        file = (proxy := start(marked)).files(key=key(variant=["app="]))[APP]
        assert file["url"].split("/")[-2] == "-"
        rewritten(proxy, file, "b")
        del marked.files["app"]["app-1.0-py3-none-any-null.whl"]
        proxy = start(marked, cache=proxy.settings.cache / "2")
        file = proxy.files(key=BARE)[APP]  # where no variant fits
        assert file["url"].split("/")[-2] == "-"
        rewritten(proxy, file, "b")
        # A variant that a lock file has is there for every machine.
        pinned = ".variant/cu130/app-1.0-0_cu130-py3-none-any.whl"
        assert proxy.get(f"{index_url(BARE)}app/{pinned}").status_code == 200

    def test_a_large_wheel_has_its_hash_when_it_has_passed(self, marked, start):
        proxy = start(marked, limits=Limits(hashed_bytes=10), fresh_seconds=0.0)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        data = proxy.get(file["url"]).content
        assert proxy.files()[APP]["hashes"] == sha256(data)

    @pytest.mark.parametrize("limits", [Limits(inspected=0), Limits(hashed=0)])
    def test_what_is_beyond_the_limits_has_no_hash(self, marked, start, limits):
        proxy = start(marked, limits=limits)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        rewritten(proxy, file, "a")

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


class TestTransfers:
    """A whole wheel that the index sends in parts."""

    @pytest.fixture
    def sent(self, marked, monkeypatch):
        """Parts of the wheel that were sent; the test makes them wait, or the other way round."""
        payload = random.Random(0).randbytes(20 * 2**20)
        variants = document("12.6", "12.8", "13.0")
        data = wheel(CU128, *MARKED, variants=variants, files={"app/data": payload})
        marked.add("app", CU128, data)
        answer, sent = marked.answer, {"parts": 0, "ended": threading.Event()}
        sent["begun"], sent["go"] = threading.Event(), threading.Event()

        def parts():
            try:
                for place in range(0, len(data), 2**16):
                    yield data[place : place + 2**16]
                    sent["parts"] += 1
                    sent["begun"].set()
                    assert sent["go"].wait(20)
            finally:
                sent["ended"].set()

        def whole_ones_in_parts(asked, headers):
            is_whole = asked == f"/files/app/{CU128}" and "Range" not in headers
            return Answer(body=parts()) if is_whole else answer(asked, headers)

        marked.whole_ones_in_parts = whole_ones_in_parts
        return sent

    def test_the_upstream_is_let_go_when_the_client_goes(self, marked, start, sent):
        proxy = start(marked)
        path = proxy.files()[APP]["url"].removeprefix(proxy.url)
        marked.answer = marked.whole_ones_in_parts
        with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            sent["go"].set()
            client.recv(1000)
        assert sent["ended"].wait(20)
        assert sent["parts"] < 200

    def test_what_has_begun_is_finished_when_the_proxy_is_told_to_stop(self, marked, start, sent):
        proxy = start(marked)
        file = proxy.files()[APP]
        marked.answer = marked.whole_ones_in_parts
        threading.Thread(target=lambda: (sent["begun"].wait(20), stop())).start()

        def stop():
            proxy.server.should_exit = True
            sent["go"].set()

        assert sha256(proxy.get(file["url"]).content) == file["hashes"]


def test_files_of_every_label(upstream, start):
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


def test_values_that_a_machine_does_not_support(upstream, start):
    """A lock file is for all machines; what is installed follows PEP 825 on this one."""
    variants = document("12.6")
    variants["variants"] = {"cu": {"nvidia": {"cuda_version_lower_bound": ["12.6", "13.0"]}}}
    name = "app-1.0-py3-none-any-cu.whl"
    requires = [
        f"{dependency}; 'nvidia :: cuda_version_lower_bound :: {version}' in variant_properties"
        for dependency, version in {"a": "12.6", "b": "13.0"}.items()
    ]
    upstream.add("app", name, wheel(name, *requires, variants=variants))
    upstream.add("app", "app-1.0-variants.json", json.dumps(variants).encode())
    proxy = start(upstream)
    for hashes, expected in ((True, ("a", "b")), (False, ("a",))):
        asked = Asked(proxy, hashes=hashes)
        file = asked.files()["app-1.0-0_cu-py3-none-any.whl"]
        rewritten(asked, file, *expected)


class TestBytes:
    """What is read of the upstream before a version is known."""

    SIZE = 2**20
    NEWEST = "app-5.0-0_cu128-py3-none-any.whl"

    @pytest.fixture
    def sent(self, upstream, monkeypatch):
        """Bytes that the upstream sends, by path, of a project with five versions."""
        for number in range(1, 6):
            data = {"app/data": b"x" * self.SIZE}
            upstream.add_release(f"{number}.0", *MARKED, labels=("null", "cu128"), files=data)
        upstream.files_url = upstream.root
        found, answer = {}, upstream.answer

        def counted(path, headers):
            result = answer(path, headers)
            found[path] = found.get(path, 0) + len(result.body)
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
            assert digests.pop(self.NEWEST) == sha256(data)
            assert list(digests.values()) == [{}] * 4

    def test_what_is_not_inspected_is_compared(self, upstream, start, sent):
        """The page has no hash, so the proxy has to."""
        upstream.wrong_hashes.add("app-5.0-py3-none-any-cu128.whl")
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


def lie(what):
    """Return the document of a version in which ``cu128`` is not what the index says."""
    found = document("12.6", "12.8", "13.0")
    if what == "level":
        found["variants"]["cu128"] = {"nvidia": {"cuda_version_lower_bound": ["12.7"]}}
    if what == "label":
        found["variants"] = {"cu128": found["variants"]["cu126"]}
    return None if what == "nothing" else found


class TestPromises:
    """A variant wheel is served only if it is inside what the index says of its label."""

    @pytest.mark.parametrize(
        ("requires", "ranges", "what"),
        [((), True, "level"), ((), True, "label"), ((), False, "nothing"), (MARKED, True, "level")],
    )
    def test_a_wheel_that_lies_never_arrives(self, upstream, start, what, requires, ranges):
        upstream.add_release("1.0", *requires)
        upstream.add("app", CU128, wheel(CU128, *requires, variants=lie(what)))
        upstream.ranges = ranges
        proxy = start(upstream)
        url = proxy.files()[APP]["url"]
        started = start(upstream)
        started.files()
        # A cache does not change that.
        again = started, url.replace(proxy.url, started.url)
        for running, at in ((proxy, url), (proxy, url), again):
            answer = running.get(at)
            assert answer.status_code == 409
            assert CU128 in answer.text
        in_place = Asked(started, hashes=False)
        assert in_place.get(f".variant/cu128/{CU128_HERE}").status_code == 409
        # Other variants are there.
        file = proxy.files(key=key(variant=["app=cu126"]))[APP]
        assert proxy.get(file["url"], follow_redirects=True).status_code == 200

    @pytest.mark.parametrize("ranges", [True, False])
    def test_it_is_looked_into_once(self, upstream, start, monkeypatch, tmp_path, ranges):
        """By its end, or as a copy in the cache: temporary files may lie in memory."""
        upstream.add_release()
        upstream.ranges = ranges
        proxy = start(upstream)
        url = proxy.files()[APP]["url"]
        upstream.requests.clear()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
        assert proxy.get(url).status_code == 307
        assert set(upstream.requests) == {f"/files/app/{CU128}"}
        assert not [path for path in (tmp_path / "cache").rglob("tmp*") if path.is_file()]
        started = start(upstream)
        started.files()
        upstream.requests.clear()
        for running in (proxy, started):
            assert running.get(url.replace(proxy.url, running.url)).status_code == 307
        assert upstream.requests == []

    def test_the_index_says_something_else_later(self, upstream, start):
        upstream.add_release()
        proxy = start(upstream, fresh_seconds=0.0)
        assert proxy.get(proxy.files()[APP]["url"]).status_code == 307
        upstream.add("app", "app-1.0-variants.json", json.dumps(lie("level")).encode())
        assert proxy.get(proxy.files()[APP]["url"]).status_code == 409

    def test_an_old_version_that_a_lock_file_names(self, upstream, start):
        """Beyond the versions that are looked at."""
        upstream.add_release("1.0")
        upstream.add_release("2.0")
        upstream.add("app", CU128, wheel(CU128, variants=lie("level")))
        proxy = start(upstream, limits=Limits(versions=1))
        url = proxy.files()["app-2.0-py3-none-any.whl"]["url"].replace("app-2.0", "app-1.0")
        assert proxy.get(url).status_code == 409

    @pytest.mark.parametrize("ranges", [True, False], ids=["parts", "whole"])
    def test_hashes_of_the_index_where_pages_have_none(self, upstream, start, ranges):
        """Of a wheel that is not looked into."""
        upstream.add_release()
        upstream.ranges = ranges
        upstream.core_metadata = True
        upstream.faults[f"/files/app/{CU128}.metadata"] = Answer(200, b"another")
        upstream.wrong_hashes.add(CU128)
        proxy = start(upstream)
        file = proxy.files()[APP]
        assert file["hashes"] == {}
        try:
            status = proxy.get(file["url"]).status_code
        except httpx.RemoteProtocolError:
            status = 599  # it was cut off
        assert status in (502, 599)

    def test_without_parts_a_wheel_that_is_right_arrives_whole(self, marked, start):
        marked.ranges = False
        proxy = start(marked)
        file = proxy.files()[APP]
        assert sha256(proxy.get(file["url"]).content) == file["hashes"]


class TestReleases:
    """What lock files and exports list of a version: every label, with hashes and metadata."""

    URL = f"/p/{KEY}/i/main/variants/app/?files=1.0"
    MARKED = ("a", "b; variant_label == 'cu128'", "c; 'nvidia' in variant_namespaces")

    def test_every_label_with_its_own_url_and_hash(self, upstream, start):
        upstream.add_release("1.0", "a")
        upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
        proxy = start(upstream)
        tree = proxy.get(self.URL).json()
        assert {wheel["label"] for wheel in tree["wheels"]} == {"null", "cu126", "cu128", "cu130"}
        for found in tree["wheels"]:
            assert found["url"] == f"{upstream.root}/files/app/{found['filename']}"
            assert found["hashes"] == sha256(upstream.files["app"][found["filename"]])
            assert found["plain"] == APP
            assert (found["marked"], found["served"]) == (False, None)
        assert len({wheel["requires"] for wheel in tree["wheels"]}) == 1
        (text,) = tree["documents"]
        assert text["$schema"].endswith("v0.2.0.json")
        assert set(text["variants"]) == {"null", "cu126", "cu128", "cu130"}
        for query, number in (("&tags=py3-none", 4), ("&tags=cp313-cp313", 0), (".1", 0)):
            assert len(proxy.get(f"{self.URL}{query}").json()["wheels"]) == number
        nothing = {"documents": [], "wheels": []}
        assert proxy.get(self.URL.replace("/app/", "/plain/")).json() == nothing
        assert proxy.get(self.URL.replace("/app/", "/none/")).status_code == 404

    def test_which_labels_depend_on_the_same(self, upstream, start):
        """And the hash of each as the proxy serves it."""
        upstream.add_release("1.0", *self.MARKED)
        proxy = start(upstream)
        wheels = proxy.get(f"{self.URL}&served").json()["wheels"]
        found = {wheel["label"]: wheel for wheel in wheels}
        assert found["cu126"]["requires"] == found["cu130"]["requires"]
        assert len({wheel["requires"] for wheel in wheels}) == 3
        assert all(wheel["marked"] for wheel in wheels)
        assert all(wheel["served"] != wheel["hashes"]["sha256"] for wheel in wheels)
        (served,) = proxy.files().values()
        data = proxy.get(served["url"]).content
        assert sha256(data) == {"sha256": found["cu128"]["served"]}

    def test_metadata_that_cannot_be_read(self, upstream, start):
        upstream.add_release()
        upstream.files["app"]["app-1.0-variants.json"] = b"{"
        answer = start(upstream).get(self.URL)
        assert answer.status_code == 409
        assert "app-1.0-variants.json" in answer.text

    def test_a_plain_wheel_with_variant_markers(self, upstream, start):
        upstream.core_metadata = True
        upstream.add("app", APP, wheel(APP, *self.MARKED))
        (found,) = start(upstream).get(f"{self.URL}&served").json()["wheels"]
        assert (found["label"], found["marked"]) == (None, True)
        assert found["served"] not in (None, found["hashes"]["sha256"])

"""Pages that are asked for again, that are known already, and what caches may keep for whom."""

import base64
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import httpx
import pytest
from test_cli import serving
from upstream_server import Upstream as Server
from upstream_server import wheel
from worlds import CU128_HERE, KEY, MARKED

from support.certificates import certified
from support.index import JSON, Answer, served
from support.waiting import wait_until
from variants_proxy._headers import Document, accepted_formats, for_one_client
from variants_proxy._upstream import upstream_pages
from variants_proxy.settings import Limits, Upstream
from variants_proxy.urls import index_url

PAGE = f"{index_url(KEY)}app/"
TYPE = "application/vnd.pypi.simple.v1"
PLAIN = "plain-1.0-py3-none-any.whl"


class TestHeaders:
    @pytest.mark.parametrize(
        ("accept", "expected"),
        [
            ("", "html"), ("*/*", "html"), ("text/html", "html"), (f"{TYPE}+json", "json"),
            (f"{TYPE}+json, {TYPE}+html;q=0.2, text/html;q=0.01", "json html"),
            (f"{TYPE}+json;q=0.1, text/html", "html json"), (f"{TYPE}+json;q=0", "html"),
            (f"{TYPE}+html, {TYPE}+json", "json html"), (f"{TYPE}+json, text/html;q=0", "json"),
            (f"{TYPE}.latest+json", "html"),
            ("application/vnd.pypi.simple.latest+json", "json"), (f"{TYPE}+json;q=x", "html"),
            ("application/json", "html"), (f"{TYPE.upper()}+JSON", "json"),
        ],
    )  # fmt: skip
    def test_accepted_formats(self, accept, expected):
        assert accepted_formats(accept) == tuple(expected.split())

    def test_validators(self):
        page = Document(b"text", "text/html", "public", vary="Accept")
        status, headers, body = page.answer("")
        assert (status, body, headers["vary"]) == (200, page.body, "Accept")
        tag = headers["etag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            status, headers, body = page.answer(known)
            assert (status, body, headers["etag"]) == (304, b"", tag)
        assert page.answer('"x"')[0] == 200

    @pytest.mark.parametrize(
        ("control", "private"),
        [
            ("public, max-age=31536000, immutable", "private, max-age=31536000, immutable"),
            ("private, max-age=60", "private, max-age=60"),
            ("no-cache", "private, no-cache"),
            ("no-store", "no-store"),
        ],
    )
    def test_for_one_client(self, control, private):
        given = [
            (b"content-type", b"x/y"), (b"cache-control", control.encode()), (b"vary", b"Accept"),
        ]  # fmt: skip
        headers = httpx.Headers(for_one_client(for_one_client(given)))
        assert headers.get_list("cache-control") == [private]
        assert {"Accept", "Authorization"} <= set(headers["vary"].split(", "))
        assert headers["content-type"] == "x/y"

    def test_of_an_open_proxy(self, upstream, start):
        """The path of a key is for every cache, one URL for all for those with Authorization."""
        upstream.add_release()
        upstream.faults["/simple/broken/"] = Answer(500, b"broken")
        proxy = start(upstream)
        page = proxy.get(PAGE)
        assert page.headers["cache-control"] == "no-cache"
        assert "Authorization" not in page.headers["vary"]
        keyed = proxy.get("/simple/app/", headers={"Accept": JSON}, auth=(KEY, "v"))
        (file,) = keyed.json()["files"]
        known = {"If-None-Match": keyed.headers["etag"], "Accept": JSON}
        for path, status in (("", 200), ("", 304), (file["url"], 307)):
            headers = known if status == 304 else {"Accept": JSON}
            answer = proxy.get(f"/simple/app/{path}", headers=headers, auth=(KEY, "v"))
            assert answer.status_code == status
            assert "Authorization" in answer.headers["vary"]
            assert answer.headers["cache-control"] == "private, no-cache"
        for path in ("/simple/app/", *(f"{index_url(KEY)}{name}/" for name in ("none", "broken"))):
            answer = proxy.get(path)
            assert answer.status_code >= 400
            assert answer.headers["cache-control"] == "no-store"

    def test_with_a_token_nothing_is_public(self, upstream, tmp_path):
        upstream.add_release()
        arguments = ("--index", f"own={upstream.url}")
        with (
            serving(tmp_path, *arguments, VARIANTS_PROXY_TOKEN="s3cret-of-16-and-on") as (url, _),
            httpx.Client(base_url=url, trust_env=False) as client,
        ):
            basic = base64.b64encode(f"{KEY}:s3cret-of-16-and-on".encode()).decode()
            for path, login in (
                (PAGE, "Bearer s3cret-of-16-and-on"),
                ("/simple/app/", f"Basic {basic}"),
            ):
                answer = client.get(path, headers={"Authorization": login, "Accept": JSON})
                assert answer.status_code == 200
                assert answer.headers["cache-control"].startswith("private, ")
                assert "Authorization" in answer.headers["vary"]
            refused = client.get(PAGE)
            assert refused.status_code == 401
            assert refused.headers["cache-control"] == "no-store"


class TestPages:
    def test_one_request_for_many(self, upstream, start, monkeypatch):
        upstream.add_release()
        answer, release = upstream.answer, threading.Event()

        def late(path, headers):
            release.wait(0.1)
            return answer(path, headers)

        monkeypatch.setattr(upstream, "answer", late)
        proxy = start(upstream)
        with ThreadPoolExecutor(8) as pool:
            pages = list(pool.map(lambda _: json.dumps(proxy.page()), range(8)))
        assert len(set(pages)) == 1
        assert upstream.requests.count("/simple/app/") == 1

    @pytest.mark.parametrize("plain", [False, True])
    def test_a_new_process_asks_whether_a_page_has_changed(self, upstream, start, plain):
        upstream.etags = True
        upstream.add_release(labels=() if plain else ("null", "cu128"), plain=plain)
        names = [file["filename"] for file in start(upstream).page()["files"]]
        asked = len(upstream.requests)
        assert [file["filename"] for file in start(upstream).page()["files"]] == names
        (headers,) = (each.headers for each in upstream.requests[asked:] if each == "/simple/app/")
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
        upstream.faults["/simple/app/"] = Answer.redirect(f"{other.url}app/")
        proxy.page()
        asked = [each.headers for each in other.requests if each == "/simple/app/"]
        assert ["If-None-Match" in headers for headers in asked] == [True, False]

    @pytest.mark.parametrize("begin", [(), ("1.0",)])
    @pytest.mark.parametrize("path", [index_url(KEY), index_url(KEY, "main")])
    def test_what_was_published_a_moment_ago(self, upstream, start, begin, path):
        """The upstream is asked again whenever a client asks, whatever it said before."""
        upstream.etags = True
        upstream.page_headers = {"Cache-Control": "max-age=600"}
        for version in begin:
            upstream.add_release(version)
        proxy = start(upstream)
        assert proxy.get(f"{path}app/").status_code == (200 if begin else 404)
        upstream.add_release("2.0")
        assert "app-2.0-" in proxy.get(f"{path}app/").text
        asked = len(upstream.requests)
        assert "app-2.0-" in proxy.get(f"{path}app/").text
        (headers,) = (each.headers for each in upstream.requests[asked:] if "simple" in each)
        assert "If-None-Match" in headers

    def test_two_proxies_beside_each_other_answer_the_same(self, upstream, start):
        """The second one reads no file; files are found without asking for the page again."""
        upstream.add_release("1.0", *MARKED)
        upstream.core_metadata = True
        proxy = start(upstream)
        first = proxy.get(PAGE, headers={"Accept": JSON})
        asked = len(upstream.requests)
        assert proxy.get(proxy.url + PAGE + f".variant/cu128/{CU128_HERE}").status_code == 200
        assert "/simple/app/" not in upstream.requests[asked:]
        asked = len(upstream.requests)
        second = start(upstream).get(PAGE, headers={"Accept": JSON})
        assert not [path for path in upstream.requests[asked:] if "/files/" in path]
        assert first.content == second.content
        tag = second.headers["ETag"]
        assert first.headers["ETag"] == tag
        known = {"Accept": JSON, "If-None-Match": tag}
        assert proxy.get(PAGE, headers=known).status_code == 304


class TestOutages:
    def test_one_that_drips_does_not_hold_the_others(self, upstream, other, start):
        def drip():
            while True:
                time.sleep(0.05)
                yield b" "

        upstream.add("plain", PLAIN, wheel(PLAIN))
        for number in range(20):
            other.faults[f"/simple/p{number}/"] = Answer(200, drip(), JSON)
        proxy = start(upstream, other, limits=Limits(page_seconds=1.0, connections=4))
        with ThreadPoolExecutor(20) as pool:
            paths = [f"{index_url(KEY, 'index1')}p{number}/" for number in range(20)]
            slow = [pool.submit(proxy.get, path) for path in paths]
            while not other.requests:
                time.sleep(0.01)
            for _ in range(10):
                assert proxy.get(f"{index_url(KEY, 'main')}plain/").status_code == 200
            answers = [each.result() for each in slow]
        assert {answer.status_code for answer in answers} == {504}
        assert all("index1" in answer.text or "/simple/p" in answer.text for answer in answers)

    @pytest.mark.parametrize("status", [500, 429])
    def test_old_pages_serve_while_it_fails(self, upstream, start, status):
        """Those in memory and, after a restart, those on disk; it is not asked for each."""
        for name in ("plain", "other"):
            upstream.add(name, PLAIN.replace("plain", name), wheel(PLAIN))
        proxy = start(upstream, fresh_seconds=0.0)
        paths = [f"{index_url(KEY)}{name}/" for name in ("plain", "other")]
        assert [proxy.get(path).status_code for path in paths] == [200, 200]
        for name in ("plain", "other", "new"):
            upstream.faults[f"/simple/{name}/"] = Answer(status)
        asked = len(upstream.requests)
        for running in (proxy, start(upstream, fresh_seconds=0.0)):
            assert [running.get(path).status_code for path in paths] == [200, 200]
            assert running.get(f"{index_url(KEY)}new/").status_code == status
        assert "/simple/other/" not in upstream.requests[asked:]

    def test_old_pages_serve_while_it_hangs(self, upstream, start):
        """Within two seconds, those on disk as well, and all of its host after the first."""
        upstream.add("plain", PLAIN, wheel(PLAIN))
        again = Upstream("again", f"{upstream.root}//simple/", explicit=True)
        paths = [index_url(KEY, index) + "plain/" for index in ("main", "again")]
        running = [start(Upstream("main", upstream.url), again) for _ in range(2)]
        assert [running[0].get(path).status_code for path in paths] == [200, 200]
        hanging = threading.Event()

        def late():
            hanging.wait(20)
            return Answer(500)

        upstream.faults[""] = late
        asked = len(upstream.requests)
        try:
            for proxy in running:
                begin = time.monotonic()
                with ThreadPoolExecutor(8) as pool:
                    answers = list(pool.map(proxy.get, paths * 4))
                assert [each.status_code for each in answers] == [200] * 8
                assert proxy.get(paths[1]).status_code == 200
                assert time.monotonic() - begin < 3.0  # 1.25 of them for the first
            assert len(upstream.requests) - asked <= 4
        finally:
            hanging.set()

    def test_a_late_page_is_for_the_next_client(self, upstream, start, monkeypatch):
        monkeypatch.setattr(upstream_pages, "OLD_PAGE_SECONDS", 0.05)
        upstream.add_release("1.0")
        proxy = start(upstream)
        assert "app-1.0-" in proxy.get(PAGE).text
        upstream.add_release("2.0")
        answer, release = upstream.answer, threading.Event()

        def late(path, headers):
            release.wait(10)
            return answer(path, headers)

        monkeypatch.setattr(upstream, "answer", late)
        assert "app-2.0-" not in proxy.get(PAGE).text
        release.set()
        assert wait_until(lambda: "app-2.0-" in proxy.get(PAGE).text)

    def test_health_says_what_answers(self, upstream, other, start):
        """Without a request of its own, and without URLs: it needs no token."""
        for server in (upstream, other):
            server.add("plain", PLAIN, wheel(PLAIN))
        proxy = start(upstream, other)

        def health():
            tree = proxy.get("/health").json()
            assert tree["upstreams"] == len(tree["indexes"]) == 2
            assert "127.0.0.1" not in json.dumps(tree)
            assert datetime.fromisoformat(tree["since"]) <= datetime.now(timezone.utc)
            return tree["status"], {each.pop("name"): each for each in tree["indexes"]}

        def page(index):
            return proxy.get(f"{index_url(KEY, index)}plain/").status_code

        status, indexes = health()
        nothing = dict.fromkeys(("answers", "since", "problem", "oldest_page_seconds"))
        assert (status, indexes) == ("ok", {"main": nothing, "index1": nothing})
        assert not upstream.requests
        assert (page("main"), page("index1")) == (200, 200)
        assert all(each["answers"] and each["since"] for each in health()[1].values())
        for server, expected in ((upstream, "degraded"), (other, "failing")):
            server.faults[""] = Answer(503)
            assert (page("main"), page("index1")) == (200, 200)
            status, indexes = health()
            assert status == expected
            assert indexes["main"]["answers"] is False
            assert "503" in indexes["main"]["problem"]
            assert indexes["main"]["oldest_page_seconds"] >= 0
        upstream.faults.clear()
        assert proxy.get(f"{index_url(KEY, 'main')}none/").status_code == 404  # an answer
        status, indexes = health()
        assert (status, indexes["main"]["answers"]) == ("degraded", True)
        assert indexes["main"]["oldest_page_seconds"] is None

    def test_an_untrusted_certificate_is_none(self, start, tmp_path):
        """V7: an error that names the cause, though there is an old page; T6: no 5xx."""
        server, path = Server(), f"{index_url(KEY)}plain/"
        server.add("plain", PLAIN, wheel(PLAIN))
        certificates = certified(tmp_path / "tls")
        with served(server, certificates.context):
            at = Upstream("main", server.url)
            trusting = start(at, ca_bundle=certificates.authority)
            assert trusting.get(path).status_code == 200
            asked = len(server.requests)
            answer = start(at).get(path)
        assert answer.status_code == 424
        assert "the certificate is not accepted (unable to get local issuer" in answer.text
        assert f"{server.url}plain/" in answer.text
        assert len(server.requests) == asked

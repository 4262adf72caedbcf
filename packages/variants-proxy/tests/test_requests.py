"""Faults of upstreams and of clients: what one may take of the proxy, and where it may lead."""

import asyncio
import gc
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from anyio import from_thread, to_thread
from worlds import APP, CU128, CU128_HERE, KEY

from support.index import JSON, Answer
from variants_index.http import BadResponse, Unreachable
from variants_proxy._sharing import gather_limited
from variants_proxy._upstream.upstreams import LARGE, Budget
from variants_proxy.errors import PassingFailure, UpstreamError
from variants_proxy.settings import Limits, Upstream
from variants_proxy.urls import index_url

PAGE = f"{index_url(KEY)}app/"
PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Answer(200, b"{", JSON), 502),
        (Answer.cut_off(b"{", kind=JSON), 502),
        (Answer(200, b" " * 2**20 + b"{}", JSON), 502),
        (Answer.redirect("/simple/app/"), 502),
        *((Answer(given), status) for given, status in (
            (500, 500), (429, 429), (451, 451), (401, 403), (404, 404), (410, 404))),
    ],
)  # fmt: skip
def test_faults_of_pages(upstream, start, fault, status):
    upstream.faults["/simple/app/"] = fault
    proxy = start(upstream, limits=Limits(page_bytes=2**20))
    assert proxy.get(PAGE).status_code == status
    health = proxy.get("/health").json()
    answers = status in (404, 451)  # there is no such page
    (index,) = health["indexes"]
    assert (health["status"], index["answers"]) == (("ok", True) if answers else ("failing", False))


def raw(proxy, request):
    """Return what the proxy answers to a request until it closes the connection."""
    with socket.create_connection(("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))) as connection:
        connection.settimeout(5)
        connection.sendall(request.encode())
        return connection.makefile("rb").read()


def test_paths_that_lead_nowhere(upstream, start):
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


def test_only_its_own_names_are_answered(upstream, start):
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
    "head", ["Content-Length: 44\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: +3\r\n"]
)
def test_no_request_hides_in_another(upstream, start, head):
    hidden = "0\r\n\r\nGET /p/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    request = f"GET /health HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{hidden}"
    answer = raw(start(upstream), request)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_public_index_leads_to_another_index_of_the_user(upstream, other, start, monkeypatch):
    """As in other clients; the login of that index does not go there. See also the attacks."""
    port = int(upstream.root.rpartition(":")[2])
    resolve, connect = socket.getaddrinfo, socket.create_connection

    def resolved(host, *args, **options):
        return resolve(PUBLIC if host == "index.example" else host, *args, **options)

    def connected(address, *args, **options):
        return connect(("127.0.0.1", port) if address[0] == PUBLIC else address, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "create_connection", connected)
    public = Upstream("main", f"http://index.example:{port}/simple/")
    upstream.add_release()
    upstream.attributes[CU128] = {"url": f"{other.root}/files/app/{CU128}"}
    other.files = upstream.files
    refused = start(public)
    answer = refused.get(refused.files()[APP]["url"])
    assert answer.status_code == 502
    assert "not a public address" in answer.text
    assert other.requests == []
    second = Upstream("second", other.url.replace("http://", "http://user:password@"))
    proxy = start(public, second)
    answer = proxy.get(proxy.files()[APP]["url"], follow_redirects=True)
    assert answer.content == upstream.files["app"][CU128]
    assert not any("Authorization" in each.headers for each in other.requests)


def test_scripts_of_an_upstream_do_not_run(upstream, start):
    """A page that is handed on as it is."""
    page = b"<script>alert(1)</script><a href='https://files.example/plain-1.0.tar.gz'>x</a>"
    upstream.faults["/simple/plain/"] = Answer(200, page, "text/html")
    upstream.faults["/simple/x/"] = Answer(200, b"<svg/>", "image/svg+xml")
    proxy = start(upstream)
    for project, accept in (("plain", "text/html"), ("plain", JSON), ("x", "text/html")):
        answer = proxy.get(f"{index_url(KEY)}{project}/", headers={"Accept": accept})
        assert answer.status_code == 200
        assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "svg" not in answer.headers["Content-Type"]


def test_a_list_of_projects_that_takes_long_to_read(upstream, start, monkeypatch):
    """Whatever it takes: the proxy answers others meanwhile."""
    import variants_proxy._upstream.upstream_pages as pages

    begun, release = threading.Event(), threading.Event()
    original = pages.index_pages.read_projects

    def slowly(*arguments):
        begun.set()
        release.wait(20)
        return original(*arguments)

    monkeypatch.setattr(pages.index_pages, "read_projects", slowly)
    upstream.faults["/simple/"] = Answer(200, b"<a href='x/'>x</a>", "text/html")
    proxy = start(upstream)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(proxy.get, index_url(KEY))
        assert begun.wait(20)
        assert proxy.get("/health").status_code == 200
        release.set()
        assert asking.result().status_code == 200


def test_work_that_takes_too_long():
    release = threading.Event()

    async def work():
        for lenient, error in ((False, PassingFailure), (True, UpstreamError)):
            with pytest.raises(error, match="index main: no complete response") as caught:
                await Budget("main", Limits(), lenient=lenient).fetch(release.wait, 0.05)
            assert caught.value.status == 504
        release.set()

    asyncio.run(work())


def test_one_large_response_at_a_time():
    budget = Budget("main", Limits(page_seconds=0))
    for _ in range(2):  # what is held is given back, and nothing else
        with budget.large_response() as grown, budget.large_response() as other:
            for size in (LARGE, LARGE + 1, LARGE + 2):
                grown(size)
            other(LARGE)
            with pytest.raises(Unreachable, match="responses are not read in time"):
                other(LARGE + 1)


def test_computations_have_threads_of_their_own():
    async def work():
        threads = to_thread.current_default_thread_limiter()
        in_use = lambda: from_thread.run_sync(lambda: threads.borrowed_tokens)  # noqa: E731
        assert await Budget("main", Limits()).compute(in_use) == 0

    asyncio.run(work())


def test_what_has_begun_is_done_when_another_work_fails():
    """An export that fails removes its files: nothing may write more of them."""
    done = []

    async def fails():
        raise UpstreamError("one is missing")

    async def slow():
        await asyncio.sleep(0.01)
        done.append("slow")

    async def late():
        done.append("late")

    with pytest.raises(UpstreamError):
        asyncio.run(gather_limited([slow, fails, late], 2))
    assert done == ["slow"]


class TestStreams:
    """A wheel: a chunk is read and hashed while the one before is sent."""

    @pytest.fixture
    def streamed(self):
        """Run ``use(stream)``; nothing is reported that no one awaits."""

        def streamed(use):
            problems = []

            async def work():
                loop = asyncio.get_running_loop()
                loop.set_exception_handler(lambda _, told: problems.append(told))
                await use(Budget("main", Limits()).stream)
                gc.collect()
                await asyncio.sleep(0)

            asyncio.run(work())
            assert not problems

        return streamed

    def test_one_chunk_ahead(self, streamed):
        asked = [threading.Event() for _ in range(4)]

        def chunks():
            for number, event in enumerate(asked):
                event.set()
                yield b"%d" % number

        async def use(stream):
            found = []
            async for chunk in stream(chunks()):
                found.append(chunk)
                following = asked[len(found) : len(found) + 1]
                assert all([await asyncio.to_thread(event.wait, 60) for event in following])
                assert not any(event.is_set() for event in asked[len(found) + 1 :])
            assert found == [b"0", b"1", b"2", b"3"]

        streamed(use)

    @pytest.mark.parametrize("is_cancelled", [False, True])
    def test_a_client_that_leaves_while_a_chunk_is_read(self, streamed, is_cancelled):
        release, closed = threading.Event(), threading.Event()

        def chunks():
            try:
                yield b"first"
                release.wait(60)
                yield b"second"
            finally:
                closed.set()

        async def use(stream):
            source = stream(chunks())
            assert await anext(source) == b"first"
            if is_cancelled:
                second = asyncio.ensure_future(anext(source))
                await asyncio.sleep(0.05)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
            await source.aclose()
            assert not closed.is_set()  # its thread is in use
            release.set()
            assert await asyncio.to_thread(closed.wait, 60)

        streamed(use)

    @pytest.mark.parametrize("leaves", [False, True])
    def test_an_error_comes_after_the_chunks_before_it(self, streamed, leaves):
        raised = threading.Event()

        def chunks():
            yield b"first"
            raised.set()
            raise BadResponse("it differs")

        async def use(stream):
            source = stream(chunks())
            assert await anext(source) == b"first"
            assert await asyncio.to_thread(raised.wait, 60)
            await asyncio.sleep(0.1)  # most likely it has arrived; either way it must not matter
            if leaves:
                await source.aclose()
            else:
                with pytest.raises(BadResponse):
                    await anext(source)

        streamed(use)

"""What one upstream takes of the proxy, and that the others do not notice."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from upstream_server import JSON, served, wheel
from upstream_server import Upstream as Server
from worlds import KEY

from support.certificates import certified
from variants_index.internal import BadResponse
from variants_proxy import Limits, Upstream, index_url
from variants_proxy.errors import UpstreamError
from variants_proxy.sharing import gather_limited
from variants_proxy.upstream.upstreams import Budget

PLAIN = "plain-1.0-py3-none-any.whl"


def drip():
    while True:
        time.sleep(0.05)
        yield b" "


def test_work_that_takes_too_long():
    release = threading.Event()

    async def work():
        with pytest.raises(UpstreamError, match="index main: no complete response") as caught:
            await Budget("main", Limits()).fetch(release.wait, 0.05)
        assert caught.value.status == 504
        release.set()

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

    def streamed(self, use):
        """Run ``use(stream)``; nothing is reported that no one awaits."""
        problems = []

        async def work():
            asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
            await use(Budget("main", Limits()).stream)
            gc.collect()
            await asyncio.sleep(0)

        asyncio.run(work())
        assert not problems

    def test_one_chunk_ahead(self):
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

        self.streamed(use)

    @pytest.mark.parametrize("is_cancelled", [False, True])
    def test_a_client_that_leaves_while_a_chunk_is_read(self, is_cancelled):
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

        self.streamed(use)

    @pytest.mark.parametrize("leaves", [False, True])
    def test_an_error_comes_after_the_chunks_before_it(self, leaves):
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

        self.streamed(use)


class TestUpstreams:
    def test_one_that_drips_does_not_hold_the_others(self, upstream, other, start):
        upstream.add("plain", PLAIN, wheel(PLAIN))
        limits = Limits(page_seconds=1.0, connections=4)
        for number in range(20):
            path = f"/simple/p{number}/"
            other.faults[path] = (200, {"Content-Type": JSON}, drip())
        proxy = start(upstream, other, limits=limits)
        with ThreadPoolExecutor(20) as pool:
            paths = [f"{index_url(KEY, 'index1')}p{number}/" for number in range(20)]
            slow = [pool.submit(proxy.get, path) for path in paths]
            while not other.paths:
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
            upstream.faults[f"/simple/{name}/"] = (status, {}, b"")
        asked = len(upstream.paths)
        for running in (proxy, start(upstream, fresh_seconds=0.0)):
            assert [running.get(path).status_code for path in paths] == [200, 200]
            assert running.get(f"{index_url(KEY)}new/").status_code == status
        assert "/simple/other/" not in upstream.paths[asked:]

    def test_an_untrusted_certificate_is_no_outage(self, start, tmp_path):
        """V7: an error that names the cause, though there is an old page; T6: no 5xx."""
        server, path = Server(), f"{index_url(KEY)}plain/"
        server.add("plain", PLAIN, wheel(PLAIN))
        certificates = certified(tmp_path / "tls")
        with served(server, certificates.context):
            at = Upstream("main", server.simple)
            trusting = start(at, ca_bundle=certificates.authority)
            assert trusting.get(path).status_code == 200
            asked = len(server.paths)
            answer = start(at).get(path)
        assert answer.status_code == 424
        assert "the certificate is not accepted (unable to get local issuer" in answer.text
        assert f"{server.simple}plain/" in answer.text
        assert len(server.paths) == asked


class TestEventLoop:
    def test_a_list_of_projects_that_takes_long_to_read(self, upstream, start, monkeypatch):
        """Whatever it takes: the proxy answers others meanwhile."""
        import variants_proxy.upstream.upstream_pages as pages

        begun, release = threading.Event(), threading.Event()
        original = pages.read_projects

        def slowly(*arguments):
            begun.set()
            release.wait(20)
            return original(*arguments)

        monkeypatch.setattr(pages, "read_projects", slowly)
        upstream.faults["/simple/"] = (200, {"Content-Type": "text/html"}, b"<a href='x/'>x</a>")
        proxy = start(upstream)
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(proxy.get, index_url(KEY))
            assert begun.wait(20)
            assert proxy.get("/health").status_code == 200
            release.set()
            assert asking.result().status_code == 200

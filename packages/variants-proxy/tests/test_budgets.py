"""What one upstream takes of the proxy, and that the others do not notice."""

import asyncio
import gc
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from machines import NVIDIA
from upstream_server import JSON, wheel

from support.waiting import processor_limit
from variants_index.errors import BadResponse
from variants_proxy import Limits, Machine, Upstream, encode, index_url
from variants_proxy.errors import UpstreamError
from variants_proxy.upstream.budget import LARGE, Budget
from variants_proxy.upstream.circuit_breaker import (
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    CircuitBreaker,
    CircuitOpen,
)
from variants_proxy.upstream.workers import Busy, Threads, Workers

KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
PLAIN = "plain-1.0-py3-none-any.whl"


def metric(proxy, name, upstream):
    text = proxy.get("/metrics").text
    return float(
        re.search(rf'variants_proxy_upstream_{name}{{upstream="{upstream}"}} (.*)', text)[1]
    )


def drip():
    while True:
        time.sleep(0.05)
        yield b" "


class TestBreaker:
    def opened(self, now):
        breaker = CircuitBreaker(lambda: now[0])
        for _ in range(FAILURES):
            breaker.failed(breaker.admit(), UpstreamError("it is silent", 504))
        return breaker

    def test_it_opens_after_failures_in_a_row(self):
        now = [0.0]
        breaker = CircuitBreaker(lambda: now[0])
        for number in range(3 * FAILURES):
            period = breaker.admit()
            if number % FAILURES == FAILURES - 1:
                breaker.succeeded()
            else:
                breaker.failed(period, OSError())
        assert not breaker.is_open
        opened = self.opened(now)
        with pytest.raises(CircuitOpen) as found:
            opened.admit()
        assert found.value.seconds == FIRST_PAUSE
        assert found.value.failures == FAILURES
        assert found.value.cause.status == 504

    def test_one_trial_after_each_pause_which_doubles(self):
        now = [0.0]
        breaker = self.opened(now)
        pause = FIRST_PAUSE
        for _ in range(10):
            now[0] += pause
            period = breaker.admit()
            with pytest.raises(CircuitOpen):
                breaker.admit()
            breaker.failed(period, OSError())
            pause = min(2 * pause, LONGEST_PAUSE)
            now[0] += pause - 0.01
            with pytest.raises(CircuitOpen):
                breaker.admit()
            now[0] += 0.01
        now[0] += pause
        breaker.admit()
        breaker.succeeded()
        assert not breaker.is_open
        breaker.admit()

    def test_what_began_before_the_pause_does_not_lengthen_it(self):
        now = [0.0]
        breaker = CircuitBreaker(lambda: now[0])
        periods = [breaker.admit() for _ in range(50)]
        for period in periods:
            breaker.failed(period, OSError())
        with pytest.raises(CircuitOpen) as found:
            breaker.admit()
        assert found.value.seconds == FIRST_PAUSE


class TestWorkers:
    def test_a_place_is_free_when_the_thread_is_through(self):
        """Not when its request was given up: there would be more and more threads."""
        release = threading.Event()

        async def work():
            # Patience that no load of the machine uses up.
            workers = Workers(threads, 2, queue=1, patience=600)
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    await workers.run(release.wait, 0.01)
            assert workers.busy == 2
            waiting = asyncio.ensure_future(workers.run(int))
            await asyncio.sleep(0)
            with pytest.raises(Busy):  # at once: the queue is full
                await workers.run(int)
            release.set()
            assert await waiting == 0
            assert await workers.run(int) == 0
            # The first thread that was through made place for both; the other may still end.
            while workers.busy:
                await asyncio.sleep(0)
            assert workers.rejected == 1

        threads = Threads()
        asyncio.run(work())
        threads.close()

    def test_patience_ends(self):
        release = threading.Event()

        async def work():
            workers = Workers(threads, 1, queue=1, patience=0.01)
            with pytest.raises(TimeoutError):
                await workers.run(release.wait, 0.01)
            with pytest.raises(Busy):
                await workers.run(int)
            assert (workers.busy, workers.rejected) == (1, 1)
            release.set()

        threads = Threads()
        asyncio.run(work())
        threads.close()

    def test_who_gives_up_does_not_take_a_place(self):
        release = threading.Event()

        async def work():
            workers = Workers(threads, 1, queue=10, patience=10)
            first = asyncio.ensure_future(workers.run(release.wait))
            await asyncio.sleep(0)
            others = [asyncio.ensure_future(workers.run(int)) for _ in range(3)]
            await asyncio.sleep(0)
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            release.set()
            assert await first
            assert await workers.run(int) == 0
            assert workers.busy == 0

        threads = Threads()
        asyncio.run(work())
        threads.close()

    def test_threads_are_used_again(self):
        async def work():
            workers = Workers(threads, 4, queue=1000, patience=10)
            return await asyncio.gather(*(workers.run(threading.get_ident) for _ in range(200)))

        threads = Threads()
        # One that is through may not have said so yet when the next work comes.
        assert len(set(asyncio.run(work()))) <= 8
        threads.close()


class TestStreams:
    """A wheel: a chunk is read and hashed while the one before is sent."""

    def streamed(self, use):
        """Run ``use(stream, busy)``; the budget has no thread in use afterwards."""
        problems = []

        async def work():
            asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
            upstream = Upstream("main", "http://index.example/simple/")
            budget = Budget(upstream, Limits(), Threads())
            await use(
                lambda chunks: budget.stream("http://index.example/x", chunks),
                lambda: budget.in_flight,
            )
            while budget.in_flight:
                await asyncio.sleep(0.01)
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

        async def use(stream, busy):
            found = []
            async for chunk in stream(chunks()):
                found.append(chunk)
                following = asked[len(found) : len(found) + 1]
                assert all([await asyncio.to_thread(event.wait, 60) for event in following])
                assert not any(event.is_set() for event in asked[len(found) + 1 :])
            assert found == [b"0", b"1", b"2", b"3"]
            assert busy() == 0

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

        async def use(stream, busy):
            source = stream(chunks())
            assert await anext(source) == b"first"
            if is_cancelled:
                second = asyncio.ensure_future(anext(source))
                await asyncio.sleep(0.05)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
            await source.aclose()
            assert busy() == 1  # its thread is in use
            assert not closed.is_set()
            release.set()

        self.streamed(use)
        assert closed.is_set()

    @pytest.mark.parametrize("leaves", [False, True])
    def test_an_error_comes_after_the_chunks_before_it(self, leaves):
        raised = threading.Event()

        def chunks():
            yield b"first"
            raised.set()
            raise BadResponse("it differs")

        async def use(stream, busy):
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
        limits = Limits(page_seconds=1.0, connections=4, queue=4, queue_seconds=0.5)
        for number in range(40):
            path = f"/simple/p{number}/"
            other.faults[path] = (200, {"Content-Type": JSON}, drip())
        proxy = start(upstream, other, limits=limits)
        with ThreadPoolExecutor(40) as pool:
            slow = [
                pool.submit(proxy.get, f"{index_url(KEY, 'index1')}p{number}/")
                for number in range(40)
            ]
            while not metric(proxy, "in_flight", "index1"):
                time.sleep(0.01)
            for _ in range(10):
                assert proxy.get(f"{index_url(KEY, 'main')}plain/").status_code == 200
            answers = [each.result() for each in slow]
        assert {answer.status_code for answer in answers} <= {503, 504}
        assert all("index1" in answer.text or "/simple/p" in answer.text for answer in answers)
        assert metric(proxy, "rejected_total", "index1") > 0
        assert metric(proxy, "failures_total", "index1") > 0
        assert metric(proxy, "failures_total", "main") == 0
        assert metric(proxy, "bytes_total", "main") > 0

    def test_one_that_is_not_there_is_left_alone_for_a_while(self, upstream, other, start):
        upstream.add("plain", PLAIN, wheel(PLAIN))
        for number in range(20):
            other.faults[f"/simple/p{number}/"] = (503, {}, b"")
        proxy = start(upstream, other, limits=Limits())
        url = index_url(KEY, "index1")
        answers = [proxy.get(f"{url}p{number}/") for number in range(FAILURES + 3)]
        assert {answer.status_code for answer in answers} == {503}
        asked = len(other.paths)
        assert "index index1: no requests for the next" in answers[-1].text
        assert "HTTP status 503" in answers[-1].text
        assert metric(proxy, "open", "index1") == 1
        assert metric(proxy, "open", "main") == 0
        assert proxy.get(f"{url}p19/").status_code == 503
        assert len(other.paths) == asked
        other.faults.clear()
        other.add("p0", "p0-1.0-py3-none-any.whl", b"x")
        end = time.monotonic() + 20
        while proxy.get(f"{url}p0/").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert metric(proxy, "open", "index1") == 0

    def test_old_pages_serve_meanwhile(self, upstream, start):
        upstream.add("plain", PLAIN, wheel(PLAIN))
        proxy = start(upstream, fresh_seconds=0.0)
        url = f"{index_url(KEY)}plain/"
        assert proxy.get(url).status_code == 200
        upstream.faults["/simple/plain/"] = (503, {}, b"")
        for _ in range(FAILURES + 2):
            assert proxy.get(url).status_code == 200
        assert metric(proxy, "open", "main") == 1


class TestEventLoop:
    def test_a_list_of_projects_that_takes_long_to_read(self, upstream, start, monkeypatch):
        """Whatever it takes: the proxy answers others meanwhile."""
        import variants_proxy.upstream.upstream_pages as upstreams

        release = threading.Event()
        original = upstreams.read_projects

        def slowly(*arguments):
            release.wait(20)
            return original(*arguments)

        monkeypatch.setattr(upstreams, "read_projects", slowly)
        upstream.faults["/simple/"] = (200, {"Content-Type": "text/html"}, b"<a href='x/'>x</a>")
        proxy = start(upstream)
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(proxy.get, index_url(KEY))
            while not metric(proxy, "in_flight", "main"):
                time.sleep(0.01)
            assert proxy.get("/health").status_code == 200
            release.set()
            assert asking.result().status_code == 200

    def test_tags_without_end(self, upstream, start):
        page = b"<a " * 100_000
        upstream.faults["/simple/"] = (200, {"Content-Type": "text/html"}, page)
        with processor_limit():
            answer = start(upstream).get(index_url(KEY))
        assert answer.status_code in (200, 502)


def test_large_pages_that_wait_for_each_other_are_no_failure_of_the_index():
    """They are read one at a time; the index answers all the while."""
    url = "http://index.example/simple/a/"
    limits = Limits(page_seconds=5, queue_seconds=0.01)
    budget = Budget(Upstream("main", "http://index.example/simple/"), limits, Threads())

    async def waiting():
        with budget.large_answer() as answer:
            await budget.page(url, lambda: answer.grown(LARGE + 1))

    async def all_of_them():
        with budget.large_answer() as first:
            first.grown(LARGE + 1)
            for _ in range(FAILURES + 1):
                with pytest.raises(UpstreamError, match="too many requests") as caught:
                    await waiting()
                assert caught.value.status == 503
        await waiting()

    asyncio.run(all_of_them())
    assert (budget.failures, budget.open_breakers) == (0, 0)

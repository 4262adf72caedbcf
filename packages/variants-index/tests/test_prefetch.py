"""Prefetching: every request is made once, and no work waits for its own result."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import pytest

from variants_index.prefetch import Prefetcher

LEAVING = """
import threading
from variants_index.prefetch import Prefetcher
prefetcher = Prefetcher()
prefetcher.start("key", threading.Event().wait)
prefetcher.close()
"""


@pytest.fixture(params=[0, 1, 4])
def prefetcher(request):
    with_threads = Prefetcher(request.param)
    yield with_threads
    with_threads.close()


def test_once(prefetcher):
    calls = []

    def work():
        calls.append(threading.current_thread())
        return len(calls)

    prefetcher.start("key", work)
    prefetcher.start("key", work)
    assert [prefetcher.result("key", work) for _ in range(3)] == [1, 1, 1]
    assert len(calls) == 1


def test_errors_are_results(prefetcher):
    def fail():
        raise LookupError("no")

    prefetcher.start("key", fail)
    for _ in range(2):
        with pytest.raises(LookupError):
            prefetcher.result("key", fail)
    assert prefetcher.result("other", lambda: 1) == 1


def test_work_may_need_the_results_of_other_work(prefetcher):
    def depth(number):
        if number == 0:
            return 0
        return 1 + prefetcher.result(number - 1, lambda: depth(number - 1))

    for number in range(50, 0, -1):
        prefetcher.start(number, lambda number=number: depth(number))
    assert prefetcher.result(50, lambda: depth(50)) == 50


def test_many_want_the_same_at_once(monkeypatch):
    begin = Future.set_running_or_notify_cancel

    def slowly(future):
        time.sleep(0.01)
        return begin(future)

    monkeypatch.setattr(Future, "set_running_or_notify_cancel", slowly)
    prefetcher = Prefetcher(1)
    release = threading.Event()
    prefetcher.start("slow", release.wait)
    prefetcher.start("wanted", object)
    found = []

    def want():
        found.append(prefetcher.result("wanted", object))

    wanting = [threading.Thread(target=want) for _ in range(8)]
    for thread in wanting:
        thread.start()
    for thread in wanting:
        thread.join()
    release.set()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_nothing_starts_after_the_end():
    prefetcher = Prefetcher(2)
    prefetcher.close()
    prefetcher.start("key", lambda: "thread")
    assert prefetcher.result("key", lambda: "here") == "here"


def test_a_process_does_not_wait_for_unused_requests():
    subprocess.run([sys.executable, "-c", LEAVING], check=True, timeout=30)

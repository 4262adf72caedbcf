"""Prefetching: every request is made once, and no work waits for its own result."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from variants_index._prefetch import Prefetcher

LEAVING = """
import threading
from variants_index._prefetch import Prefetcher
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
    """Errors are results."""
    calls = []

    def work():
        calls.append(len(calls))
        raise LookupError

    prefetcher.start("key", work)
    prefetcher.start("key", work)
    for _ in range(3):
        with pytest.raises(LookupError):
            prefetcher.result("key", work)
    assert calls == [0]
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
    with ThreadPoolExecutor(8) as pool:
        wanted = [pool.submit(prefetcher.result, "wanted", object) for _ in range(8)]
    release.set()
    assert len({id(each.result()) for each in wanted}) == 1


def test_nothing_starts_after_the_end():
    prefetcher = Prefetcher(2)
    prefetcher.close()
    prefetcher.start("key", lambda: "thread")
    assert prefetcher.result("key", lambda: "here") == "here"


def test_a_process_does_not_wait_for_unused_requests():
    subprocess.run([sys.executable, "-c", LEAVING], check=True, timeout=30)

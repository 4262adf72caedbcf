"""Everything once, nobody waits for himself."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import pytest

from resolvelib_variants.resolution.ahead import Ahead

LEAVING = """
import threading
from resolvelib_variants.resolution.ahead import Ahead
ahead = Ahead()
ahead.start("key", threading.Event().wait)
ahead.close()
"""


@pytest.fixture(params=[0, 1, 4])
def ahead(request):
    with_threads = Ahead(request.param)
    yield with_threads
    with_threads.close()


def test_once(ahead):
    calls = []

    def work():
        calls.append(threading.current_thread())
        return len(calls)

    ahead.start("key", work)
    ahead.start("key", work)
    assert [ahead.result("key", work) for _ in range(3)] == [1, 1, 1]
    assert len(calls) == 1


def test_errors_are_results(ahead):
    def fail():
        raise LookupError("no")

    ahead.start("key", fail)
    for _ in range(2):
        with pytest.raises(LookupError):
            ahead.result("key", fail)
    assert ahead.result("other", lambda: 1) == 1


def test_what_waits_for_a_thread_is_done_by_who_needs_it():
    ahead = Ahead(1)
    release = threading.Event()
    ahead.start("slow", release.wait)
    ahead.start("wanted", lambda: "thread")
    assert ahead.result("wanted", lambda: "here") == "here"
    release.set()
    assert ahead.result("slow", lambda: None) is True


def test_work_may_need_the_results_of_other_work(ahead):
    def depth(number):
        if number == 0:
            return 0
        return 1 + ahead.result(number - 1, lambda: depth(number - 1))

    for number in range(50, 0, -1):
        ahead.start(number, lambda number=number: depth(number))
    assert ahead.result(50, lambda: depth(50)) == 50


def test_many_want_the_same_at_once(monkeypatch):
    begin = Future.set_running_or_notify_cancel

    def slowly(future):
        time.sleep(0.01)
        return begin(future)

    monkeypatch.setattr(Future, "set_running_or_notify_cancel", slowly)
    ahead = Ahead(1)
    release = threading.Event()
    ahead.start("slow", release.wait)
    ahead.start("wanted", object)
    found = []

    def want():
        found.append(ahead.result("wanted", object))

    wanting = [threading.Thread(target=want) for _ in range(8)]
    for thread in wanting:
        thread.start()
    for thread in wanting:
        thread.join()
    release.set()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_nothing_starts_after_the_end():
    ahead = Ahead(2)
    ahead.close()
    ahead.start("key", lambda: "thread")
    assert ahead.result("key", lambda: "here") == "here"


def test_a_process_does_not_wait_for_what_nobody_wants():
    subprocess.run([sys.executable, "-c", LEAVING], check=True, timeout=30)

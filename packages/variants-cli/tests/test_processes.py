"""Work shared by several processes: in order, bounded, and ended with its parent."""

import os
import signal
import subprocess
import sys
import time

import pytest

from variants_cli.processes import ProcessDied, mapped

SLEEPER = """
import sys, time
from variants_cli.processes import mapped
def work(seconds):
    print(seconds, flush=True)
    time.sleep(seconds)
if __name__ == "__main__":
    for _ in mapped(work, [600.0] * 4, 4, jobs=2, enough=1, chunk=1):
        pass
"""


def double(number):
    return 2 * number


@pytest.mark.parametrize(("jobs", "enough"), [(1, 1), (2, 1), (3, 1), (2, 1000), (None, 1)])
def test_results_are_in_order(jobs, enough):
    items = range(503)
    found = mapped(double, iter(items), len(items), jobs=jobs, enough=enough)
    assert list(found) == [2 * number for number in items]


def test_few_items_stay_in_this_process():
    assert list(mapped(id_of_process, [1, 2], 2)) == [os.getpid()] * 2
    assert list(mapped(double, [], 0, enough=0)) == []
    elsewhere = list(mapped(id_of_process, [1, 2], 2, jobs=2, enough=2, chunk=1))
    assert os.getpid() not in elsewhere


def id_of_process(_):
    return os.getpid()


def test_a_caller_that_stops_early():
    found = mapped(double, range(1000), 1000, jobs=2, enough=1)
    assert next(found) == 0
    found.close()


def test_a_process_that_is_killed():
    with pytest.raises(ProcessDied, match="--jobs 1"):
        list(mapped(os._exit, [1, 1], 2, jobs=2, enough=1, chunk=1))


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_behind(number, tmp_path):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    parent = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout.readline() == "600.0\n"
    assert parent.stdout.readline() == "600.0\n"
    running = children(parent.pid)
    assert len(running) >= 2
    parent.send_signal(number)
    assert parent.wait(20) != 0
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while not all(map(gone, running)):
        assert time.monotonic() < deadline
        time.sleep(0.05)

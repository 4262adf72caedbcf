"""Run a command and record what it cost; started as ``python -I -S launcher.py JOB``.

A process of its own and small: Linux counts the memory of the process that forks as a child's.
The job is a JSON file: ``command``, ``seconds``, ``patience`` (how many seconds processes may go on
after the command; then they are killed, and count as left), ``out``, ``err``, ``result``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

MEMORY = 8 << 30
"""Bytes of address space of a process: an attack that succeeds must not take down this machine."""


class Costs:
    """What the command and the processes that it leaves behind cost.

    Attributes:
        cpu: seconds of all of them.
        memory: bytes, the most that one of them had.
    """

    def __init__(self) -> None:
        """Have processes without a parent become children of this one, on Linux."""
        self.cpu = 0.0
        self.memory = 0
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER

    def wait(self, process: int, options: int = 0) -> int | None:
        """Wait for *process*, -1 for any; return its exit status, None if it still runs."""
        number, status, usage = os.wait4(process, options)
        if number == 0:
            return None
        self.cpu += usage.ru_utime + usage.ru_stime
        unit = 1 if sys.platform == "darwin" else 1024
        self.memory = max(self.memory, usage.ru_maxrss * unit)
        return os.waitstatus_to_exitcode(status)

    def wait_for_the_rest(self, patience: float) -> bool:
        """Wait for processes that the command left; return whether any had to be killed."""
        if sys.platform != "linux":
            return False
        end = time.monotonic() + patience
        killed = False
        while True:
            try:
                if self.wait(-1, os.WNOHANG) is None:
                    if time.monotonic() > end:
                        for child in children():
                            os.kill(child, signal.SIGKILL)
                            killed = True
                    time.sleep(0.02)
            except ChildProcessError:
                return killed


def children() -> list[int]:
    """Return the processes whose parent this one is, on Linux."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    return [int(number) for number in text.split()]


def main() -> None:
    """Run the job."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    costs = Costs()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    start = time.monotonic()
    timed_out = threading.Event()
    with Path(job["out"]).open("wb") as out, Path(job["err"]).open("wb") as err:
        process = subprocess.Popen(
            job["command"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )

        def end() -> None:
            timed_out.set()
            os.killpg(process.pid, signal.SIGKILL)

        watch = threading.Timer(job["seconds"], end)
        watch.start()
        code = costs.wait(process.pid)
        watch.cancel()
        left = costs.wait_for_the_rest(job["patience"])
    result = {
        "code": code,
        "cpu": costs.cpu,
        "left": left,
        "memory": costs.memory,
        "seconds": time.monotonic() - start,
        "timed_out": timed_out.is_set(),
    }
    Path(job["result"]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()

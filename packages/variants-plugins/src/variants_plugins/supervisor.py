"""The process between the caller and a plugin: ends the plugin with all that it started.

Runs in the environment of the plugin, on Linux only, so only the standard library may be imported.
It ends every process that the plugin leaves behind, also those in new sessions, and limits their
number and total memory: limits of the kernel count per process, or all processes of the user.
"""

# ruff: noqa: PTH123, PTH208
# Looks into hundreds of files of /proc, which pathlib makes several times dearer.

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

_INTERVAL = 0.02
"""Seconds between two looks at the processes."""

_PR_SET_CHILD_SUBREAPER = 36


def supervise(
    plugin: Callable[[], None],
    failed: Callable[[str], None],
    *,
    seconds: float,
    memory: int,
    processes: int,
) -> NoReturn:
    """Run *plugin* in a child process, end everything that it started, exit with its status.

    Args:
        plugin: does not return.
        failed: reports which limit was exceeded.
        seconds: after which the plugin is ended, should the caller not be there any more to do it.
        memory: bytes that all processes may have together (resident; shared pages count for each).
        processes: the most processes at a time.
    """
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The caller asks with this one; what it sends next cannot be handled.
    signal.signal(signal.SIGTERM, _terminated)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        try:
            plugin()
        finally:
            os._exit(1)
    exceeded = ""
    status = None
    try:
        deadline = time.monotonic() + seconds
        while status is None and not exceeded:
            signal.sigtimedwait([signal.SIGCHLD], _INTERVAL)
            ended, found = os.waitpid(child, os.WNOHANG)
            if ended:
                status = found
                break
            count, size = _usage()
            if count > processes:
                exceeded = f"started more than {processes} processes"
            elif size > memory:
                exceeded = f"used more than {memory // 2**20} MiB of memory"
            elif time.monotonic() > deadline:
                break
    finally:
        end_children()
    if exceeded:
        failed(exceeded)
        os._exit(0)
    if status is None:
        os._exit(1)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def end_children() -> None:
    """Kill all descendants of this process, and reap them."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # none is left, and none can come
            return
        time.sleep(0.001)


def _terminated(number: int, _frame: object) -> NoReturn:
    end_children()
    os._exit(128 + number)


def _descendants() -> list[int]:
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:  # gone
            continue
        for task in tasks:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as stream:
                children = list(map(int, stream.read().split()))
                found += children
                pending += children
    return found


def _usage() -> tuple[int, int]:
    """Return how many descendants there are, and how many bytes they have in memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    pids = _descendants()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as stream:
            total += int(stream.read().split()[1]) * page
    return len(pids), total


assert sys.platform != "win32"

"""Waiting for what other processes do, and limits of time and memory."""

from __future__ import annotations

import signal
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    """Return whether *condition* holds within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def processor_limit(seconds: float = 60.0) -> Iterator[None]:
    """Raise `TimeoutError` after so many seconds of CPU of this process: for what may not end.

    Other work of the machine does not count. Windows has no such timer.
    """
    if sys.platform == "win32":
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Check that at most *size* bytes are allocated by Python code at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= size
    finally:
        tracemalloc.stop()

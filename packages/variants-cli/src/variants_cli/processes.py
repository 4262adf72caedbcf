"""One function applied to many items by one process per core, with results in order.

Each process starts afresh (``spawn``), on every system alike: a copy of a process with threads may
never get on. That takes a fraction of a second, so a few items are left to the calling process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeVar

from pep_variants.errors import VariantError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

ENOUGH = 1000
"""Items of about a millisecond each that are worth starting processes for."""

CHUNK = 50
_MOST = 60  # Windows cannot wait for more than 63 processes


class ProcessDied(VariantError):
    """A process that was to do a part of the work and ended without a result."""


def mapped(
    function: Callable[[T], R],
    items: Iterable[T],
    count: int,
    *,
    jobs: int | None = None,
    enough: int = ENOUGH,
    chunk: int = CHUNK,
) -> Iterator[R]:
    """Yield what *function* returns for each of *items*, in their order.

    If the caller stops early, or is interrupted, the processes end.

    Args:
        function: of a module, or a `functools.partial` of one. It has to return what is wrong:
            not every exception gets from one process to another.
        items: arguments; like the results, they have to be picklable.
        count: number of items.
        jobs: number of processes, None for one per core.
        enough: with fewer items, no process is started.
        chunk: items that a process gets at a time.

    Raises:
        ProcessDied: a process was killed, for lack of memory for example.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    jobs = min(jobs or cores, _MOST, -(-count // chunk))
    if jobs < 2 or count < enough:
        yield from map(function, items)
        return
    with _pool(jobs) as pool:
        try:
            yield from pool.map(function, items, chunksize=chunk)
        except BrokenProcessPool:
            raise ProcessDied(
                "a process that does a part of the work was killed: is there enough memory? "
                "--jobs 1 needs the least"
            ) from None


@contextlib.contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start
    )
    try:
        yield pool
    except BaseException:
        # Not waited for: a chunk of large files takes minutes.
        running = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        raise
    pool.shutdown()


def _start() -> None:
    """Set up a new process: interrupts are for its parent, without which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)

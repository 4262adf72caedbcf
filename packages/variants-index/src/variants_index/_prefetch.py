"""Results that are computed once, and ahead of time in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], object]]


class Prefetcher:
    """Computes a result per key, once; an error is a result, too.

    A result that is needed before a thread started it is computed by the thread that needs it: no
    thread waits for a queued one, so there is no deadlock. The threads are daemons: a process does
    not wait for results that it does not need.
    """

    def __init__(self, threads: int = 16) -> None:
        """Set up; with 0 *threads*, nothing is computed ahead."""
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._futures: dict[Hashable, Future[Any]] = {}
        self._closed = False

    def start(self, key: Hashable, work: Callable[[], object]) -> None:
        """Start *work* in a thread, unless *key* is known."""
        with self._lock:
            if key in self._futures or self._closed or not self._most:
                return
            future: Future[Any] = Future()
            self._futures[key] = future
            self._waiting.put((future, work))
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._run, name="variants-index", daemon=True)
                self._threads.append(thread)
                thread.start()

    def result(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result for *key*, computed with *work* if it is not known yet."""
        with self._lock:
            future = self._futures.get(key)
            mine = future is None or future.cancel()
            if mine:
                future = self._futures[key] = Future()
                # While the lock is held: other threads must not cancel it.
                future.set_running_or_notify_cancel()
        assert future is not None
        if mine:
            _do(future, work)
        return future.result()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Cancel what was not started, and wait half a second for the rest."""
        with self._lock:
            self._closed = True
            for future in self._futures.values():
                future.cancel()
            for _ in self._threads:
                self._waiting.put(None)
        until = time.monotonic() + 0.5
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            future, work = item
            if future.set_running_or_notify_cancel():
                _do(future, work)


def _do(future: Future[Any], work: Callable[[], object]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

"""Doing things once, and ahead of time in threads where somebody will want them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], object]]


class Ahead:
    """Results by key, each worked out once; errors are results, too.

    What has been started but is still waiting for a thread when somebody needs it is done by who
    needs it, so nobody ever waits for something that waits for him. Threads do not keep a process
    alive: whoever has his answer, or gives up, need not wait for what was fetched in vain.
    """

    def __init__(self, threads: int = 16) -> None:
        """Set up; without *threads* nothing is done ahead."""
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._futures: dict[Hashable, Future[Any]] = {}
        self._closed = False

    def start(self, key: Hashable, work: Callable[[], object]) -> None:
        """Have *work* done in a thread, unless that has happened already."""
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
        """Return the result for *key*, which *work* gives if nobody has worked it out yet."""
        with self._lock:
            future = self._futures.get(key)
            mine = future is None or future.cancel()
            if mine:
                future = self._futures[key] = Future()
                # Before anybody else sees it, who would take it for one that waits.
                future.set_running_or_notify_cancel()
        assert future is not None
        if mine:
            _do(future, work)
        return future.result()  # type: ignore[no-any-return]

    def close(self, patience: float = 0.5) -> None:
        """Drop what has not been started yet, and give the rest so many seconds to end well."""
        with self._lock:
            self._closed = True
            for future in self._futures.values():
                future.cancel()
            for _ in self._threads:
                self._waiting.put(None)
        until = time.monotonic() + patience
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

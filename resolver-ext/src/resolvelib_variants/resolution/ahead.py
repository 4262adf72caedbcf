"""Doing things once, and ahead of time in threads where somebody will want them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Ahead:
    """Results by key, each worked out once; errors are results, too.

    What has been started but is still waiting for a thread when somebody needs it is done by who
    needs it, so nobody ever waits for something that waits for him.
    """

    def __init__(self, threads: int = 16) -> None:
        """Set up; without *threads* nothing is done ahead."""
        self._pool = ThreadPoolExecutor(threads, "variants-index") if threads else None
        self._lock = threading.Lock()
        self._futures: dict[Hashable, Future[Any]] = {}

    def start(self, key: Hashable, work: Callable[[], object]) -> None:
        """Have *work* done in a thread, unless that has happened already."""
        if self._pool is None:
            return
        with self._lock:
            if key not in self._futures:
                self._futures[key] = self._pool.submit(work)

    def result(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result for *key*, which *work* gives if nobody has worked it out yet."""
        with self._lock:
            future = self._futures.get(key)
            mine = future is None or future.cancel()
            if mine:
                future = self._futures[key] = Future()
                future.set_running_or_notify_cancel()
        assert future is not None
        if mine:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        return future.result()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Drop what has not been started yet and wait for the rest."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

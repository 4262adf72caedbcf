"""Work and results that requests share: an LRU cache, one call for equal ones, few at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A mapping that drops the least recently used values to stay within a total weight.

    Attributes:
        limit: maximum total weight.
        weight: total weight of the values.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.weight = 0
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of *key*, None if there is none."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Store *value*, unless its weight is above the limit."""
        self.remove(key)
        if weight > self.limit:
            return
        self._items[key] = value, weight
        self.weight += weight
        while self.weight > self.limit:
            self.weight -= self._items.popitem(last=False)[1][1]

    def remove(self, key: K) -> None:
        """Remove *key* if it is there."""
        found = self._items.pop(key, None)
        if found is not None:
            self.weight -= found[1]


T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Calls in progress by key: concurrent calls with one key share one result."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Future[T]] = {}

    async def join(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return what *work* returns, or what the call in progress for *key* will return.

        The call continues if a caller is cancelled, since others may await it.
        """
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(work())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(task)

    def _finish(self, key: Hashable, task: asyncio.Future[T]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it if no caller is left


async def gather_limited(works: Sequence[Callable[[], Awaitable[T]]], parallel: int) -> list[T]:
    """Return the results of *works* in order, running at most *parallel* of them at a time.

    If one fails, its error is raised when those that have begun are done; no more are begun.
    """
    semaphore = asyncio.Semaphore(parallel)
    results: dict[int, T] = {}
    failures: list[Exception] = []

    async def one(number: int, work: Callable[[], Awaitable[T]]) -> None:
        async with semaphore:
            try:
                if not failures:
                    results[number] = await work()
            except Exception as error:
                failures.append(error)

    await asyncio.gather(*(one(number, work) for number, work in enumerate(works)))
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(works))]

"""Concurrent work: one call for all who need the same result, and limited parallelism."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

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
    """Return the results of *works* in order, running at most *parallel* of them at a time."""
    semaphore = asyncio.Semaphore(parallel)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await work()

    return list(await asyncio.gather(*map(one, works)))

"""Work side by side: what several ask for at the same time is done once, and not too much of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Work that is under way, by what it is for."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Future[T]] = {}

    async def join(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return what *work* returns; whoever asks for *key* meanwhile gets the same.

        The work goes on when somebody stops waiting for it: others may wait as well, and the
        next one will ask again.
        """
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(work())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(task)

    def _land(self, key: Hashable, task: asyncio.Future[T]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # those who waited have seen it; if nobody did, it is not missed


async def each(works: Sequence[Callable[[], Awaitable[T]]], parallel: int) -> list[T]:
    """Do *works* side by side, *parallel* of them at a time; return what they return."""
    gate = asyncio.Semaphore(parallel)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await work()

    return list(await asyncio.gather(*map(one, works)))

"""Threads for blocking calls and long computations, which must not run in the event loop.

They are daemon threads: a process exits although one of them waits for an upstream. `Workers`
limits how many of them one kind of work uses. Work whose request was cancelled counts until it
ends, since its thread is in use.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Busy(Exception):
    """Work was not started: all threads for its kind are in use, and none was free in time."""


class Threads:
    """A pool of daemon threads, as many as there are functions running at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = 0
        self._closed = False

    def submit(self, work: Callable[[], None]) -> None:
        """Run *work*, which must not raise, immediately in a thread."""
        with self._lock:
            needed = self._idle == 0
            self._idle -= not needed
            self._work.put(work)
        if needed:
            threading.Thread(target=self._serve, name="proxy worker", daemon=True).start()

    def close(self) -> None:
        """End idle threads now, the others when their work is done."""
        with self._lock:
            self._closed = True
            for _ in range(self._idle):
                self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # frees what only this reference keeps alive
            with self._lock:
                if self._closed:
                    return
                self._idle += 1


class Workers:
    """At most *size* threads of a pool; used from one event loop.

    Attributes:
        size: maximum number of threads in use.
        busy: number of threads in use.
        rejected: number of times that work was not started.
    """

    def __init__(self, threads: Threads, size: int, *, queue: int, patience: float) -> None:
        """Set up.

        Args:
            threads: the pool.
            size: maximum number of threads in use.
            queue: maximum number of functions waiting for a thread.
            patience: seconds that they wait.
        """
        self.size = size
        self.busy = 0
        self.rejected = 0
        self._threads = threads
        self._queue = queue
        self._patience = patience
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Return what *function* returns, run in a thread.

        Args:
            function: the work.
            seconds: timeout for its result; the function itself keeps running.

        Raises:
            Busy: it was not started.
            TimeoutError: it takes longer than *seconds*.
        """
        await self.enter()
        return await self.finish(function, seconds)

    async def enter(self) -> None:
        """Reserve a thread until `leave` or `finish`.

        Raises:
            Busy: none was free in time.
        """
        if self.busy < self.size:
            self.busy += 1
            return
        if len(self._waiting) >= self._queue:
            self.rejected += 1
            raise Busy
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        self._waiting.append(place)
        timer = loop.call_later(self._patience, _give_up, place)
        try:
            await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # the request was cancelled meanwhile
            else:
                with suppress(ValueError):
                    self._waiting.remove(place)
                self.rejected += isinstance(error, Busy)
            raise
        finally:
            timer.cancel()

    def leave(self) -> None:
        """Release a reserved thread."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.busy -= 1

    async def finish(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Return what *function* returns, run in a reserved thread, which is then released."""
        done = self.begin(function, self.leave)
        if seconds is None:
            return await done
        timer = asyncio.get_running_loop().call_later(seconds, _time_out, done)
        try:
            return await done
        finally:
            timer.cancel()

    def begin(self, function: Callable[[], T], after: Callable[[], None]) -> asyncio.Future[T]:
        """Run *function* in a reserved thread, which stays reserved; return its result to come.

        Args:
            function: the work.
            after: called when it has ended, also if its result is not awaited any more.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def end(outcome: _Outcome[T]) -> None:
            after()
            if done.done():
                return
            if outcome.error is not None:
                done.set_exception(outcome.error)
            else:
                done.set_result(outcome.result)  # type: ignore[arg-type] # the function's result

        def work() -> None:
            outcome = _outcome(function)
            with suppress(RuntimeError):  # the loop is closed: the process exits
                loop.call_soon_threadsafe(end, outcome)

        self._threads.submit(work)
        return done


@dataclass(frozen=True)
class _Outcome(Generic[T]):
    """The result or the exception of a function."""

    result: T | None
    error: BaseException | None


def _outcome(function: Callable[[], T]) -> _Outcome[T]:
    try:
        return _Outcome(function(), None)
    except BaseException as error:
        return _Outcome(None, error)


def _give_up(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_exception(Busy())


def _time_out(done: asyncio.Future[T]) -> None:
    if not done.done():
        done.set_exception(TimeoutError())

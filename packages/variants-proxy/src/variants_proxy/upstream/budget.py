"""Resources of one upstream: threads, memory and circuit breakers, apart from all others'."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar
from urllib.parse import urlsplit

from pep_variants.errors import InvalidWheel
from pep_variants.urls import is_local
from variants_index.errors import AccessDenied, NotFound, PackageIndexError, Unreachable

from ..errors import UpstreamError
from ..settings import Limits, Upstream
from .circuit_breaker import CircuitBreaker, CircuitOpen
from .lru import LRUCache
from .workers import Busy, Threads, Workers

T = TypeVar("T")

LARGE = 2**20
"""Size in bytes above which an upstream has one answer in memory at a time. Parsing a page takes up
to ten times its size; the pages of most projects have less than 100 kB."""

_SOON = 0.05

_ORIGINS = 64
"""Maximum number of circuit breakers of one upstream, whose pages may link to any servers."""

Origin = tuple[str, str | None, int | None]


class LargeAnswer:
    """Reserves memory for a large answer, from `LARGE` bytes on until its bytes are not needed."""

    def __init__(self, places: threading.Semaphore, seconds: float) -> None:
        self._places = places
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held = self._closed = False

    def grown(self, size: int) -> None:
        """Wait for the reservation once the answer has more than `LARGE` bytes.

        Raises:
            Busy: it was not available in time, because of other requests.
            Unreachable: the request was cancelled meanwhile.
        """
        if size <= LARGE or self._held:
            return
        if not self._places.acquire(timeout=self._seconds):
            raise Busy
        with self._lock:
            self._held = not self._closed
        if self._closed and not self._held:
            self._places.release()
            raise Unreachable("the client did not read the response in time")

    @property
    def is_held(self) -> bool:
        """Whether the memory is reserved."""
        return self._held

    def collect(self) -> None:
        """Collect the garbage that refers to the answer, then release the reservation."""
        gc.collect()
        self.close()

    def close(self) -> None:
        """Release the reservation."""
        with self._lock:
            held, self._held, self._closed = self._held, False, True
        if held:
            self._places.release()


class Budget:
    """The threads of one upstream by kind of work, and its circuit breakers.

    Pages have threads apart from files, which may be on any server that a page names. Computations
    have few threads: with more, the interpreter lock delays everything else.

    Attributes:
        failures: requests without a response in time.
        received: bytes of pages, small files and streamed wheels.
    """

    def __init__(self, upstream: Upstream, limits: Limits, threads: Threads) -> None:
        def workers(size: int) -> Workers:
            return Workers(threads, size, queue=limits.queue, patience=limits.queue_seconds)

        self.failures = 0
        self.received = 0
        self._name = upstream.name
        self._threads = threads
        self._limits = limits
        self._pages = workers(limits.connections)
        self._files = workers(limits.connections)
        self._streams = workers(limits.streams)
        self._computing = workers(limits.workers)
        self._breakers: LRUCache[Origin, CircuitBreaker] = LRUCache(_ORIGINS)
        self._large = threading.Semaphore(1)

    @property
    def in_flight(self) -> int:
        """Requests in progress, and computations on their responses."""
        return sum(each.busy for each in self._all())

    @property
    def rejected(self) -> int:
        """Number of requests for which no thread was free in time."""
        return sum(each.rejected for each in self._all())

    @property
    def open_breakers(self) -> int:
        """Number of servers whose circuit breaker is open."""
        return sum(breaker.is_open for breaker in self._breakers.values())

    def _all(self) -> tuple[Workers, ...]:
        return self._pages, self._files, self._streams, self._computing

    @contextmanager
    def large_answer(self) -> Iterator[LargeAnswer]:
        """Yield the reservation for a large answer, one at a time for the upstream."""
        answer = LargeAnswer(self._large, self._limits.queue_seconds)
        try:
            yield answer
        except BaseException:
            if answer.is_held:
                # Tasks and their exceptions form cycles, and the frames in tracebacks refer to the
                # answer: the garbage collector has to free it.
                loop = asyncio.get_running_loop()
                loop.call_later(_SOON, self._threads.submit, answer.collect)
            else:
                answer.close()
            raise
        answer.close()

    async def page(self, url: str, function: Callable[[], T]) -> T:
        """Return what *function* returns, which fetches the page at *url*.

        Raises:
            UpstreamError: it fails, takes too long, or the server gets no requests now.
        """
        return await self._asked(self._pages, url, function, self._limits.page_seconds)

    async def file(self, url: str, function: Callable[[], T], seconds: float | None = None) -> T:
        """Return what *function* returns, which fetches or inspects the file at *url*.

        Raises:
            UpstreamError: it fails, takes too long, or the server gets no requests now.
        """
        return await self._asked(self._files, url, function, seconds)

    async def compute(self, function: Callable[[], T]) -> T:
        """Return what *function* returns, a computation without I/O.

        Raises:
            UpstreamError: no thread was free in time, or the upstream's data is not valid.
        """
        try:
            return await self._computing.run(function)
        except Busy:
            raise self._too_busy() from None
        except (PackageIndexError, InvalidWheel) as error:
            raise UpstreamError(str(error)) from None

    async def stream(self, url: str, chunks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield *chunks* of the file at *url*, each read in a thread while the one before is sent.

        Raises:
            UpstreamError: no thread was free in time, or the server gets no requests now.
            PackageIndexError, VariantError, OSError: as *chunks* does.
        """
        breaker = self._breaker(url)
        period = self._admitted(breaker)
        try:
            await self._streams.enter()
        except Busy:
            raise self._too_busy() from None
        running = abandoned = False

        def leave() -> None:
            self._streams.leave()
            close = getattr(chunks, "close", None)
            if close is not None:
                with suppress(Exception):
                    close()

        def after() -> None:
            nonlocal running
            running = False
            if abandoned:
                leave()

        def read() -> asyncio.Future[bytes | None]:
            nonlocal running
            running = True
            return self._streams.begin(lambda: next(chunks, None), after)

        reading = read()
        try:
            while (chunk := await reading) is not None:
                breaker.succeeded()
                self.received += len(chunk)
                reading = read()  # and hash, while this one is sent
                yield chunk
            breaker.succeeded()
        except Exception as error:
            if isinstance(error, Unreachable):
                self.failures += 1
                breaker.failed(period, self._failure(error, None))
            raise
        finally:
            if not reading.cancel() and not reading.cancelled():
                reading.exception()  # or asyncio reports it as not retrieved
            # A thread that still waits for a chunk stays reserved until that arrives.
            abandoned = running
            if not running:
                leave()

    async def _asked(
        self, workers: Workers, url: str, function: Callable[[], T], seconds: float | None
    ) -> T:
        breaker = self._breaker(url)
        period = self._admitted(breaker)
        try:
            result = await workers.run(function, seconds)
        except Busy:
            raise self._too_busy() from None
        except (TimeoutError, Unreachable) as error:
            self.failures += 1
            # Not the exception that is raised: its frames refer to the data.
            breaker.failed(period, self._failure(error, seconds))
            raise self._failure(error, seconds) from None
        except AccessDenied as error:
            breaker.succeeded()
            raise UpstreamError(str(error), 403) from None
        except NotFound as error:
            breaker.succeeded()
            raise UpstreamError(str(error), error.status or 404) from None
        except PackageIndexError as error:
            breaker.succeeded()
            raise UpstreamError(str(error), _own_status(error) or 502) from None
        except InvalidWheel as error:
            breaker.succeeded()
            raise UpstreamError(str(error)) from None
        breaker.succeeded()
        return result

    def _failure(self, error: Exception, seconds: float | None) -> UpstreamError:
        if isinstance(error, TimeoutError):
            return UpstreamError(
                f"index {self._name}: no complete response within {seconds:g} seconds", 504
            )
        status = 504 if "in time" in str(error) else 502
        return UpstreamError(str(error), _own_status(error) or status)

    def _too_busy(self) -> UpstreamError:
        return UpstreamError(
            f"index {self._name}: too many requests in progress, none finished within "
            f"{self._limits.queue_seconds:g} seconds: try again later",
            503,
        )

    def _admitted(self, breaker: CircuitBreaker) -> int:
        try:
            return breaker.admit()
        except CircuitOpen as error:
            status = error.cause.status if isinstance(error.cause, UpstreamError) else 502
            raise UpstreamError(
                f"index {self._name}: no requests for the next {error.seconds:.0f} seconds "
                f"after {error.failures} consecutive failures, the last: {error.cause}",
                status,
            ) from None

    def _breaker(self, url: str) -> CircuitBreaker:
        if is_local(url):
            return CircuitBreaker()  # not a server: a pause does not help
        parts = urlsplit(url)
        origin = parts.scheme, parts.hostname, parts.port
        breaker = self._breakers.get(origin)
        if breaker is None:
            breaker = CircuitBreaker()
            self._breakers.put(origin, breaker)
        return breaker


def _own_status(error: Exception) -> int:
    """Return the upstream's own error status: installers show nothing else, and retry by it."""
    status = error.status if isinstance(error, PackageIndexError) else 0
    return status if 400 <= status < 600 else 0

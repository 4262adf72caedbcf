"""Connections to upstream indexes: sessions, limits of concurrent work, the cache on disk.

Each upstream has limits of its own, so that one that hangs does not hold the others. Requests block
threads: httpx's client is synchronous, and so are hashing and rewriting.

Files with a hash never change and are cached permanently: whole files, which are verified, under
their hash; data that cannot be verified, read from a part of a file or beside it, under index, URL
and hash, since any index may claim the hash of another's file.
"""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote, urlsplit

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from pep_variants import safe_files
from pep_variants.errors import InvalidWheel
from pep_variants.preferences import Sources
from variants_index import http
from variants_index.finder import PlacedFile, Session, Store
from variants_index.http import AccessDenied, NotFound, PackageIndexError, TimedOut, UntrustedServer
from variants_index.pages import PageFile

from ..errors import PassingFailure, UpstreamError
from ..settings import Limits, Settings, Upstream

T = TypeVar("T")

_RETRIES = 2

LARGE = 2**20
"""Size in bytes of a response above which an upstream has one in memory at a time."""


class Budget:
    """The limits of one upstream: of concurrent requests, of computations, and of their time."""

    def __init__(self, name: str, limits: Limits, *, lenient: bool = False) -> None:
        self._name = name
        self._limits = limits
        self._passing = UpstreamError if lenient else PassingFailure
        self._large = threading.Semaphore(1)

    @cached_property
    def _requests(self) -> CapacityLimiter:
        return CapacityLimiter(self._limits.connections)

    @cached_property
    def _streams(self) -> CapacityLimiter:  # apart: a wheel may take minutes
        return CapacityLimiter(self._limits.connections)

    @cached_property
    def _computing(self) -> CapacityLimiter:
        return CapacityLimiter(self._limits.workers)

    async def fetch(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Return the result of *function*, which sends requests.

        Args:
            function: the work, for a thread.
            seconds: timeout, with waiting for a thread; by default that of a page.

        Raises:
            PassingFailure: it fails for now, or takes too long.
            UpstreamError: it fails; in any case with `Settings.allow_missing_sources`.
        """
        seconds = self._limits.page_seconds if seconds is None else seconds
        try:
            with anyio.fail_after(seconds):
                return await run_sync(function, abandon_on_cancel=True, limiter=self._requests)
        except TimeoutError:
            problem = f"no complete response within {seconds:g} seconds"
            raise self._passing(f"index {self._name}: {problem}", 504, problem) from None
        except (PackageIndexError, InvalidWheel) as error:
            kind = self._passing if getattr(error, "may_pass", False) else UpstreamError
            raise kind(str(error), _status(error), error.problem) from None
        except OSError as error:  # a disk that is full
            raise self._passing(f"index {self._name}: {error}", 503, str(error)) from None

    @contextmanager
    def large_response(self) -> Iterator[Callable[[int], None]]:
        """Yield a function to call with the size of a response while it grows, in a thread.

        Above `LARGE` bytes it waits until no other large response of the upstream is in use: the
        memory for reading a page is up to ten times its size.

        Raises:
            TimedOut: the other ones take too long.
        """
        held = False

        def grown(size: int) -> None:
            nonlocal held
            if size > LARGE and not held:
                held = self._large.acquire(timeout=self._limits.page_seconds)
                if not held:
                    raise TimedOut(
                        "other responses are not read in time", url=f"index {self._name}"
                    )

        try:
            yield grown
        except PackageIndexError as error:
            traceback.clear_frames(error.__traceback__)  # they refer to the response
            raise
        finally:
            if held:
                self._large.release()

    async def compute(self, function: Callable[[], T]) -> T:
        """Return the result of *function*, a computation without I/O.

        Raises:
            UpstreamError: the upstream's data is not valid.
        """
        try:
            return await run_sync(function, limiter=self._computing)
        except (PackageIndexError, InvalidWheel) as error:
            raise UpstreamError(str(error), problem=error.problem) from None

    async def stream(self, chunks: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
        """Yield *chunks*, each read and hashed in a thread while the one before is sent.

        Raises:
            PackageIndexError, VariantError, OSError: as *chunks* does.
        """

        def read() -> asyncio.Future[bytes | None]:
            return asyncio.ensure_future(run_sync(next, chunks, None, limiter=self._streams))

        def close(last: asyncio.Future[bytes | None]) -> None:
            chunks.close()
            if not last.cancelled():
                last.exception()  # retrieved, or asyncio would log it

        reading = read()
        try:
            while (chunk := await asyncio.shield(reading)) is not None:
                reading = read()
                yield chunk
        finally:
            reading.add_done_callback(close)


def _status(error: Exception) -> int:
    """Return the status of the response for *error*: installers show it, and retry by it."""
    if isinstance(error, AccessDenied):
        return 403
    if isinstance(error, NotFound):
        return error.status or 404
    if isinstance(error, UntrustedServer):
        return 424  # not 5xx, which clients retry in vain
    if isinstance(error, PackageIndexError) and 400 <= error.status < 600:
        return error.status
    return 504 if isinstance(error, TimedOut) else 502


class Upstreams:
    """Connections to the upstreams of one proxy.

    Attributes:
        settings: of the proxy.
        limits: of the settings.
        store: the cache on disk.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.store = Store(settings.cache, settings.limits.cache_bytes)
        self._by_name = {item.name: item for item in settings.upstreams}
        self._sessions = {item.name: self._begun(item) for item in settings.upstreams}
        self._shared: dict[tuple[str, str | None, int | None], Session] = {}
        self._privates: dict[str, bool] = {}
        self._budgets = {item.name: self._budget(item) for item in settings.upstreams}
        # For responses that combine upstreams; pages of one are parsed within its budget.
        self._computing = Budget("", self.limits)

    def add(self, upstream: Upstream) -> None:
        """Add an upstream that is in no setting, if it is not there yet.

        Those of one server share a session: they have no credentials but those of netrc and
        keyring.
        """
        if upstream.name in self._sessions:
            return
        origin = _origin(upstream.url)
        session = self._shared.get(origin)
        if session is None:
            session = self._shared[origin] = self._begun(upstream, in_no_setting=True)
        session.addresses.configure(upstream.url)
        self._by_name[upstream.name] = upstream
        self._sessions[upstream.name] = session
        self._budgets[upstream.name] = self._budget(upstream)

    def origin(self, upstream: Upstream, *files: PageFile) -> Upstream:
        """Return the upstream that *files*, of one version on a page of *upstream*, are of."""
        places = (file.place for file in files if isinstance(file, PlacedFile))
        return self._by_name.get(next(places, upstream.name), upstream)

    def _budget(self, upstream: Upstream) -> Budget:
        return Budget(upstream.name, self.limits, lenient=self.settings.allow_missing_sources)

    def close(self) -> None:
        """Close all connections without waiting."""
        for session in self._sessions.values():
            session.close()

    def budget(self, upstream: Upstream) -> Budget:
        """Return the budget of *upstream*."""
        return self._budgets[upstream.name]

    async def compute(self, function: Callable[[], T]) -> T:
        """Return the result of *function*, a computation for clients that concerns no upstream."""
        return await self._computing.compute(function)

    def session(self, upstream: Upstream) -> Session:
        """Return the session of *upstream*, which has only its credentials."""
        return self._sessions[upstream.name]

    def _begun(self, upstream: Upstream, *, in_no_setting: bool = False) -> Session:
        settings = self.settings
        environ, keyring = settings.environ, settings.keyring
        if in_no_setting:  # a place of the catalogue
            environ = environ if settings.catalog_environ is None else settings.catalog_environ
            keyring = keyring if settings.catalog_keyring is None else settings.catalog_keyring
        session = Session(
            Sources(
                index_url=upstream.url,
                trusted_hosts=tuple(sorted(settings.insecure_hosts)),
                cert=str(settings.ca_bundle) if settings.ca_bundle else None,
                client_cert=str(settings.client_cert) if settings.client_cert else None,
                timeout=int(self.limits.read_seconds) or 1,
            ),
            store=self.store,
            environ=environ,
            retries=self.limits.retries,
            patient=self.limits.patient,
            keyring=keyring,
            offline=settings.offline,
        )
        # Links to hosts of configured indexes are allowed; credentials are not shared.
        for configured in settings.upstreams:
            session.addresses.configure(configured.url)
        if upstream.credentials is not None:
            user = quote(upstream.credentials.username, safe="")
            password = quote(upstream.credentials.password, safe="")
            scheme, _, rest = upstream.url.partition("://")
            session.add_index(f"{scheme}://{user}:{password}@{rest}")
        if upstream.token:
            session.add_token(upstream.url, upstream.token)
        return session

    def is_private(self, upstream: Upstream) -> bool:
        """Return whether *upstream* gets credentials."""
        if safe_files.is_local(upstream.url):
            return False
        if not self._privates.get(upstream.name):
            name = json.dumps([upstream.name, upstream.url])
            private = self.session(upstream).is_authenticated(upstream.url)
            if private:
                # For the next process, whose first page may come from the cache.
                self.store.put("proxy-private", name, b"")
            elif upstream.name not in self._privates:
                private = self.store.get("proxy-private", name) is not None
            self._privates[upstream.name] = private
        return self._privates[upstream.name]

    def is_direct(self, upstream: Upstream, url: str, *, at_index: bool = False) -> bool:
        """Return whether clients can fetch *url* themselves, without credentials of the proxy.

        Clients at the index's own URLs have credentials of their own.
        """
        if safe_files.is_local(url):
            return False
        if at_index:
            return True
        return not (self.is_private(upstream) and _origin(url) == _origin(upstream.url))

    def allow_links(self, upstream: Upstream, *urls: str) -> None:
        """Allow *urls*, which *upstream* links to, the network that the upstream itself is in.

        This is checked after name resolution, see `variants_index._http.transports`.
        """
        self.session(upstream).addresses.allow_links(upstream.url, urls)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or http.PORTS.get(parts.scheme)


def identity(file: PageFile) -> str:
    """Return a text that identifies *file*, as far as its index describes it."""
    return json.dumps([file.url, sorted(file.hashes.items()), file.size, file.upload_time])

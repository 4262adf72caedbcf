"""Connections to upstream indexes: sessions, budgets, credentials and the cache on disk.

Files with a hash never change and are cached permanently: whole files, which are verified, under
their hash; data that cannot be verified, read from a part of a file or beside it, under index, URL
and hash, since any index may claim the hash of another's file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import quote, urlsplit

from pep_variants.sources import Sources
from pep_variants.urls import is_local
from variants_index.cache.store import Bounds, Store
from variants_index.http.session import Session
from variants_index.pages import PageFile

from ..errors import UpstreamError
from ..settings import Settings, Upstream
from .budget import Budget
from .workers import Busy, Threads, Workers

T = TypeVar("T")

_RETRIES = 2


class Upstreams:
    """Connections to the upstreams of one proxy."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._store = Store(settings.cache, Bounds(settings.limits.cache_bytes))
        self._sessions = {item.name: self._begun(item) for item in settings.upstreams}
        self._shared: dict[tuple[str, str | None, int | None], Session] = {}
        self._privates: dict[str, bool] = {}
        self._threads = Threads()
        self._budgets = {
            item.name: Budget(item, settings.limits, self._threads) for item in settings.upstreams
        }
        # For responses that combine upstreams; pages of one are parsed within its budget.
        self._computing = Workers(
            self._threads,
            settings.limits.workers,
            queue=settings.limits.queue,
            patience=settings.limits.queue_seconds,
        )

    @property
    def store(self) -> Store:
        """The cache on disk."""
        return self._store

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
        self._sessions[upstream.name] = session
        self._budgets[upstream.name] = Budget(upstream, self._limits, self._threads)

    def close(self) -> None:
        """Close all connections without waiting."""
        self._threads.close()
        for session in self._sessions.values():
            session.close()

    def budget(self, upstream: Upstream) -> Budget:
        """Return the budget of *upstream*."""
        return self._budgets[upstream.name]

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """All budgets by the name of the upstream."""
        return self._budgets

    async def compute(self, function: Callable[[], T]) -> T:
        """Return what *function* returns, a computation for clients that concerns no upstream.

        Raises:
            UpstreamError: no thread was free in time.
        """
        try:
            return await self._computing.run(function)
        except Busy:
            raise UpstreamError("the proxy is overloaded: try again later", 503) from None

    def session(self, upstream: Upstream) -> Session:
        """Return the session of *upstream*, which has only its credentials."""
        return self._sessions[upstream.name]

    def _begun(self, upstream: Upstream, *, in_no_setting: bool = False) -> Session:
        settings = self._settings
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
                timeout=int(self._limits.read_seconds) or 1,
            ),
            store=self._store,
            environ=environ,
            retries=_RETRIES,
            keyring=keyring,
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
        if is_local(upstream.url):
            return False
        if not self._privates.get(upstream.name):
            name = json.dumps([upstream.name, upstream.url])
            private = self.session(upstream).is_authenticated(upstream.url)
            if private:
                # For the next process, whose first page may come from the cache.
                self._store.put("proxy-private", name, b"")
            elif upstream.name not in self._privates:
                private = self._store.get("proxy-private", name) is not None
            self._privates[upstream.name] = private
        return self._privates[upstream.name]

    def is_direct(self, upstream: Upstream, url: str, *, in_place: bool = False) -> bool:
        """Return whether clients can fetch *url* themselves, without credentials of the proxy.

        Clients of in-place pages have credentials of their own.
        """
        if is_local(url):
            return False
        if in_place:
            return True
        return not (self.is_private(upstream) and _origin(url) == _origin(upstream.url))

    def fetch_file(
        self,
        upstream: Upstream,
        url: str,
        limit: int,
        hashes: Mapping[str, str],
        *,
        cached: bool,
    ) -> bytes:
        """Return the small file at *url*, compared with *hashes*.

        Args:
            upstream: that links to it.
            url: of the file.
            limit: the most bytes that are read.
            hashes: hexadecimal digests by algorithm.
            cached: use the HTTP cache: `kept` does not keep it.

        Raises:
            PackageIndexError: it cannot be fetched, is larger than *limit*, or has another hash.
        """
        answer = self.session(upstream).fetch(
            url,
            limit=limit,
            hashes=hashes,
            seconds=self._limits.page_seconds,
            validators=None if cached else {},
        )
        self.budget(upstream).received += len(answer.body)
        return answer.body

    def kept(self, kind: str, name: str | None, fetch: Callable[[], bytes]) -> bytes:
        """Return the cached data called *name*, else what *fetch* returns; None is not cached.

        A hash alone may be the name only if *fetch* verifies it.
        """
        if name is None:
            return fetch()
        data = self._store.get(kind, name)
        if data is None:
            data = fetch()
            self._store.put(kind, name, data)
        return data

    def allow_links(self, upstream: Upstream, url: str) -> None:
        """Allow *url*, which *upstream* links to, the network that the upstream itself is in.

        This is checked after name resolution, see `variants_index.http.addresses`.
        """
        self.session(upstream).addresses.allow_links(upstream.url, (url,))


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def identity(file: PageFile) -> str:
    """Return a text that identifies *file*, as far as its index describes it."""
    return json.dumps([file.url, _sorted(file.hashes), file.size, file.upload_time])


def _sorted(hashes: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(hashes.items())

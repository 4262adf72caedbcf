"""The index proxies in a daemon: one for equal indexes and settings, the least recent ones end.

Each is a `variants_proxy` application with caches in memory and connections to upstreams, which
equal commands share. With other credentials for an index there is another application: what
an index shows with credentials goes to the commands that have them.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uv_variants.transport import with_authorization
from variants_proxy import Limits, Settings
from variants_proxy.choice.clients import ClientSettings
from variants_proxy.server.app import create_app

from .session import SessionSettings

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from variants_proxy.service import Service

MOST_SERVICES = 8
"""Applications that are kept while no session uses them."""

LIMITS = Limits(
    kept_page_bytes=16 * 2**20,
    kept_choice_bytes=8 * 2**20,
)

_COUNTS = (
    *("indexes", "cache", "platforms", "insecure_hosts", "keyring", "failures", "requested"),
    *("environ", "catalog", "catalog_mirrors", "pinned", "given_hashes"),
)


@dataclass
class IndexService:
    """One application.

    Attributes:
        application: of `variants_proxy`.
        digest: of everything that it depends on.
        cache: directory of its cache.
    """

    application: Starlette
    digest: str
    cache: Path

    @property
    def _service(self) -> Service:
        found: Service = self.application.state.service
        return found

    def client(self, settings: SessionSettings) -> str:
        """Return the name in URLs of the client that *settings* describe.

        It is registered each time: of very many clients the oldest are dropped.
        """
        return self._service.clients.register(
            ClientSettings(settings.key, settings.locked, settings.floating, settings.hashes)
        )

    def has_notices(self, client: str, project: str) -> bool:
        """Return whether there are notices about *project* for a client."""
        return self._service.noted.has(self._service.clients.client(client), project)

    def is_plain(self, client: str, project: str) -> bool | None:
        """Return whether nothing was chosen for *project*; None if a client got no page of it."""
        return self._service.plain.is_plain(self._service.clients.client(client), project)

    def close(self) -> None:
        """Close the connections to the upstreams."""
        self._service.upstreams.close()


class Services:
    """All applications of a daemon."""

    def __init__(self, in_use: Callable[[], Collection[str]]) -> None:
        """Set up.

        Args:
            in_use: returns the digests of the services that open sessions use.
        """
        self._in_use = in_use
        self._services: OrderedDict[str, IndexService] = OrderedDict()

    def service(
        self,
        settings: SessionSettings,
        roots: Path | None,
        index: str | None = None,
        authorization: str = "",
    ) -> IndexService:
        """Return the service for a session.

        Args:
            settings: of the session.
            roots: file of certificates that upstreams may have.
            index: name of the index that is asked with what uv sent; None to ask all indexes with
                the user's credentials, as far as we find them.
            authorization: that uv sent, the value of ``Authorization``; empty without one.

        Raises:
            ProxyError: a setting is not valid.
        """
        tree = settings.tree()
        parts = [tree[name] for name in _COUNTS]
        # Without credentials a service is the same for all indexes.
        which = None if index is None else (index if authorization else "", authorization)
        parts += [str(roots), which]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        found = self._services.get(digest)
        if found is None:
            made = _settings(settings, roots)
            if which is not None:
                made = with_authorization(made, *which)
            found = IndexService(create_app(made), digest, settings.cache)
            self._services[digest] = found
            self._drop_unused()
        self._services.move_to_end(digest)
        return found

    def _drop_unused(self) -> None:
        used = set(self._in_use())
        newest = next(reversed(self._services), "")
        free = [each for each in self._services if each not in used and each != newest]
        for digest in free[: max(0, len(self._services) - MOST_SERVICES)]:
            self._services.pop(digest).close()

    def caches(self) -> list[Path]:
        """Return the cache directories in use."""
        return sorted({each.cache for each in self._services.values()})

    def close(self) -> None:
        """Close all connections."""
        while self._services:
            self._services.popitem()[1].close()

    def __len__(self) -> int:
        return len(self._services)


def _settings(settings: SessionSettings, roots: Path | None) -> Settings:
    return Settings(
        tuple(each.upstream() for each in settings.indexes),
        settings.cache,
        settings.platforms,
        limits=LIMITS,
        ca_bundle=roots,
        insecure_hosts=frozenset(settings.insecure_hosts),
        keyring=settings.keyring,
        environ=dict(settings.environ),
        compress=False,
        failures=settings.failures,
        requested=frozenset(settings.requested),
        catalog=settings.catalog,
        catalog_mirrors=settings.catalog_mirrors,
        pinned=frozenset(settings.pinned),
        hashes=settings.given_hashes,
    )

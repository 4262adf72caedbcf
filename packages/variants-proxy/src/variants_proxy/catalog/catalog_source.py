"""The proxy's catalogue: opened when it is needed, and again when it may have changed."""

from __future__ import annotations

import hashlib
import logging
import time

from pep_variants import Preferences
from pep_variants.internal import (
    CATALOG_BYTES,
    DEFAULT_CATALOG,
    CatalogError,
    is_catalog_path,
    redacted,
)
from variants_catalog.internal import Catalog, CatalogProject, preferred_catalog

from ..errors import UpstreamError
from ..settings import Settings, Upstream
from ..upstream.single_flight import SingleFlight
from ..upstream.upstreams import Upstreams

logger = logging.getLogger(__name__)

_URL_SECONDS = 3600.0
"""Seconds after which a catalogue at a URL is fetched again; one on disk is read as pages are."""


class CatalogSource:
    """Entries of the catalogue by project."""

    def __init__(self, settings: Settings, upstreams: Upstreams) -> None:
        self._settings = settings
        self._upstreams = upstreams
        self._catalog: Catalog | None = None
        self._problem: CatalogError | None = None
        self._until = 0.0
        self._opening: SingleFlight[None] = SingleFlight()
        self._digests: dict[str, tuple[CatalogProject, str]] = {}

    async def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of *project*, a normalized name; None without one.

        Raises:
            CatalogError: it cannot be read.
            UpstreamError: the proxy is overloaded.
        """
        if self._settings.catalog is None:
            return None
        if time.monotonic() > self._until:
            await self._opening.join("", self._open)
        catalog = self._catalog
        if catalog is None:
            if self._problem is not None:
                raise self._problem
            return None
        return await self._upstreams.compute(lambda: catalog.project(project))

    def digest(self, entry: CatalogProject) -> str:
        """Return a hash of what *entry* says."""
        known = self._digests.get(entry.name)
        if known is None or known[0] is not entry:
            text = repr(entry).encode("utf-8", "surrogatepass")
            known = self._digests[entry.name] = entry, hashlib.sha256(text).hexdigest()
        return known[1]

    async def _open(self) -> None:
        """Open the catalogue; one that was open before stays if that fails."""
        settings, name = self._settings, self._settings.catalog
        assert name is not None
        preferences = Preferences(catalog=name, catalog_mirrors=settings.catalog_mirrors)
        kept = settings.fresh_seconds
        try:
            data = b""
            if name != DEFAULT_CATALOG and not is_catalog_path(name):
                data = await self._fetched(name)
                kept = max(kept, _URL_SECONDS)
            self._catalog = await self._upstreams.compute(
                lambda: preferred_catalog(preferences, lambda _: data)
            )
        except CatalogError as error:
            self._problem = error
            logger.warning("%s", error)
        except UpstreamError as error:
            self._problem = CatalogError(redacted(name), "", f"cannot be fetched: {error}")
            logger.warning("%s", self._problem)
        self._until = time.monotonic() + kept

    async def _fetched(self, url: str) -> bytes:
        at = Upstream("catalog", url, "find-links", explicit=True)
        self._upstreams.add(at)
        session = self._upstreams.session(at)
        return await self._upstreams.budget(at).fetch(
            lambda: session.fetch(at.url, limit=CATALOG_BYTES).body
        )

"""Core metadata of upstream wheels: the file beside the wheel (PEP 658), or the wheel's own."""

from __future__ import annotations

import logging
from functools import partial

from pep_variants.internal import is_local, may_have_terms, metadata_terms
from variants_index import PageFile
from variants_index.internal import fetch_metadata_file

from ..errors import UpstreamError
from ..settings import Limits, Upstream
from .catalog_files import CatalogFile, installed
from .lru import LRUCache
from .single_flight import SingleFlight
from .upstreams import Upstreams, identity

logger = logging.getLogger(__name__)


class CoreMetadata:
    """Reads ``METADATA`` of wheels, once each, and caches it if it cannot change."""

    def __init__(self, upstreams: Upstreams, limits: Limits) -> None:
        self._upstreams = upstreams
        self._limits = limits
        self._inspected: LRUCache[tuple[str, str], bytes] = LRUCache(16 * 2**20)
        self._inspections: SingleFlight[bytes] = SingleFlight()

    async def read(self, upstream: Upstream, file: PageFile) -> bytes:
        """Return ``METADATA`` of the wheel *file*, from beside it or out of it.

        Raises:
            UpstreamError: it cannot be read.
        """
        if isinstance(file, CatalogFile):
            own = await self.read(file.upstream, file.original)
            return await self._upstreams.budget(file.upstream).compute(lambda: installed(file, own))
        key = upstream.name, metadata_key(file)
        known = self._inspected.get(key)
        if known is not None:
            return known

        async def work() -> bytes:
            found = await self._upstreams.budget(upstream).fetch(
                partial(self._fetch, upstream, file), self._limits.file_seconds
            )
            if file.hashes or file.core_metadata:
                self._inspected.put(key, found, len(found))
            return found

        return await self._inspections.join(key, work)

    async def is_marked(
        self, upstream: Upstream, wheel: PageFile, *, thorough: bool
    ) -> bool | None:
        """Return whether *wheel* has variant markers, None if its metadata cannot be read.

        An installer will report what is wrong with it.
        """
        if not (thorough or is_cheap(wheel)):
            return False
        try:
            metadata = await self.read(upstream, wheel)
            if not may_have_terms(metadata):
                return False
            return await self._upstreams.budget(upstream).compute(
                lambda: bool(metadata_terms(metadata))
            )
        except UpstreamError as error:
            logger.info("%s: its metadata cannot be inspected: %s", wheel.filename, error)
            return None

    def _fetch(self, upstream: Upstream, file: PageFile) -> bytes:
        self._upstreams.allow_links(upstream, file.url)
        return fetch_metadata_file(
            self._upstreams.session(upstream),
            file,
            limit=self._limits.metadata_bytes,
            seconds=self._limits.page_seconds,
            scope=upstream.url,
        )


def metadata_key(file: PageFile) -> str:
    """Return a key that is equal for wheels with the same ``METADATA`` according to the index."""
    if isinstance(file, CatalogFile):
        known = file.known
        added = f"{known.label} {known.filename} {known.requires}" if known is not None else ""
        return f"{added} {metadata_key(file.original)}"
    digest = (file.core_metadata or {}).get("sha256")
    return f"sha256 {digest}" if digest else identity(file)


def is_cheap(wheel: PageFile) -> bool:
    """Return whether METADATA of *wheel* can be read without reading from a remote wheel."""
    return wheel.core_metadata is not None or is_local(wheel.url)

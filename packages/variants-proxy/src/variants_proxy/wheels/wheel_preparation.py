"""Wheels with variant markers: detection, rewriting, and hashes for pages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter

from packaging.version import Version

from pep_variants import VariantContext
from pep_variants.internal import metadata_terms, reduce_metadata
from variants_index import PageFile

from ..choice.metadata_check import MetadataCheck
from ..choice.offers import Offer
from ..errors import UpstreamError
from ..settings import Limits, Upstream
from ..upstream.catalog_files import is_rewritten, origin
from ..upstream.lru import LRUCache
from ..upstream.releases import Release
from ..upstream.single_flight import SingleFlight, gather_limited
from ..upstream.upstreams import Upstreams
from ..upstream.wheel_metadata import CoreMetadata
from .transfers import (
    PROBLEMS,
    Transfer,
    WheelDigest,
    hash_transfer,
    read_digest,
    rewrite_name,
    rewritten_transfer,
)

logger = logging.getLogger(__name__)


class WheelPreparation:
    """Inspects, rewrites and checks wheels, once for all clients."""

    def __init__(self, upstreams: Upstreams, core_metadata: CoreMetadata, limits: Limits) -> None:
        self._upstreams = upstreams
        self._core_metadata = core_metadata
        self._limits = limits
        self._transfers: LRUCache[tuple[str, str], Transfer] = LRUCache(16 * 2**20)
        self._announcing: SingleFlight[WheelDigest | None] = SingleFlight()
        self._preparing: SingleFlight[Transfer] = SingleFlight()
        self._comparing: SingleFlight[None] = SingleFlight()

    async def marked(
        self, upstream: Upstream, plain: Sequence[Release], *, thorough: bool
    ) -> frozenset[Version]:
        """Return the versions without variants that have variant markers.

        A project adds markers at some version: one wheel of each version is inspected, from the
        newest one down to the first without.

        Args:
            upstream: of the versions.
            plain: versions without variants, newest first.
            thorough: read METADATA from the wheel if there is no file beside it.
        """
        found: list[Version] = []
        width = 1
        while len(found) < min(len(plain), self._limits.inspected):
            some = plain[len(found) : len(found) + width]
            looks = [
                partial(
                    self._core_metadata.is_marked, upstream, release.wheels[0], thorough=thorough
                )
                for release in some
            ]
            are_marked = await gather_limited(looks, self._limits.parallel)
            found += [
                release.version
                for release, _ in takewhile(itemgetter(1), zip(some, are_marked, strict=True))
            ]
            if not all(are_marked):
                break
            width = min(2 * width, self._limits.parallel)
        return frozenset(found)

    async def reduced(
        self, upstream: Upstream, file: PageFile, context: VariantContext | None
    ) -> bytes | None:
        """Return METADATA with evaluated variant markers, None without markers."""
        if context is None:
            return None
        metadata = await self._core_metadata.read(upstream, file)

        def reduce() -> bytes | None:
            changes = is_rewritten(file) or metadata_terms(metadata)
            return reduce_metadata(metadata, context) if changes else None

        return await self._upstreams.budget(upstream).compute(reduce)

    async def prepared(
        self,
        upstream: Upstream,
        file: PageFile,
        context: VariantContext | None,
        reduced: bytes,
    ) -> Transfer:
        """Return the transfer of the wheel *file* with *reduced* METADATA.

        Raises:
            UpstreamError: it cannot be read.
            VariantError, UnusableFile: as `rewritten_transfer`, which has the arguments.
        """
        upstream = origin(upstream, file)
        self._upstreams.allow_links(upstream, file.url)
        assert context is not None
        name = rewrite_name(upstream.url, file, reduced)
        key = (file.url, name)
        known = self._transfers.get(key) if name else None
        if known is not None:
            return known
        session = self._upstreams.session(upstream)
        limit = self._limits.metadata_bytes

        async def work() -> Transfer:
            transfer = await self._upstreams.budget(upstream).fetch(
                partial(rewritten_transfer, session, file, context, reduced, limit, name),
                self._limits.file_seconds,
            )
            if name and transfer.rewrite is not None:
                held = sum(
                    len(piece) for piece in transfer.rewrite.pieces if piece.data is not None
                )
                self._transfers.put(key, transfer, 1000 + held)
            return transfer

        return await self._preparing.join(key, work)

    async def verify(self, upstream: Upstream, check: MetadataCheck) -> None:
        """Verify that a wheel has the promised metadata.

        Raises:
            UpstreamError: it cannot be read.
            VariantError: its metadata differs.
        """
        upstream = origin(upstream, check.file)
        self._upstreams.allow_links(upstream, check.file.url)
        session = self._upstreams.session(upstream)
        store = self._upstreams.store

        def look() -> None:
            if not check.is_kept(store):
                check.look(session)
                check.keep(store)

        async def work() -> None:
            await self._upstreams.budget(upstream).fetch(look, self._limits.file_seconds)

        await self._comparing.join(check.key, work)

    async def announced(
        self, upstream: Upstream, offer: Offer, reduced: bytes, *, ahead: bool
    ) -> WheelDigest | None:
        """Return hash and size of a rewritten wheel, None if unknown.

        Args:
            upstream: of the wheel.
            offer: the wheel.
            reduced: its METADATA with evaluated markers.
            ahead: read the wheel to compute them, if it is small enough.
        """
        upstream = origin(upstream, offer.file)
        name = rewrite_name(upstream.url, offer.file, reduced)
        if not name:
            return None
        store = self._upstreams.store
        known = await self._upstreams.budget(upstream).compute(lambda: read_digest(store, name))
        limit = self._limits.hashed_bytes
        if known is not None or not ahead or (offer.file.size or 0) > limit:
            return known

        async def work() -> WheelDigest | None:
            session = self._upstreams.session(upstream)
            transfer = await self.prepared(upstream, offer.file, offer.context, reduced)
            if transfer.rewrite is None or transfer.rewrite.original > limit:
                return None
            return await self._upstreams.budget(upstream).fetch(
                lambda: hash_transfer(store, session, transfer),
                self._limits.file_seconds,
            )

        try:
            return await self._announcing.join(name, work)
        except (UpstreamError, *PROBLEMS) as error:
            logger.warning("%s: cannot be rewritten: %s", offer.file.filename, error)
            return None

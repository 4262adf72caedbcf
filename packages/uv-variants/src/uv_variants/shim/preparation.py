"""Wheels with variant markers: found out, put together ahead, their hashes known."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter

from packaging.version import Version

from pep_variants.core_metadata import metadata_terms, reduce_metadata
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from resolvelib_variants.index.pages import PageFile
from resolvelib_variants.index.session import is_local

from ..errors import UpstreamError
from .choice import Offer, Release
from .flights import Flights, each
from .memory import Memory
from .settings import Limits, Upstream
from .upstreams import Upstreams
from .wheels import (
    PROBLEMS,
    Announcement,
    Passage,
    announce,
    read_announcement,
    splice_name,
    spliced_passage,
)

logger = logging.getLogger(__name__)


class Preparation:
    """Does each of these things once for everybody who needs it."""

    def __init__(self, upstreams: Upstreams, limits: Limits) -> None:
        self._upstreams = upstreams
        self._limits = limits
        self._passages: Memory[tuple[str, str], Passage] = Memory(64 * 2**20)
        self._announcing: Flights[Announcement | None] = Flights()
        self._preparing: Flights[Passage] = Flights()

    async def marked(
        self, upstream: Upstream, plain: Sequence[Release], *, thorough: bool
    ) -> frozenset[Version]:
        """Return which versions without variants have variant markers.

        Markers came into a project at some time: from its newest version on one wheel of each is
        looked into, down to the first that has none.

        Args:
            upstream: whose.
            plain: versions without variants, newest first.
            thorough: look into wheels also if their METADATA is nowhere beside them.
        """
        found: list[Version] = []
        width = 1
        while len(found) < min(len(plain), self._limits.inspected):
            some = plain[len(found) : len(found) + width]
            looks = [
                partial(self.is_marked, upstream, release.wheels[0], thorough=thorough)
                for release in some
            ]
            are_marked = await each(looks, self._limits.parallel)
            found += [
                release.version
                for release, _ in takewhile(itemgetter(1), zip(some, are_marked, strict=True))
            ]
            if not all(are_marked):
                break
            width = min(2 * width, self._limits.parallel)
        return frozenset(found)

    async def is_marked(self, upstream: Upstream, wheel: PageFile, *, thorough: bool) -> bool:
        """Return whether *wheel* has variant markers.

        Not as long as nobody can tell: whoever installs it will say what is wrong with it.
        """
        if not (thorough or wheel.core_metadata is not None or is_local(wheel.url)):
            return False
        try:
            return bool(metadata_terms(await self._upstreams.core_metadata(upstream, wheel)))
        except UpstreamError as error:
            logger.info("%s is not looked into: %s", wheel.filename, error)
            return False

    async def reduced(
        self, upstream: Upstream, file: PageFile, context: VariantContext | None
    ) -> bytes | None:
        """Return METADATA with its variant markers evaluated, None if it has none."""
        if context is None:
            return None
        metadata = await self._upstreams.core_metadata(upstream, file)
        if not metadata_terms(metadata):
            return None
        return reduce_metadata(metadata, context)

    async def prepared(
        self,
        upstream: Upstream,
        file: PageFile,
        label: str | None,
        context: VariantContext | None,
        reduced: bytes,
        promised: Metadata | None = None,
    ) -> Passage:
        """Return how the wheel *file* is sent with *reduced* METADATA.

        Raises:
            UpstreamError: it cannot be had.
            VariantError, UnusableFile: as `spliced_passage`, which has the arguments.
        """
        self._upstreams.check_place(upstream, file.url)
        assert context is not None
        name = splice_name(file, reduced)
        key = (file.url, name)
        known = self._passages.get(key) if name else None
        if known is not None:
            return known
        session = self._upstreams.session(upstream)
        limit = self._limits.metadata_bytes

        async def work() -> Passage:
            passage = await self._upstreams.run(
                lambda: spliced_passage(session, file, label, context, reduced, promised, limit)
            )
            if name and passage.splice is not None:
                held = sum(len(piece) for piece in passage.splice.pieces if piece.data is not None)
                self._passages.put(key, passage, 1000 + held)
            return passage

        return await self._preparing.join((*key, promised is None), work)

    async def announced(
        self, upstream: Upstream, offer: Offer, reduced: bytes, *, ahead: bool
    ) -> Announcement | None:
        """Return hash and size of a wheel that is put together, None if nobody knows yet.

        Args:
            upstream: whose.
            offer: the wheel.
            reduced: its METADATA with the markers evaluated.
            ahead: have it pass to find out, if it is small enough for that.
        """
        name = splice_name(offer.file, reduced)
        if not name:
            return None
        store = self._upstreams.store
        known = await self._upstreams.run(lambda: read_announcement(store, name))
        limit = self._limits.hashed_bytes
        if known is not None or not ahead or (offer.file.size or 0) > limit:
            return known

        async def work() -> Announcement | None:
            session = self._upstreams.session(upstream)
            passage = await self.prepared(upstream, offer.file, offer.label, offer.context, reduced)
            if passage.splice is None or passage.splice.original > limit:
                return None
            return await self._upstreams.run(lambda: announce(store, session, passage))

        try:
            return await self._announcing.join(name, work)
        except (UpstreamError, *PROBLEMS) as error:
            logger.warning("%s cannot be put together: %s", offer.file.filename, error)
            return None

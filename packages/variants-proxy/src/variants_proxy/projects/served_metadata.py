"""Which METADATA clients get for the wheels of a version: each its own, or one for all of them.

uv takes the METADATA of one wheel for all, so it gets a merged one (`merge_metadata`) of versions
that have variants, chosen or not. pip compares the METADATA of a wheel with the one that it
downloads, and reads that of the wheel it installs: other clients get each wheel's own.
`Client.merges` says which.

uv reads the METADATA of the wheel with the highest build tag, of those that fit its Python and
Pythons to come. On in-place pages variants have a build tag (`in_place_names`), so plain wheels
beside them can keep their own URLs, and their own METADATA there, unless one has a build tag as
high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from pep_variants import VariantError

from ..choice.in_place_names import encoded_name
from ..choice.offers import Choice, Offer
from ..choice.views import Client
from ..choice.wheel_environments import build_tag
from ..errors import UpstreamError
from ..settings import Limits, Upstream
from ..upstream.releases import wheel_version
from ..upstream.upstreams import Upstreams
from ..upstream.wheel_metadata import CoreMetadata
from ..wheels.wheel_preparation import WheelPreparation
from .merged_metadata import WheelMetadata, merge_metadata


class ServedMetadata:
    """Merges METADATA, once for the same wheels."""

    def __init__(
        self,
        upstreams: Upstreams,
        core_metadata: CoreMetadata,
        preparation: WheelPreparation,
        limits: Limits,
    ) -> None:
        self._upstreams = upstreams
        self._core_metadata = core_metadata
        self._preparation = preparation
        self._limits = limits

    def of_page(
        self, client: Client, offers: Iterable[Offer], own: Mapping[str, bytes | None]
    ) -> dict[str, bool]:
        """Return the wheels for which other METADATA may be served, by upstream filename.

        Merging takes a while, and clients read METADATA of few versions: it is done on request. The
        values tell whether wheels without label have to come from the proxy for it.

        Args:
            client: of the page.
            offers: those with variant markers or labels, and the others of their versions.
            own: METADATA with evaluated markers by upstream filename, None if it is not known.
        """
        versions: dict[str, list[Offer]] = {}
        for offer in offers if client.merges else ():
            if offer.filename.endswith(".whl"):
                versions.setdefault(offer.filename.split("-", 2)[1], []).append(offer)
        found: dict[str, bool] = {}
        for same in versions.values():
            names = [offer.file.filename for offer in same]
            # Most versions have one METADATA.
            if len({own.get(name) for name in names}) > 1:
                plain = client.reads_any or _plain_is_read(same)
                found.update({name: plain for name in names if own.get(name) is not None})
        return found

    async def of_file(self, upstream: Upstream, choice: Choice, offer: Offer) -> bytes | None:
        """Return the METADATA to serve for a wheel, None for its own.

        Args:
            upstream: of the wheel.
            choice: of the page that the client sees.
            offer: the wheel; it counts in place of the one with its plain filename.

        Raises:
            UpstreamError: its own METADATA cannot be read.
        """
        version = wheel_version(offer.filename)
        same = [
            item
            for item in choice.offers
            if item.context is not None
            and item.filename != offer.filename
            and wheel_version(item.filename) == version
        ]
        wheels = [(offer, await self._own(upstream, offer))]
        try:
            wheels += [(item, await self._own(upstream, item)) for item in same]
        except (UpstreamError, VariantError):
            return None  # the page does not merge it either
        return await self._upstreams.budget(upstream).compute(lambda: self._merge(wheels))

    async def _own(self, upstream: Upstream, offer: Offer) -> bytes:
        reduced = await self._preparation.reduced(upstream, offer.file, offer.context)
        return reduced or await self._core_metadata.read(upstream, offer.file)

    def _merge(self, wheels: Iterable[tuple[Offer, bytes]]) -> bytes | None:
        same = (WheelMetadata(offer.filename, offer.label, data) for offer, data in wheels)
        # In the same order for every client: the result is the same byte for byte.
        ordered = sorted(same, key=lambda wheel: wheel.filename)
        return _merged(tuple(ordered), self._limits.metadata_bytes)


@lru_cache(maxsize=64)
def _merged(wheels: Sequence[WheelMetadata], limit: int) -> bytes | None:
    return merge_metadata(wheels, limit)


def _plain_is_read(offers: Sequence[Offer]) -> bool:
    """Return whether uv may read the METADATA of a wheel without label of an in-place page."""
    labelled = [
        _build(encoded_name(offer.filename, offer.label))
        for offer in offers
        if offer.label is not None
    ]
    plain = [_build(offer.filename) for offer in offers if offer.label is None]
    return any(build >= max(labelled, default=build) for build in plain)


def _build(filename: str) -> tuple[int, str]:
    parts = filename.split("-")
    return build_tag(parts[2] if len(parts) == 6 else "")

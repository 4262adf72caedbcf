"""Entries of pages: where clients find a file, and what it is going to be when they have it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TypeVar

from packaging.version import Version

from pep_variants.core_metadata import metadata_terms, reduce_metadata
from resolvelib_variants.index.pages import PageFile

from ..errors import UpstreamError
from .choice import Choice, Offer, wheel_version
from .flights import each
from .preparation import Preparation
from .settings import Limits, Upstream
from .showing import Client, Shown
from .upstreams import Upstreams, metadata_key
from .urls import CHOSEN, PLAIN, file_path
from .wheels import Announcement

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class _Markers:
    """What is known of the variant markers in the wheels that are shown, by upstream filename.

    Attributes:
        reduced: METADATA with its markers evaluated, of wheels that have some.
        unknown: wheels that were not looked into: they may have some.
        digests: SHA-256 of METADATA of the others that were.
    """

    reduced: dict[str, bytes]
    unknown: frozenset[str]
    digests: dict[str, str]


class Entries:
    """Makes the entries of pages."""

    def __init__(self, upstreams: Upstreams, preparation: Preparation, limits: Limits) -> None:
        self._upstreams = upstreams
        self._preparation = preparation
        self._limits = limits

    async def of(self, client: Client, shown: Shown, choice: Choice, prefix: str) -> list[PageFile]:
        """Return the entries of everything in *shown*, in its order.

        Args:
            client: for whom.
            shown: one project.
            choice: what is shown of it.
            prefix: from the page to ``/p/<key>/``, relative.
        """
        offers = _newest_first(choice)
        markers = await self._markers(shown.upstream, offers)
        announced: dict[str, Announcement | None] = {}
        if markers.reduced and not client.floating:
            announced = await self._announced(shown.upstream, offers, markers)
        direct = _Direct(self._upstreams, shown.upstream)
        return [
            _entry(client, shown, offer, prefix, markers, announced, direct)
            for offer in choice.offers
        ]

    async def _markers(self, upstream: Upstream, offers: Sequence[Offer]) -> _Markers:
        # Most wheels of a version share their METADATA.
        keys = [metadata_key(offer.file) for offer in offers]
        files = {
            key: offer.file for key, offer in zip(reversed(keys), reversed(offers), strict=True)
        }
        wanted = list(dict.fromkeys(keys))[: self._limits.inspected]

        async def one(file: PageFile) -> bytes | None:
            try:
                return await self._upstreams.core_metadata(upstream, file)
            except UpstreamError as error:
                logger.warning("%s is not looked into: %s", file.filename, error)
                return None

        found = await each([partial(one, files[key]) for key in wanted], self._limits.parallel)
        metadata = dict(zip(wanted, found, strict=True))
        marked = {key for key, data in metadata.items() if data and metadata_terms(data)}
        reduced = {
            offer.file.filename: reduce_metadata(data, offer.context)
            for key, offer in zip(keys, offers, strict=True)
            if key in marked and offer.context is not None and (data := metadata[key])
        }
        unknown = frozenset(
            offer.file.filename
            for key, offer in zip(keys, offers, strict=True)
            if metadata.get(key) is None
        )
        found_digests = {key: sha256(data).hexdigest() for key, data in metadata.items() if data}
        digests = {
            offer.file.filename: found_digests[key]
            for key, offer in zip(keys, offers, strict=True)
            if key in found_digests and key not in marked
        }
        return _Markers(reduced, unknown, digests)

    async def _announced(
        self, upstream: Upstream, offers: Sequence[Offer], markers: _Markers
    ) -> dict[str, Announcement | None]:
        marked = [offer for offer in offers if offer.file.filename in markers.reduced]
        works = [
            partial(
                self._preparation.announced,
                upstream,
                offer,
                markers.reduced[offer.file.filename],
                ahead=number < self._limits.hashed,
            )
            for number, offer in enumerate(marked)
        ]
        found = await each(works, self._limits.parallel)
        return {offer.file.filename: item for offer, item in zip(marked, found, strict=True)}


def _newest_first(choice: Choice) -> list[Offer]:
    """Return what may have variant markers: if not all can be looked into, the new ones count."""
    judged = [offer for item in choice.decisions for offer in item.offers.values()]
    if len(judged) == sum(offer.context is not None for offer in choice.offers):
        return judged
    names = {offer.file.filename for offer in judged}
    others = [
        offer
        for offer in choice.offers
        if offer.context is not None and offer.file.filename not in names
    ]
    # Of versions beyond the limit, and of those without variants.
    versions = {name: wheel_version(name) for name in (offer.filename for offer in others)}
    return judged + sorted(
        others,
        key=lambda offer: (versions[offer.filename] or Version("0"), offer.filename),
        reverse=True,
    )


def _entry(
    client: Client,
    shown: Shown,
    offer: Offer,
    prefix: str,
    markers: _Markers,
    announced: dict[str, Announcement | None],
    direct: _Direct,
) -> PageFile:
    file = offer.file
    reduced = markers.reduced.get(file.filename)
    unknown = file.filename in markers.unknown
    floating = client.floating and offer.context is not None
    is_direct = direct.allows(file.url)
    if offer.label is None and reduced is None and is_direct and not floating and not unknown:
        return file
    choice = CHOSEN if floating else PLAIN if offer.label is None else offer.label
    url = prefix + file_path(
        shown.upstream.name,
        shown.project,
        choice,
        offer.filename,
    )
    if reduced is None and not floating and not unknown:
        core_metadata = file.core_metadata
        if not core_metadata and file.filename in markers.digests:
            # The shim has read it: nobody else has to fish it out of the wheel.
            core_metadata = {"sha256": markers.digests[file.filename]}
        # A signature lies beside the file, where nobody will look for it any more.
        return PageFile(
            offer.filename,
            url,
            file.hashes,
            file.requires_python,
            file.yanked,
            file.size,
            file.upload_time,
            core_metadata,
            file.provenance if is_direct else None,
        )
    entry = replace(file, filename=offer.filename, url=url, gpg_sig=None)
    if floating or unknown:
        # Nobody can say what is going to be in it.
        return replace(
            entry,
            hashes={},
            size=None,
            provenance=None,
            core_metadata=None if entry.core_metadata is None and reduced is None else {},
        )
    assert reduced is not None
    known = announced.get(file.filename)
    return replace(
        entry,
        hashes={"sha256": known.sha256} if known else {},
        size=known.size if known else None,
        core_metadata={"sha256": sha256(reduced).hexdigest()},
        provenance=None,
    )


class _Direct:
    """Whether clients can get files themselves, asked once per host."""

    def __init__(self, upstreams: Upstreams, upstream: Upstream) -> None:
        self._upstreams = upstreams
        self._upstream = upstream
        self._known: dict[str, bool] = {}

    def allows(self, url: str) -> bool:
        host = url[: url.find("/", 8)]
        if host not in self._known:
            self._known[host] = self._upstreams.is_direct(self._upstream, url)
        return self._known[host]

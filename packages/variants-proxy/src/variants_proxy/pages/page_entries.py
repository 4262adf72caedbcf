"""Entries of project pages: URL, hash, size and core metadata of each file for a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TypeVar

from packaging.version import Version

from pep_variants.choose.metadata_markers import metadata_terms, reduce_metadata
from pep_variants.gc_pause import paused
from pep_variants.model.label import split_label
from variants_index.pages import Page, PageFile

from ..choice.in_place_names import REFUSED, folder_path, here_place, variant_place
from ..choice.offers import Choice, Offer
from ..choice.views import Client, ProjectView
from ..errors import UpstreamError
from ..projects.observations import NotedProjects
from ..projects.served_metadata import MergedVersion, ServedMetadata
from ..settings import Limits, Upstream
from ..upstream.catalog_files import is_rewritten, origin, published
from ..upstream.core_metadata import CoreMetadata, metadata_key
from ..upstream.releases import wheel_version
from ..upstream.single_flight import gather_limited
from ..upstream.upstreams import Upstreams
from ..urls import CHOSEN, PLAIN, file_path
from ..wheels.transfers import WheelDigest
from ..wheels.wheel_preparation import WheelPreparation, is_cheap

logger = logging.getLogger(__name__)

_MANY = 500

T = TypeVar("T")


@dataclass(frozen=True)
class _Markers:
    """Variant markers of the wheels on a page, by upstream filename.

    Attributes:
        reduced: METADATA with evaluated markers, of wheels that have markers.
        unknown: wheels that were not inspected.
        digests: SHA-256 of METADATA, of wheels without markers.
        own: METADATA that each wheel has when it is served, None if it was not inspected.
    """

    reduced: dict[str, bytes]
    unknown: frozenset[str]
    digests: dict[str, str]
    own: dict[str, bytes | None]


class PageEntries:
    """Writes the entries of pages."""

    def __init__(
        self,
        upstreams: Upstreams,
        core_metadata: CoreMetadata,
        preparation: WheelPreparation,
        served: ServedMetadata,
        limits: Limits,
        noted: NotedProjects,
    ) -> None:
        self._upstreams = upstreams
        self._core_metadata = core_metadata
        self._preparation = preparation
        self._served = served
        self._limits = limits
        self._noted = noted

    async def of(
        self, client: Client, shown: ProjectView, choice: Choice, prefix: str
    ) -> list[PageFile]:
        """Return the entries of the files in *choice*, in its order.

        Args:
            client: of the request.
            shown: one project.
            choice: of its files.
            prefix: relative URL from the page to ``/p/<key>/``.
        """
        compute = self._upstreams.budget(shown.upstream).compute
        offers = await compute(
            lambda: [offer for offer in _newest_first(choice) if published(offer.file) is None]
        )
        markers = await self._markers(client, shown.upstream, offers)
        announced: dict[str, WheelDigest | None] = {}
        if markers.reduced:
            # If uv finds no solution, the command reports dependencies that markers add.
            self._noted.add(client, shown.project)
        if markers.reduced and not client.floating:
            announced = await self._announced(client, shown, offers, markers)
        merged = await compute(lambda: self._served.of_page(client, offers, markers.own))
        direct = _Direct(self._upstreams, shown.upstream, in_place=client.is_at_index)

        def write() -> list[PageFile]:
            with paused(len(choice.offers) > _MANY):
                entries = [
                    _entry(client, shown, offer, prefix, markers, announced, merged, direct)
                    for offer in choice.offers
                ]
            return _everywhere(choice, entries, shown.found.page) if client.floating else entries

        return await compute(write)

    async def _markers(
        self, client: Client, upstream: Upstream, offers: Sequence[Offer]
    ) -> _Markers:
        compute = self._upstreams.budget(upstream).compute

        def by_key() -> tuple[list[str], dict[str, PageFile]]:
            # Most wheels of a version share their METADATA.
            keys = [metadata_key(offer.file) for offer in offers]
            pairs = zip(reversed(keys), reversed(offers), strict=True)
            return keys, {key: offer.file for key, offer in pairs}

        keys, files = await compute(by_key)
        wanted = list(dict.fromkeys(keys))
        if client.hashes:
            wanted = wanted[: self._limits.inspected]
        else:
            # One version is going to be installed: what others need is read on request.
            wanted = [key for key in wanted if is_cheap(files[key])][
                : self._limits.inspected_to_install
            ]

        async def one(file: PageFile) -> bytes | None:
            try:
                return await self._core_metadata.read(upstream, file)
            except UpstreamError as error:
                logger.warning("%s: its metadata cannot be inspected: %s", file.filename, error)
                return None

        found = await gather_limited(
            [partial(one, files[key]) for key in wanted], self._limits.parallel
        )
        metadata = dict(zip(wanted, found, strict=True))
        return await compute(lambda: _read_markers(keys, offers, metadata))

    async def _announced(
        self, client: Client, shown: ProjectView, offers: Sequence[Offer], markers: _Markers
    ) -> dict[str, WheelDigest | None]:
        marked = [offer for offer in offers if offer.file.filename in markers.reduced]
        ahead = {
            offer.file.filename
            for offer in self._hashed(client, shown.project, marked)[: self._limits.hashed]
        }
        works = [
            partial(
                self._preparation.announced,
                shown.upstream,
                offer,
                markers.reduced[offer.file.filename],
                ahead=offer.file.filename in ahead,
            )
            for offer in marked
        ]
        found = await gather_limited(works, self._limits.parallel)
        return {offer.file.filename: item for offer, item in zip(marked, found, strict=True)}

    def _hashed(self, client: Client, project: str, marked: Sequence[Offer]) -> Sequence[Offer]:
        """Return the wheels that may be read to know their hash, those to be read first in front.

        A lock file has one version, most likely what it had or the newest.
        """
        if not client.hashes:
            return ()
        versions = {offer.file.filename: wheel_version(offer.filename) for offer in marked}
        distinct = [version for version in dict.fromkeys(versions.values()) if version is not None]
        stable = [version for version in distinct if not version.is_prerelease]
        wanted = dict.fromkeys(client.locked.get(project, {}))
        wanted.update(dict.fromkeys((stable or distinct)[: self._limits.hashed_versions]))
        places: dict[Version | None, int] = {each: place for place, each in enumerate(wanted)}
        found = [offer for offer in marked if versions[offer.file.filename] in places]
        return sorted(found, key=lambda offer: places[versions[offer.file.filename]])


def _read_markers(
    keys: Sequence[str], offers: Sequence[Offer], metadata: Mapping[str, bytes | None]
) -> _Markers:
    """Return the markers in *metadata*, which is by key; *keys* are those of *offers*."""
    marked = {key for key, data in metadata.items() if data and metadata_terms(data)}
    marked |= {
        key for key, offer in zip(keys, offers, strict=True) if is_rewritten(offer.file)
    } & metadata.keys()
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
    found = {key: sha256(data).hexdigest() for key, data in metadata.items() if data}
    digests = {
        offer.file.filename: found[key]
        for key, offer in zip(keys, offers, strict=True)
        if key in found and key not in marked
    }
    own = {
        offer.file.filename: reduced.get(offer.file.filename, metadata.get(key))
        for key, offer in zip(keys, offers, strict=True)
    }
    return _Markers(reduced, unknown, digests, own)


def _newest_first(choice: Choice) -> list[Offer]:
    """Return the files that may have variant markers, newest first: the limit drops old ones."""
    evaluated = [offer for item in choice.decisions for offer in item.offers.values()]
    if len(evaluated) == sum(offer.context is not None for offer in choice.offers):
        return evaluated
    names = {offer.file.filename for offer in evaluated}
    others = [
        offer
        for offer in choice.offers
        if offer.context is not None and offer.file.filename not in names
    ]
    # Of versions beyond the limit, and of those without variants.
    versions = {name: wheel_version(name) for name in (offer.filename for offer in others)}
    return evaluated + sorted(
        others,
        key=lambda offer: (versions[offer.filename] or Version("0"), offer.filename),
        reverse=True,
    )


def _entry(
    client: Client,
    shown: ProjectView,
    offer: Offer,
    prefix: str,
    markers: _Markers,
    announced: dict[str, WheelDigest | None],
    merged: dict[str, MergedVersion],
    direct: _Direct,
) -> PageFile:
    version = merged.get(offer.file.filename)
    entry = _own_entry(
        client,
        shown,
        offer,
        prefix,
        markers,
        announced,
        is_direct=direct.allows(offer.file),
        is_ours=offer.label is not None or (version is not None and version.plain),
    )
    if version is None or entry is offer.file:
        return entry
    served = None if client.floating else version.metadata
    digests = {} if served is None else {"sha256": sha256(served).hexdigest()}
    return replace(entry, core_metadata=digests)


def _own_entry(
    client: Client,
    shown: ProjectView,
    offer: Offer,
    prefix: str,
    markers: _Markers,
    announced: dict[str, WheelDigest | None],
    *,
    is_direct: bool,
    is_ours: bool,
) -> PageFile:
    """Return the entry of a file with its own METADATA; *is_ours* if the proxy has to serve it."""
    file = offer.file
    if offer.refused:
        url = (
            folder_path(REFUSED, offer.filename)
            if client.in_place
            else prefix + file_path(shown.upstream.name, shown.project, REFUSED, offer.filename)
        )
        return PageFile(offer.filename, url, {}, file.requires_python)
    if (own := published(file)) is not None:
        if is_direct:
            return own.original
        name, url = _place(client, shown, offer, prefix, floating=False)
        return replace(own.original, filename=name, url=url, provenance=None, gpg_sig=None)
    reduced = markers.reduced.get(file.filename)
    unknown = file.filename in markers.unknown
    floating = client.floating and offer.context is not None
    is_ours = is_ours or reduced is not None or not is_direct
    if not (is_ours or floating or unknown):
        return file
    filename, url = _place(client, shown, offer, prefix, floating=floating)
    if reduced is None and not floating and not unknown:
        core_metadata = file.core_metadata
        if not core_metadata and file.filename in markers.digests:
            # Known here: clients need not read it from the wheel.
            core_metadata = {"sha256": markers.digests[file.filename]}
        # Without gpg_sig: clients would look for the signature beside the proxy's URL.
        return PageFile(
            filename,
            url,
            file.hashes,
            file.requires_python,
            file.yanked,
            file.size,
            file.upload_time,
            core_metadata,
            file.provenance if is_direct else None,
        )
    entry = replace(file, filename=filename, url=url, gpg_sig=None)
    if floating or unknown:
        # The contents are not known in advance.
        return replace(
            entry,
            hashes={},
            size=None,
            provenance=None,
            core_metadata={}
            if client.in_place or entry.core_metadata is not None or reduced is not None
            else None,
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


def _place(
    client: Client, shown: ProjectView, offer: Offer, prefix: str, *, floating: bool
) -> tuple[str, str]:
    """Return filename and relative URL of a file that is not the upstream's."""
    if (own := published(offer.file)) is not None and offer.label is not None:
        name = own.original.filename
        if client.in_place:
            return name, folder_path(offer.label, name)
        return name, prefix + file_path(shown.upstream.name, shown.project, offer.label, name)
    if client.in_place:
        if floating:
            return here_place(offer.filename)
        return variant_place(offer.label, offer.filename)
    choice = CHOSEN if floating else PLAIN if offer.label is None else offer.label
    path = file_path(shown.upstream.name, shown.project, choice, offer.filename)
    return offer.filename, prefix + path


def _everywhere(choice: Choice, entries: Sequence[PageFile], page: Page) -> list[PageFile]:
    """Return *entries* of a floating page as they are on every machine.

    The time is that of the last upload of all the wheels that one stands for.
    """
    times: dict[str, str] = {}
    for file in page.files:
        if file.upload_time is not None:
            plain, _ = split_label(file.filename)
            times[plain] = max(times.get(plain, ""), file.upload_time)
    return [
        entry if entry is offer.file else replace(entry, upload_time=times.get(offer.filename))
        for offer, entry in zip(choice.offers, entries, strict=True)
    ]


class _Direct:
    """Whether clients can fetch files from the upstream themselves, determined once per host."""

    def __init__(self, upstreams: Upstreams, upstream: Upstream, *, in_place: bool) -> None:
        self._upstreams = upstreams
        self._upstream = upstream
        self._in_place = in_place
        self._known: dict[tuple[str, str], bool] = {}

    def allows(self, file: PageFile) -> bool:
        upstream, url = origin(self._upstream, file), file.url
        key = upstream.name, url[: url.find("/", 8)]
        if key not in self._known:
            self._known[key] = self._upstreams.is_direct(upstream, url, in_place=self._in_place)
        return self._known[key]

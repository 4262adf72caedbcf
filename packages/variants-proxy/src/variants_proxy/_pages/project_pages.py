"""Pages of the proxy (PEP 503, PEP 691): project pages, their entries, and the list of projects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import markers
from variants_index import pages as index_pages
from variants_index.pages import Page, PageFile

from .._choice.in_place_names import REFUSED, folder_path, variant_place
from .._choice.offers import Choice, Offer, ProjectView, version_in
from .._clients import Client, NotedProjects
from .._headers import Document, PageFormat
from .._sharing import gather_limited
from .._upstream.releases import is_rewritten, known_variants, named_as, published, wheel_version
from .._upstream.transfers import WheelDigest
from .._upstream.upstream_pages import UpstreamPages
from .._upstream.upstreams import Upstreams
from .._upstream.wheels import Wheels, is_cheap, metadata_key
from ..errors import UpstreamError
from ..settings import Upstream
from .merged_metadata import wheels_to_merge

logger = logging.getLogger(__name__)

_KINDS: dict[PageFormat, str] = {"json": index_pages.JSON, "html": "text/html; charset=utf-8"}


@dataclass
class _Markers:
    """Variant markers of the wheels on a page, by upstream filename.

    Attributes:
        reduced: METADATA with evaluated evaluated, of wheels that have evaluated.
        unknown: wheels that were not inspected.
        digests: SHA-256 of METADATA, of wheels without evaluated.
        own: METADATA that each wheel has when it is served, None if it was not inspected.
    """

    reduced: dict[str, bytes] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    digests: dict[str, str] = field(default_factory=dict)
    own: dict[str, bytes | None] = field(default_factory=dict)


class ProjectPages:
    """Writes the pages of the proxy."""

    def __init__(
        self, upstreams: Upstreams, pages: UpstreamPages, wheels: Wheels, noted: NotedProjects
    ) -> None:
        self._upstreams = upstreams
        self._limits = upstreams.limits
        self._pages = pages
        self._wheels = wheels
        self._noted = noted

    async def project_list(
        self, upstream: Upstream | None, forms: Sequence[PageFormat]
    ) -> Document:
        """Return the list of projects of *upstream*, or of all upstreams if it is None.

        Args:
            upstream: index, None for all that are not explicit.
            forms: accepted formats, the preferred one first.

        Raises:
            UpstreamError: one of them fails.
        """
        asked = self._upstreams.settings.asked(upstream)
        found = [await self._pages.projects(item) for item in asked]

        def write() -> bytes:
            names = sorted({name for listed in found for name in listed})
            return (
                index_pages.json_projects(names)
                if forms[0] == "json"
                else index_pages.html_projects(names)
            )

        return Document(
            await self._upstreams.compute(write),
            _KINDS[forms[0]],
            _cache_control(private=any(map(self._upstreams.is_private, asked))),
            "Accept",
        )

    async def page(
        self, client: Client, shown: Sequence[ProjectView], forms: Sequence[PageFormat]
    ) -> Document:
        """Return the page with the files of *shown*.

        Args:
            client: of the request.
            shown: one project, or all of a find-links page.
            forms: accepted formats, the preferred one first.
        """
        written = [await self._entries(client, item) for item in shown]

        def write() -> bytes:
            page = replace(
                shown[0].found.page if len(shown) == 1 else Page("", ()),
                files=tuple(entry for entries in written for entry in entries),
            )
            return (
                index_pages.json_page(page) if forms[0] == "json" else index_pages.html_page(page)
            )

        has_variants = any(item.choice and item.choice.decisions for item in shown)
        vary = "Accept, User-Agent" if has_variants and not client.at_index else "Accept"
        cache = _cache_control(private=any(item.found.private for item in shown))
        return Document(await self._upstreams.compute(write), _KINDS[forms[0]], cache, vary)

    async def hashed(
        self,
        client: Client,
        shown: ProjectView,
        version: Version,
        names: Collection[str] | None = None,
    ) -> Sequence[PageFile]:
        """Return the entries of one version as they are served, whatever `Client.shown_hashes`.

        Rewritten wheels of moderate size are read to know theirs; of *names*, if given, alone.
        """
        choice = shown.choice
        if choice is None:
            return ()
        offers = tuple(
            offer
            for offer in choice.offers
            if _version(offer) == version and (names is None or _name(offer) in names)
        )
        of_version = replace(shown, choice=replace(choice, offers=offers))
        return await self._entries(replace(client, shown_hashes="served"), of_version)

    async def _entries(self, client: Client, shown: ProjectView) -> Sequence[PageFile]:
        """Return the entries of one project, in the order of its page."""
        choice = shown.choice
        if choice is None:
            return shown.found.page.files
        if not client.merges:
            choice = _with_plain(choice, client.machine.preferences.forced.get(shown.project))
        compute = self._upstreams.budget(shown.upstream).compute
        offers = await compute(lambda: _newest_first(choice))
        rewritten = [offer for offer in offers if is_rewritten(offer.file)]
        hashed = self._hashed(client, shown.project, rewritten)[: self._limits.hashed]
        unread = _unread(choice) | {each.file.filename for each in rewritten if each not in hashed}
        evaluated = await self._markers(client, shown.upstream, offers, unread)
        announced: dict[str, WheelDigest | None] = {}
        if evaluated.reduced:
            # If uv finds no solution, the command reports dependencies that markers add.
            self._noted.add(client, shown.project)
            announced = await self._announced(client, shown, offers, evaluated)
        merged = await compute(lambda: wheels_to_merge(client, offers, evaluated.own))
        hosts: dict[tuple[str, str], bool] = {}

        def is_direct(file: PageFile) -> bool:
            upstream = self._upstreams.origin(shown.upstream, file)
            key = upstream.name, file.url[: file.url.find("/", 8)]
            if key not in hosts:
                hosts[key] = self._upstreams.is_direct(upstream, file.url, at_index=client.at_index)
            return hosts[key]

        entries = _Entries(is_direct, evaluated, announced, merged)
        return await compute(
            lambda: _consistent(
                client,
                [(offer, _yanked(entries.entry(offer), choice, offer)) for offer in choice.offers],
                merged.keys() | evaluated.reduced.keys(),
            )
        )

    async def _markers(
        self, client: Client, upstream: Upstream, offers: Sequence[Offer], unread: Collection[str]
    ) -> _Markers:
        # Most wheels of a version share their METADATA.
        offers = [offer for offer in offers if offer.file.filename not in unread]
        keys = [metadata_key(offer.file) for offer in offers]
        files = {
            key: offer.file for key, offer in zip(reversed(keys), reversed(offers), strict=True)
        }
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
                return await self._wheels.read(upstream, file)
            except UpstreamError as error:
                logger.warning("%s: its metadata cannot be inspected: %s", file.filename, error)
                return None

        found = await gather_limited(
            [partial(one, files[key]) for key in wanted], self._limits.parallel
        )
        metadata = dict(zip(wanted, found, strict=True))
        return await self._upstreams.budget(upstream).compute(
            lambda: _read_markers(keys, offers, metadata)
        )

    async def _announced(
        self, client: Client, shown: ProjectView, offers: Sequence[Offer], evaluated: _Markers
    ) -> dict[str, WheelDigest | None]:
        """Return hash and size of wheels that are rewritten, by upstream filename."""
        marked = {
            offer.file.filename: offer
            for offer in offers
            if offer.file.filename in evaluated.reduced
        }
        ahead = self._hashed(client, shown.project, list(marked.values()))[: self._limits.hashed]
        works = [
            partial(
                self._wheels.announced,
                shown.upstream,
                offer.file,
                offer.context,
                evaluated.reduced[name],
                ahead=offer in ahead,
            )
            for name, offer in marked.items()
        ]
        found = await gather_limited(works, self._limits.parallel)
        if client.at_index:  # a lock must not depend on what has been installed before
            limit = self._limits.hashed_bytes
            found = [each if each and each.size <= limit else None for each in found]
        return dict(zip(marked, found, strict=True))

    def _hashed(self, client: Client, project: str, marked: Sequence[Offer]) -> Sequence[Offer]:
        """Return the wheels that may be read to know their hash, those to be read first in front.

        A lock file has one version, most likely what it had or the newest.
        """
        if not client.hashes or client.shown_hashes != "served":
            return ()
        versions = {offer.file.filename: wheel_version(offer.filename) for offer in marked}
        distinct = [version for version in dict.fromkeys(versions.values()) if version is not None]
        stable = [version for version in distinct if not version.is_prerelease]
        wanted = dict.fromkeys(client.locked.get(project, {}))
        wanted.update(dict.fromkeys((stable or distinct)[: self._limits.hashed_versions]))
        places: dict[Version | None, int] = {each: place for place, each in enumerate(wanted)}
        found = [
            offer
            for offer in marked
            if versions[offer.file.filename] in places
            and (offer.file.size or 0) <= self._limits.hashed_bytes
        ]
        return sorted(found, key=lambda offer: places[versions[offer.file.filename]])


def _yanked(entry: PageFile, choice: Choice, offer: Offer) -> PageFile:
    """Return the *entry* of *offer*, yanked where a build of an older version goes first."""
    reason = choice.yanked(offer, entry.filename)
    return entry if entry.yanked == reason else replace(entry, yanked=reason)


def _with_plain(choice: Choice, forced: str | None) -> Choice:
    """Return *choice* with the non-variant wheels beside variants with the same tags.

    pip takes a variant, for its build tag, unless hashes are required that only the non-variant
    wheel has. Other installers lock all files that a page lists.
    """
    # A publisher's file has no build tag: pip could take the non-variant wheel in its place.
    taken = choice.stood_for
    plain = [
        Offer(file, file.filename, None, markers.NON_VARIANT)
        for decision in choice.decisions
        for file in decision.release.wheels
        if file.filename in taken and forced is None
    ]
    return replace(choice, offers=(*choice.offers, *plain))


def _unread(choice: Choice) -> set[str]:
    """Return the upstream's names of plain wheels beside which the catalogue alone has variants.

    They have no variant evaluated, as all wheels of projects without variants.
    """
    return {
        file.filename
        for decision in choice.decisions
        if known_variants(decision.release.wheels) is not None
        for file in decision.release.wheels
        if wheel_labels.split_label(file.filename)[1] is None
    }


def _version(offer: Offer) -> Version | None:
    """Return the version of *offer* as its page has it."""
    return version_in(_name(offer))


def _name(offer: Offer) -> str:
    """Return the filename of *offer* as its page has it."""
    own = published(offer.file)
    if own is not None:
        return own.original.filename
    return variant_place(offer.label, named_as(offer.file, offer.filename))[0]


def _consistent(
    client: Client, entries: Sequence[tuple[Offer, PageFile]], changed: Collection[str]
) -> list[PageFile]:
    """Return the entries, none of which *client* prefers to a variant for its hash.

    uv takes the METADATA of a file with a hash that its lock has, of whatever kind: that of a
    source distribution or a plain wheel, which lacks what a variant requires. For requirements
    with hashes it downloads what has none.

    Args:
        client: of the page.
        entries: with their offers.
        changed: upstream's names of wheels whose METADATA are not their own.
    """
    if client.shown_hashes != "served":
        is_none = client.shown_hashes == "none"
        chosen = {_version(each) for each, _ in entries if each.label or each.context is not None}
        return [
            replace(entry, hashes={} if is_none else offer.file.hashes)
            if _version(offer) in chosen
            else entry
            for offer, entry in entries
        ]
    if client.by_hash:
        wheels = {_version(each) for each, _ in entries if each.file.filename in changed}
        return [
            entry
            for offer, entry in entries
            if entry.filename.endswith(".whl") or _version(offer) not in wheels
        ]
    return [entry for _, entry in entries]


def _newest_first(choice: Choice) -> list[Offer]:
    """Return the wheels that may have variant evaluated, newest first: limits drop old ones."""
    offers = [offer for offer in choice.offers if offer.context and not published(offer.file)]
    versions = {offer.filename: wheel_version(offer.filename) for offer in offers}
    return sorted(offers, key=lambda offer: versions[offer.filename] or Version("0"), reverse=True)


def _read_markers(
    keys: Sequence[str], offers: Sequence[Offer], metadata: Mapping[str, bytes | None]
) -> _Markers:
    """Return the markers in *metadata*, which is by key; *keys* are those of *offers*."""
    found = _Markers()
    marked = {key for key, data in metadata.items() if data and markers.metadata_terms(data)}
    digests = {key: sha256(data).hexdigest() for key, data in metadata.items() if data}
    for key, offer in zip(keys, offers, strict=True):
        name, data = offer.file.filename, metadata.get(key)
        found.own[name] = data
        if data is None:
            found.unknown.add(name)
        elif key not in marked and not is_rewritten(offer.file):
            if data:
                found.digests[name] = digests[key]
        elif offer.context is not None:
            found.own[name] = found.reduced[name] = markers.reduce_metadata(data, offer.context)
    return found


@dataclass(frozen=True)
class _Entries:
    """The entries of one project for one client.

    Attributes:
        is_direct: whether clients can fetch a file from the upstream themselves.
        markers: of the wheels.
        announced: hash and size of rewritten wheels.
        merged: see `wheels_to_merge`.
    """

    is_direct: Callable[[PageFile], bool]
    evaluated: _Markers
    announced: Mapping[str, WheelDigest | None]
    merged: Mapping[str, bool]

    def entry(self, offer: Offer) -> PageFile:
        """Return the entry of *offer*: the upstream's own, or one with a URL of the proxy."""
        file = offer.file
        if offer.refused:
            return PageFile(*self._place(offer), {}, file.requires_python)
        is_direct = self.is_direct(file)
        if (own := published(file)) is not None:
            if is_direct:
                return own.original
            name, url = self._place(offer)
            core = own.original.core_metadata
            known = {} if core is None else core  # as below
            return replace(
                own.original, filename=name, url=url, core_metadata=known, provenance=None
            )
        reduced = self.evaluated.reduced.get(file.filename)
        # The contents are not known in advance.
        unknown = file.filename in self.evaluated.unknown or (
            is_rewritten(file) and reduced is None
        )
        is_ours = offer.label is not None or self.merged.get(file.filename, False)
        if is_direct and reduced is None and not (is_ours or unknown):
            return file
        name, url = self._place(offer)
        hashes, size, core_metadata = file.hashes, file.size, file.core_metadata
        if unknown:
            hashes, size, core_metadata = {}, None, {}
        elif reduced is not None:
            digest = self.announced.get(file.filename)
            hashes = {"sha256": digest.sha256} if digest else {}
            size = digest.size if digest else None
            core_metadata = {"sha256": sha256(reduced).hexdigest()}
        elif not core_metadata and file.filename in self.evaluated.digests:
            # Known here: clients need not read it from the wheel.
            core_metadata = {"sha256": self.evaluated.digests[file.filename]}
        elif core_metadata is None and not is_direct and name.endswith(".whl"):
            core_metadata = {}  # the proxy reads it from the wheel, which it sends whole only
        if file.filename in self.merged:
            core_metadata = {}  # known when it is requested
        is_unchanged = is_direct and reduced is None and not unknown
        return PageFile(
            name,
            url,
            hashes,
            file.requires_python,
            file.yanked,
            size,
            file.upload_time,
            core_metadata,
            file.provenance if is_unchanged else None,
        )

    def _place(self, offer: Offer) -> tuple[str, str]:
        """Return filename and relative URL of a file that is not the upstream's."""
        name, label = offer.filename, offer.label
        if offer.refused:
            return name, folder_path(REFUSED, name)
        own = published(offer.file)
        if own is not None and label is not None:
            return own.original.filename, folder_path(label, own.original.filename)
        return variant_place(label, named_as(offer.file, name))


def _cache_control(*, private: bool) -> str:
    return "private, no-cache" if private else "no-cache"

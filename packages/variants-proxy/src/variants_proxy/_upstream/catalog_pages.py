"""Pages of projects that the catalogue has an entry of: the upstream's, with the files it names.

The pages of other places are fetched as those of upstreams are, within limits of their own. A place
is asked for the projects of its entries alone. One that fails costs its variants, and nothing else.
A catalogue that cannot be used costs all pages that it counts for, unless the settings allow that.
The catalogue itself is opened when it is needed, and again when it may have changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from pep_variants import limits
from pep_variants import preferences as user_preferences
from pep_variants.errors import CatalogError, redacted
from pep_variants.preferences import Preferences
from variants_catalog import catalogs, listings
from variants_catalog.catalogs import UserEntries
from variants_catalog.entries import CatalogProject
from variants_catalog.listings import Found, Listed, PlacePage, PlaceReader
from variants_index import finder as package_finder
from variants_index.finder import At
from variants_index.pages import Page

from .._clients import Client
from .._index_urls import upstream_name
from .._sharing import LRUCache, SingleFlight, gather_limited
from ..errors import NothingFetched, PassingFailure
from ..settings import Kind, Upstream
from .releases import FetchedPage
from .upstream_pages import OLD_PAGE_SECONDS, PAUSE, UpstreamPages
from .upstreams import Upstreams

logger = logging.getLogger(__name__)

_URL_SECONDS = 3600.0
"""Seconds after which a catalogue at a URL is fetched again; one on disk is read as pages are."""


class CatalogSource:
    """Entries of the catalogue by project, without those of whose places one is in *own*."""

    def __init__(self, upstreams: Upstreams, own: Iterable[str]) -> None:
        self._settings = upstreams.settings
        self._upstreams = upstreams
        self._own = own
        self._entries: UserEntries | None = None
        self._problem: CatalogError | None = None
        self._until = 0.0
        self._opening: SingleFlight[None] = SingleFlight()

    async def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of *project*, a normalized name; None without one.

        Raises:
            CatalogError: it cannot be read.
            PassingFailure: its server fails for now.
            UpstreamError: the proxy is overloaded.
        """
        if self._settings.catalog is None:
            return None
        if time.monotonic() > self._until:
            opening = self._opening.join("", self._open)
            try:
                await asyncio.wait_for(opening, OLD_PAGE_SECONDS if self._entries else None)
            except asyncio.TimeoutError:  # the one that was open before counts meanwhile
                self._until = time.monotonic() + PAUSE
        entries = self._entries
        if entries is None:
            if self._problem is not None:
                raise self._problem
            return None
        return await self._upstreams.compute(lambda: entries.entry(project))

    async def _open(self) -> None:
        """Open the catalogue; one that was open before stays if that fails."""
        settings, name = self._settings, self._settings.catalog
        assert name is not None
        preferences = Preferences(catalog=name, catalog_mirrors=settings.catalog_mirrors)
        seconds = settings.fresh_seconds
        try:
            data = b""
            if name != user_preferences.DEFAULT_CATALOG and not user_preferences.is_catalog_path(
                name
            ):
                data = await self._fetched(name)
                seconds = max(seconds, _URL_SECONDS)
            catalog = await self._upstreams.compute(
                lambda: catalogs.preferred_catalog(preferences, lambda _: data)
            )
            self._entries = UserEntries(catalog, self._own)
        except CatalogError as error:
            self._problem, seconds = error, settings.fresh_seconds
            logger.warning("%s", error)
        except NothingFetched as error:
            if isinstance(error, PassingFailure) and self._entries is None:
                raise
            problem = f"cannot be fetched: {error.problem}"
            self._problem = CatalogError(redacted(name), "", problem)
            logger.warning("%s", self._problem)
        self._until = time.monotonic() + seconds

    async def _fetched(self, url: str) -> bytes:
        at = Upstream("catalog", url, "find-links", explicit=True)
        self._upstreams.add(at)
        session = self._upstreams.session(at)
        return await self._upstreams.budget(at).fetch(
            lambda: session.fetch(at.url, limit=limits.CATALOG_BYTES).body
        )


_PREFIX = "catalog-"
_NOT_THERE = "not found (HTTP status 404)"


@dataclass(frozen=True)
class _Answer:
    """Answer to a request for a page.

    Attributes:
        upstream: that was asked, the last one of several.
        page: None without the project.
        position: of the upstream among those that installers ask.
        reason: why the page cannot be had, empty if it can.
        may_pass: whether that is so for now.
    """

    upstream: Upstream
    page: FetchedPage | None = None
    position: int = 0
    reason: str = ""
    may_pass: bool = False

    @property
    def digest(self) -> str:
        """Changes with the answer."""
        page = "" if self.page is None else self.page.digest
        return f"{self.upstream.name} {page} {self.reason}"

    def listed(self, at: Callable[[str], str] = str) -> Iterator[Listed[At]]:
        """Return the files; *at* returns where one is that is listed at a URL."""
        files = () if self.page is None else self.page.page.files
        return package_finder.listed(files, self.upstream.name, self.position, at)


class CatalogPages:
    """Adds what the catalogue knows to the pages of upstreams."""

    def __init__(self, upstreams: Upstreams, pages: UpstreamPages) -> None:
        settings = self._settings = upstreams.settings
        self._upstreams = upstreams
        self._pages = pages
        self._places: dict[tuple[str, Kind], Upstream] = {}
        self._combined: LRUCache[tuple[str, str], FetchedPage] = LRUCache(
            settings.limits.kept_page_bytes
        )
        self._combining: SingleFlight[FetchedPage] = SingleFlight()
        self._order = [
            item for item in settings.upstreams if item.kind == "simple" and not item.explicit
        ]
        self._source = CatalogSource(upstreams, [item.url for item in self._order])

    async def get_project_page(
        self, upstream: Upstream, project: str, client: Client
    ) -> FetchedPage | None:
        """Return the upstream's page, with the builds that the catalogue describes for *client*.

        The catalogue counts at the first upstream that has the project, or else at the last one.
        Otherwise as `UpstreamPages.get_project_page`.
        """
        page = await self._pages.get_project_page(upstream, project)
        if not self._counts(client, upstream, project):
            return page
        if page is None and upstream is not self._order[-1]:
            return None
        try:
            entry = await self._source.entry(project)
        except CatalogError as error:
            logger.warning("%s", error)
            if not self._settings.allow_missing_sources:
                raise PassingFailure(str(error), 503) from None
            if page is None:
                return None
            return replace(page, stale=True, newest=None, problem=str(error))
        if entry is None:
            return page
        for earlier in self._order[: self._order.index(upstream)]:
            if await self._pages.get_project_page(earlier, project) is not None:
                return page
        return await self._with(entry, upstream, page)

    async def adds(self, upstream: Upstream, project: str, client: Client) -> bool:
        """Return whether the page may have files that the upstream's own does not have."""
        if not self._counts(client, upstream, project):
            return False
        try:
            return await self._source.entry(project) is not None
        except CatalogError:
            return True

    async def leads(self, entry: CatalogProject) -> bool:
        """Return whether all that is coherent with *entry* is made for it, as for torch.

        That is coherent with fewer projects, and *entry* requires none of it.
        """
        try:
            others = [await self._source.entry(name) for name in entry.coherent]
        except CatalogError:
            return False
        return all(
            other is not None and len(other.coherent) < len(entry.coherent) for other in others
        )

    def _counts(self, client: Client, upstream: Upstream, project: str) -> bool:
        settings, preferences = self._settings, client.machine.preferences
        if settings.catalog is None or not project or project in settings.pinned:
            return False
        if upstream not in self._order:
            return False
        return (
            preferences.use_variants
            and preferences.forced.get(project) != user_preferences.NON_VARIANT_LABEL
        )

    async def _with(
        self, entry: CatalogProject, upstream: Upstream, found: FetchedPage | None
    ) -> FetchedPage | None:
        pages = listings.pages_of(entry)
        works = [partial(self._asked, self._place(entry, page), entry.name) for page in pages]
        order = self._order[: self._order.index(upstream) + 1]
        works += [partial(self._first, order, name) for name in entry.targets]
        answers = await gather_limited(works, self._settings.limits.parallel)
        at_places = dict(zip(pages, answers, strict=False))
        targets = dict(zip(entry.targets, answers[len(pages) :], strict=True))
        own = _Answer(upstream, found, len(order) - 1)
        others = await self._others(entry, own)
        if not any(each.page or each.reason for each in (own, *answers)):
            return None

        parts = repr(entry), *(each.digest for each in (own, *answers, *others))
        digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        key = entry.name, digest

        async def work() -> FetchedPage:
            page = await self._upstreams.budget(upstream).compute(
                lambda: _combined(
                    entry, digest, own, at_places, targets, others, self._settings.hashes
                )
            )
            for item in page.unavailable:
                logger.warning("%s", item)
            self._combined.put(key, page, 500 + 800 * len(page.page.files))
            return page

        page = self._combined.get(key) or await self._combining.join(key, work)
        every = [each.page for each in (own, *answers) if each.page is not None]
        return replace(
            page,
            private=any(item.private for item in every),
            stale=bool(page.unavailable) or any(item.stale for item in every),
        )

    async def _others(self, entry: CatalogProject, own: _Answer) -> list[_Answer]:
        """Return what there is of a project elsewhere, where that decides what a build stands for.

        That is in find-links places; and on the indexes after that of *own*, which no client is
        shown, if it has placeholders at most.
        """
        if not entry.targets:
            return []
        asked = [each for each in self._settings.upstreams if each.kind == "find-links"]
        if PlaceReader(entry).has_placeholders_alone(own.listed()):
            asked = [*self._order[own.position + 1 :], *asked]
        works = [
            partial(self._asked, each, entry.name, position)
            for position, each in enumerate(asked, own.position + 1)
        ]
        return await gather_limited(works, self._settings.limits.parallel)

    async def _asked(self, upstream: Upstream, project: str, position: int = 0) -> _Answer:
        """Ask *upstream* for the page of *project*."""
        bounds = self._settings.limits
        try:
            page = await asyncio.wait_for(
                self._pages.get_project_page(upstream, project), bounds.catalog_seconds
            )
            return _Answer(upstream, page, position)
        except NothingFetched as error:
            passes = isinstance(error, PassingFailure)
            reason = error.problem
        except asyncio.TimeoutError:
            passes = True
            reason = f"no complete response within {bounds.catalog_seconds:g} seconds"
        return _Answer(upstream, None, position, reason, passes)

    async def _first(self, upstreams: Sequence[Upstream], project: str) -> _Answer:
        """Ask *upstreams* for the page of *project* up to the first one that has it, or fails."""
        answer = _Answer(upstreams[-1])
        for position, each in enumerate(upstreams):
            answer = await self._asked(each, project, position)
            if answer.page is not None or answer.reason:
                break
        return answer

    def _place(self, entry: CatalogProject, page: PlacePage) -> Upstream:
        """Return the upstream that has *page*."""
        url = page.place or entry.variants_index or page.url
        kind: Kind = "find-links" if page.is_links else "simple"
        added = self._places.get((url, kind))
        if added is None:
            name = _PREFIX + upstream_name(url, "", kind)
            added = self._places[url, kind] = Upstream(name, url, kind, explicit=True)
            self._upstreams.add(added)
        return added


def _combined(
    entry: CatalogProject,
    digest: str,
    own: _Answer,
    places: Mapping[PlacePage, _Answer],
    targets: Mapping[str, _Answer],
    others: Sequence[_Answer],
    hashes: Mapping[str, frozenset[str]],
) -> FetchedPage:
    """Return the page of *own* with the files of the catalogue after its own.

    Args:
        entry: of the project.
        digest: of all that is given here.
        own: the user's index.
        places: by the page of the entry.
        targets: by the publisher's name.
        others: see `PlaceReader.files`.
        hashes: see `Settings.hashes`.
    """
    reader: PlaceReader[At] = PlaceReader(entry)
    for place, answer in places.items():
        if answer.reason:
            reader.fail(place, answer.reason, may_pass=answer.may_pass)
        elif answer.page is None:
            reader.fail(place, _NOT_THERE, missing=True)
        else:
            reader.answer(place, answer.listed(place.file_at))
    for name, answer in targets.items():
        if answer.reason:
            reader.fail_target(name, answer.reason, may_pass=answer.may_pass)
    for answer in others:
        if answer.reason:
            reader.fail_others(answer.reason, may_pass=answer.may_pass)
    listed = {name: each.listed() for name, each in targets.items()}
    elsewhere = chain.from_iterable(each.listed() for each in others)
    files = reader.files(own.listed(), listed, elsewhere)
    given = hashes.get(entry.name)
    builds = reader.builds if given is None else ()  # with hashes the user names the very files
    admitted = [item for item in files if given is None or _is_given(item, given)]
    page = Page(entry.name, ()) if own.page is None else own.page.page
    added = package_finder.catalog_files(entry, admitted)
    # The versions that a page lists (PEP 700) would have to be those that a client is shown.
    own_files = package_finder.with_builds(page.files, builds)
    page = replace(page, files=(*own_files, *added), versions=None if added else page.versions)
    return FetchedPage(
        page,
        digest,
        private=False,
        entry=entry,
        unavailable=reader.unavailable,
        excluded=len(admitted) < len(files) and (not admitted or any(map(_is_rewritten, files))),
        puts_build_first=reader.puts_build_first,
    )


def _is_given(item: Found[At], hashes: frozenset[str]) -> bool:
    """Return whether a file is installed as it is, with one of *hashes*."""
    return not _is_rewritten(item) and item.listed.sha256 in hashes


def _is_rewritten(item: Found[At]) -> bool:
    return item.published is not None and item.published.is_rewritten

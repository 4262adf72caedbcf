"""Pages of projects that the catalogue has an entry of: the upstream's, with the files it names.

The pages of other places are fetched as those of upstreams are, within limits, budgets and circuit
breakers of their own. A place is asked for the projects of its entries alone. One that fails costs
its variants, and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pep_variants.choose.preferences import NON_VARIANT_LABEL
from pep_variants.errors import CatalogError, redacted
from variants_catalog.model import CatalogProject
from variants_index.pages import Page

from .catalog_combining import Source, Sources, combined, has_files
from .catalog_source import CatalogSource
from .errors import UpstreamError
from .lru import LRUCache
from .settings import Kind, Settings, Upstream
from .single_flight import SingleFlight, gather_limited
from .upstream_options import bare_url, upstream_name
from .upstream_pages import FetchedPage, UpstreamPages
from .upstreams import Upstreams
from .views import Client

logger = logging.getLogger(__name__)

_PREFIX = "catalog-"

_SILENT = 300.0
"""Seconds in which the failure of a place is logged once for a project."""


@dataclass(frozen=True)
class CatalogPage(FetchedPage):
    """The page of an upstream with what the catalogue adds to it.

    Attributes:
        entry: of the project.
        failures: of places, one line each.
    """

    entry: CatalogProject | None = None
    failures: tuple[str, ...] = ()


class CatalogPages:
    """Adds what the catalogue knows to the pages of upstreams."""

    def __init__(
        self,
        settings: Settings,
        upstreams: Upstreams,
        pages: UpstreamPages,
        source: CatalogSource,
    ) -> None:
        self._settings = settings
        self._upstreams = upstreams
        self._pages = pages
        self._source = source
        self._places: dict[tuple[str, Kind], Upstream] = {}
        self._combined: LRUCache[tuple[str, str, str], Page] = LRUCache(
            settings.limits.kept_page_bytes
        )
        self._combining: SingleFlight[Page] = SingleFlight()
        self._logged: LRUCache[tuple[str, str], float] = LRUCache(1024)

    async def page(
        self, client: Client, upstream: Upstream, project: str, found: FetchedPage | None
    ) -> FetchedPage | None:
        """Return the page of *project* for *client*; *found* itself if the catalogue adds nothing.

        Args:
            client: of the request.
            upstream: of the page.
            project: normalized name.
            found: the upstream's page, None if it does not have the project. The catalogue counts
                at the first upstream that has the project, or else at the last one.
        """
        if not self._counts(client, upstream, project, found):
            return found
        try:
            entry = await self._source.entry(project)
        except CatalogError as error:
            logger.warning("%s", error)
            return None if found is None else _failed(found, str(error))
        if entry is None or bare_url(upstream.url) in map(bare_url, entry.places):
            return found  # the user has chosen this build
        return await self._with(entry, upstream, found)

    def _counts(
        self, client: Client, upstream: Upstream, project: str, found: FetchedPage | None
    ) -> bool:
        settings, preferences = self._settings, client.machine.preferences
        if settings.catalog is None or not project or project in settings.pinned:
            return False
        if upstream.kind != "simple" or upstream.explicit or client.floating:
            return False
        if not preferences.use_variants or preferences.forced.get(project) == NON_VARIANT_LABEL:
            return False
        return found is not None or upstream is self._last

    @property
    def _last(self) -> Upstream | None:
        """The upstream that is asked last."""
        order = reversed(self._settings.upstreams)
        return next((each for each in order if each.kind == "simple" and not each.explicit), None)

    async def _with(
        self, entry: CatalogProject, upstream: Upstream, found: FetchedPage | None
    ) -> FetchedPage | None:
        failed: dict[str, list[str]] = {}
        places = [(place, self._place(entry, place)) for place in entry.places]
        if entry.variants_index is not None:
            places.append(("", self._added(entry.variants_index, "simple")))
        works = [partial(self._fetched, at, entry.name, failed) for _, at in places]
        works += [partial(self._target, upstream, name, failed) for name in entry.targets]
        fetched = await gather_limited(works, self._settings.limits.parallel)
        # A target is asked for at the user's own indexes.
        names = [place for place, _ in places] + [None] * len(entry.targets)
        known = [
            (place, *item) for place, item in zip(names, fetched, strict=True) if item is not None
        ]
        # In the order of the entry, not of the answers.
        order = {at.url: number for number, (_, at) in enumerate(places)}
        for urls in failed.values():
            urls.sort(key=lambda url: order.get(url, len(order)))
        lines = sorted((_failure(entry, urls, why), urls[0]) for why, urls in failed.items())
        failures = tuple(line for line, _ in lines)
        for line, url in lines:
            self._log(line, url)
        if found is None and not known:
            return None
        digest = _digest(
            found.digest if found is not None else "",
            self._source.digest(entry),
            *(f"{at.name} {page.digest}" for _, at, page in known),
        )

        def combine() -> Page:
            own = Page(entry.name, ()) if found is None else found.page
            sources = Sources(
                tuple(Source(at, page.page, place) for place, at, page in known if place),
                tuple(Source(at, page.page) for place, at, page in known if place is None),
                next((Source(at, page.page) for place, at, page in known if place == ""), None),
            )
            return combined(entry, Source(upstream, own), sources)

        async def work() -> Page:
            page = await self._upstreams.budget(upstream).compute(combine)
            self._combined.put(key, page, 500 + 800 * len(page.files))
            return page

        key = upstream.name, entry.name, digest
        page = self._combined.get(key) or await self._combining.join(key, work)
        every = [item for _, _, item in known] + ([found] if found is not None else [])
        return CatalogPage(
            page,
            digest,
            any(item.private for item in every),
            min((item.checked for item in every), default=time.monotonic()),
            stale=bool(failures) or any(item.stale for item in every),
            entry=entry,
            failures=failures,
        )

    async def _fetched(
        self, upstream: Upstream, project: str, failed: dict[str, list[str]]
    ) -> tuple[Upstream, FetchedPage] | None:
        """Return the page of *project* at a place, None if it does not have the project.

        Args:
            upstream: the place.
            project: normalized name.
            failed: gets URLs of places that fail, by the reason.
        """
        limits = self._settings.limits
        try:
            page = await asyncio.wait_for(
                self._pages.page(upstream, project), limits.catalog_seconds
            )
            if page is None:
                return None
            listed = page
            if await self._upstreams.budget(upstream).compute(lambda: has_files(listed.page)):
                return upstream, page
            problem = "lists no wheels"
        except UpstreamError as error:
            # The reason is the same for all places of a host that is down.
            problem = re.sub(r"^https?://\S+: ", "", str(error))
            problem = problem.replace(f"index {upstream.name}: ", "")
        except asyncio.TimeoutError:
            problem = f"no complete response within {limits.catalog_seconds:g} seconds"
        urls = failed.setdefault(problem, [])
        if upstream.url not in urls:
            urls.append(upstream.url)
        return None

    async def _target(
        self, upstream: Upstream, project: str, failed: dict[str, list[str]]
    ) -> tuple[Upstream, FetchedPage] | None:
        """Return the page of a project that variants redirect to, where an installer finds it."""
        order = [each for each in self._settings.upstreams if not each.explicit]
        for each in (upstream, *(item for item in order if item is not upstream)):
            if each.kind == "simple":
                found = await self._fetched(each, project, failed)
                if found is not None:
                    return found
        return None

    def _log(self, line: str, url: str) -> None:
        """Log what failed, not with each attempt: a host may be down for long."""
        now, before = time.monotonic(), self._logged.get((line.partition(":")[0], url))
        if before is None or now - before > _SILENT:
            self._logged.put((line.partition(":")[0], url), now)
            logger.warning("%s", line)

    def _place(self, entry: CatalogProject, place: str) -> Upstream:
        is_links = any(item.links == place for item in entry.variants)
        return self._added(place, "find-links" if is_links else "simple")

    def _added(self, url: str, kind: Kind) -> Upstream:
        known = self._places.get((url, kind))
        if known is None:
            name = _PREFIX + upstream_name(url, "", kind)
            known = self._places[url, kind] = Upstream(name, url, kind, explicit=True)
            self._upstreams.add(known)
        return known


def _failure(entry: CatalogProject, urls: Sequence[str], reason: str) -> str:
    """Return the line about places of *entry* that fail for one reason."""
    failed = set(map(bare_url, urls))
    places = ((item.label, item.place) for item in entry.variants)
    labels = dict.fromkeys(label for label, at in places if at and bare_url(at) in failed)
    named = f"variant{'s' if len(labels) != 1 else ''} {', '.join(labels)}".rstrip()
    more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return f"{entry.name}: {named} from {redacted(urls[0])}{more} cannot be had: {reason}"


def _failed(found: FetchedPage, problem: str) -> CatalogPage:
    return CatalogPage(
        found.listed, found.digest, found.private, found.checked, True, failures=(problem,)
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()

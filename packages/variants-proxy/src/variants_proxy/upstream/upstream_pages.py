"""Project pages of upstream indexes: fetched once for all clients, kept while fresh.

A page is requested again when it is older than `Settings.fresh_seconds`. While an upstream fails,
its last page is served for up to `STALE_SECONDS`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from urllib.parse import urlsplit

from pep_variants.errors import redacted
from pep_variants.urls import is_local, local_path
from variants_index.errors import PackageIndexError
from variants_index.http.responses import Response as FetchedResponse
from variants_index.pages import ACCEPT, HTML, JSON, Page, read_page, read_projects

from ..errors import UpstreamError
from ..settings import Settings, Upstream
from .budget import LargeAnswer
from .file_lists import directory_files, pages_by_project, project_folders
from .lru import LRUCache
from .metrics import Metrics
from .page_record import PageRecord, page_digest
from .single_flight import SingleFlight
from .upstream_page import UpstreamPage
from .upstreams import Upstreams

logger = logging.getLogger(__name__)

STALE_SECONDS = 24 * 3600.0
"""Maximum age of a page that is served while its upstream fails."""

_JUST = 1.0
"""Seconds in which a client's wish for a new page leads to no second request for it."""

# Indexes that answer 403 for projects that they do not have; uv has the same list.
_FORBIDS_UNKNOWN = ("download.pytorch.org",)


@dataclass(frozen=True)
class FetchedPage:
    """A project page as it was fetched.

    Attributes:
        listed: the upstream's page, or the page made for a directory.
        digest: hash of its contents.
        private: whether it was fetched with credentials: shared caches must not store it.
        checked: time of the last validation, as `time.monotonic`.
        stale: whether the last validation failed.
        url: that it was fetched from, after redirects.
        validators: to ask the upstream whether it has changed, see `FetchedResponse`.
    """

    listed: UpstreamPage | Page
    digest: str
    private: bool
    checked: float
    stale: bool = False
    url: str = ""
    validators: Mapping[str, str] = field(default_factory=dict)

    @property
    def listing(self) -> UpstreamPage | None:
        """The page as the upstream wrote it, None for a directory or a parsed page."""
        return self.listed if isinstance(self.listed, UpstreamPage) else None

    @property
    def page(self) -> Page:
        """The parsed page."""
        return self.listed.page if isinstance(self.listed, UpstreamPage) else self.listed

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes."""
        if isinstance(self.listed, UpstreamPage):
            return 500 + 2 * len(self.listed.body)  # the parsed page is cached too
        return 500 + 400 * len(self.page.files)


class UpstreamPages:
    """The project pages of all upstreams."""

    def __init__(self, settings: Settings, upstreams: Upstreams, metrics: Metrics) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._upstreams = upstreams
        self._metrics = metrics
        self._pages: LRUCache[tuple[str, str], FetchedPage | None] = LRUCache(
            settings.limits.kept_page_bytes
        )
        self._splits: LRUCache[tuple[str, str], dict[str, tuple[Page, str]]] = LRUCache(64)
        self._missing: LRUCache[tuple[str, str], float] = LRUCache(4096)
        self._page_flights: SingleFlight[FetchedPage | None] = SingleFlight()

    async def page(self, upstream: Upstream, project: str) -> FetchedPage | None:
        """Return the page of *project*, None if the upstream does not have the project.

        Args:
            upstream: index.
            project: normalized name, empty for all of a find-links page.

        Raises:
            UpstreamError: it cannot be fetched, and there is no old page.
        """
        if upstream.kind == "find-links":
            return (await self._split(upstream)).get(project)
        return await self._whole(upstream, project)

    def expire(self, upstream: Upstream, project: str) -> None:
        """Ask the upstream for a page again with the next request for it, unless it just was."""
        key = (upstream.name, "" if upstream.kind == "find-links" else project)
        self._missing.remove(key)
        known = self._pages.get(key)
        now = time.monotonic()
        if known is not None and now - known.checked > _JUST:
            expired = replace(known, checked=min(known.checked, now - self._settings.fresh_seconds))
            self._pages.put(key, expired, expired.weight)

    async def projects(self, upstream: Upstream) -> tuple[str, ...]:
        """Return the normalized names of all projects of *upstream*, ascending.

        Raises:
            UpstreamError: the upstream has no list, or fails.
        """
        if upstream.kind == "find-links":
            return tuple(sorted(await self._split(upstream)))
        budget = self._upstreams.budget(upstream)
        if is_local(upstream.url):
            folders = await budget.page(
                upstream.url, lambda: project_folders(local_path(upstream.url))
            )
            return tuple(sorted(folders))
        with budget.large_answer() as large:
            answer = await budget.page(
                upstream.url,
                lambda: self._fetch_page(
                    upstream, upstream.url, large, self._limits.projects_bytes
                ),
            )
            return await budget.compute(
                lambda: tuple(sorted(read_projects(answer.body, answer.content_type, answer.url)))
            )

    def _fetch_page(
        self,
        upstream: Upstream,
        url: str,
        large: LargeAnswer,
        limit: int | None = None,
        validators: Mapping[str, str] | None = None,
    ) -> FetchedResponse:
        answer = self._upstreams.session(upstream).fetch(
            url,
            limit=limit or self._limits.page_bytes,
            accept=ACCEPT,
            seconds=self._limits.page_seconds,
            grown=large.grown,
            validators=validators,
        )
        self._upstreams.budget(upstream).received += len(answer.body)
        return answer

    async def _split(self, upstream: Upstream) -> dict[str, FetchedPage]:
        """Return the pages of a find-links upstream by project."""
        found = await self._whole(upstream, "")
        if found is None:
            raise UpstreamError(
                f"{redacted(upstream.url)}: the find-links page does not exist", 404
            )
        key = (upstream.name, found.digest)
        known = self._splits.get(key)
        if known is None:
            known = await self._upstreams.budget(upstream).compute(
                lambda: pages_by_project(found.page)
            )
            self._splits.put(key, known)
        return {
            project: replace(found, listed=page, digest=digest)
            for project, (page, digest) in known.items()
        }

    async def _whole(self, upstream: Upstream, project: str) -> FetchedPage | None:
        """Return a page of the upstream, from memory while that is fresh."""
        key = (upstream.name, project)
        known = self._pages.get(key)
        now = time.monotonic()
        fresh = self._settings.fresh_seconds
        if known is not None and now - known.checked < fresh:
            self._metrics.count("page_cache_hits")
            return known
        missing = self._missing.get(key)
        if missing is not None and now - missing < fresh:
            return None
        return await self._page_flights.join(key, lambda: self._refreshed(upstream, project, known))

    async def _refreshed(
        self, upstream: Upstream, project: str, known: FetchedPage | None
    ) -> FetchedPage | None:
        key = (upstream.name, project)
        self._metrics.count("page_fetches")
        try:
            found = await self._fetched(upstream, project, known)
        except UpstreamError as error:
            if error.status == 403 and urlsplit(upstream.url).hostname in _FORBIDS_UNKNOWN:
                found = None
            elif error.status in (502, 503, 504):
                found = await self._old(upstream, project, known)
                if found is None:
                    self._metrics.count("page_failures")
                    raise
                self._metrics.count("stale_pages")
                logger.warning("%s: serving an old page: %s", project, error)
            else:
                raise
        if found is None:
            self._pages.remove(key)
            self._missing.put(key, time.monotonic())
        else:
            self._pages.put(key, found, found.weight)
        return found

    async def _fetched(
        self, upstream: Upstream, project: str, known: FetchedPage | None
    ) -> FetchedPage | None:
        budget = self._upstreams.budget(upstream)
        with budget.large_answer() as large:
            if upstream.kind == "find-links" or is_local(upstream.url):
                return await budget.page(
                    upstream.url, lambda: self._listed(upstream, project, known, large)
                )
            url = f"{upstream.url}{project}/"
            try:
                answer = await budget.page(
                    url, lambda: self._ask(upstream, project, known, url, large)
                )
            except UpstreamError as error:
                if error.status == 404:
                    return None
                raise
            return await budget.compute(lambda: self._read(upstream, project, known, answer))

    def _ask(
        self,
        upstream: Upstream,
        project: str,
        known: FetchedPage | None,
        url: str,
        large: LargeAnswer,
    ) -> FetchedResponse:
        """Return the upstream's page; if it is the known one, a response without body."""
        if known is not None:
            answer = self._fetch_page(upstream, url, large, validators=known.validators)
            if not answer.unchanged or answer.url == known.url:
                return answer
        else:
            record = PageRecord.of(self._upstreams.store, upstream, project)
            large.grown(len(record.body))
            answer = self._fetch_page(upstream, url, large, validators=record.validators)
            if not answer.unchanged:
                return answer
            if answer.url == record.url:
                recent = time.time() - record.time < STALE_SECONDS / 2
                return FetchedResponse(
                    answer.url, record.kind, record.body, record.validators, recent
                )
        # It is another page that is unchanged: there was another redirect.
        return self._fetch_page(upstream, url, large, validators={})

    def _read(
        self,
        upstream: Upstream,
        project: str,
        known: FetchedPage | None,
        answer: FetchedResponse,
    ) -> FetchedPage:
        private = self._upstreams.is_private(upstream)
        now = time.monotonic()
        if known is not None and answer.unchanged:
            return replace(known, checked=now, stale=False, private=private)
        body, kind, url = answer.body, answer.content_type, answer.url
        digest = page_digest(body, kind, url)
        validators = answer.validators
        if known is not None and known.digest == digest:
            return replace(known, checked=now, stale=False, private=private, validators=validators)
        listed = _listed(UpstreamPage(body, kind, url, project))
        if not answer.unchanged:
            record = PageRecord(body, kind, url, time.time(), private, validators)
            record.write(self._upstreams.store, upstream, project)
        return FetchedPage(listed, digest, private, now, url=url, validators=validators)

    async def _old(
        self, upstream: Upstream, project: str, known: FetchedPage | None
    ) -> FetchedPage | None:
        """Return the old page for an upstream that fails, None if there is none."""
        return await self._upstreams.budget(upstream).compute(
            lambda: self._kept_page(upstream, project, known)
        )

    def _kept_page(
        self, upstream: Upstream, project: str, known: FetchedPage | None
    ) -> FetchedPage | None:
        now = time.monotonic()
        # The next attempt follows soon, but not with every request.
        checked = now - self._settings.fresh_seconds + min(5.0, self._settings.fresh_seconds)
        if known is not None:
            if known.stale or now - known.checked < STALE_SECONDS:
                return replace(known, checked=checked, stale=True)
            return None
        record = PageRecord.of(self._upstreams.store, upstream, project)
        if time.time() - record.time > STALE_SECONDS:
            return None
        try:
            listed = _listed(UpstreamPage(record.body, record.kind, record.url, project))
        except PackageIndexError:
            return None
        return FetchedPage(
            listed,
            record.digest,
            record.private,
            checked,
            stale=True,
            url=record.url,
            validators=record.validators,
        )

    def _listed(
        self, upstream: Upstream, project: str, known: FetchedPage | None, large: LargeAnswer
    ) -> FetchedPage | None:
        if upstream.kind == "simple":
            return self._local(upstream, project, known)
        if is_local(upstream.url) and local_path(upstream.url).is_dir():
            files = directory_files(local_path(upstream.url))
        else:
            answer = self._fetch_page(upstream, upstream.url, large)
            kind = "text/html" if is_local(upstream.url) else answer.content_type
            files = read_page(answer.body, kind, answer.url).files
        digest = sha256(repr(files).encode()).hexdigest()
        return FetchedPage(
            Page(project, files), digest, self._upstreams.is_private(upstream), time.monotonic()
        )

    def _local(
        self, upstream: Upstream, project: str, known: FetchedPage | None
    ) -> FetchedPage | None:
        folder = local_path(upstream.url) / project
        for name, kind in (("index.v1_json", JSON), ("index.html", HTML)):
            path = folder / name
            if path.is_file():
                answer = self._upstreams.session(upstream).fetch(
                    path.as_uri(), limit=self._limits.page_bytes
                )
                answer = replace(answer, content_type=kind, url=path.as_uri())
                return self._read(upstream, project, known, answer)
        if not folder.is_dir():
            return None
        files = directory_files(folder)
        digest = sha256(repr(files).encode()).hexdigest()
        return FetchedPage(Page(project, files), digest, False, time.monotonic())


def _listed(listing: UpstreamPage) -> UpstreamPage | Page:
    """Return *listing* if it can be served unchanged, else its parsed page, to free its bytes."""
    return listing if listing.plain is not None else listing.page

"""Project pages of upstream indexes: fetched, kept in memory and on disk, and asked for again.

A page that has nothing to do with variants (`SentPage.is_plain`) is known by its digest the next
time, also to other processes: it is not even parsed then, and clients of in-place pages get it as
the index sent it.

A page is asked for again whenever a client asks for it (`UpstreamPages.expire`); requests for its
files use it for `Settings.fresh_seconds`. Concurrent requests share one. While an upstream fails,
its last page is served for up to `STALE_SECONDS`; so it is while it does not answer within
`OLD_PAGE_SECONDS`, and what it answers later is for the next client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import InvalidName, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import safe_files, wheel_files
from pep_variants.errors import redacted
from variants_index import finder as package_finder
from variants_index import pages as index_pages
from variants_index.finder import Response
from variants_index.pages import Page, PageFile

from .._headers import Document, page_digest, tag_of_unchanged
from .._sharing import LRUCache, SingleFlight
from ..errors import NothingFetched, UpstreamError
from ..settings import Upstream
from .health import Health
from .releases import FetchedPage, PageRelease, versions_of
from .upstreams import Upstreams

logger = logging.getLogger(__name__)

STALE_SECONDS = 24 * 3600.0
"""Maximum age of a page that is served while its upstream fails."""

OLD_PAGE_SECONDS = 1.25
"""How long a client waits for an upstream of whose page there is an old one."""

PAUSE = 5.0
"""Seconds after a failure in which a host is not asked for pages that are kept."""

# Indexes that answer 403 for projects that they do not have; uv has the same list.
_FORBIDS_UNKNOWN = ("download.pytorch.org",)
_RECORD, _PLAIN = "proxy-page", "proxy-plain"


@dataclass(frozen=True)
class SentPage:
    """A project page as the index sent it.

    Attributes:
        answer: of the index; without its body if that is not a page to pass on.
        digest, private, stale, newest: as of `FetchedPage`.
        checked: time of the last validation, as `time.monotonic`.
        is_expired: whether the next client wants another one.
        page: None if it was not parsed.
        is_plain: whether it has nothing to do with variants, as far as known.
    """

    answer: Response
    digest: str
    private: bool
    checked: float
    stale: bool = False
    page: Page | None = None
    newest: PageRelease | None = None
    is_plain: bool = False
    is_expired: bool = False

    def is_fresh(self, seconds: float) -> bool:
        """Return whether it need not be asked for again within so many *seconds*."""
        return not self.is_expired and time.monotonic() - self.checked < seconds

    @property
    def document(self) -> Document:
        """The response that passes it on, with the index's own entity tag if there is one.

        With it clients may keep the page as long as the index does not change it. So a page of
        which it is not known yet whether that is all it depends on has another one.
        """
        own = self.answer.validators.get("If-None-Match") or tag_of_unchanged(self.digest)
        tag = own if self.is_plain else ""
        return Document(self.answer.body, self.answer.content_type, "no-cache", "Accept", tag=tag)

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes."""
        files = () if self.page is None else self.page.files
        return 500 + len(self.answer.body) + 600 * len(files)


class UpstreamPages:
    """The project pages of all upstreams."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._settings = upstreams.settings
        self._limits = upstreams.limits
        self._upstreams = upstreams
        self._pages: LRUCache[tuple[str, str], SentPage] = LRUCache(self._limits.kept_page_bytes)
        self._splits: LRUCache[tuple[str, str], dict[str, tuple[Page, str]]] = LRUCache(64)
        self._flights: SingleFlight[SentPage | None] = SingleFlight()
        self._fetches: SingleFlight[SentPage | None] = SingleFlight()
        self._paused: dict[str, float] = {}  # until when, by host
        self.health = Health(self._settings.upstreams)

    async def get_project_page(self, upstream: Upstream, project: str) -> FetchedPage | None:
        """Return the page of a project, None if the upstream does not have it.

        Args:
            upstream: index or find-links page.
            project: normalized name; empty for all files of a find-links page.

        Raises:
            UpstreamError: the upstream fails, and there is no old page.
        """
        if upstream.kind == "find-links":
            return (await self._split(upstream)).get(project)
        return await self._parsed(upstream, project)

    async def sent(self, upstream: Upstream, project: str) -> SentPage | None:
        """Return the page of a project as an index sent it, None if it does not have it.

        Raises:
            UpstreamError: the index fails, and there is no old page.
        """
        return await self._whole(upstream, project)

    def note_plain(self, upstream: Upstream, project: str, page: SentPage) -> SentPage:
        """Note that *page* has nothing to do with variants; return it as noted."""
        self._upstreams.store.put(_PLAIN, page.digest, b"")
        page = replace(page, page=None, is_plain=True)
        self._pages.put((upstream.name, project), page, page.weight)
        return page

    def expire(self, upstream: Upstream, project: str) -> None:
        """Ask the upstream for a page again with the next request for it."""
        key = (upstream.name, "" if upstream.kind == "find-links" else project)
        page = self._pages.get(key)
        if page is not None:
            self._pages.put(key, replace(page, is_expired=True), page.weight)

    async def other_sources(
        self, upstream: Upstream, project: str
    ) -> list[tuple[Upstream, FetchedPage]]:
        """Return the upstreams whose files of *project* uv merges with *upstream*'s.

        Those are the find-links places, for every index that is not explicit; and for a find-links
        place the first index that has the project. Indexes get requests for `Settings.requested`
        projects only, which uv requests as well: they must not see other names of a find-links
        place.
        """
        links = [item for item in self._settings.upstreams if item.kind == "find-links"]
        if not links or upstream.explicit:
            return []
        asked = [item for item in links if item is not upstream]
        if upstream.kind == "find-links" and project in self._settings.requested:
            asked += [item for item in self._settings.upstreams if item.kind != "find-links"]
        sources = []
        for item in asked:
            try:
                page = None if item.explicit else await self.get_project_page(item, project)
            except UpstreamError as error:
                logger.warning("%s: evaluated without index %s: %s", project, item.name, error)
                continue
            if page is not None:
                sources.append((item, page))
                if item.kind != "find-links":
                    break
        return sources

    async def projects(self, upstream: Upstream) -> tuple[str, ...]:
        """Return the normalized names of all projects of *upstream*, ascending.

        Raises:
            UpstreamError: the upstream has no list, or fails.
        """
        if upstream.kind == "find-links":
            return tuple(sorted(await self._split(upstream)))
        budget, url = self._upstreams.budget(upstream), upstream.url
        if safe_files.is_local(url):
            folders = await budget.fetch(lambda: list(safe_files.local_path(url).iterdir()))
            return tuple(sorted(path.name for path in folders if path.is_dir()))

        def read() -> tuple[str, ...]:
            with budget.large_response() as grown:
                answer = self._ask(upstream, url, grown, limit=self._limits.projects_bytes)
                return tuple(
                    sorted(index_pages.read_projects(answer.body, answer.content_type, answer.url))
                )

        return await budget.fetch(read)

    def _ask(
        self,
        upstream: Upstream,
        url: str,
        grown: Callable[[int], None],
        validators: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> Response:
        limits, is_own = self._limits, upstream in self._settings.upstreams
        return self._upstreams.session(upstream).fetch(
            url,
            limit=limit or limits.page_bytes,
            accept=index_pages.ACCEPT,
            seconds=limits.page_seconds,
            grown=grown,
            validators=validators,
            is_place=not is_own,
            retries=limits.page_retries if is_own else None,
        )

    async def _split(self, upstream: Upstream) -> dict[str, FetchedPage]:
        """Return the pages of a find-links upstream by project."""
        whole = await self._parsed(upstream, "")
        if whole is None:
            raise UpstreamError(
                f"{redacted(upstream.url)}: the find-links page does not exist", 404
            )
        key = (upstream.name, whole.digest)
        known = self._splits.get(key)
        if known is None:
            known = await self._upstreams.budget(upstream).compute(
                lambda: _pages_by_project(whole.page)
            )
            self._splits.put(key, known)
        return {
            project: replace(whole, page=page, digest=digest)
            for project, (page, digest) in known.items()
        }

    async def _parsed(self, upstream: Upstream, project: str) -> FetchedPage | None:
        """Return a whole page of the upstream."""
        sent = await self._whole(upstream, project)
        if sent is None:
            return None
        if sent.page is None:
            unread, budget = sent, self._upstreams.budget(upstream)

            def read() -> SentPage:
                with budget.large_response() as grown:
                    grown(len(unread.answer.body))
                    return _parsed(unread, project)

            sent = await budget.fetch(read)
            self._pages.put((upstream.name, project), sent, sent.weight)
        assert sent.page is not None
        return FetchedPage(
            sent.page,
            sent.digest,
            sent.private,
            sent.stale,
            sent.newest,
        )

    async def _whole(self, upstream: Upstream, project: str) -> SentPage | None:
        """Return a page of the upstream, from memory while that is fresh."""
        key = (upstream.name, project)
        known = self._pages.get(key)
        if known is not None and known.is_fresh(self._settings.fresh_seconds):
            logger.debug("Page of project %s on index %s: from memory", project, upstream.name)
            return known
        return await self._flights.join(key, lambda: self._refreshed(upstream, project, known))

    async def _refreshed(
        self, upstream: Upstream, project: str, known: SentPage | None
    ) -> SentPage | None:
        serves_old, host = self._settings.serves_old, host_of(upstream)
        key = (upstream.name, project)
        if serves_old and time.monotonic() < self._paused.get(host, 0.0):
            page = await self._old(upstream, project, known)
            if page is not None:
                return page
        fetch = partial(self._answered, upstream, project, known)
        waits = OLD_PAGE_SECONDS if serves_old else None
        try:
            try:
                return await asyncio.wait_for(self._fetches.join(key, fetch), waits)
            except asyncio.TimeoutError:
                page = await self._old(upstream, project, known)
                if page is None:
                    return await self._fetches.join(key, fetch)
                self._paused[host] = time.monotonic() + PAUSE
                self.health.is_late(upstream, OLD_PAGE_SECONDS)
                logger.warning(
                    "%s: serving an old page: %s does not answer within %g seconds",
                    project, redacted(upstream.url), OLD_PAGE_SECONDS,
                )  # fmt: skip
                return page
        except NothingFetched as error:
            if not serves_old or not _is_failing(error):
                raise
            page = await self._old(upstream, project, known)
            if page is None:
                raise
            logger.warning("%s: serving an old page: %s", project, error)
            self._pages.put(key, page, page.weight)
            return page

    async def _answered(
        self, upstream: Upstream, project: str, known: SentPage | None
    ) -> SentPage | None:
        """Return what an upstream answers, and keep it, whether a client waits for it or not."""
        key = (upstream.name, project)
        try:
            page = await self._fetched(upstream, project, known)
        except NothingFetched as error:
            self.health.failed(upstream, error)
            if _is_failing(error):
                self._paused[host_of(upstream)] = time.monotonic() + PAUSE
            raise
        self.health.answered(upstream)
        if page is None:
            logger.debug("Project %s is not on index %s", project, upstream.name)
            self._pages.remove(key)
        else:
            logger.debug("Page of project %s on index %s: asked for", project, upstream.name)
            self._pages.put(key, page, page.weight)
        return page

    async def _fetched(
        self, upstream: Upstream, project: str, known: SentPage | None
    ) -> SentPage | None:
        budget = self._upstreams.budget(upstream)
        is_local_index = upstream.kind == "simple" and safe_files.is_local(upstream.url)

        def read() -> SentPage | None:
            with budget.large_response() as grown:
                if is_local_index:
                    return self._local(upstream, project, grown)
                if upstream.kind == "find-links":
                    return self._links(upstream, grown)
                answer = self._changed(upstream, project, known, grown)
                return self._read(upstream, project, known, answer)

        try:
            return await budget.fetch(read)
        except UpstreamError as error:
            host = urlsplit(upstream.url).hostname
            if error.status == 404 and upstream.kind == "simple":
                return None
            if error.status == 403 and host in _FORBIDS_UNKNOWN:
                return None
            raise

    def _changed(
        self,
        upstream: Upstream,
        project: str,
        known: SentPage | None,
        grown: Callable[[int], None],
    ) -> Response:
        """Return the upstream's page; if it is the known one, a response without body."""
        record, age = (None, 0.0) if known is not None else self._record(upstream, project)
        if record is not None:
            grown(len(record.body))
        before = record if known is None else known.answer
        ask = partial(self._ask, upstream, f"{upstream.url}{project}/", grown)
        answer = package_finder.revalidated(before, ask)
        # A record is written again from time to time, so that it is not too old in an outage.
        return replace(answer, unchanged=age < STALE_SECONDS / 2) if answer is before else answer

    def _read(
        self, upstream: Upstream, project: str, known: SentPage | None, answer: Response
    ) -> SentPage:
        private, now = self._upstreams.is_private(upstream), time.monotonic()
        if known is not None and (answer.unchanged or known.digest == _digest(answer)):
            return replace(known, checked=now, is_expired=False, stale=False, private=private)
        page = self._kept(answer, project, private=private)
        if not answer.unchanged:
            data = f"{time.time()}\n".encode() + answer.record()
            self._upstreams.store.put(_RECORD, _name(upstream, project), data)
        return page

    def _kept(self, answer: Response, project: str, *, private: bool) -> SentPage:
        """Return a page, parsed unless it is known to have nothing to do with variants."""
        page = SentPage(answer, _digest(answer), private, time.monotonic())
        if self._upstreams.store.get(_PLAIN, page.digest) is not None:
            return replace(page, is_plain=True)
        return _parsed(page, project)

    def _record(self, upstream: Upstream, project: str) -> tuple[Response | None, float]:
        """Return the page on disk, None if there is none, and its age in seconds."""
        data = self._upstreams.store.get(_RECORD, _name(upstream, project))
        head, _, record = (data or b"").partition(b"\n")
        try:
            return package_finder.read_response(record), time.time() - float(head)
        except ValueError:
            return None, 0.0  # none, or of another release

    async def _old(
        self, upstream: Upstream, project: str, known: SentPage | None
    ) -> SentPage | None:
        """Return the last page of an upstream that fails, None if there is none."""
        page = await self._last(upstream, project, known)
        if page is not None:
            self.health.served_old(upstream, time.monotonic() - page.checked)
        return page

    async def _last(
        self, upstream: Upstream, project: str, known: SentPage | None
    ) -> SentPage | None:
        if known is not None:
            is_recent = time.monotonic() - known.checked < STALE_SECONDS
            return replace(known, stale=True) if is_recent else None

        def read() -> SentPage | None:
            record, age = self._record(upstream, project)
            if record is None or (age > STALE_SECONDS and not self._settings.offline):
                return None
            page = self._kept(record, project, private=self._upstreams.is_private(upstream))
            return replace(page, stale=True, checked=time.monotonic() - age)

        return await self._upstreams.budget(upstream).compute(read)

    def _links(self, upstream: Upstream, grown: Callable[[int], None]) -> SentPage:
        """Return the files of a find-links page or directory."""
        if safe_files.is_local(upstream.url) and safe_files.local_path(upstream.url).is_dir():
            return _listed("", _directory_files(safe_files.local_path(upstream.url)))
        answer = self._ask(upstream, upstream.url, grown)
        kind = "text/html" if safe_files.is_local(upstream.url) else answer.content_type
        page = _listed("", index_pages.read_page(answer.body, kind, answer.url).files)
        return replace(page, private=self._upstreams.is_private(upstream))

    def _local(
        self, upstream: Upstream, project: str, grown: Callable[[int], None]
    ) -> SentPage | None:
        """Return the page of a folder in a directory, or the files in it; None without one."""
        folder = safe_files.local_path(upstream.url) / project
        for name, kind in (("index.v1_json", index_pages.JSON), ("index.html", index_pages.HTML)):
            path = folder / name
            if path.is_file():
                answer = self._ask(upstream, path.as_uri(), grown)
                answer = replace(answer, content_type=kind, url=path.as_uri())
                return _parsed(SentPage(answer, _digest(answer), False, time.monotonic()), project)
        return _listed(project, _directory_files(folder)) if folder.is_dir() else None


def host_of(upstream: Upstream) -> str:
    """Return what fails together: the server of *upstream*, or a local directory itself."""
    return urlsplit(upstream.url).netloc or upstream.url


def _is_failing(error: NothingFetched) -> bool:
    return error.status >= 500 or error.status == HTTPStatus.TOO_MANY_REQUESTS


def _listed(project: str, files: tuple[PageFile, ...]) -> SentPage:
    digest = sha256(repr(files).encode()).hexdigest()
    page = Page(project, files)
    return SentPage(Response("", "", b""), digest, False, time.monotonic(), page=page)


def _parsed(sent: SentPage, project: str) -> SentPage:
    answer = sent.answer
    page = index_pages.read_page(answer.body, answer.content_type, answer.url, project)
    newest = _newest_plain(page)
    if newest is None:
        answer = replace(answer, body=b"")
    return replace(sent, answer=answer, page=page, newest=newest)


def _newest_plain(page: Page) -> PageRelease | None:
    """Return the newest version of a page without variants, see `FetchedPage.newest`."""
    if any(each.filename.endswith(wheel_labels.METADATA_SUFFIX) for each in page.files):
        return None
    versions = versions_of(page)
    if any(each.has_variants for each in versions):
        return None
    return next(iter(versions), PageRelease(Version("0"), (), None))


def _digest(answer: Response) -> str:
    return page_digest(answer.body, answer.content_type, answer.url)


def _name(upstream: Upstream, project: str) -> str:
    """Return the name of a page on disk."""
    credentials = upstream.credentials
    user = credentials.username if credentials else ""
    return json.dumps([upstream.url, upstream.kind, user, project])


def _pages_by_project(page: Page) -> dict[str, tuple[Page, str]]:
    """Return the page of each project on a find-links *page*, with a digest."""
    by_project: dict[str, list[PageFile]] = {}
    for file in page.files:
        project = project_of(file.filename)
        if project:
            by_project.setdefault(project, []).append(file)
    return {
        project: (Page(project, tuple(files)), sha256(repr(files).encode()).hexdigest())
        for project, files in by_project.items()
    }


def _directory_files(folder: Path) -> tuple[PageFile, ...]:
    """Return the files of *folder*, which URL and size identify."""
    return tuple(
        replace(file, size=(folder / file.filename).stat().st_size)
        for file in package_finder.directory_files(folder)
    )


def project_of(filename: str) -> str | None:
    """Return the normalized project name in *filename*, None for other files."""
    if filename.endswith(".whl"):
        return canonicalize_name(filename.partition("-")[0])
    if filename.endswith(wheel_labels.METADATA_SUFFIX):
        parsed = wheel_files.parse_metadata_filename(filename)
        return parsed[0] if parsed else None
    try:
        return parse_sdist_filename(filename)[0]
    except ValueError:  # InvalidSdistFilename; `int` of thousands of digits
        return None


def normalized(project: str) -> str | None:
    """Return the normalized name of *project*, None if it is not a valid name (PEP 508)."""
    if len(project) > 200:
        return None
    try:
        return canonicalize_name(project, validate=True)
    except InvalidName:
        return None

"""What upstream indexes say, fetched once for everybody who asks, and kept.

Pages are asked for again when they are old; if that fails, the old one serves on. Files that an
index gives a hash for never change: they are kept for good, under that hash.
"""

from __future__ import annotations

import html
import ipaddress
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import anyio
import anyio.to_thread
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from pep_variants.errors import InvalidWheel, MetadataError, redacted
from pep_variants.filename import parse_metadata_filename
from pep_variants.label import METADATA_SUFFIX, split_label
from pep_variants.merging import check_promise, merge_all
from pep_variants.metadata import Metadata
from pep_variants.plugins.sources import Sources
from pep_variants.reader import MAX_METADATA_BYTES, read_metadata
from pep_variants.wheel import open_wheel, read_wheel_metadata
from resolvelib_variants.index.errors import AccessDenied, IndexProblem, NotFound, Unreachable
from resolvelib_variants.index.eviction import Bounds
from resolvelib_variants.index.pages import ACCEPT, HTML, JSON, Page, PageFile, read_page
from resolvelib_variants.index.ranges import opened
from resolvelib_variants.index.session import Session, is_local, local_path
from resolvelib_variants.index.store import Store

from ..errors import UpstreamError
from .choice import Release
from .flights import Flights
from .listings import Listing
from .memory import Memory
from .metrics import Metrics
from .settings import Settings, Upstream

logger = logging.getLogger(__name__)

STALE_SECONDS = 24 * 3600.0
"""For so long an old page serves while its upstream fails."""

MAX_INSPECTED = 32
"""Wheels of a version that are looked into when its index has no metadata file."""

_RETRIES = 2
_LARGE_PAGE = 256 * 1024
_SDISTS = (".tar.gz", ".zip")
# Indexes that say "forbidden" of projects that they do not have, as uv knows them too.
_FORBIDS_UNKNOWN = ("download.pytorch.org",)

T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """A page, and how it was found.

    Attributes:
        listed: what the upstream says of the project, its page or what was made of a directory.
        digest: of the bytes that it was read from.
        private: whether the upstream was told who asks, so that no shared cache may keep it.
        checked: when the upstream last said so, as `time.monotonic`.
        stale: whether it did not answer when it was asked again.
    """

    listed: Listing | Page
    digest: str
    private: bool
    checked: float
    stale: bool = False

    @property
    def listing(self) -> Listing | None:
        """The page as the upstream wrote it, None if it did not."""
        return self.listed if isinstance(self.listed, Listing) else None

    @property
    def page(self) -> Page:
        """What the upstream says of the project."""
        return self.listed.page if isinstance(self.listed, Listing) else self.listed

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory, about."""
        if isinstance(self.listed, Listing):
            return 500 + 2 * len(self.listed.body)  # it may be read later
        return 500 + 400 * len(self.page.files)


class Upstreams:
    """All upstreams of a shim."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._limits = settings.limits
        self._store = Store(settings.cache, Bounds(settings.limits.cache_bytes))
        self._sessions = {item.name: self._begun(item) for item in settings.upstreams}
        self._privates: dict[str, bool] = {}
        self._threads = anyio.CapacityLimiter(settings.limits.connections)
        self._pages: Memory[tuple[str, str], Found | None] = Memory(settings.limits.page_bytes)
        self._splits: Memory[tuple[str, str], dict[str, tuple[Page, str]]] = Memory(64)
        self._missing: Memory[tuple[str, str], float] = Memory(4096)
        self._documents: Memory[str, Metadata] = Memory(4096)
        self._inspected: Memory[str, bytes] = Memory(16 * 2**20)
        self._page_flights: Flights[Found | None] = Flights()
        self._document_flights: Flights[Metadata] = Flights()
        self._inspections: Flights[bytes] = Flights()

    @property
    def store(self) -> Store:
        """Where things are kept between runs."""
        return self._store

    def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            session.close()

    def session(self, upstream: Upstream) -> Session:
        """Return what fetches from *upstream*, with its credentials and no other's."""
        return self._sessions[upstream.name]

    def _begun(self, upstream: Upstream) -> Session:
        settings = self._settings
        session = Session(
            Sources(
                index_url=upstream.url,
                trusted_hosts=tuple(sorted(settings.insecure_hosts)),
                cert=str(settings.ca_bundle) if settings.ca_bundle else None,
                client_cert=str(settings.client_cert) if settings.client_cert else None,
                timeout=int(self._limits.read_seconds) or 1,
            ),
            store=self._store,
            environ=settings.environ,
            retries=_RETRIES,
            keyring=settings.keyring,
        )
        if upstream.credentials is not None:
            user = quote(upstream.credentials.username, safe="")
            password = quote(upstream.credentials.password, safe="")
            scheme, _, rest = upstream.url.partition("://")
            session.learn(f"{scheme}://{user}:{password}@{rest}")
        if upstream.token:
            session.learn_token(upstream.url, upstream.token)
        return session

    def is_private(self, upstream: Upstream) -> bool:
        """Return whether *upstream* is told who asks."""
        if is_local(upstream.url):
            return False
        if not self._privates.get(upstream.name):
            name = json.dumps([upstream.name, upstream.url])
            told = self.session(upstream).tells(upstream.url)
            if told:
                # For the next run, which may have its first page from the cache.
                self._store.put("shim-private", name, b"")
            elif upstream.name not in self._privates:
                told = self._store.get("shim-private", name) is not None
            self._privates[upstream.name] = told
        return self._privates[upstream.name]

    def is_direct(self, upstream: Upstream, url: str) -> bool:
        """Return whether clients can get *url* themselves, without what only the shim knows."""
        if is_local(url):
            return False
        return not (self.is_private(upstream) and _origin(url) == _origin(upstream.url))

    async def run(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Run *function* in a thread; problems of indexes become an `UpstreamError`."""
        try:
            with anyio.fail_after(seconds):
                return await anyio.to_thread.run_sync(
                    function, limiter=self._threads, abandon_on_cancel=seconds is not None
                )
        except TimeoutError:
            raise UpstreamError(f"no complete answer within {seconds:g} seconds", 504) from None
        except AccessDenied as error:
            raise UpstreamError(str(error), 403) from None
        except NotFound as error:
            raise UpstreamError(str(error), 404) from None
        except Unreachable as error:
            raise UpstreamError(str(error), 504 if "in time" in str(error) else 502) from None
        except (IndexProblem, InvalidWheel) as error:
            raise UpstreamError(str(error)) from None

    # --- pages

    async def page(self, upstream: Upstream, project: str) -> Found | None:
        """Return the page of *project*, None if the upstream does not have the project.

        Args:
            upstream: whom to ask.
            project: normalized name.

        Raises:
            UpstreamError: it cannot be had, and there is none of old.
        """
        if upstream.kind == "find-links":
            return (await self._split(upstream)).get(project)
        return await self._whole(upstream, project)

    async def projects(self, upstream: Upstream) -> tuple[str, ...]:
        """Return the normalized names of all projects of *upstream*, ascending.

        Raises:
            UpstreamError: it does not list them, or fails.
        """
        if upstream.kind == "find-links":
            return tuple(sorted(await self._split(upstream)))
        if is_local(upstream.url):
            folders = await self.run(lambda: _folders(local_path(upstream.url)))
            return tuple(sorted(folders))
        session = self.session(upstream)
        limit = self._limits.page_bytes
        answer = await self.run(
            lambda: session.fetch(upstream.url, limit=limit, accept=ACCEPT, revalidate=True),
            self._limits.page_seconds,
        )
        return tuple(sorted(_names(answer.body, answer.content_type)))

    async def _split(self, upstream: Upstream) -> dict[str, Found]:
        """Return what a page of links has, by project."""
        found = await self._whole(upstream, "")
        if found is None:
            raise UpstreamError(f"{redacted(upstream.url)}: there is no such page", 404)
        key = (upstream.name, found.digest)
        known = self._splits.get(key)
        if known is None:
            by_project: dict[str, list[PageFile]] = {}
            for file in found.page.files:
                project = project_of(file.filename)
                if project:
                    by_project.setdefault(project, []).append(file)
            known = {
                project: (Page(project, tuple(files)), sha256(repr(files).encode()).hexdigest())
                for project, files in by_project.items()
            }
            self._splits.put(key, known)
        return {
            project: replace(found, listed=page, digest=digest)
            for project, (page, digest) in known.items()
        }

    async def _whole(self, upstream: Upstream, project: str) -> Found | None:
        """Return a page as the upstream has it, from memory while that is fresh."""
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
        self, upstream: Upstream, project: str, known: Found | None
    ) -> Found | None:
        key = (upstream.name, project)
        self._metrics.count("page_fetches")
        try:
            found = await self.run(
                partial(self._fetched, upstream, project, known), self._limits.page_seconds
            )
        except UpstreamError as error:
            if error.status == 403 and urlsplit(upstream.url).hostname in _FORBIDS_UNKNOWN:
                found = None
            elif error.status in (502, 504):
                found = self._old(upstream, project, known)
                if found is None:
                    self._metrics.count("page_failures")
                    raise
                self._metrics.count("stale_pages")
                logger.warning("serving an old page of %s: %s", project, error)
            else:
                raise
        if found is None:
            self._pages.remove(key)
            self._missing.put(key, time.monotonic())
        else:
            self._pages.put(key, found, found.weight)
        return found

    def _fetched(self, upstream: Upstream, project: str, known: Found | None) -> Found | None:
        if upstream.kind == "find-links" or is_local(upstream.url):
            return self._listed(upstream, project, known)
        try:
            answer = self.session(upstream).fetch(
                f"{upstream.url}{project}/",
                limit=self._limits.page_bytes,
                accept=ACCEPT,
                # It has been judged whether it is fresh; a cache would guess (RFC 9111, 4.2.2).
                revalidate=True,
                seconds=self._limits.page_seconds,
            )
        except NotFound:
            return None
        return self._read(upstream, project, known, answer.body, answer.content_type, answer.url)

    def _read(
        self,
        upstream: Upstream,
        project: str,
        known: Found | None,
        body: bytes,
        kind: str,
        url: str,
    ) -> Found:
        digest = sha256(body + f"\n{kind}\n{url}".encode()).hexdigest()
        private = self.is_private(upstream)
        now = time.monotonic()
        if known is not None and known.digest == digest:
            return replace(known, checked=now, stale=False, private=private)
        listed = _listed(Listing(body, kind, url, project))
        head = json.dumps({"kind": kind, "url": url, "time": time.time(), "private": private})
        self._store.put("shim-page", _page_name(upstream, project), head.encode() + b"\n" + body)
        return Found(listed, digest, private, now)

    def _old(self, upstream: Upstream, project: str, known: Found | None) -> Found | None:
        """Return a page of before for an upstream that fails, None without one."""
        now = time.monotonic()
        # It is asked again soon, but not for every request.
        checked = now - self._settings.fresh_seconds + min(5.0, self._settings.fresh_seconds)
        if known is not None:
            if known.stale or now - known.checked < STALE_SECONDS:
                return replace(known, checked=checked, stale=True)
            return None
        record = self._store.get("shim-page", _page_name(upstream, project))
        if record is None:
            return None
        head, _, body = record.partition(b"\n")
        try:
            tree = json.loads(head)
            if time.time() - tree["time"] > STALE_SECONDS:
                return None
            listed = _listed(Listing(body, tree["kind"], tree["url"], project))
        except (ValueError, KeyError, TypeError, IndexProblem):
            return None
        digest = sha256(body + f"\n{tree['kind']}\n{tree['url']}".encode()).hexdigest()
        return Found(listed, digest, bool(tree["private"]), checked, stale=True)

    # --- directories and pages of links

    def _listed(self, upstream: Upstream, project: str, known: Found | None) -> Found | None:
        if upstream.kind == "simple":
            return self._local(upstream, project, known)
        if is_local(upstream.url) and local_path(upstream.url).is_dir():
            files = _directory(local_path(upstream.url))
        else:
            answer = self.session(upstream).fetch(
                upstream.url,
                limit=self._limits.page_bytes,
                accept=ACCEPT,
                revalidate=True,
                seconds=self._limits.page_seconds,
            )
            kind = "text/html" if is_local(upstream.url) else answer.content_type
            files = read_page(answer.body, kind, answer.url).files
        digest = sha256(repr(files).encode()).hexdigest()
        return Found(Page(project, files), digest, self.is_private(upstream), time.monotonic())

    def _local(self, upstream: Upstream, project: str, known: Found | None) -> Found | None:
        folder = local_path(upstream.url) / project
        for name, kind in (("index.v1_json", JSON), ("index.html", HTML)):
            path = folder / name
            if path.is_file():
                answer = self.session(upstream).fetch(path.as_uri(), limit=self._limits.page_bytes)
                return self._read(upstream, project, known, answer.body, kind, path.as_uri())
        if not folder.is_dir():
            return None
        files = _directory(folder)
        digest = sha256(repr(files).encode()).hexdigest()
        return Found(Page(project, files), digest, False, time.monotonic())

    # --- small files

    def known_metadata(self, release: Release) -> Metadata | None:
        """Return the variant metadata of *release* if that is known and can never change."""
        return self._documents.get(_release_key(release))

    async def metadata(self, upstream: Upstream, release: Release) -> Metadata:
        """Return the variant metadata of *release*.

        Raises:
            MetadataError: it cannot be had, or breaks the format.
            VariantError: as `read_metadata` and `merge_all`.
        """
        known = self.known_metadata(release)
        if known is not None:
            return known
        document = release.document
        key = _release_key(release)

        async def work() -> Metadata:
            try:
                if document is None:
                    found = await self.run(partial(self._merged, upstream, release))
                else:
                    found = await self.run(partial(self._document, upstream, document))
            except UpstreamError as error:
                raise MetadataError("", "", str(error)) from None
            if all(file.hashes for file in (release.wheels if document is None else (document,))):
                self._documents.put(key, found)
            return found

        return await self._document_flights.join(key, work)

    def _document(self, upstream: Upstream, document: PageFile) -> Metadata:
        self.check_place(upstream, document.url)
        data = self._kept(
            "shim-document",
            document,
            lambda: (
                self.session(upstream)
                .fetch(
                    document.url,
                    limit=MAX_METADATA_BYTES,
                    hashes=document.hashes,
                    revalidate=True,
                )
                .body
            ),
        )
        return read_metadata(data, document.url)

    def _merged(self, upstream: Upstream, release: Release) -> Metadata:
        """Return what the wheels of a release say, for places without metadata files."""
        by_label = {_label(file): file for file in reversed(release.wheels) if _label(file)}
        if len(by_label) > MAX_INSPECTED:
            raise MetadataError(
                "",
                "",
                f"the index has no metadata file for {release.version} and {len(by_label)} "
                f"variants: of at most {MAX_INSPECTED} the wheels are looked into",
            )
        session = self.session(upstream)
        found = []
        for label, file in sorted(by_label.items(), key=lambda item: item[0] or ""):
            self.check_place(upstream, file.url)
            with opened(session, file.url, file.hashes) as stream:
                metadata = read_wheel_metadata(stream, file.url)
            if metadata is None:
                raise MetadataError(file.url, "", "is named a variant wheel, but has no metadata")
            check_promise(metadata, metadata, label or "")
            found.append(metadata)
        return merge_all(found)

    async def core_metadata(self, upstream: Upstream, file: PageFile) -> bytes:
        """Return ``METADATA`` of the wheel *file*, from beside it or out of it.

        Raises:
            UpstreamError: it cannot be had.
        """
        key = metadata_key(file)
        known = self._inspected.get(key)
        if known is not None:
            return known

        async def work() -> bytes:
            found = await self.run(partial(self._core_metadata, upstream, file))
            if file.hashes or file.core_metadata:
                self._inspected.put(key, found, len(found))
            return found

        return await self._inspections.join(key, work)

    def _core_metadata(self, upstream: Upstream, file: PageFile) -> bytes:
        self.check_place(upstream, file.url)
        session = self.session(upstream)
        limit = self._limits.metadata_bytes
        beside = file.core_metadata
        if beside is not None:
            place = replace(file, url=f"{file.url}.metadata", hashes=beside)
            try:
                return self._kept(
                    "shim-metadata",
                    place,
                    lambda: (
                        session.fetch(place.url, limit=limit, hashes=beside, revalidate=True).body
                    ),
                )
            except NotFound:
                pass  # some indexes promise it for every file

        def read() -> bytes:
            with (
                opened(session, file.url, file.hashes) as stream,
                open_wheel(stream, file.url) as contents,
            ):
                data = contents.read("METADATA", limit)
            if data is None:
                raise InvalidWheel(f"{redacted(file.url)}: has no METADATA")
            return data

        return self._kept("shim-inside", file, read)

    def _kept(self, kind: str, file: PageFile, fetch: Callable[[], bytes]) -> bytes:
        """Return what *fetch* returns, kept for good if the hash of *file* says what it is of."""
        digest = file.hashes.get("sha256")
        if digest is None:
            return fetch()
        data = self._store.get(kind, digest)
        if data is None:
            data = fetch()
            self._store.put(kind, digest, data)
        return data

    def check_place(self, upstream: Upstream, url: str) -> None:
        """Keep an index out there from sending the shim to hosts in here.

        Raises:
            UpstreamError: *url* is of this machine or network, *upstream* is not.
        """
        host = urlsplit(url).hostname or ""
        if (
            host != urlsplit(upstream.url).hostname
            and _is_inside(url)
            and not _is_inside(upstream.url)
        ):
            raise UpstreamError(
                f"{redacted(url)}: index {upstream.name} lists a file on a private host: "
                "nothing is fetched from there"
            )


def _listed(listing: Listing) -> Listing | Page:
    """Return *listing* if it may be handed on as it is, else what it says: its bytes may go."""
    return listing if listing.plain is not None else listing.page


def _release_key(release: Release) -> str:
    document = release.document
    if document is None:
        return json.dumps([_identity(file) for file in release.wheels if _label(file)])
    return f"{document.url} {document.hashes.get('sha256', document.hashes)}"


def metadata_key(file: PageFile) -> str:
    """Return what wheels share that have the same ``METADATA``, as far as their index says."""
    digest = (file.core_metadata or {}).get("sha256")
    return f"sha256 {digest}" if digest else _identity(file)


def _is_inside(url: str) -> bool:
    host = urlsplit(url).hostname or "localhost"
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:  # a name
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def _folders(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.is_dir()]


def _names(body: bytes, kind: str) -> set[str]:
    """Return the names on a page that lists projects (PEP 503, PEP 691)."""
    if "json" in kind:
        try:
            tree = json.loads(body)
            entries = [entry["name"] for entry in tree["projects"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UpstreamError(f"a list of projects cannot be read: {error}") from None
        return {canonicalize_name(name) for name in entries if isinstance(name, str)}
    links = re.findall(rb"<a\s[^>]*>([^<]{1,200})</a", body, re.IGNORECASE)
    return {
        canonicalize_name(html.unescape(text.decode("utf-8", "replace")).strip("/ "))
        for text in links
    }


def _page_name(upstream: Upstream, project: str) -> str:
    credentials = upstream.credentials
    user = credentials.username if credentials else ""
    return json.dumps([upstream.url, upstream.kind, user, project])


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _label(file: PageFile) -> str | None:
    return split_label(file.filename)[1]


def _identity(file: PageFile) -> str:
    return json.dumps([file.url, _sorted(file.hashes), file.size, file.upload_time])


def _sorted(hashes: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(hashes.items())


def _directory(folder: Path) -> tuple[PageFile, ...]:
    files = []
    names = {path.name: path for path in folder.iterdir()}
    for name, path in sorted(names.items()):
        if name.endswith((".whl", METADATA_SUFFIX, *_SDISTS)):
            stat = path.stat()
            beside: dict[str, str] | None = {} if f"{name}.metadata" in names else None
            files.append(
                PageFile(
                    name,
                    path.as_uri(),
                    size=stat.st_size,
                    # Not for anybody else to see: it tells a file from the one of tomorrow.
                    upload_time=None,
                    core_metadata=beside,
                )
            )
    return tuple(files)


def project_of(filename: str) -> str | None:
    """Return the normalized name of the project that a file belongs to, None for no such file."""
    if filename.endswith(".whl"):
        return canonicalize_name(filename.partition("-")[0])
    if filename.endswith(METADATA_SUFFIX):
        known = parse_metadata_filename(filename)
        return known[0] if known else None
    try:
        return parse_sdist_filename(filename)[0]
    except InvalidSdistFilename:
        return None

"""Publishing to storage: immutable files first, then one conditional write per project.

A kill at any point leaves the index as it was, or as it is to be: files that no page lists are
invisible, and the page of a project changes at once. The same command goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pep_variants.errors import VariantError
from pep_variants.model.filename import metadata_filename

from ..indexing.merged import write_merged
from ..indexing.update import updated
from ..indexing.wheelhouse import VariantFile
from ..stores.store import Changed, Headers, StoreError
from .attestations import provenance
from .errors import Conflict, PublishError, Refused
from .storage_layout import shown
from .target import Committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from packaging.utils import NormalizedName

    from variants_index.http.session import Session
    from variants_index.pages import Page

    from ..indexing.update import Update
    from ..indexing.wheelhouse import Distribution
    from .stored_files import Files
    from .stored_index import StoredIndex
    from .target import Progress, Release, ReleaseFile

PROBES = ".publish-probe"
"""Folder of the objects that are written to learn what the store supports."""

_PROBE_HEADERS = Headers("text/plain", "no-store")


class StorageTarget:
    """An index in a store, as a `Target`.

    Attributes:
        place: the store, for messages and the journal.
        parallel: how many uploads may run at a time.
    """

    commits_last = True

    def __init__(
        self,
        index: StoredIndex,
        files: Files,
        *,
        index_url: str | None = None,
        place: str | None = None,
        session: Session | None = None,
        close: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        """Set up; nothing is read.

        Args:
            index: its pages.
            files: where its files are kept.
            index_url: where the pages are served, None if not known.
            place: what messages call it, None for the store of the pages.
            session: reads the pages at *index_url*.
            close: closes connections of *files*.
            clock: returns the time, for ``upload-time``.
        """
        self._index = index
        self._files = files
        self._index_url = index_url
        self._session = session
        self._close = close
        self._clock = clock
        self.place = place or index.store.name
        self._pages = index.store.name
        self.parallel = files.parallel

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Check that the store can replace on a condition, and make the change without writing."""
        with _errors():
            self._files.check(releases)
            for project, its_releases in _by_project(releases).items():
                page = self._index.read(project).page
                known = self._index.documents(page, _names(its_releases)) if page else {}
                try:
                    self._next(its_releases, page, known)
                except VariantError as error:
                    raise Conflict(
                        f"{shown(str(error), self._pages)}: nothing was changed"
                    ) from None
            if not dry:
                self._check_conditions()

    def listed(self, project: NormalizedName) -> Mapping[str, Mapping[str, str]]:
        """Return the hashes of the files on the page of *project*."""
        with _errors():
            page = self._index.read(project).page
        return {file.filename: file.hashes for file in page.files} if page is not None else {}

    def upload(self, file: ReleaseFile, progress: Progress) -> None:
        """Put *file*, which no page lists yet."""
        with _errors():
            self._files.put(file, progress)

    def commit(self, releases: Sequence[Release]) -> Committed:
        """Make *releases* visible, project by project."""
        documents: dict[str, str] = {}
        merged: set[str] = set()
        for project, its_releases in _by_project(releases).items():
            with _errors():
                update = self._commit(project, its_releases)
            for release in its_releases:
                name = metadata_filename(release.project, release.version)
                data = update.documents.get(name)
                if data is None:
                    continue
                documents[name] = hashlib.sha256(data).hexdigest()
                own = {
                    label
                    for source in _sources(release)
                    for label in VariantFile(source, name).metadata.variants
                }
                if VariantFile(data, name).metadata.variants.keys() - own:
                    merged.add(name)
        return Committed(documents, frozenset(merged))

    def page_url(self, project: NormalizedName) -> str | None:
        """Return the URL of the page of *project*, None if it is not known."""
        return f"{self._index_url.rstrip('/')}/{project}/" if self._index_url else None

    def session(self) -> Session | None:
        """Return the session that reads the served pages, None if their URL is not known."""
        return self._session

    def close(self) -> None:
        """Close all connections."""
        self._close()
        if self._session is not None:
            self._session.close()

    def _commit(self, project: str, releases: Sequence[Release]) -> Update:
        files = [file for release in releases for file in release.files]
        # Before, so that the page lists nothing that is missing; after, as files that no page
        # lists may be removed at any time.
        self._complete(files)
        update = self._index.change(
            project,
            _names(releases),
            lambda page, known: self._next(releases, page, known),
        )
        self._complete(files)
        return update

    def _complete(self, files: Sequence[ReleaseFile]) -> None:
        for file in self._files.missing(files):
            self._files.put(file, lambda _: None)

    def _next(
        self, releases: Sequence[Release], page: Page | None, documents: Mapping[str, bytes]
    ) -> Update:
        """Return the state of a project after *releases*, see `updated`."""
        project = releases[0].project
        known = dict(documents)
        for release in releases:
            if release.document is None:
                continue
            # What a local file says beside what the wheels say.
            name = metadata_filename(release.project, release.version)
            own = VariantFile(release.document, name)
            listed = {file.filename: file for file in page.files} if page is not None else {}
            if name in known:
                there = VariantFile(known[name], listed[name].url if name in listed else name)
                known[name] = write_merged([there, own])
            elif name not in listed:
                known[name] = release.document
        return updated(
            page,
            known,
            [_with_provenance(file) for release in releases for file in release.files],
            url_of=lambda filename, sha256: self._files.url(project, filename, sha256),
            now=self._clock(),
        )

    def _check_conditions(self) -> None:
        """Check that an object is replaced only if it is the one that was read.

        Some servers that speak the protocol of S3 ignore the condition; two publishers would lose
        each other's files there.
        """
        store = self._index.store
        path = f"{PROBES}/{secrets.token_hex(8)}"
        try:
            store.put_if(path, b"first", None, _PROBE_HEADERS)
            first = store.get(path, 100)
            if first is None:
                raise Refused(f"{self.place}/{path}: was written, and is not there")
            store.put_if(path, b"second", first.version, _PROBE_HEADERS)
            for version in (None, first.version):
                try:
                    store.put_if(path, b"third", version, _PROBE_HEADERS)
                except Changed:
                    continue
                raise Refused(
                    f"{self.place}: the storage ignores conditions of writes (If-Match and "
                    "If-None-Match), which keep two publishers from losing each other's files: "
                    "use one that supports them"
                )
        finally:
            with contextlib.suppress(StoreError):  # credentials may allow no removal
                store.delete([path])


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Raise the errors of stores as those of publishing."""
    try:
        yield
    except StoreError as error:
        raise PublishError(str(error)) from None


def _by_project(releases: Sequence[Release]) -> dict[NormalizedName, list[Release]]:
    found: dict[NormalizedName, list[Release]] = {}
    for release in releases:
        found.setdefault(release.project, []).append(release)
    return found


def _names(releases: Sequence[Release]) -> list[str]:
    return [metadata_filename(release.project, release.version) for release in releases]


def _sources(release: Release) -> list[bytes]:
    found = [
        file.distribution.variant.data
        for file in release.files
        if file.distribution.variant is not None
    ]
    return [release.document] if release.document is not None else found


def _with_provenance(file: ReleaseFile) -> Distribution:
    if not file.attestations:
        return file.distribution
    return replace(file.distribution, provenance=provenance(file.attestations))

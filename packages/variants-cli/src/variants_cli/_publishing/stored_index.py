"""An index of static files in a store, which several publishers may change at once.

Below the store::

    simple/index.html                                    the projects of the index
    simple/index.v1_json
    simple/PROJECT/index.html                            the files of one
    simple/PROJECT/index.v1_json
    files/PROJECT/DIGEST/FILENAME                        a distribution, or *-variants.json
    files/PROJECT/DIGEST/FILENAME.metadata               METADATA of a wheel (PEP 658)

DIGEST is the start of the SHA-256 of the file, so no file ever changes, and a page always fits the
documents that it lists. Pages are what changes; the JSON page of a project is its state. A change
reads it, makes the next one, writes what that one links to, and replaces the page on the condition
that it is still the one that was read. If it is not, another publisher was faster, and the change
is made again from the new page. HTML pages and the list of projects follow from the JSON pages,
with the same condition, so an older one never replaces a newer one.

A kill at any point leaves the index as it was, or as it is to be: files that no page lists are
invisible, and the page of a project changes at once. The same command goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import secrets
import time
from dataclasses import replace
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from posixpath import relpath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants.errors import VariantError, shortened
from variants_index import pages as index_pages
from variants_index.http import PackageIndexError

from .._indexing.static_index import HTML_PAGE, JSON_PAGE
from .._indexing.update import UpdateError, release_of, updated
from .._indexing.wheelhouse import CORE_METADATA_SUFFIX, read_core_metadata
from .errors import Conflict, PublishError
from .release_contents import by_project, same_contents
from .stores import CHUNK, PreconditionFailed, file_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from variants_catalog.catalogs import Finding
    from variants_index.pages import Page, PageFile

    from .._indexing.update import Update
    from .release_contents import PublishedDistribution, Release
    from .stores import Store, StoredContent

    Change = Callable[[Page | None, Mapping[str, bytes]], Update]

_Result = TypeVar("_Result")

BASE = "https://place.invalid/"
"""Stands for the store in the URLs of pages as data; `StoredIndex` replaces it."""

PAGES = "simple"
FILES = "files"
PROBES = ".publish-probe"
"""Folder of the objects that are written to learn what the store supports."""

ROUNDS = 60
"""How often a change is made again because another publisher was faster."""

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 3.0

_DIGEST_CHARACTERS = 32
"""128 bits; a whole SHA-256 makes paths too long for Windows."""


def page_path(project: str, name: str) -> str:
    """Return the path of the page *name* of *project*; of the list of projects, if it is empty."""
    return f"{PAGES}/{project}/{name}" if project else f"{PAGES}/{name}"


def file_path(project: str, filename: str, sha256: str) -> str:
    """Return the path of a file that never changes."""
    return f"{FILES}/{project}/{sha256[:_DIGEST_CHARACTERS]}/{filename}"


def is_published(directory: Path) -> bool:
    """Return whether *directory* has files that `variants publish --to` put there."""
    folders = directory.glob(f"{FILES}/*/{'[0-9a-f]' * _DIGEST_CHARACTERS}")
    return next(folders, None) is not None


def path_at(url: str) -> str | None:
    """Return the path that *url* of a page as data stands for, None if it is elsewhere."""
    return unquote(url.removeprefix(BASE)) if url.startswith(BASE) else None


class StoredIndex:
    """An index in a store, to change and to publish to; see `transaction`.

    Methods raise `PublishError`.

    Attributes:
        store: with the index.
        place: the store, for messages.
    """

    commits_last = True

    def __init__(self, store: Store) -> None:
        """Use the index in *store*; nothing is read yet."""
        self.store = store
        self.place = store.name

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def page(self, project: str) -> Page | None:
        """Return the page of *project*, None without one."""
        return self.read(project)[0]

    def is_same(self, file: PublishedDistribution, listed: PageFile) -> bool:
        """Return whether the page says that *listed* has the contents of *file*."""
        return bool(same_contents(file, listed.hashes))

    def findings(self, *_: object) -> list[Finding]:
        """Return nothing: where the pages are served, and when, is not known."""
        return []

    def read(self, project: str) -> tuple[Page | None, StoredContent | None]:
        """Return the page of *project* that is there now, and its JSON page; None for neither.

        Of an index that has HTML pages only, that is the state. URLs are below `BASE`.
        """
        for name, kind in ((JSON_PAGE, index_pages.JSON), (HTML_PAGE, index_pages.HTML)):
            path = page_path(project, name)
            found = self.store.get(path, limits.PAGE_BYTES)
            if found is not None:
                try:
                    page = index_pages.read_page(found.data, kind, BASE + quote(path), project)
                except PackageIndexError as error:
                    raise PublishError(self._shown(error)) from None
                return page, found if kind == index_pages.JSON else None
        return None, None

    def documents(self, page: Page | None, names: Collection[str]) -> dict[str, bytes]:
        """Return those of the ``*-variants.json`` *names* that *page* lists, by filename.

        Documents that are on another server, or gone, are left out.

        Raises:
            PublishError: one is not what the page says.
        """
        found = {}
        for file in page.files if page is not None else ():
            path = path_at(file.url)
            if file.filename in names and path is not None:
                data = self._document(path, file.hashes.get("sha256"))
                if data is not None:
                    found[file.filename] = data
        return found

    def url_of(self, project: str) -> Callable[[str, str], str]:
        """Return the function that gives the URL for pages of a file in the store."""
        return lambda filename, sha256: BASE + quote(file_path(project, filename, sha256))

    def change(self, project: str, documents: Collection[str], change: Change) -> Update:
        """Make *change* to *project*, whatever others do meanwhile.

        Args:
            project: normalized name.
            documents: names of those that the change needs, if the page has them.
            change: returns the next state; called again after a conflict.

        Raises:
            Conflict: *change* refuses: nothing was changed.
            PublishError: others kept changing the page.
        """

        def attempt() -> Update:
            page, content = self.read(project)
            update = self.next(change, page, self.documents(page, documents))
            self._write_documents(update)
            data = index_pages.json_page(_relative(update.page))
            self._replace(page_path(project, JSON_PAGE), content, data)
            return update

        update = self._repeated(attempt, project)
        self.complete(project)
        return update

    def next(self, change: Change, page: Page | None, documents: Mapping[str, bytes]) -> Update:
        """Return the state that *change* makes; nothing is written."""
        try:
            return change(page, documents)
        except PublishError:
            raise
        except VariantError as error:
            raise Conflict(f"{self._shown(error)}: nothing was changed") from None

    def complete(self, project: str) -> None:
        """Bring the HTML page of *project* and the list of projects in line with its JSON page."""
        path = page_path(project, HTML_PAGE)

        def attempt() -> None:
            # First the page to replace, then what it follows from: see the module.
            html = self.store.get(path, limits.PAGE_BYTES)
            page = self.page(project)
            if page is not None:
                self._replace(path, html, index_pages.html_page(_relative(page)))

        self._repeated(attempt, project)
        self._repeated(self._list_projects, "the list of projects")

    def projects(self) -> list[str]:
        """Return the names of all projects: those that have a page."""
        paths = (path.split("/") for path in self.store.paths(PAGES))
        return sorted({parts[1] for parts in paths if parts[2:] in ([JSON_PAGE], [HTML_PAGE])})

    def probe(self, releases: Sequence[Release], *, dry: bool = False) -> None:
        """Check that the store can replace on a condition, and make the change without writing."""
        for project, group in by_project(releases).items():
            page = self.page(project)
            known = self.documents(page, _names(group))
            self.next(self._addition(group), page, known)
        if not dry:
            self._check_conditions()

    def upload(self, file: PublishedDistribution) -> None:
        """Put *file*, which no page lists yet, unless it is there: METADATA first."""
        item = file.distribution
        path = file_path(item.project, file.filename, item.sha256)
        if item.is_wheel:
            data = read_core_metadata(item)
            if self.store.size(path + CORE_METADATA_SUFFIX) != len(data):
                self.store.put(path + CORE_METADATA_SUFFIX, data)
        if self.store.size(path) != item.size:
            chunks = file_chunks(item.path, item.sha256)
            # In parts only where it is large: parts take requests of their own.
            self.store.put(path, chunks if item.size > CHUNK else b"".join(chunks))

    def commit(self, releases: Sequence[Release]) -> dict[str, bytes]:
        """Make *releases* visible, project by project; return their metadata by filename."""
        documents: dict[str, bytes] = {}
        for project, group in by_project(releases).items():
            update = self.change(project, _names(group), self._addition(group))
            for name in update.documents.keys() & set(_names(group)):
                documents[name] = update.documents[name]
        return documents

    def change_project(
        self,
        project: str,
        *,
        yank: Mapping[str, str],
        unyank: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> Update:
        """Make the changes; labels whose last wheel is removed leave the metadata.

        Yanked files are chosen only where pinned.

        Args:
            project: normalized name.
            yank: the reason, which may be empty, by filename or shell-style pattern (PEP 592).
            unyank: filenames and patterns of files that are not yanked any more.
            remove: filenames and patterns of files to take away.

        Raises:
            PublishError: the project, or a file, is not there; nothing was changed.
        """
        before = self.page(project)
        if before is None:
            raise PublishError(f"{self.place}: there is no project {shortened(project)}")
        reasons = [*yank.items(), *((pattern, None) for pattern in unyank)]
        marks = {name: reason for each, reason in reasons for name in _matching(before, each)}
        removed = {name for pattern in remove for name in _matching(before, pattern)}
        releases = [found[0] for name in removed if (found := release_of(name)) is not None]

        def change(page: Page | None, known: Mapping[str, bytes]) -> Update:
            if page is None:
                raise UpdateError(f"{self.place}: the project {project} was removed meanwhile")
            now = datetime.now(timezone.utc)
            update = updated(page, known, [], url_of=self.url_of(project), now=now, removed=removed)
            marked = {
                file.filename: replace(file, yanked=marks[file.filename])
                for file in update.page.files
                if marks.get(file.filename, file.yanked) != file.yanked
            }
            files = tuple(marked.get(file.filename, file) for file in update.page.files)
            page = replace(update.page, files=files)
            return replace(update, page=page, changed=update.changed | marked.keys())

        return self.change(
            project, {wheel_files.metadata_filename(*release) for release in releases}, change
        )

    def _addition(self, releases: Sequence[Release]) -> Change:
        """Return the function that gives the state of a project after *releases*."""
        return lambda page, documents: updated(
            page,
            documents,
            [file.distribution for release in releases for file in release.files],
            url_of=self.url_of(releases[0].project),
            now=datetime.now(timezone.utc),
        )

    def _check_conditions(self) -> None:
        """Check that an object is replaced only if it is the one that was read.

        Some servers that speak the protocol of S3 ignore the condition; two publishers would lose
        each other's files there.
        """
        path = f"{PROBES}/{secrets.token_hex(8)}"
        try:
            self.store.put_if(path, b"first", None)
            first = self.store.get(path, 100)
            if first is None:
                raise PublishError(f"{self.place}/{path}: was written, and is not there")
            self.store.put_if(path, b"second", first.version)
            for version in (None, first.version):
                with contextlib.suppress(PreconditionFailed):
                    self.store.put_if(path, b"third", version)
                    raise PublishError(
                        f"{self.place}: the storage ignores conditions of writes (If-Match and "
                        "If-None-Match), which keep two publishers from losing each other's files: "
                        "use one that supports them"
                    )
        finally:
            with contextlib.suppress(PublishError):  # credentials may allow no removal
                self.store.delete([path])

    def _list_projects(self) -> None:
        # First the pages to replace, then what they follow from: see the module.
        old = {
            name: self.store.get(page_path("", name), limits.PROJECTS_BYTES)
            for name in (JSON_PAGE, HTML_PAGE)
        }
        names = self.projects()
        self._replace(page_path("", JSON_PAGE), old[JSON_PAGE], index_pages.json_projects(names))
        self._replace(page_path("", HTML_PAGE), old[HTML_PAGE], index_pages.html_projects(names))

    def _replace(self, path: str, old: StoredContent | None, data: bytes) -> None:
        """Write *data* if it differs from *old*, which must still be there."""
        if old is None or old.data != data:
            self.store.put_if(path, data, old.version if old else None)

    def _document(self, path: str, sha256: str | None) -> bytes | None:
        found = self.store.get(path, limits.DOCUMENT_BYTES)
        if found is None:
            return None
        if sha256 not in (None, hashlib.sha256(found.data).hexdigest()):
            raise PublishError(
                f"{self.place}/{path}: is not the file that the page of its project lists "
                f"(SHA-256 {sha256}): put back that one"
            )
        return found.data

    def _write_documents(self, update: Update) -> None:
        for file in update.page.files:
            data = update.documents.get(file.filename)
            path = path_at(file.url) if file.filename in update.changed else None
            if data is not None and path is not None and self.store.size(path) != len(data):
                self.store.put(path, data)

    def _shown(self, error: Exception) -> str:
        return str(error).replace(BASE, f"{self.place.rstrip('/')}/")

    def _repeated(self, attempt: Callable[[], _Result], what: str) -> _Result:
        """Return what *attempt* returns, after as many conflicts as it takes."""
        pause = _FIRST_PAUSE
        for _ in range(ROUNDS):
            try:
                return attempt()
            except PreconditionFailed:
                time.sleep(random.uniform(0, pause))  # noqa: S311 - a pause, not a secret
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise PublishError(
            f"{self.place}: {what} was changed by other publishers {ROUNDS} times: run the "
            "command again when they are done"
        )


def _relative(page: Page) -> Page:
    """Return *page* with links into the store as seen from where the page is."""

    def link(url: str | None) -> str | None:
        if url is None or not url.startswith(BASE):
            return url
        return relpath(url.removeprefix(BASE), f"{PAGES}/{page.project}")

    def linked(file: PageFile) -> PageFile:
        return replace(file, url=link(file.url) or file.url, provenance=link(file.provenance))

    return replace(page, files=tuple(map(linked, page.files)))


def _names(releases: Sequence[Release]) -> list[str]:
    return [release.document_name for release in releases]


def _matching(page: Page, pattern: str) -> list[str]:
    """Return the names of the distributions on *page* with this name or shell-style pattern.

    Raises:
        PublishError: there are none.
    """
    names = [
        file.filename
        for file in page.files
        if not file.filename.endswith(wheel_labels.METADATA_SUFFIX)
    ]
    found = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
    if not found:
        raise PublishError(f"{shortened(pattern, 200)}: no file of {page.project} has this name")
    return found

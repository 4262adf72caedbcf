"""An index of static files in a store, which several publishers may change at once.

The JSON page of a project is its state. A change reads it, makes the next one, writes what that
one links to, and replaces the page on the condition that it is still the one that was read. If it
is not, another publisher was faster, and the change is made again from the new page. HTML pages and
the list of projects follow from the JSON pages, with the same condition, so an older one never
replaces a newer one.
"""

from __future__ import annotations

import hashlib
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pep_variants import limits
from pep_variants.errors import VariantError
from pep_variants.model.label import METADATA_SUFFIX
from variants_index.errors import PackageIndexError
from variants_index.pages import HTML, JSON, html_projects, json_page, json_projects
from variants_index.pages import read_page as page_of
from variants_index.pages import read_projects as projects_of

from ..indexing.static_index import HTML_PAGE, JSON_PAGE
from ..pages.project_page import render
from ..stores.store import Changed, StoreError
from .errors import Conflict, PublishError, Unfinished
from .storage_layout import (
    file_path,
    headers_of,
    is_file_path,
    page_path,
    path_at,
    relative,
    shown,
    url_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from variants_index.pages import Page

    from ..indexing.update import Update
    from ..stores.store import Store, Version

    Change = Callable[[Page | None, Mapping[str, bytes]], Update]

_Result = TypeVar("_Result")

ROUNDS = 60
"""How often a change is made again because another publisher was faster."""

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 3.0
_READERS = 16


@dataclass(frozen=True)
class StoredPage:
    """The page of a project as it was read.

    Attributes:
        page: with URLs of `storage_layout`, None if there is none.
        version: of the JSON page, None if there is none.
        data: the JSON page.
    """

    page: Page | None
    version: Version | None
    data: bytes | None


class StoredIndex:
    """The pages and documents of an index in a store.

    Methods raise `PublishError`, and `StoreError` where the store cannot be read or written.
    """

    def __init__(self, store: Store) -> None:
        """Use the index in *store*; nothing is read yet."""
        self.store = store
        self._documents: dict[str, bytes] = {}

    def read(self, project: str) -> StoredPage:
        """Return the page of *project* that is there now.

        Of an index that has HTML pages only, that is the state.
        """
        path = page_path(project, JSON_PAGE)
        found = self.store.get(path, limits.PAGE_BYTES)
        kind, version = JSON, None
        if found is None:
            path, kind = page_path(project, HTML_PAGE), HTML
            html = self.store.get(path, limits.PAGE_BYTES)
            if html is None:
                return StoredPage(None, None, None)
            data = html.data
        else:
            data, version = found.data, found.version
        try:
            page = page_of(data, kind, url_at(path), project)
        except PackageIndexError as error:
            raise PublishError(shown(str(error), self.store.name)) from None
        return StoredPage(page, version, data if found else None)

    def documents(self, page: Page, names: Iterable[str] | None = None) -> dict[str, bytes]:
        """Return the ``*-variants.json`` that *page* lists, by filename; or those of *names*.

        Documents that are on another server, or gone, are left out.

        Raises:
            PublishError: one is not what the page says.
        """
        wanted = None if names is None else set(names)
        found: dict[str, tuple[str, str | None]] = {}
        for file in page.files:
            if not file.filename.endswith(METADATA_SUFFIX):
                continue
            path = path_at(file.url)
            if path is not None and (wanted is None or file.filename in wanted):
                found[file.filename] = path, file.hashes.get("sha256")
        with ThreadPoolExecutor(_READERS) as pool:
            contents = pool.map(lambda each: self._document(*each), found.values())
            return {
                name: data for name, data in zip(found, contents, strict=True) if data is not None
            }

    def url_of(self, project: str) -> Callable[[str, str], str]:
        """Return the function that gives the URL for pages of a file in the store."""
        return lambda filename, sha256: url_at(file_path(project, filename, sha256))

    def change(self, project: str, documents: Iterable[str], change: Change) -> Update:
        """Make *change* to *project*, whatever others do meanwhile.

        Args:
            project: normalized name.
            documents: names of those that the change needs, if the page has them.
            change: returns the next state; called again after a conflict.

        Raises:
            Conflict: *change* raised it, or refuses: nothing was changed.
            Unfinished: others kept changing the page.
        """
        needed = set(documents)

        def attempt() -> Update:
            before = self.read(project)
            known = self.documents(before.page, needed) if before.page is not None else {}
            try:
                update = change(before.page, known)
            except (StoreError, PublishError):
                raise
            except VariantError as error:
                raise Conflict(shown(str(error), self.store.name)) from None
            self._write_documents(update)
            data = json_page(relative(update.page))
            if data != before.data:
                path = page_path(project, JSON_PAGE)
                self.store.put_if(path, data, before.version, headers_of(path))
            return update

        update = self._repeated(attempt, project)
        self.complete(project)
        return update

    def complete(self, project: str) -> None:
        """Bring the HTML page of *project* and the list of projects in line with its JSON page."""
        path = page_path(project, HTML_PAGE)

        def attempt() -> None:
            # First the page to replace, then what it follows from: see the module.
            html = self.store.get(path, limits.PAGE_BYTES)
            page = self.read(project).page
            if page is None:
                return
            data = render(relative(page), self.documents(page))
            if html is None or html.data != data:
                self.store.put_if(path, data, html.version if html else None, headers_of(path))

        self._repeated(attempt, project)
        self._list_project(project)

    def projects(self) -> tuple[str, ...]:
        """Return the names of all projects."""
        return self._projects()[0]

    def _list_project(self, project: str) -> None:
        json_path, html_path = page_path("", JSON_PAGE), page_path("", HTML_PAGE)

        def attempt() -> None:
            html = self.store.get(html_path, limits.PROJECTS_BYTES)
            names, version, data = self._projects()
            names = tuple(sorted({*names, project}))
            new = json_projects(names)
            if new != data:
                self.store.put_if(json_path, new, version, headers_of(json_path))
            new = html_projects(names)
            if html is None or html.data != new:
                self.store.put_if(
                    html_path, new, html.version if html else None, headers_of(html_path)
                )

        self._repeated(attempt, "the list of projects")

    def _projects(self) -> tuple[tuple[str, ...], Version | None, bytes | None]:
        path = page_path("", JSON_PAGE)
        found = self.store.get(path, limits.PROJECTS_BYTES)
        try:
            if found is not None:
                return projects_of(found.data, JSON, url_at(path)), found.version, found.data
            path = page_path("", HTML_PAGE)
            html = self.store.get(path, limits.PROJECTS_BYTES)
            return (projects_of(html.data, HTML, url_at(path)) if html else ()), None, None
        except PackageIndexError as error:
            raise PublishError(shown(str(error), self.store.name)) from None

    def _document(self, path: str, sha256: str | None) -> bytes | None:
        if path in self._documents:
            return self._documents[path]
        found = self.store.get(path, limits.DOCUMENT_BYTES)
        if found is None:
            return None
        if sha256 not in (None, hashlib.sha256(found.data).hexdigest()):
            raise PublishError(
                f"{self.store.name}/{path}: is not the file that the page of its project lists "
                f"(SHA-256 {sha256}): put back that one"
            )
        if is_file_path(path):
            self._documents[path] = found.data
        return found.data

    def _write_documents(self, update: Update) -> None:
        for file in update.page.files:
            data = update.documents.get(file.filename)
            path = path_at(file.url)
            if file.filename in update.changed and data is not None and path is not None:
                if self.store.size(path) != len(data):
                    self.store.put(path, data, headers_of(path))
                self._documents[path] = data

    def _repeated(self, attempt: Callable[[], _Result], what: str) -> _Result:
        """Return what *attempt* returns, after as many conflicts as it takes."""
        pause = _FIRST_PAUSE
        for _ in range(ROUNDS):
            try:
                return attempt()
            except Changed:
                time.sleep(random.uniform(0, pause))  # noqa: S311 - a pause, not a secret
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise Unfinished(
            f"{self.store.name}: {what} was changed by other publishers {ROUNDS} times: run the "
            "command again when they are done"
        )

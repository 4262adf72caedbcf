"""The index of a directory: static pages and metadata files, written and brought up to date.

The state of a project on the index is its JSON page (PEP 691). A run reads the distributions that
are new to it, takes hashes and upload times of the others from the page, and merges the metadata
of every version from its wheels; `update.updated` gives the next state, which is then written.

``.inventory.json`` is a cache: sizes and times of the files that the last run read and wrote. It
is safe to delete; what has to be kept, such as upload times, is on the pages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

from pep_variants import labels as wheel_labels
from pep_variants import safe_files
from pep_variants.errors import VariantError
from variants_index import pages as index_pages
from variants_index.http import InvalidPage

from .._console import created_by, tracked
from .update import updated
from .wheelhouse import (
    CORE_METADATA_SUFFIX,
    Distribution,
    FileState,
    identified,
    is_distribution,
    read_core_metadata,
    read_distribution,
    scan,
    state_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from variants_index.pages import Page

    from .update import Update

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"
INVENTORY = ".inventory.json"

_DOCUMENTS = "metadata"
"""Folder beside a page with the documents that it lists."""

_OLD_SECONDS = 86_400
"""For how long clients may go on with a page that they have read."""

_FORMAT = 6
_GENERATED = f'content="{index_pages.GENERATOR}"'.encode()
"""Marks generated pages; others are not removed."""

_SETTLED = 2_000_000_000
"""Nanoseconds: a file that changed this shortly before it was read may change again without
another modification time, on file systems with a resolution of seconds."""


class DirectoryProblems(VariantError):
    """Files that no index can be made of.

    Attributes:
        problems: one message for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True)
class WrittenIndex:
    """An index that was written.

    Attributes:
        projects: number of projects.
        wheels: number of wheels.
        sdists: number of source distributions.
        releases: number of versions with variants.
        changed: the files that were written or removed, in this order.
    """

    projects: int
    wheels: int
    sdists: int
    releases: int
    changed: tuple[Path, ...]


def write_index(
    directory: Path, output: Path, *, base_url: str | None = None, fresh: bool = False
) -> WrittenIndex:
    """Write the index of the distributions in *directory*, or bring it up to date.

    Nothing is written before everything that changed was read and fits together.

    Args:
        directory: of distributions.
        output: for the pages.
        base_url: URL where the directory is served, None for relative links.
        fresh: read all files again.

    Raises:
        DirectoryProblems: files are not usable, or contradict each other.
        VariantError: there is nothing to index, a page of the last run is damaged, or another
            run has the lock.
        OSError: a file cannot be read or written.
    """
    found = scan(directory, output)
    if not any(is_distribution(path.rpartition("/")[2]) for path in found):
        raise VariantError(f"{directory}: no wheels found")
    output.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(output / f"{INVENTORY}.lock", timeout=0):
            if fresh:
                (output / INVENTORY).unlink(missing_ok=True)
            return _Run(directory, output, found, base_url).write()
    except Timeout:
        raise VariantError(
            f"{output}: another variants index is writing it: wait for its end"
        ) from None


class _Run:
    """One run of the command, from what was found to what is written."""

    def __init__(
        self, directory: Path, output: Path, found: Mapping[str, FileState], base_url: str | None
    ) -> None:
        self._directory, self._output = directory, output
        self._found, self._base_url = found, base_url
        self._problems: list[str] = []
        self._changed: list[Path] = []
        self._is_redesigned = False
        # States of the files of each project, of those that were read and those that were written.
        self._known = self._read_inventory()
        self._paths = self._grouped()

    def write(self) -> WrittenIndex:
        stale = [n for n in sorted(self._paths) if self._is_redesigned or not self._is_current(n)]
        pages = {name: read_own_page(self._output / name, name) for name in stale}
        items = self._read(pages)
        updates, now = {}, datetime.now(timezone.utc)
        for name, found in items.items():
            try:
                updates[name] = self._update(name, pages[name], found, now)
            except VariantError as error:
                self._problems.append(str(error))
        if self._problems:
            raise DirectoryProblems(self._problems)
        known = {name: self._known[name] for name in self._paths.keys() - updates.keys()}
        for name, update in tracked(updates.items(), len(updates), "writing pages"):
            known[name] = self._write_project(update, items[name])
        self._write(self._output / JSON_PAGE, index_pages.json_projects(sorted(known)))
        self._write(self._output / HTML_PAGE, index_pages.html_projects(sorted(known)))
        self._remove_old(pages, updates)
        self._write_inventory(known)
        names = [name for paths in self._paths.values() for name in paths]
        wheels = sum(name.endswith(".whl") for name in names)
        releases = sum(is_document(path) for files in known.values() for path in files)
        sdists = len(names) - wheels
        return WrittenIndex(len(known), wheels, sdists, releases, tuple(self._changed))

    def _read_inventory(self) -> dict[str, dict[str, FileState]]:
        """Return what the last run knew; nothing if it cannot be used."""
        try:
            tree = json.loads((self._output / INVENTORY).read_bytes())
            if tree["format"] != _FORMAT:
                return {}
            self._is_redesigned = tree["pages"] != [self._base_url, created_by()]
            return {
                name: {path: (size, time) for path, (size, time) in files.items()}
                for name, files in tree["projects"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # missing, or not written by us

    def _write_inventory(self, known: Mapping[str, Mapping[str, FileState]]) -> None:
        pages = [self._base_url, created_by()]
        tree = {"format": _FORMAT, "pages": pages, "projects": dict(sorted(known.items()))}
        safe_files.write_if_changed(
            self._output / INVENTORY, json.dumps(tree, separators=(",", ":")).encode()
        )

    def _grouped(self) -> dict[str, dict[str, str]]:
        """Return by project the paths of its distributions, by filename."""
        owners = {path: name for name, files in self._known.items() for path in files}
        groups: dict[str, dict[str, str]] = defaultdict(dict)
        seen: dict[str, str] = {}
        for path in sorted(self._found):
            filename = path.rpartition("/")[2]
            if not is_distribution(filename):
                continue
            twin = seen.setdefault(filename, path)
            if twin != path:
                places = f"{self._directory / twin} and {self._directory / path}"
                self._problems.append(f"{places} have the same name")
                continue
            try:
                project = owners.get(path) or str(identified(filename)[0])
            except VariantError as error:
                self._problems.append(f"{self._directory / path}: {error}")
                continue
            groups[project][filename] = path
        return groups

    def _is_same(self, project: str, path: str) -> bool:
        """Return whether the file at *path* is as the last run left it."""
        known = self._known.get(project, {}).get(path)
        return known == (self._found.get(path) or state_of(self._directory / path))

    def _is_current(self, project: str) -> bool:
        """Return whether files, pages and documents of *project* are those of the last run."""
        known = self._known.get(project, {})
        return known.keys() >= set(self._paths[project].values()) and all(
            self._is_same(project, path) for path in known
        )

    def _read(self, pages: Mapping[str, Page | None]) -> dict[str, list[Distribution]]:
        """Return the distributions of the projects with these *pages*.

        Of files that are as the last run left them, the page has the hash.
        """
        wanted = []
        for project, page in pages.items():
            page_path = _relative(self._output / project / JSON_PAGE, self._directory)
            is_own = self._is_same(project, page_path)
            listed = {file.filename: file for file in page.files} if page and is_own else {}
            for name, path in self._paths[project].items():
                is_known = name in listed and self._is_same(project, path)
                sha256 = listed[name].hashes.get("sha256") if is_known else None
                wanted.append((project, self._directory / path, sha256))
        items: dict[str, list[Distribution]] = defaultdict(list)
        for project, file, sha256 in tracked(wanted, len(wanted), "reading wheels"):
            try:
                item = read_distribution(file, sha256)
            except VariantError as error:
                self._problems.append(str(error))
            except OSError as error:
                self._problems.append(f"{error.filename or file}: {error.strerror or error}")
            else:
                items[project].append(item)
        return items

    def _update(
        self, project: str, page: Page | None, items: Sequence[Distribution], now: datetime
    ) -> Update:
        """Return the next state of *project*.

        Args:
            project: normalized name.
            page: the state that the last run left, None without one.
            items: all its distributions.
            now: the time.
        """
        # A file with other contents replaces the one that was listed: in a directory, builds are
        # repeated until they are published.
        here = {item.path.name: item.sha256 for item in items}
        lost = [
            file.filename
            for file in (page.files if page else ())
            if not is_document(file.filename)
            and here.get(file.filename) != file.hashes.get("sha256")
        ]
        if self._base_url is not None:
            base = f"{self._base_url.rstrip('/')}/"
        else:
            relative = _relative(self._directory, self._output / project)
            base = f"{quote(Path(relative).as_posix())}/"
        paths = self._paths[project]

        def url_of(filename: str, sha256: str) -> str:
            if is_document(filename):
                return quote(_listed_path(filename, sha256))
            return base + quote(paths.get(filename, filename))

        return updated(page, {}, items, url_of=url_of, now=now, removed=lost)

    def _write_project(self, update: Update, items: Iterable[Distribution]) -> dict[str, FileState]:
        """Write METADATA (PEP 658), documents and pages of a project, in this order.

        A page has the hash of a document, and clients may have read the page before. So it links
        to one that never changes, in a folder of its hash, which stays for a day after that.

        Returns:
            The states of its files, for the inventory.
        """
        name = update.page.project
        for item in items:
            path = self._paths[name][item.path.name]
            both = (path, path + CORE_METADATA_SUFFIX)
            if item.is_wheel and not all(self._is_same(name, each) for each in both):
                self._write(self._directory / both[1], read_core_metadata(item))
        folder, documents = self._output / name, sorted(update.documents.items())
        outputs = {
            **{folder / _listed_path(key, _sha256(data)): data for key, data in documents},
            folder / JSON_PAGE: index_pages.json_page(update.page),
            folder / HTML_PAGE: index_pages.html_page(update.page),
            **{self._directory / key: data for key, data in documents},
        }
        for file, data in outputs.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write(file, data)
        for old in sorted(folder.glob(_listed_path("*", "*"))):
            if old in outputs:
                continue
            if _relative(old, self._directory) in self._known.get(name, {}):
                os.utime(old)  # listed up to now
            elif old.stat().st_mtime < time.time() - _OLD_SECONDS:
                self._remove_listed(old)
        files = {_relative(file, self._directory): state_of(file) for file in outputs}
        settled = time.time_ns() - _SETTLED
        for relative in self._paths[name].values():
            if self._found[relative][1] <= settled:
                files[relative] = self._found[relative]
                if relative.endswith(".whl"):
                    beside = relative + CORE_METADATA_SUFFIX
                    files[beside] = state_of(self._directory / beside)
        return files

    def _remove_old(self, pages: Mapping[str, Page | None], updates: Mapping[str, Update]) -> None:
        """Remove what earlier runs wrote for files that are gone, after all links to them."""
        gone = [
            page.parent.name
            for page in sorted(self._output.glob(f"*/{HTML_PAGE}"))
            if page.parent.name not in self._paths and _GENERATED in page.read_bytes()
        ]
        before = [*pages.values(), *(read_own_page(self._output / name, name) for name in gone)]
        lost = {file.filename for page in before if page for file in page.files}
        lost -= {file.filename for update in updates.values() for file in update.page.files}
        for name in gone:
            self._remove(self._output / name / HTML_PAGE)
            self._remove(self._output / name / JSON_PAGE)
            for document in sorted((self._output / name).glob(_listed_path("*", "*"))):
                self._remove_listed(document)
            if not any((self._output / name).iterdir()):
                (self._output / name).rmdir()
        for path in sorted(self._found):
            owner = path.removesuffix(CORE_METADATA_SUFFIX)
            is_left = owner not in self._found and owner.rpartition("/")[2] in lost
            if (path in lost and is_document(path)) or (owner != path and is_left):
                self._remove(self._directory / path)

    def _write(self, path: Path, data: bytes) -> None:
        if safe_files.write_if_changed(path, data):
            self._changed.append(path)

    def _remove_listed(self, document: Path) -> None:
        """Remove a document that no page lists, and its folders if they are empty then."""
        self._remove(document)
        with contextlib.suppress(OSError):
            document.parent.rmdir()
            document.parent.parent.rmdir()

    def _remove(self, path: Path) -> None:
        if path.exists():
            path.unlink()
            self._changed.append(path)


def read_own_page(folder: Path, project: str) -> Page | None:
    """Return the page that an earlier run wrote into *folder*, None if there is none.

    Raises:
        VariantError: it is damaged, so that upload times are not known.
    """
    path = folder / JSON_PAGE
    try:
        return index_pages.read_page(
            path.read_bytes(), index_pages.JSON, path.absolute().as_uri(), project
        )
    except FileNotFoundError:
        return None
    except InvalidPage as error:
        raise VariantError(
            f"{error}: upload times are kept in it: restore it, or delete it to start again"
        ) from None


def is_document(path: str) -> bool:
    """Return whether *path*, relative to the directory, is of a metadata document of an index."""
    return "/" not in path and path.endswith(wheel_labels.METADATA_SUFFIX)


def is_listed_document(path: Path) -> bool:
    """Return whether *path* is of a document that a page lists, or listed before."""
    return path.match(f"*/{_DOCUMENTS}/{'[0-9a-f]' * 16}/*{wheel_labels.METADATA_SUFFIX}")


def _listed_path(filename: str, sha256: str) -> str:
    """Return the path of a document relative to the page that lists it."""
    return f"{_DOCUMENTS}/{sha256[:16]}/{filename}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _relative(path: Path, start: Path) -> str:
    try:
        return os.path.relpath(path, start)
    except ValueError:  # on another drive of Windows
        return os.fspath(path.absolute())

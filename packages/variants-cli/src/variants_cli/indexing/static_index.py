"""The index of a directory: static pages and metadata files, written and brought up to date.

The state of a project on the index is its JSON page (PEP 691) and the ``*-variants.json`` that the
page lists. A run reads the distributions that it does not know, and those of a version that lost
one; `update.updated` gives the next state, which is then written.

``.inventory.json`` is a cache: sizes and times of the files that the last run read and wrote. It
is safe to delete; what has to be kept, such as upload times, is on the pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

from pep_variants.errors import VariantError
from pep_variants.files import read_regular, write_if_changed
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.label import METADATA_SUFFIX, split_label
from variants_index.errors import InvalidPage
from variants_index.pages import (
    GENERATOR,
    JSON,
    html_projects,
    json_page,
    json_projects,
    read_page,
)

from ..console import tracked
from ..pages.project_page import design, render
from ..processes import CHUNK, ENOUGH, mapped
from .update import Update, matches, release_of, unyanked, updated, with_status, yanked
from .wheelhouse import (
    CORE_METADATA_SUFFIX,
    Distribution,
    FileState,
    identified,
    is_distribution,
    read_core_metadata,
    read_distribution,
    relisted,
    scan,
    state_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from variants_index.pages import Page, PageFile

HTML_PAGE = "index.html"
JSON_PAGE = "index.v1_json"
INVENTORY = ".inventory.json"

_FORMAT = 4
_GENERATED = f'content="{GENERATOR}"'.encode()
"""Marks generated pages; others are not removed."""

_MUCH = 200_000_000
"""Bytes that are worth starting processes for, of however few files."""

_KEPT = 64 * 1024 * 1024
"""Bytes of METADATA that are kept until they are written; more of it is read again."""

_SETTLED = 2_000_000_000
"""Nanoseconds: a file that changed this shortly before it was read may change again without
another modification time, on file systems with a resolution of seconds."""


class UnreadablePage(VariantError):
    """A page of an earlier run that cannot be read, so that its upload times are not known."""


class DirectoryProblems(VariantError):
    """Files that no index can be made of.

    Attributes:
        problems: one message for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True)
class IndexSettings:
    """How an index is written.

    Attributes:
        base_url: URL where the directory is served, None for relative links.
        fresh: read all files again.
        jobs: number of processes, None for one per core.
        yank: reasons by filename or pattern (PEP 592).
        unyank: filenames or patterns.
        statuses: status and reason of projects by normalized name (PEP 792).
    """

    base_url: str | None = None
    fresh: bool = False
    jobs: int | None = None
    yank: Mapping[str, str] = field(default_factory=dict)
    unyank: Sequence[str] = ()
    statuses: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenIndex:
    """An index that was written.

    Attributes:
        projects: number of projects.
        wheels: number of wheels.
        sdists: number of source distributions.
        releases: number of versions with variants.
        changed: the files that were written or removed, in this order.
        strays: ``*-variants.json`` in the directory that are of none of its wheels.
    """

    projects: int
    wheels: int
    sdists: int
    releases: int
    changed: tuple[Path, ...]
    strays: tuple[Path, ...]


@dataclass
class KnownProject:
    """A project in the inventory.

    Attributes:
        files: states of its distributions and of all that was written for it, by path relative
            to the directory.
        counts: numbers of wheels, source distributions, and versions with variants.
    """

    files: dict[str, FileState] = field(default_factory=dict)
    counts: tuple[int, int, int] = (0, 0, 0)


def write_index(directory: Path, output: Path, settings: IndexSettings) -> WrittenIndex:
    """Write the index of the distributions in *directory*, or bring it up to date.

    Nothing is written before everything that changed was read and fits together.

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
            return _Run(directory, output, settings, found).write()
    except Timeout:
        raise VariantError(
            f"{output}: another variants index is writing it: wait for its end"
        ) from None


class _Run:
    """One run of the command, from what was found to what is written."""

    def __init__(
        self, directory: Path, output: Path, settings: IndexSettings, found: Mapping[str, FileState]
    ) -> None:
        self._directory = directory
        self._output = output
        self._settings = settings
        self._found = found
        self._problems: list[str] = []
        self._changed: list[Path] = []
        self._is_redesigned = False
        self._before = {} if settings.fresh else self._read_inventory()
        self._paths = self._grouped()

    def write(self) -> WrittenIndex:
        stale = sorted(self._stale())
        pages = {name: read_own_page(self._output / name, name) for name in stale}
        read = self._read([(name, path) for name in stale for path in self._unknown(name)])
        updates, now = {}, datetime.now(timezone.utc)
        for name in stale:
            if pages[name] is None and not read[name]:
                continue  # nothing of it could be read
            try:
                updates[name] = self._update(name, pages[name], read[name], now)
            except VariantError as error:
                self._problems.append(str(error))
        if self._problems:
            raise DirectoryProblems(self._problems)
        projects = {name: self._before[name] for name in self._paths.keys() - updates.keys()}
        self._write_core_metadata([item for items in read.values() for item in items.values()])
        for name, update in sorted(updates.items()):
            projects[name] = self._write_project(update)
        self._write(self._output / JSON_PAGE, json_projects(sorted(projects)))
        self._write(self._output / HTML_PAGE, html_projects(sorted(projects)))
        self._remove_old(pages, updates)
        self._write_inventory(projects)
        counts = [project.counts for project in projects.values()]
        return WrittenIndex(
            len(projects),
            wheels=sum(count[0] for count in counts),
            sdists=sum(count[1] for count in counts),
            releases=sum(count[2] for count in counts),
            changed=tuple(self._changed),
            strays=self._strays(projects),
        )

    def _read_inventory(self) -> dict[str, KnownProject]:
        """Return what the last run with these settings knew; nothing if it is not to be used."""
        try:
            tree = json.loads((self._output / INVENTORY).read_bytes())
            if (tree["format"], tree["base-url"]) != (_FORMAT, self._settings.base_url):
                return {}
            self._is_redesigned = tree["design"] != design()
            return {
                name: KnownProject(
                    {path: (state[0], state[1]) for path, state in project["files"].items()},
                    tuple(project["counts"]),
                )
                for name, project in tree["projects"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            return {}  # missing, or not written by us

    def _write_inventory(self, projects: Mapping[str, KnownProject]) -> None:
        tree = {
            "format": _FORMAT,
            "base-url": self._settings.base_url,
            "design": design(),
            "projects": {name: asdict(project) for name, project in sorted(projects.items())},
        }
        write_if_changed(self._output / INVENTORY, json.dumps(tree, separators=(",", ":")).encode())

    def _grouped(self) -> dict[str, dict[str, str]]:
        """Return by project the paths of its distributions, by filename."""
        owners = {path: name for name, project in self._before.items() for path in project.files}
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
        known = self._before[project].files if project in self._before else {}
        return known.get(path) == (self._found.get(path) or state_of(self._directory / path))

    def _stale(self) -> set[str]:
        """Return the projects that are to be written, because of files or of options."""
        settings = self._settings
        stale = set(settings.statuses)
        for pattern in (*settings.yank, *settings.unyank):
            owners = {
                project
                for project, paths in self._paths.items()
                if any(matches(name, pattern) for name in paths)
            }
            if not owners:
                self._problems.append(f"{pattern}: no file here has this name")
            stale |= owners
        for name in settings.statuses:
            if name not in self._paths:
                self._problems.append(f"{self._directory}: has no files of {name}")
        stale.update(
            name for name in self._paths if self._is_redesigned or not self._is_current(name)
        )
        return stale & self._paths.keys()

    def _is_current(self, project: str) -> bool:
        """Return whether files, pages and documents of *project* are those of the last run."""
        known = self._before[project].files if project in self._before else {}
        return known.keys() >= set(self._paths[project].values()) and all(
            self._is_same(project, path) for path in known
        )

    def _unknown(self, project: str) -> list[str]:
        """Return the paths of distributions that the last run did not read as they are now."""
        page = _relative(self._output / project / JSON_PAGE, self._directory)
        known = self._is_same(project, page)
        return [
            path
            for path in self._paths[project].values()
            if not (known and self._is_same(project, path))
            or (path.endswith(".whl") and not self._is_same(project, path + CORE_METADATA_SUFFIX))
        ]

    def _read(self, files: Sequence[tuple[str, str]]) -> dict[str, dict[str, Distribution]]:
        """Return distributions by project and filename.

        Args:
            files: project and path of each.
        """
        paths = [self._directory / path for _, path in files]
        much = sum(self._found[path][0] for _, path in files) > _MUCH
        enough, chunk = (2, 1) if much else (ENOUGH, CHUNK)
        jobs = self._settings.jobs
        results = mapped(_read_one, paths, len(paths), jobs=jobs, enough=enough, chunk=chunk)
        read: dict[str, dict[str, Distribution]] = defaultdict(dict)
        room = _KEPT
        shown = tracked(results, len(paths), "reading wheels")
        for (project, _), result in zip(files, shown, strict=True):
            if isinstance(result, str):
                self._problems.append(result)
                continue
            if (known := result.core_metadata) is not None:
                room -= known.size
                if room < 0:
                    result = replace(result, core_metadata=replace(known, data=None))
            read[project][result.path.name] = result
        return read

    def _update(
        self, project: str, page: Page | None, read: Mapping[str, Distribution], now: datetime
    ) -> Update:
        """Return the next state of *project*.

        Args:
            project: normalized name.
            page: the state that the last run left, None without one.
            read: its distributions that were read, by filename.
            now: the time.
        """
        listed = {file.filename: file for file in page.files} if page else {}
        # A file with other contents replaces the one that was listed: in a directory, builds are
        # repeated until they are published.
        same = {
            name
            for name, file in listed.items()
            if name in read and file.hashes.get("sha256") == read[name].sha256
        }
        lost = [
            name
            for name in listed
            if not name.endswith(METADATA_SUFFIX)
            and name not in same
            and (name in read or name not in self._paths[project])
        ]
        documents = self._documents(listed.values())
        damaged = [
            name for name in listed if name.endswith(METADATA_SUFFIX) and name not in documents
        ]
        # The metadata of a version that changes is merged from all its wheels, again.
        changed = {_release(name) for name in (*lost, *damaged, *(read.keys() - same))}
        again = [
            relisted(self._directory / path, listed[name])
            for name, path in self._paths[project].items()
            if name not in read and split_label(name)[1] is not None and _release(name) in changed
        ]
        update = updated(
            page,
            {name: data for name, data in documents.items() if _release(name) not in changed},
            [*read.values(), *again],
            url_of=lambda filename, _sha256: filename,
            now=now,
            removed=lost,
        )
        return replace(update, page=self._stated(update.page))

    def _documents(self, listed: Iterable[PageFile]) -> dict[str, bytes]:
        """Return the documents that a page lists, those that are as it lists them."""
        documents = {}
        for file in listed:
            if file.filename.endswith(METADATA_SUFFIX):
                try:
                    data = read_regular(self._directory / file.filename, DOCUMENT_BYTES).data
                except OSError:
                    continue
                if file.hashes.get("sha256") == hashlib.sha256(data).hexdigest():
                    documents[file.filename] = data
        return documents

    def _urls(self, project: str) -> Callable[[str], str]:
        """Return the function that gives the URLs of files for the page of *project*."""
        if self._settings.base_url is not None:
            base = f"{self._settings.base_url.rstrip('/')}/"
        else:
            relative = _relative(self._directory, self._output / project)
            base = f"{quote(Path(relative).as_posix())}/"
        paths = self._paths[project]
        return lambda filename: base + quote(paths.get(filename, filename))

    def _stated(self, page: Page) -> Page:
        """Return *page* with the URLs of this run, and what options say of it."""
        url_of = self._urls(page.project)
        files = (replace(file, url=url_of(file.filename), provenance=None) for file in page.files)
        page = replace(page, files=tuple(files))
        names = [file.filename for file in page.files]

        def here(pattern: str) -> bool:
            return any(matches(name, pattern) for name in names)

        page = unyanked(page, list(filter(here, self._settings.unyank)))
        page = yanked(page, {key: why for key, why in self._settings.yank.items() if here(key)})
        if page.project in self._settings.statuses:
            page = with_status(page, *self._settings.statuses[page.project])
        return page

    def _write_core_metadata(self, items: Iterable[Distribution]) -> None:
        """Write METADATA of wheels beside them (PEP 658)."""
        wheels = [item for item in items if item.is_wheel]
        for wheel in tracked(wheels, len(wheels), "writing metadata"):
            path = wheel.path.with_name(wheel.path.name + CORE_METADATA_SUFFIX)
            self._write(path, read_core_metadata(wheel))

    def _write_project(self, update: Update) -> KnownProject:
        """Write documents and pages of a project, files before those that link to them."""
        name = update.page.project
        folder = self._output / name
        outputs = {
            **{self._directory / key: data for key, data in sorted(update.documents.items())},
            folder / JSON_PAGE: json_page(update.page),
            folder / HTML_PAGE: render(update.page, update.documents),
        }
        for path, data in outputs.items():
            self._write(path, data)
        files = {_relative(path, self._directory): state_of(path) for path in outputs}
        settled = time.time_ns() - _SETTLED
        for relative in self._paths[name].values():
            if self._found[relative][1] <= settled:
                files[relative] = self._found[relative]
                if relative.endswith(".whl"):
                    beside = relative + CORE_METADATA_SUFFIX
                    files[beside] = state_of(self._directory / beside)
        wheels = sum(filename.endswith(".whl") for filename in self._paths[name])
        sdists = len(self._paths[name]) - wheels
        return KnownProject(files, (wheels, sdists, len(update.documents)))

    def _remove_old(self, pages: Mapping[str, Page | None], updates: Mapping[str, Update]) -> None:
        """Remove what earlier runs wrote for files that are gone, after all links to them."""
        before = dict(pages)
        gone = [
            page.parent.name
            for page in sorted(self._output.glob(f"*/{HTML_PAGE}"))
            if page.parent.name not in self._paths and _GENERATED in page.read_bytes()
        ]
        before.update((name, read_own_page(self._output / name, name)) for name in gone)
        listed: set[str] = set()
        for name, page in before.items():
            names = {file.filename for file in page.files} if page else set()
            if name in updates:
                names -= {file.filename for file in updates[name].page.files}
            listed |= names
        for filename in sorted(listed):
            if filename.endswith(METADATA_SUFFIX):
                self._remove(self._directory / filename)
        for name in gone:
            self._remove(self._output / name / HTML_PAGE)
            self._remove(self._output / name / JSON_PAGE)
            if not any((self._output / name).iterdir()):
                (self._output / name).rmdir()
        for path in sorted(self._found):
            owner = path.removesuffix(CORE_METADATA_SUFFIX)
            if owner != path and owner not in self._found and owner.rpartition("/")[2] in listed:
                self._remove(self._directory / path)

    def _strays(self, projects: Mapping[str, KnownProject]) -> tuple[Path, ...]:
        own = {path for project in projects.values() for path in project.files}
        return tuple(
            self._directory / name
            for name in sorted(self._found)
            if "/" not in name and name.endswith(METADATA_SUFFIX) and name not in own
            if (self._directory / name).exists()
        )

    def _write(self, path: Path, data: bytes) -> None:
        if write_if_changed(path, data):
            self._changed.append(path)

    def _remove(self, path: Path) -> None:
        if path.exists():
            path.unlink()
            self._changed.append(path)


def read_own_page(folder: Path, project: str) -> Page | None:
    """Return the page that an earlier run wrote into *folder*, None if there is none.

    Raises:
        UnreadablePage: it is damaged.
    """
    path = folder / JSON_PAGE
    try:
        return read_page(path.read_bytes(), JSON, path.absolute().as_uri(), project)
    except FileNotFoundError:
        return None
    except InvalidPage as error:
        raise UnreadablePage(
            f"{error}: upload times and what was yanked are kept in it: restore it, or delete it "
            "to start again"
        ) from None


def _read_one(path: Path) -> Distribution | str:
    """Return a distribution, or what is wrong with it."""
    try:
        return read_distribution(path)
    except VariantError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror or error}"


def _release(filename: str) -> object:
    """Return project and version of a listed file, None for one that has neither."""
    found = release_of(filename)
    return None if found is None else found[0]


def _relative(path: Path, start: Path) -> str:
    try:
        return os.path.relpath(path, start)
    except ValueError:  # on another drive of Windows
        return os.fspath(path.absolute())

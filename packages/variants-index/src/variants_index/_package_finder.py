"""The files of projects in all sources: indexes, directories, find-links pages.

Nothing here depends on a target: one finder serves several. A page is fetched once, ahead of time
in a thread if `PackageFinder.start` was called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import limits, safe_files, wheel_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import CatalogError, redacted, without_userinfo
from pep_variants.preferences import Preferences, Sources
from variants_catalog import catalogs
from variants_catalog.catalogs import Catalog, UserEntries
from variants_catalog.entries import CatalogProject
from variants_catalog.listings import Listed, PlacePage, PlaceReader, Unavailable

from ._candidate import Candidate
from ._catalog_builds import At, CatalogFile, catalog_files, listed, with_builds
from ._errors import NotFound, PackageIndexError
from ._http.session import Session
from ._prefetch import Prefetcher
from .pages import JSON, Page, PageFile

logger = logging.getLogger(__name__)

_PLACE_SECONDS = 30
"""For one page of the catalogue, with all retries. There are others to take variants from."""

PYPI = "https://pypi.org/simple/"
SDISTS = (".tar.gz", ".zip")
"""Ends of the names of source distributions."""


@dataclass(slots=True)
class VersionFiles:
    """The files of one version in one place.

    Attributes:
        files: wheels and source distributions, in the order of the page.
        metadata: its ``*-variants.json``, None without one.
    """

    files: list[PageFile] = field(default_factory=list)
    metadata: PageFile | None = None

    def candidates(self, project: str, version: Version, source: str) -> list[Candidate]:
        """Return the files as those of a *project* in the place *source*."""
        return [Candidate(project, version, source, file, self.metadata) for file in self.files]


@dataclass(frozen=True)
class Project:
    """All files of a project.

    Attributes:
        name: normalized.
        versions: wheels and source distributions by version, newest version first; of a version,
            those of preferred sources first. Files of the catalogue by public version.
        places: URLs of the sources that know the project, without credentials.
        has_variants: whether any file is a variant wheel.
        warnings: its status, if it is archived, deprecated or quarantined (PEP 792); projects with
            builds of it that no source has.
        entry: of the catalogue, None without one.
        first: sources of the files that the catalogue brings, which come before all others.
        unavailable: builds of the catalogue that cannot be had for now.
        puts_build_first: as of `PlaceReader`.
    """

    name: str
    versions: Mapping[Version, tuple[Candidate, ...]] = field(repr=False)
    places: tuple[str, ...]
    has_variants: bool
    warnings: tuple[str, ...] = ()
    entry: CatalogProject | None = None
    first: frozenset[str] = frozenset()
    unavailable: tuple[Unavailable, ...] = ()
    puts_build_first: bool = False

    @cached_property
    def published(self) -> Mapping[Version, tuple[Version, ...]]:
        """Versions as published by those of `versions`, where the catalogue has others."""
        others = {
            version: dict.fromkeys(
                candidate.version for candidate in candidates if candidate.catalog is not None
            )
            for version, candidates in self.versions.items()
        }
        return {
            version: spelled
            for version, versions in others.items()
            if (spelled := tuple(each for each in versions if each != version))
        }


class PackageFinder:
    """Finds the files of projects; safe to use from several threads.

    Attributes:
        session: fetches the pages.
        prefetcher: keeps them.
        entries: of the catalogue.
    """

    def __init__(
        self,
        session: Session,
        sources: Sources,
        prefetcher: Prefetcher | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """Set up.

        Args:
            session: fetches the pages.
            sources: the user's indexes and find-links places.
            prefetcher: keeps the pages, and fetches ahead of time; without one, nothing is
                fetched ahead.
            catalog: existing builds that count as variants; not used where *sources* forbids
                indexes.
        """
        self.session = session
        self.prefetcher = prefetcher or Prefetcher(0)
        self._links = tuple(map(session.add_index, sources.links))
        indexes = () if sources.no_index else _indexes(sources)
        self._indexes = tuple(f"{session.add_index(url).rstrip('/')}/" for url in indexes)
        self._all = sources.index_strategy == user_preferences.BEST_MATCH
        self.entries = UserEntries(None if sources.no_index else catalog, self.places)

    @property
    def places(self) -> tuple[str, ...]:
        """URLs of all sources, without credentials."""
        return (*self._links, *self._indexes)

    def start(self, name: str) -> None:
        """Begin to find the project *name* in a thread."""
        self.prefetcher.start(("project", name), lambda: self._find(name))

    def project(self, name: str) -> Project:
        """Return all files of the project *name* (normalized); no files if no source has it.

        Raises:
            PackageIndexError: a source cannot be read.
        """
        return self.prefetcher.result(("project", name), lambda: self._find(name))

    @property
    def has_catalog(self) -> bool:
        """Whether existing builds count as variants."""
        return self.entries.catalog is not None

    def puts_build_first(self, name: str) -> bool:
        """Return whether the catalogue wants a build of *name* before newer versions."""
        return self.entries.entry(name) is not None and self.project(name).puts_build_first

    def lack(self, name: str, version: Version) -> str:
        """Say that *version* of the project *name* has no variants to choose among."""
        project = self.project(name)
        with_variants = [
            release
            for release, candidates in project.versions.items()
            if any(candidate.label is not None for candidate in candidates)
        ]
        older = (each for each in with_variants if each < version and not each.is_prerelease)
        return catalogs.no_variants(
            name,
            version,
            project.places,
            older=next(older, None),
            other_platforms=version in with_variants,
            asked_catalog=self.has_catalog,
        )

    def _find(self, name: str) -> Project:
        entry = self.entries.entry(name)
        if entry is None:
            own = self._own(name)
            return _project(name, own.files(name), own.sources, own.warnings)
        return self._described(name, entry)

    def _described(self, name: str, entry: CatalogProject) -> Project:
        """Return all files of a project that the catalogue describes."""
        reader: PlaceReader[At] = PlaceReader(entry)
        for page in reader.pages:
            self.prefetcher.start(("catalog", page.url), partial(self._placed, entry, page))
        for target in entry.targets:
            self.prefetcher.start(("own", target), partial(self._own, target))
        own = self._own(name)
        for page in reader.pages:
            self._read_place(reader, page)
        targets: dict[str, list[Listed[At]]] = {}
        warnings = list(own.warnings)
        for target in entry.targets:
            try:
                find = partial(self._own, target)
                targets[target] = self.prefetcher.result(("own", target), find).listed()
            except PackageIndexError as error:
                reader.fail_target(target, str(error))
                continue
            if not targets[target]:
                warnings.append(
                    f"{name}: {target}, which has builds of it, is not found on "
                    f"{', '.join(self.places) or 'any index'}"
                )
        added: dict[Version, list[Candidate]] = {}
        variant_wheels: dict[str, list[PageFile]] = {}
        others: list[Listed[At]] = []
        if not self._all and reader.has_placeholders_alone(own.listed()):
            try:  # those that are not asked for what is taken
                others = self._own(name, everywhere=True).listed()
            except PackageIndexError as error:
                reader.fail_others(str(error))
        for file in catalog_files(entry, reader.files(own.listed(), targets, others)):
            if isinstance(file, CatalogFile):
                candidate = Candidate(name, file.version, entry.source, file)
                added.setdefault(file.published.version, []).append(candidate)
            else:
                variant_wheels.setdefault(file.place, []).append(file)
        for place, wheels in variant_wheels.items():
            for version, group in by_version(wheels, name).get(name, {}).items():
                added[version] = group.candidates(name, version, place)
        versions = own.files(name, reader.builds)
        for version, files in added.items():
            versions[version] = [*files, *versions.get(version, ())]
        sources = [*own.sources, *(without_userinfo(page.url) for page in reader.pages)]
        project = _project(name, versions, sources, warnings)
        logger.debug(
            "The catalogue has %d builds of project %s, of %d versions",
            sum(map(len, added.values())),
            name,
            len(added),
        )
        first = frozenset((entry.source, *variant_wheels))
        project = replace(project, entry=entry, first=first, unavailable=reader.unavailable)
        return replace(project, puts_build_first=reader.puts_build_first)

    def _read_place(self, reader: PlaceReader[At], page: PlacePage) -> None:
        """Pass on what *page* lists, or why it cannot be read."""
        find = partial(self._placed, reader.entry, page)
        try:
            files = self.prefetcher.result(("catalog", page.url), find).files
        except PackageIndexError as error:
            logger.debug("Skipping a page of the catalogue: %s", error)
            reader.fail(page, error.problem_at(page.url), missing=isinstance(error, NotFound))
        else:
            reader.answer(page, listed(files, without_userinfo(page.url), at=page.file_at))

    def _placed(self, entry: CatalogProject, page: PlacePage) -> Page:
        if entry.source.startswith(("http://", "https://")):
            self.session.addresses.allow_links(entry.source, (page.url,))
        else:
            self.session.add_index(page.url)
        return self.session.fetch_page(page.url, entry.name, seconds=_PLACE_SECONDS, is_place=True)

    def _own(self, name: str, *, everywhere: bool = False) -> _Own:
        """Return the project *name* as the user's own sources have it, or all of them together."""
        own = _Own()
        for position, url in enumerate(self._links):
            by_project = self.prefetcher.result(("links", url), partial(self._linked, url))
            if name in by_project:
                own.groups.append(_Group(url, by_project[name], position))
        for position, index in enumerate(self._indexes, len(self._links)):
            page = self._page(index, name)
            if page is None:
                logger.debug("Project %s is not on %s", name, redacted(index))
                continue
            source = f"{index}{name}/"
            versions = by_version(page.files, name).get(name, {})
            own.groups.append(_Group(source, versions, position))
            logger.debug(
                "Found %d files of %d versions of project %s on %s",
                len(page.files), len(versions), name, redacted(source),
            )  # fmt: skip
            if page.status != "active":
                reason = f": {page.status_reason}" if page.status_reason else ""
                own.warnings.append(f"{name} is {page.status} on {source}{reason}")
            if not (self._all or everywhere):
                break
        return own

    def _page(self, index: str, name: str) -> Page | None:
        try:
            if safe_files.is_local(index):
                return self._local_page(index, name)
            return self.session.fetch_page(f"{index}{name}/", name)
        except NotFound:
            return None

    def _local_page(self, index: str, name: str) -> Page:
        page = self.session.fetch_page
        try:
            return page(f"{index}{name}/index.v1_json", name, content_type=JSON)
        except NotFound:
            return page(f"{index}{name}/index.html", name)

    def _linked(self, url: str) -> dict[str, dict[Version, VersionFiles]]:
        if safe_files.is_local(url) and safe_files.local_path(url).is_dir():
            return by_version(directory_files(safe_files.local_path(url)))
        if safe_files.is_local(url) and not url.endswith((".html", ".htm")):
            return by_version((PageFile(wheel_labels.filename_of_url(url), url),))
        return by_version(self.session.fetch_page(url).files)


def catalog_of(
    session: Session,
    preferences: Preferences,
    left_out: Callable[[str], object] = lambda _: None,
) -> Catalog | None:
    """Return the catalogue that *preferences* name, fetched with *session*; None for none.

    Args:
        session: fetches it.
        preferences: of the user.
        left_out: hears in a line why one at a URL is left out, if the user allows that.

    Raises:
        CatalogError: it cannot be read, or its server does not give it.
    """
    if preferences.catalog is None:
        return None
    for url in preferences.catalog_mirrors.values():
        session.add_index(url)

    def fetch(url: str) -> bytes:
        session.add_index(url)
        return session.fetch(url, limit=limits.CATALOG_BYTES).body

    try:
        return catalogs.preferred_catalog(preferences, fetch)
    except PackageIndexError as error:
        problem = f"cannot be fetched: {error.problem}"
        failed = CatalogError(str(preferences.catalog), "", problem)
    except CatalogError as error:
        failed = error
    left_out(catalogs.without_catalog(preferences, failed))
    return None


class _Group(NamedTuple):
    """Files of a project in one of the user's own sources.

    Attributes:
        source: its URL.
        versions: the files by version.
        position: of the source, in the order in which they are asked.
    """

    source: str
    versions: dict[Version, VersionFiles]
    position: int


@dataclass(slots=True)
class _Own:
    """Files of a project in the user's own sources.

    Attributes:
        groups: by source.
        warnings: see `Project`.
    """

    groups: list[_Group] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def sources(self) -> list[str]:
        """URLs of the sources that know the project."""
        return [group.source for group in self.groups]

    def files(
        self, name: str, builds: frozenset[str] = frozenset()
    ) -> dict[Version, list[Candidate]]:
        """Return the files of the project by version, those of preferred sources first.

        Args:
            name: normalized name of the project.
            builds: see `PlaceReader`.
        """
        versions: dict[Version, list[Candidate]] = {}
        for source, by_number, _ in self.groups:
            for version, group in by_number.items():
                if builds:
                    group = replace(group, files=[*with_builds(group.files, builds)])
                versions.setdefault(version, []).extend(group.candidates(name, version, source))
        return versions

    def listed(self) -> list[Listed[At]]:
        """Return the files for the catalogue, those of preferred sources first."""
        return [
            item
            for source, by_number, position in self.groups
            for group in by_number.values()
            for item in listed(group.files, source, position)
        ]


def _project(
    name: str,
    versions: Mapping[Version, Sequence[Candidate]],
    sources: Sequence[str],
    warnings: Sequence[str],
) -> Project:
    ordered = {
        version: tuple(versions[version])
        for version in sorted(versions, reverse=True)
        if versions[version]
    }
    has_variants = any(
        wheel_labels.split_label(item.filename)[1] is not None
        for files in ordered.values()
        for item in files
    )
    return Project(name, ordered, tuple(sources), has_variants, tuple(warnings))


def _indexes(sources: Sources) -> tuple[str, ...]:
    """Return the indexes, most preferred first: extra ones before the main one, as uv does."""
    main = sources.index_url or PYPI
    extra = sources.indexes[1:] if sources.index_url else sources.indexes
    first = sources.indexes[0] if sources.index_url else main
    return (*extra, first)


def directory_files(folder: Path) -> Iterator[PageFile]:
    """Yield the wheels, sdists and variant metadata files of *folder*, by name ascending."""
    names = {path.name for path in folder.iterdir()}
    for name in sorted(names):
        is_file = name.endswith((".whl", wheel_labels.METADATA_SUFFIX, *SDISTS))
        if is_file and not _is_special(folder / name):
            core_metadata: dict[str, str] | None = {} if f"{name}.metadata" in names else None
            yield PageFile(name, (folder / name).as_uri(), core_metadata=core_metadata)


def _is_special(path: Path) -> bool:
    """Return whether *path* is a pipe or a device, and say once that it is ignored."""
    is_special = safe_files.is_special(path)
    if is_special:
        _say_ignored(path)
    return is_special


@cache
def _say_ignored(path: Path) -> None:
    logger.warning("Ignored %s: not a regular file", path)


def by_version(
    files: Iterable[PageFile], name: str | None = None
) -> dict[str, dict[Version, VersionFiles]]:
    """Return *files* by project and version, without those that are not distributions.

    Args:
        files: of a page.
        name: normalized name of the project of the page, None for a page with several.

    >>> from variants_index.finder import by_version
    >>> from variants_index.pages import PageFile
    >>> names = ["tool-1.0-py3-none-any-cu128.whl", "tool-1.0.tar.gz", "notes.txt"]
    >>> versions = by_version([PageFile(name, name) for name in names])["tool"]
    >>> [str(version) for version in versions]
    ['1.0']
    """
    projects: dict[str, dict[Version, VersionFiles]] = {}
    # Parsing a version takes longest, and many files have the same one.
    versions: dict[str, Version | None] = {}
    names: dict[str, str] = {}
    for file in files:
        parsed = wheel_files.parse_metadata_filename(file.filename)
        if parsed is not None:
            if name in (None, parsed[0]):
                group = projects.setdefault(parsed[0], {}).setdefault(parsed[1], VersionFiles())
                group.metadata = group.metadata or file
            continue
        project, version_text = _split(file.filename, name)
        if project not in names:
            names[project] = canonicalize_name(project)
        project = names[project]
        if not version_text or (name is not None and project != name):
            continue
        if version_text not in versions:
            versions[version_text] = wheel_files.read_version(version_text)
        version = versions[version_text]
        if version is not None:
            projects.setdefault(project, {}).setdefault(version, VersionFiles()).files.append(file)
    return projects


def _split(filename: str, name: str | None) -> tuple[str, str]:
    """Return project and version as *filename* spells them, empty if it is not a distribution."""
    if filename.endswith(".whl"):
        project, _, rest = filename.partition("-")
        version, _, tags = rest.partition("-")
        return (project, version) if tags else ("", "")
    for suffix in SDISTS:
        if filename.endswith(suffix):
            stem = filename[: -len(suffix)]
            if name is not None:  # old names have dashes in name and version
                for place, char in enumerate(stem):
                    if char == "-" and canonicalize_name(stem[:place]) == name:
                        return stem[:place], stem[place + 1 :]
            project, _, version = stem.rpartition("-")
            return project, version
    return "", ""

"""The files of projects in all sources: indexes, directories, find-links pages.

Nothing here depends on a target: one finder serves several. A page is fetched once, ahead of time
in a thread if `PackageFinder.start` was called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.model.filename import parse_metadata_filename, read_version
from pep_variants.model.label import METADATA_SUFFIX, split_label
from pep_variants.sources import BEST_MATCH, Sources
from pep_variants.urls import filename_of_url, is_local, local_path

from .errors import NotFound
from .http.session import Session
from .pages import JSON, Page, PageFile
from .prefetch import Prefetcher

PYPI = "https://pypi.org/simple/"
_SDISTS = (".tar.gz", ".zip")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file and the source that lists it.

    Attributes:
        file: its entry on the page.
        source: URL of the page or directory, without credentials.
        metadata: the ``*-variants.json`` of its version in the same source, None without one.
    """

    file: PageFile
    source: str
    metadata: PageFile | None = None


@dataclass(frozen=True)
class Project:
    """All files of a project.

    Attributes:
        name: normalized.
        versions: wheels and source distributions by version, newest version first; of a version,
            those of preferred sources first.
        places: URLs of the sources that know the project, without credentials.
        has_variants: whether any file is a variant wheel.
        warnings: its status, if it is archived, deprecated or quarantined (PEP 792).
    """

    name: str
    versions: Mapping[Version, tuple[SourceFile, ...]] = field(repr=False)
    places: tuple[str, ...]
    has_variants: bool
    warnings: tuple[str, ...] = ()


class PackageFinder:
    """Finds the files of projects; safe to use from several threads.

    Attributes:
        session: fetches the pages.
        prefetcher: keeps them.
    """

    def __init__(
        self, session: Session, sources: Sources, prefetcher: Prefetcher | None = None
    ) -> None:
        """Set up.

        Args:
            session: fetches the pages.
            sources: the user's indexes and find-links places.
            prefetcher: keeps the pages, and fetches ahead of time; without one, nothing is
                fetched ahead.
        """
        self.session = session
        self.prefetcher = prefetcher or Prefetcher(0)
        self._links = tuple(map(session.add_index, sources.links))
        indexes = () if sources.no_index else _indexes(sources)
        self._indexes = tuple(f"{session.add_index(url).rstrip('/')}/" for url in indexes)
        self._all = sources.index_strategy == BEST_MATCH

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

    def _find(self, name: str) -> Project:
        found: list[tuple[str, dict[Version, _Files]]] = []
        warnings: list[str] = []
        for url in self._links:
            by_project = self._linked_once(url)
            if name in by_project:
                found.append((url, by_project[name]))
        for index in self._indexes:
            page = self._page(index, name)
            if page is None:
                continue
            source = f"{index}{name}/"
            found.append((source, _by_version(page.files, name).get(name, {})))
            if page.status != "active":
                reason = f": {page.status_reason}" if page.status_reason else ""
                warnings.append(f"{name} is {page.status} on {source}{reason}")
            if not self._all:
                break
        versions: dict[Version, list[SourceFile]] = {}
        for source, by_version in found:
            for version, files in by_version.items():
                versions.setdefault(version, []).extend(
                    SourceFile(file, source, files.metadata) for file in files.files
                )
        ordered = {
            version: tuple(versions[version])
            for version in sorted(versions, reverse=True)
            if versions[version]
        }
        has_variants = any(
            split_label(item.file.filename)[1] is not None
            for files in ordered.values()
            for item in files
        )
        return Project(
            name, ordered, tuple(source for source, _ in found), has_variants, tuple(warnings)
        )

    def _page(self, index: str, name: str) -> Page | None:
        try:
            if is_local(index):
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

    def _linked_once(self, url: str) -> dict[str, dict[Version, _Files]]:
        return self.prefetcher.result(("links", url), lambda: self._linked(url))

    def _linked(self, url: str) -> dict[str, dict[Version, _Files]]:
        if is_local(url) and local_path(url).is_dir():
            return _by_version(_directory(url))
        if is_local(url) and not url.endswith((".html", ".htm")):
            return _by_version((_file_at(url),))
        return _by_version(self.session.fetch_page(url).files)


@dataclass(slots=True)
class _Files:
    """The files of one version in one place."""

    files: list[PageFile] = field(default_factory=list)
    metadata: PageFile | None = None


def _indexes(sources: Sources) -> tuple[str, ...]:
    """Return the indexes, most preferred first: extra ones before the main one, as uv does."""
    main = sources.index_url or PYPI
    extra = sources.indexes[1:] if sources.index_url else sources.indexes
    first = sources.indexes[0] if sources.index_url else main
    return (*extra, first)


def _directory(url: str) -> Iterable[PageFile]:
    folder = local_path(url)
    names = {path.name for path in folder.iterdir()}
    for name in sorted(names):
        if name.endswith((".whl", METADATA_SUFFIX, *_SDISTS)):
            core_metadata: dict[str, str] | None = {} if f"{name}.metadata" in names else None
            yield PageFile(name, (folder / name).as_uri(), core_metadata=core_metadata)


def _file_at(url: str) -> PageFile:
    return PageFile(filename_of_url(url), url)


def _by_version(
    files: Iterable[PageFile], name: str | None = None
) -> dict[str, dict[Version, _Files]]:
    """Return *files* by project and version, without those that are not distributions.

    Args:
        files: of a page.
        name: normalized name of the project of the page, None for a page with several.
    """
    found: dict[str, dict[Version, _Files]] = {}
    # Parsing a version takes longest, and many files have the same one.
    versions: dict[str, Version | None] = {}
    names: dict[str, str] = {}
    for file in files:
        parsed = parse_metadata_filename(file.filename)
        if parsed is not None:
            if name in (None, parsed[0]):
                group = found.setdefault(parsed[0], {}).setdefault(parsed[1], _Files())
                group.metadata = group.metadata or file
            continue
        project, version_text = _split(file.filename, name)
        if project not in names:
            names[project] = canonicalize_name(project)
        project = names[project]
        if not version_text or (name is not None and project != name):
            continue
        if version_text not in versions:
            versions[version_text] = read_version(version_text)
        version = versions[version_text]
        if version is not None:
            found.setdefault(project, {}).setdefault(version, _Files()).files.append(file)
    return found


def _split(filename: str, name: str | None) -> tuple[str, str]:
    """Return project and version as *filename* spells them, empty if it is not a distribution."""
    if filename.endswith(".whl"):
        project, _, rest = filename.partition("-")
        version, _, tags = rest.partition("-")
        return (project, version) if tags else ("", "")
    for suffix in _SDISTS:
        if filename.endswith(suffix):
            stem = filename[: -len(suffix)]
            if name is not None:  # old names have dashes in name and version
                for place, char in enumerate(stem):
                    if char == "-" and canonicalize_name(stem[:place]) == name:
                        return stem[:place], stem[place + 1 :]
            project, _, version = stem.rpartition("-")
            return project, version
    return "", ""

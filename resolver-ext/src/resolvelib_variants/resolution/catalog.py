"""Which files there are of a project, in all sources: indexes, directories, pages of links.

Nothing here depends on a target, so several can share one catalog. Pages are fetched once, in
threads where somebody said in time that he will want them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pep_variants.filename import parse_metadata_filename
from pep_variants.label import METADATA_SUFFIX, split_label
from pep_variants.plugins.sources import BEST_MATCH, Sources

from ..index.errors import NotFound
from ..index.pages import ACCEPT, JSON, Page, PageFile, read_page
from ..index.session import Session, is_local, local_path
from .ahead import Ahead

PYPI = "https://pypi.org/simple/"
MAX_PAGE = 128 * 1024 * 1024
_SDISTS = (".tar.gz", ".zip")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file with the place that lists it.

    Attributes:
        file: what the page says of it.
        source: URL of the page or directory, without credentials.
        metadata: the ``*-variants.json`` of its version in the same place, None without one.
    """

    file: PageFile
    source: str
    metadata: PageFile | None = None


@dataclass(frozen=True)
class Project:
    """All files of a project.

    Attributes:
        name: normalized.
        versions: its wheels and source distributions by version, newest version first; those of
            preferred sources come first.
        places: URLs of the sources that know the project, without credentials.
        has_variants: whether any file is a variant wheel.
        warnings: what its owner says: archived, deprecated, quarantined (PEP 792).
    """

    name: str
    versions: Mapping[Version, tuple[SourceFile, ...]] = field(repr=False)
    places: tuple[str, ...]
    has_variants: bool
    warnings: tuple[str, ...] = ()


class Catalog:
    """Finds the files of projects; safe to use from several threads."""

    def __init__(self, session: Session, sources: Sources, ahead: Ahead) -> None:
        """Set up; *ahead* is what remembers pages."""
        self._session = session
        self._ahead = ahead
        self._links = tuple(map(session.learn, sources.links))
        indexes = () if sources.no_index else _indexes(sources)
        self._indexes = tuple(f"{session.learn(url).rstrip('/')}/" for url in indexes)
        self._all = sources.index_strategy == BEST_MATCH

    @property
    def places(self) -> tuple[str, ...]:
        """URLs of all sources, without credentials."""
        return (*self._links, *self._indexes)

    def start(self, name: str) -> None:
        """Begin to look for the project *name*, in a thread."""
        self._ahead.start(("project", name), lambda: self._find(name))

    def project(self, name: str) -> Project:
        """Return all files of the project *name* (normalized); none if nobody knows it.

        Raises:
            IndexProblem: a source cannot be read.
        """
        return self._ahead.result(("project", name), lambda: self._find(name))

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
                warnings.append(f"{name} is {page.status}, says {source}{reason}")
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
            answer = self._session.fetch(
                f"{index}{name}/", limit=MAX_PAGE, accept=ACCEPT, revalidate=True
            )
        except NotFound:
            return None
        return read_page(answer.body, answer.content_type, answer.url, name)

    def _local_page(self, index: str, name: str) -> Page:
        try:
            answer = self._session.fetch(f"{index}{name}/index.v1_json", limit=MAX_PAGE)
            return read_page(answer.body, JSON, answer.url, name)
        except NotFound:
            answer = self._session.fetch(f"{index}{name}/index.html", limit=MAX_PAGE)
            return read_page(answer.body, "text/html", answer.url, name)

    def _linked_once(self, url: str) -> dict[str, dict[Version, _Files]]:
        return self._ahead.result(("links", url), lambda: self._linked(url))

    def _linked(self, url: str) -> dict[str, dict[Version, _Files]]:
        if is_local(url) and local_path(url).is_dir():
            return _by_version(_directory(url))
        if is_local(url) and not url.endswith((".html", ".htm")):
            return _by_version((_file_at(url),))
        answer = self._session.fetch(url, limit=MAX_PAGE, accept=ACCEPT, revalidate=True)
        kind = "text/html" if is_local(url) else answer.content_type
        return _by_version(read_page(answer.body, kind, answer.url).files)


@dataclass(slots=True)
class _Files:
    """The files of one version in one place."""

    files: list[PageFile] = field(default_factory=list)
    metadata: PageFile | None = None


def _indexes(sources: Sources) -> tuple[str, ...]:
    """Return the indexes, the first one counts most: extra ones before the main one, as for uv."""
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
    return PageFile(unquote(urlsplit(url).path.rpartition("/")[2]), url)


def _by_version(
    files: Iterable[PageFile], name: str | None = None
) -> dict[str, dict[Version, _Files]]:
    """Return *files* by project and version; what is no distribution is left out.

    Args:
        files: of a page.
        name: normalized name of the project that the page is about, None if it is about several.
    """
    found: dict[str, dict[Version, _Files]] = {}
    # Parsing a version takes longer than all the rest, and there are few for many files.
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
            try:
                versions[version_text] = Version(version_text)
            except InvalidVersion:
                versions[version_text] = None
        version = versions[version_text]
        if version is not None:
            found.setdefault(project, {}).setdefault(version, _Files()).files.append(file)
    return found


def _split(filename: str, name: str | None) -> tuple[str, str]:
    """Return project and version as *filename* spells them, empty if it is no distribution."""
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

"""The files that the catalogue adds to those of a project, as candidates of pip's finder.

Imports the engine: only imported if the user has a catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pip._internal.models.candidate import InstallationCandidate
from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import InvalidVersion

from pep_variants.model.label import METADATA_SUFFIX
from variants_catalog.model import CatalogProject, PublishedFile
from variants_catalog.places import Found, Listed, PlaceReader, Unavailable, own_place
from variants_catalog.store import Catalog

from .catalog_links import CatalogLink, rewritten_link
from .catalog_pages import read_pages
from .errors import logger
from .release_metadata import time_limit
from .reporter import VERBOSE

Listing = Mapping[str, Sequence[tuple[Any, int]]]
"""All links that the user's indexes have, and the position of the index, by project."""


class CatalogFiles:
    """Finds the catalogue's files of projects, for one finder.

    Attributes:
        unavailable: what cannot be had.
    """

    def __init__(
        self, catalog: Catalog, finder: Any, listing: Listing, note_metadata: Callable[[Any], None]
    ) -> None:
        """Set up.

        Args:
            catalog: the user's.
            finder: pip's ``PackageFinder``.
            listing: what pip has found, files that it does not take included; may grow.
            note_metadata: keeps a link to a file of variant metadata.
        """
        self.unavailable: list[Unavailable] = []
        self._catalog = catalog
        self._finder = finder
        self._listing = listing
        self._note_metadata = note_metadata
        self._entries: dict[str, CatalogProject | None] = {}
        self._found: dict[str, tuple[list[Any], list[Any]]] = {}
        self._hashed: set[str] = set()

    def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of the project (normalized name) that counts for this command.

        None without one, and where the user names one of its places as an index of their own.

        Raises:
            CatalogError: it cannot be read.
        """
        if project not in self._entries:
            found = self._catalog.project(project)
            own = [*self._finder.index_urls, *self._finder.find_links]
            if found is not None and (place := own_place(found, own)):
                logger.info(
                    "The catalogue is left out for %s: %s is one of your indexes; without that "
                    "index a variant is chosen",
                    project,
                    place,
                )
                found = None
            self._entries[project] = found
        return self._entries[project]

    def together(self, project: str, other: str) -> bool:
        """Return whether two projects should have the same label, see `agreement.Together`."""
        if project == other:
            return self.entry(project) is not None
        return any(
            (entry := self.entry(one)) is not None and two in entry.coherent
            for one, two in ((project, other), (other, project))
        )

    def candidates(
        self, project: str, own: list[Any], listed: Callable[[str], list[Any]], *, hashed: bool
    ) -> list[Any]:
        """Return the candidates of *project* with those of the catalogue.

        Args:
            project: normalized name.
            own: what pip found on the user's indexes.
            listed: returns what pip finds there of another project.
            hashed: the user gives hashes of its files.

        Raises:
            CatalogError: the entry cannot be read.
        """
        if any(getattr(item, "locked", False) for item in own):
            return own
        formats = self._finder.format_control.get_allowed_formats(project)
        entry = self.entry(project) if "binary" in formats else None
        if entry is None:
            return own
        known = self._found.get(project)
        if known is None or known[0] is not own:
            known = self._found[project] = (own, [*own, *self._added(entry, own, listed)])
        if not hashed:
            return known[1]
        kept = [item for item in known[1] if rewritten_link(item.link) is None]
        if len(kept) < len(known[1]) and project not in self._hashed:
            self._hashed.add(project)
            logger.info(
                "Hashes of %s are given: its builds under another name or with other dependencies "
                "are not considered",
                project,
            )
        return kept

    def installed(
        self, entry: CatalogProject, dist: Any, others: Mapping[str, Any]
    ) -> PublishedFile | None:
        """Return what a distribution is that was installed as published, None if nothing tells it.

        The local version does, or what is installed of the dependencies of an extra.

        Args:
            entry: of its project.
            dist: pip's distribution, without a ``variant.json``.
            others: all that are installed, by normalized name.
        """
        filename = f"{entry.name}-{dist.version}-py3-none-any.whl"
        marked = {item.place for item in entry.variants if item.place and item.local}
        for place in entry.places if dist.version.local else ():
            for file in entry.files(place, filename) if place in marked else ():
                return file
        own = entry.own_files(filename)
        return next((file for file in own if _has_extras(dist, file, others)), None)

    def _added(
        self, entry: CatalogProject, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        reader: PlaceReader[Any] = PlaceReader(entry)
        network, evaluator = self._finder._link_collector.session, self._evaluator(entry)
        urls = [page.url for page in reader.pages]
        pages, problems = read_pages(network, urls, time_limit(network.timeout))
        for page in reader.pages:
            if page.url in problems:
                reader.fail(page, problems[page.url])
                continue
            links = pages.get(page.url, ())
            for link in links if not page.place else ():
                if METADATA_SUFFIX in link.url:
                    self._note_metadata(link)
            reader.answer(page, [_listed(link, evaluator(link)) for link in links])
        targets = {name: self._own(name, listed(name)) for name in entry.targets}
        found = reader.files(self._own(entry.name, own), targets)
        self.unavailable += reader.unavailable
        added = [_candidate(entry, item) for item in found if item.listed.file is not None]
        if added:
            logger.log(
                VERBOSE, "The catalogue has %d files of %s: %s",
                len(added), entry.name, entry.documentation,
            )  # fmt: skip
        return added

    def _evaluator(self, entry: CatalogProject) -> Callable[[Any], Any]:
        """Return what makes pip's candidate of a link, None for one that pip does not take."""
        evaluator = self._finder.make_link_evaluator(entry.name)
        return lambda link: self._finder.get_install_candidate(evaluator, link)

    def _own(self, project: str, candidates: Iterable[Any]) -> Iterator[Listed[Any]]:
        """Yield what the user's indexes have of *project*, with pip's *candidates* of it."""
        known = {item.link.url: item for item in candidates}
        for link, position in self._listing.get(project, ()):
            yield _listed(link, known.get(link.url), position)


def _listed(link: Any, candidate: Any, position: int = 0) -> Listed[Any]:
    return Listed(link.filename, candidate, link._hashes.get("sha256"), position)


def _candidate(entry: CatalogProject, found: Found[Any]) -> Any:
    """Return pip's candidate of a file that *entry* adds."""
    candidate, file = found.listed.file, found.published
    if file is None:  # a variant wheel
        return candidate
    version = file.version if file.origin else candidate.version
    link = CatalogLink(candidate.link, entry, file, found.url)
    return InstallationCandidate(entry.name, str(version), link)


def _has_extras(dist: Any, file: PublishedFile, others: Mapping[str, Any]) -> bool:
    """Return whether what the extras of *file* add to *dist* is installed."""
    from packaging.requirements import Requirement

    if not file.requires:
        return True  # the project's own wheel is this build
    extras = Requirement(file.requires[0]).extras
    without = {str(item) for item in dist.iter_dependencies()}
    added = [item for item in dist.iter_dependencies(extras) if str(item) not in without]
    return bool(added) and all(_is_met(item, others) for item in added)


def _is_met(requirement: Any, others: Mapping[str, Any]) -> bool:
    found = others.get(canonicalize_name(requirement.name))
    try:
        return found is not None and requirement.specifier.contains(found.version, prereleases=True)
    except InvalidVersion:
        return False

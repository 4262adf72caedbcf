"""The files that the catalogue adds to those of a project, as candidates of pip's finder.

Imports the engine: only imported if the user has a catalogue.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from pip._internal.models.candidate import InstallationCandidate
from pip._internal.models.link import Link
from pip._internal.utils.urls import path_to_url
from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import InvalidVersion, Version

from pep_variants.errors import without_userinfo
from pep_variants.model.property import Properties
from variants_catalog.model import CatalogProject, PublishedFile, filled
from variants_catalog.redirect import redirect_wheel
from variants_catalog.store import Catalog

from .catalog_links import catalog_link, label_of_link, note_link
from .catalog_pages import read_pages
from .errors import logger
from .release_metadata import time_limit
from .reporter import VERBOSE


class CatalogFiles:
    """Finds the catalogue's files of projects, for one finder.

    Attributes:
        redirects: the requirements that stand for what is made here, by filename.
    """

    def __init__(self, catalog: Catalog, finder: Any) -> None:
        """Set up.

        Args:
            catalog: the user's.
            finder: pip's ``PackageFinder``.
        """
        self.redirects: dict[str, str] = {}
        self._catalog = catalog
        self._finder = finder
        self._entries: dict[str, CatalogProject | None] = {}
        self._found: dict[str, tuple[list[Any], list[Any]]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def _network(self) -> Any:
        return self._finder._link_collector.session

    def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of the project (normalized name) that counts for this command.

        None without one, and where the user names one of its places as an index of their own.

        Raises:
            CatalogError: it cannot be read.
        """
        if project not in self._entries:
            found = self._catalog.project(project)
            if found is not None and (own := self._own_place(found)):
                logger.info(
                    "The catalogue is left out for %s: %s is one of your indexes; without that "
                    "index a variant is chosen",
                    project,
                    own,
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
        self,
        project: str,
        own: list[Any],
        listed: Callable[[str], list[Any]],
        with_variants: Callable[[], Collection[Any]],
    ) -> list[Any]:
        """Return the candidates of *project* with those of the catalogue.

        Args:
            project: normalized name.
            own: what pip found on the user's indexes.
            listed: returns what pip finds there of another project.
            with_variants: returns the public versions that have variant wheels of their own.

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
            added = self._published(entry, listed, own, with_variants)
            known = self._found[project] = (own, [*own, *added])
        return known[1]

    def installed_variant(
        self, entry: CatalogProject, dist: Any, others: Mapping[str, Any]
    ) -> tuple[str, Properties] | None:
        """Return label and properties of an installed distribution, None if nothing tells them.

        The local version tells it, or what is installed of the dependencies of an extra.

        Args:
            entry: of its project.
            dist: pip's distribution.
            others: all that are installed, by normalized name.
        """
        version = dist.version
        for item in entry.variants:
            if item.place is None or not version.local or not item.local:
                continue
            if item.admits(version):
                values = item.placeholders(version)
                if values is not None:
                    return filled(item.label, values), item.properties_of(values)
        for file in entry.own_files(f"{entry.name}-{version}-py3-none-any.whl"):
            if _has_extras(dist, file, others):
                return file.label, file.properties
        return None

    def _own_place(self, entry: CatalogProject) -> str | None:
        """Return which of the entry's places the user has as an index or find-links page."""
        own = {*map(_address, self._finder.index_urls), *map(_address, self._finder.find_links)}
        pages = {_address(entry.page(place)) for place in entry.places}
        return next((place for place in entry.places if _address(place) in own), None) or next(
            iter(pages & own), None
        )

    def _published(
        self,
        entry: CatalogProject,
        listed: Callable[[str], list[Any]],
        own: list[Any],
        with_variants: Callable[[], Collection[Any]],
    ) -> list[Any]:
        places = {entry.page(place): place for place in entry.places}
        real = f"{entry.variants_index.rstrip('/')}/{entry.name}/" if entry.variants_index else ""
        urls = [*places, real] if real else [*places]
        pages, problems = read_pages(self._network, urls, time_limit(self._network.timeout))
        evaluator = self._finder.make_link_evaluator(entry.name)

        def evaluated(url: str) -> list[Any]:
            found: list[Any] = self._finder.evaluate_links(evaluator, pages[url])
            return found

        variants = [
            item for item in (evaluated(real) if real in pages else ()) if label_of_link(item.link)
        ]
        skipped = with_variants()
        added: list[Any] = []
        for url, place in places.items():
            if url not in pages:
                continue
            found = [
                (item, file)
                for item in evaluated(url)
                for file in entry.files(place, item.link.filename)
            ]
            if not found and not any(
                True for link in pages[url] for _ in entry.files(place, link.filename)
            ):
                problems[url] = "lists no such wheels"
            for item, file in found:
                if Version(str(file.version)) not in skipped:
                    note_link(item.link, entry, file, place)
                    added.append(item)
        for url, problem in problems.items():
            where = without_userinfo(url)
            logger.warning(
                "%s from %s cannot be had: %s", _what(entry, places.get(url)), where, problem
            )
        added += self._of_extras(entry, own, skipped)
        added += self._of_others(entry, listed, skipped)
        if added:
            logger.log(
                VERBOSE, "The catalogue has %d files of %s: %s",
                len(added), entry.name, entry.documentation,
            )  # fmt: skip
        return variants + added

    def _of_extras(
        self, entry: CatalogProject, own: Iterable[Any], skipped: Collection[Any]
    ) -> Iterator[Any]:
        """Yield the project's own files once more, for each variant that is one of its extras."""
        if not entry.uses_own_files:
            return
        for item in own:
            if catalog_link(item.link) is not None or _public(item) in skipped:
                continue
            for file in entry.own_files(item.link.filename):
                link = _distinct(item.link, file.label)
                note_link(link, entry, file, next(iter(file.requires), entry.name))
                yield InstallationCandidate(item.name, str(item.version), link)

    def _of_others(
        self,
        entry: CatalogProject,
        listed: Callable[[str], list[Any]],
        skipped: Collection[Any],
    ) -> Iterator[Any]:
        """Yield what stands for the files of other projects."""
        for project in entry.targets:
            for item in listed(project):
                if label_of_link(item.link) is not None or _public(item) in skipped:
                    continue
                for file in entry.redirects(item.link.filename):
                    link = self._made(entry, file, item.link)
                    note_link(link, entry, file, file.requires[0])
                    self.redirects[file.filename] = file.requires[0]
                    yield InstallationCandidate(entry.name, str(file.version), link)

    def _made(self, entry: CatalogProject, file: PublishedFile, target: Any) -> Any:
        """Write the wheel for *file*, one of the redirects; return its link."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="pep-variants-catalog-", ignore_cleanup_errors=True
            )
        data = redirect_wheel(entry, file)
        path = os.path.join(self._folder.name, file.filename)  # noqa: PTH118
        with open(path, "wb") as wheel:  # noqa: PTH123
            wheel.write(data)
        digest = hashlib.sha256(data).hexdigest()
        return Link(
            f"{path_to_url(path)}#sha256={digest}",
            comes_from=str(target.comes_from),
            requires_python=target.requires_python,
            yanked_reason=target.yanked_reason,
        )


def _what(entry: CatalogProject, place: str | None) -> str:
    if place is None:
        return f"{entry.name}: its variant wheels"
    labels = dict.fromkeys(item.label for item in entry.variants if item.place == place)
    return f"{entry.name}: {'variant' if len(labels) == 1 else 'variants'} {', '.join(labels)}"


def _distinct(link: Any, label: str) -> Any:
    """Return another link to the same file."""
    start, _, fragment = link.url.partition("#")
    parts = [*filter(None, [fragment]), f"variant={quote(label)}"]
    return Link(
        f"{start}#{'&'.join(parts)}",
        comes_from=link.comes_from,
        requires_python=link.requires_python,
        yanked_reason=link.yanked_reason,
        metadata_file_data=link.metadata_file_data,
        cache_link_parsing=link.cache_link_parsing,
        hashes=link._hashes,
    )


def _public(candidate: Any) -> Any:
    return Version(candidate.version.public)


def _address(url: str) -> str:
    """Return *url* without credentials and slash at the end, to be compared."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/").lower()


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

"""The catalogue in one pip command: opened when it is needed, and never the reason for a failure.

It adds files to those that pip's finder has of a project, and recognises installed ones. Without a
catalogue in the settings nothing of it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import PipError
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import Version

from pep_variants import labels as wheel_labels

from ._distributions import label_of, machine_of, platforms_of
from ._errors import logger
from ._guard import switch
from ._links import CatalogLink, catalog_link, index_position, placed, rewritten_link, source_of

if TYPE_CHECKING:
    from pep_variants.machines import Platform
    from pep_variants.metadata import Metadata
    from variants_catalog.catalogs import Catalog, UserEntries
    from variants_catalog.entries import CatalogProject, PublishedFile
    from variants_catalog.listings import Found, Listed, Unavailable

    from ._options import VariantOptions

_hashed: ContextVar[bool] = ContextVar("hashed", default=False)


@contextmanager
def with_hashes(given: object) -> Iterator[None]:
    """Set whether the user gives hashes of the project that pip's finder is asked for."""
    token = _hashed.set(bool(given))
    try:
        yield
    finally:
        _hashed.reset(token)


class SessionCatalog:
    """What the commands of one finder take from the catalogue.

    Attributes:
        lacking: lines about what cannot be had.
        specifiers: those of the projects that the user names, by normalized name.
    """

    def __init__(
        self,
        options: VariantOptions,
        finder: Any,
        note_metadata: Callable[[Any], None],
        present: Callable[[], Iterable[str]],
        constraint: Callable[[str], Any],
        detect: Callable[[Metadata], Platform],
    ) -> None:
        """Set up.

        Args:
            options: variant options of the command.
            finder: pip's ``PackageFinder``.
            note_metadata: keeps a link to a file of variant metadata.
            present: returns the projects that are installed.
            constraint: returns the specifier of the constraints on a project, None without any.
            detect: detection of the machine that is chosen for.
        """
        self._detect = detect
        self.specifiers: Mapping[str, Any] = {}
        self._constraint = constraint
        self._options = options
        self._finder = finder
        self._note_metadata = note_metadata
        self._opened = False
        # Names of which it is known that it has nothing to say.
        self._plain: set[str] = set()
        self._entries: UserEntries | None = None
        # All links that the user's indexes have, and the position of the index, by project.
        self._listing: dict[str, list[tuple[Any, int]]] = {}
        self._folders: dict[str, int] = {}
        # What pip found of a project, and the same with what was added.
        self._found: dict[str, tuple[list[Any], list[Any]]] = {}
        self._hashed: set[str] = set()
        self._unavailable: list[Unavailable] = []
        self._failed: set[str] = set()  # hosts of places
        self.lacking: list[str] = []
        self._asked: set[str] = set()
        # Names of wheels of the user's indexes that are variants, see `PlaceReader.builds`.
        self._builds: set[str] = set()
        self._built_first: set[str] = set()
        self._present = present
        self._families: dict[str, frozenset[str]] = {}

    @property
    def wanted(self) -> bool:
        """Whether the settings name a catalogue."""
        preferences = self._options.preferences
        return preferences is not None and preferences.catalog is not None

    def concerns(self, projects: Iterable[str]) -> bool:
        """Return whether it may say something of *projects* or of what they are builds of.

        What reads entries takes long to import: those of the catalogue that comes with the shim are
        told by their names until one is needed.
        """
        if not self.wanted or self._opened:
            return self.wanted
        names = {*projects} - self._plain
        if not names:
            return False
        from pep_variants import preferences as user_preferences
        from variants_catalog import possible_builds, project_names

        preferences = self._options.preferences
        if preferences is None or preferences.catalog != user_preferences.DEFAULT_CATALOG:
            return True
        new = frozenset(map(canonicalize_name, names))
        if project_names().isdisjoint(new) and not possible_builds(new):
            self._plain |= names
            return False
        return True

    def note_listed(self, project: str, links: Iterable[Any], page: str) -> None:
        """Keep the *links* that *page* of one of the user's indexes lists.

        The page is empty for files of ``--find-links``, which are the user's own before any index.
        """
        if self.concerns((project,)):
            position = index_position(page, self._finder.index_urls)
            found = self._listing.setdefault(canonicalize_name(project), [])
            for link in links:
                # Places of `--find-links` are before all indexes, each by itself.
                folder = position or self._folders.setdefault(source_of(link), -len(self._folders))
                found.append((link, folder))

    def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of the project that counts for this command.

        None without one, and where the user names one of its places as an index of their own.

        Raises:
            CatalogError: the catalogue cannot be read.
        """
        name = canonicalize_name(project)
        entries = self._counted(name)
        return None if entries is None else entries.entry(name)

    def candidates(
        self, project: str, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        """Return *own*, pip's candidates of *project*, with those that the catalogue adds.

        Args:
            project: its name.
            own: what pip found on the user's indexes.
            listed: returns what pip finds there of another project.

        Raises:
            CatalogError: the catalogue cannot be read.
        """
        found = self._with_added(canonicalize_name(project), own, listed)
        if found is not own:
            switch.used = True
        return found

    def note_asked(self, project: str) -> None:
        """Take note that the user names the very files of *project*, by hash or with ``===``."""
        self._asked.add(canonicalize_name(project))

    def is_build(self, link: Any) -> bool:
        """Return whether the wheel at *link*, which has no label, is a variant all the same."""
        if link is None or link.filename not in self._builds or catalog_link(link) is not None:
            return False
        return canonicalize_name(link.filename.partition("-")[0]) not in self._asked

    def together(self, project: str, other: str) -> bool:
        """Return whether two projects should have the same label, see `Together`."""
        entries = self._counted(project, other)
        return entries is not None and entries.together(project, other)

    __call__ = together

    def expected_labels(self, project: str) -> Iterator[list[str]]:
        """Yield the labels of the very builds that constraints name, see `ExpectedLabels`."""
        entry = self.entry(project)
        for name in entry.coherent if entry is not None else ():
            specifier = self._constraint(name)
            other = None if specifier is None else self.entry(name)  # that takes reading it
            if other is not None:
                yield from filter(None, [other.labels_of(specifier)])

    def family(self, project: str) -> frozenset[str]:
        """Return what is installed of the projects that should have the label of *project*."""
        if project not in self._families and self.wanted and self.entry(project) is not None:
            names, waiting = {project}, [project]
            while waiting:
                name = waiting.pop()
                found = {other for other in self._present() if self.together(name, other)} - names
                names |= found
                waiting += found
            self._families[project] = frozenset(names - {project})
        return self._families.get(project, frozenset())

    def puts_build_first(self, project: str) -> bool:
        """Return whether the catalogue wants a build for the accelerator before newer versions."""
        return canonicalize_name(project) in self._built_first

    def recognises(self, project: str) -> bool:
        """Return whether `label_of` knows every installed variant of the project."""
        entry = self.entry(project)
        return entry is not None and all(
            item.place is None or item.local is not None for item in entry.variants
        )

    def label_of(self, dist: Any, others: Any) -> str:
        """Return the label of an installed distribution, empty if it is not known.

        Args:
            dist: pip's distribution.
            others: all that are installed, by normalized name.
        """
        own = label_of(dist)
        file = None if own else self._as_published(dist, others)
        return own if file is None else file.label

    def installed(self, dists: Mapping[str, Any]) -> Iterator[tuple[str, Metadata]]:
        """Yield project and metadata of the *dists*, by name, that only the catalogue describes."""
        for name, dist in dists.items():
            metadata = self.metadata_of(dist, dists)
            if metadata is not None:
                yield name, metadata

    def metadata_of(self, dist: Any, others: Any) -> Metadata | None:
        """Return the metadata of a distribution that only the catalogue describes, else None.

        Arguments as of `label_of`.
        """
        file = None if label_of(dist) else self._as_published(dist, others)
        entry = None if file is None else self.entry(dist.canonical_name)
        return None if file is None or entry is None else entry.metadata([file])

    def release(self, project: str, version: Any) -> Any:
        """Return *version* without its local part if the catalogue has an entry of *project*."""
        return version if self.entry(project) is None else Version(version.public)

    def report_unavailable(
        self, chosen: Mapping[str, Any], wanted: Mapping[str, Any], detection: Callable[[], Any]
    ) -> None:
        """Print what cannot be had, once: a line for each host.

        Args:
            chosen: candidates by project, none if there is no solution.
            wanted: specifiers of the projects that the user named.
            detection: returns the detection of the target.
        """
        found, self._unavailable = self._unavailable, []
        if found:
            from variants_catalog import catalogs, listings

            detect, preferences = detection(), self._options.preferences
            assert preferences is not None
            found = [
                each
                for item in found
                if (entry := self.entry(item.project)) is not None
                for each in catalogs.missed_here(entry, [item], detect, preferences)
            ]

            asked = {
                name: self._admitted(name, Version(candidate.version.public), wanted.get(name))
                for name, candidate in chosen.items()
                if name in self._found
            }
            for line in map(str, listings.by_host(found, asked)):
                self._lacks(line)

    def _admitted(self, project: str, chosen: Any, specifier: Any) -> list[Any]:
        """Return *chosen* and the newer versions that *specifier* admits; None admits all."""
        from variants_catalog import listings

        versions = {Version(item.version.public) for item in self._found[project][1]}
        versions.add(Version(str(listings.FUTURE)))
        return [chosen] + [
            each
            for each in versions
            if each > chosen and (specifier is None or specifier.contains(each))
        ]

    def report_left_out(self, project: str, version: Any) -> None:
        """Print that the builds of *version* are left out by a requirement with ``===``."""
        _, found = self._found.get(project, ((), ()))
        links = (catalog_link(item.link) for item in found)
        if any(link is not None and link.version == version for link in links):
            from variants_catalog import catalogs

            logger.warning("Left out %s", catalogs.not_admitted(project, version))

    # Opening it.

    def _open(self) -> Catalog | None:
        """Return the catalogue, None with a warning if the user allows to go on without it.

        Raises:
            CatalogError: it cannot be read, or its server does not give it.
        """
        if self._finder.search_scope.no_index:
            return None
        from pip._vendor.urllib3.exceptions import HTTPError

        from pep_variants import safe_files
        from pep_variants.errors import CatalogError

        with safe_files.paused(True):
            from variants_catalog import catalogs

            from ._fetching import fetch_catalog, reason

        preferences = self._options.preferences
        assert preferences is not None
        network = self._finder._link_collector.session
        try:
            return catalogs.preferred_catalog(preferences, lambda url: fetch_catalog(network, url))
        # Errors of requests are OSErrors; those of urllib3, for bodies that break off, are not.
        except (OSError, PipError, HTTPError) as error:
            problem = f"cannot be fetched: {reason(error)}"
            failed = CatalogError(str(preferences.catalog), "", problem)
        except CatalogError as error:
            failed = error
        self._lacks(catalogs.without_catalog(preferences, failed))
        return None

    def _lacks(self, line: str) -> None:
        self.lacking.append(line)
        logger.warning("%s", line)

    def _counted(self, *projects: str) -> UserEntries | None:
        """Return the entries that count for this command, None without one of *projects*."""
        if not self._opened and self.concerns(projects):
            self._opened = True
            catalog = self._open()
            if catalog is not None:
                from variants_catalog.catalogs import UserEntries

                own = (*self._finder.index_urls, *self._finder.find_links)
                self._entries = UserEntries(catalog, own, _tell_left_out)
        return self._entries

    # Files that it adds.

    def _with_added(
        self, project: str, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        if any(getattr(item, "locked", False) for item in own):
            return own
        formats = self._finder.format_control.get_allowed_formats(project)
        entry = self.entry(project) if "binary" in formats else None
        if entry is None:
            return own
        known = self._found.get(project)
        if known is None or known[0] is not own:
            known = self._found[project] = (own, [*own, *self._added(entry, own, listed)])
        if not _hashed.get():
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

    def _added(
        self, entry: CatalogProject, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        from variants_catalog.listings import PlaceReader

        from ._fetching import read_pages, side_by_side, time_limit
        from ._reporter import VERBOSE

        finder = self._finder
        evaluator = finder.make_link_evaluator(entry.name)
        entry = self._for_machine(entry)
        reader: PlaceReader[Any] = PlaceReader(entry)
        network = finder._link_collector.session
        urls = [page.url for page in reader.pages]
        seconds = time_limit(network.timeout)
        pages, problems, missing = read_pages(network, urls, seconds, self._failed)
        for page in reader.pages:
            if page.url in problems:
                reader.fail(page, problems[page.url], missing=page.url in missing)
                continue
            links = [placed(link, page.file_at) for link in pages.get(page.url, ())]
            for link in links if not page.place else ():
                if wheel_labels.METADATA_SUFFIX in link.url:
                    self._note_metadata(link)
            # pip's candidate of a link, None for one that pip does not take.
            taken = [finder.get_install_candidate(evaluator, link) for link in links]
            reader.answer(page, map(_listed, links, taken))
        if len(entry.targets) > 1:  # pip's finder keeps what it found of each
            side_by_side(listed, entry.targets, seconds)
        targets = {name: self._own(name, listed(name)) for name in entry.targets}
        found = reader.files(self._own(entry.name, own), targets)
        self._unavailable += reader.unavailable
        self._builds |= reader.builds
        self._built_first.update([entry.name] if reader.puts_build_first else ())

        def takes(file: PublishedFile | None) -> bool:
            """Whether pip takes a wheel for any platform where the entry has it for some."""
            if file is None or not file.published.endswith("-any.whl"):
                return True
            name = wheel_labels.split_label(file.filename)[0]
            return finder.get_install_candidate(evaluator, Link(f"file:///{name}")) is not None

        added = [
            _candidate(entry, item)
            for item in found
            if item.listed.file is not None and takes(item.published)
        ]
        if added:
            logger.log(
                VERBOSE, "The catalogue has %d files of %s: %s",
                len(added), entry.name, entry.documentation,
            )  # fmt: skip
        return added

    def _for_machine(self, entry: CatalogProject) -> CatalogProject:
        """Return *entry* without the places of builds for accelerators that are not there.

        All are asked where the user names or has a build of what it belongs to.
        """
        family = (entry.name, *entry.coherent)
        wanted = [f"{self.specifiers.get(name)} {self._constraint(name)}" for name in family]
        given = {*self._options.forced, *self._present()}
        if any("+" in text for text in wanted) or not given.isdisjoint(family):
            return entry
        found = self._detect(entry.metadata([])).namespaces
        return entry.for_accelerators({name for name, each in found.items() if each.features})

    def _own(self, project: str, candidates: Iterable[Any]) -> Iterator[Listed[Any]]:
        """Yield what the user's indexes have of *project*, with pip's *candidates* of it.

        Of the same file in several places pip takes that of the last one.
        """
        known = {item.link.url: item for item in candidates}
        listing = self._listing.get(project, ())
        for link, position in sorted(listing, key=lambda item: item[1], reverse=True):
            yield _listed(link, known.get(link.url), position)

    # What is installed.

    def _as_published(self, dist: Any, others: Mapping[str, Any]) -> PublishedFile | None:
        """Return what *dist*, which has no ``variant.json``, is; None if nothing tells it.

        The local version does, or what is installed of the dependencies of an extra.
        """
        entry = self.entry(dist.canonical_name)
        if entry is None:
            return None
        from pep_variants import wheel_files
        from variants_catalog import installed_builds

        return installed_builds.installed_build(
            entry,
            Version(str(dist.version)),
            platforms_of(dist),
            dist.metadata.get_all("Requires-Dist", []),
            {name: wheel_files.read_version(str(other.version)) for name, other in others.items()},
            machine_of(self._finder),
        )


def _tell_left_out(project: str, place: str) -> None:
    logger.info(
        "The catalogue is left out for %s: %s is one of your indexes; without that index "
        "a variant is chosen",
        project,
        place,
    )


def _listed(link: Any, candidate: Any, position: int = 0) -> Listed[Any]:
    from variants_catalog.listings import Listed

    digest = link._hashes.get("sha256")
    return Listed(link.filename, candidate, digest, position, link.yanked_reason)


def _candidate(entry: CatalogProject, found: Found[Any]) -> Any:
    """Return pip's candidate of a file that *entry* adds."""
    from pip._internal.models.candidate import InstallationCandidate

    candidate, file = found.listed.file, found.published
    if file is None:  # a variant wheel
        return candidate
    version = file.version if file.origin else candidate.version
    link = CatalogLink(candidate.link, entry, file, found.url, found.yanked)
    return InstallationCandidate(entry.name, str(version), link)

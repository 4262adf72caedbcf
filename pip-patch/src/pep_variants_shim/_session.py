"""The variants of one pip command: what its finder lists, what is chosen.

A session is an attribute of the package finder of its command. It is cheap to make: the engine is
only imported when an index lists variant wheels of a project of the resolution, or when there are
variant options.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.utils import canonicalize_name

from ._catalog import SessionCatalog
from ._distributions import metadata_of, upgrades
from ._guard import switch
from ._links import Info, MetadataLinks, catalog_link, label_of_link, null_last, source_of
from ._options import Labels, VariantOptions, inherited_labels

if TYPE_CHECKING:
    from pep_variants.metadata import Metadata

    from ._candidates import CandidateOrdering
    from ._distributions import Detect
    from ._reporter import VariantReporter

_ATTRIBUTE = "_pep_variants_session"

_current: list[Session] = []
"""The session of the running command, which all threads of it share, and nested ones."""


class Session:
    """The state of one command.

    Attributes:
        finder: pip's ``PackageFinder``.
        options: variant options of the command.
        ordering: orders candidates; None until `get_ordering`.
        resolving: pip's resolver is at work. Other code that looks for candidates must not see
            variant wheels.
        labels: chosen labels by normalized project name, once pip has resolved.
        origins: name and version that publishers gave what is installed under another name, by
            the latter.
        decided: METADATA without its variant markers, by METADATA and ``variant.json`` of a wheel.
        replaced: projects that are left out for another name of them, see `same_files`.
        catalog: what the command takes from the catalogue of existing builds.
        kept: why installed builds count as fitting although no driver is seen, by project.
        excluded: labels that are left out, by project.
        leftovers: distributions to uninstall before others are installed.
        rivals: packages with the same files that will be installed beside each other.
        attempting: pip's resolver runs for a result that may be given up.
    """

    def __init__(
        self,
        options: VariantOptions,
        finder: Any,
        *,
        lists: bool = False,
        foreign: bool = False,
    ) -> None:
        """Make the session of *finder*, unless the options switch variants off.

        Args:
            options: variant options of the command.
            finder: pip's ``PackageFinder`` of the command.
            lists: the command lists versions of variant wheels and chooses none.
            foreign: the command has ``--platform``: this machine is not the target.

        Raises:
            PreferenceError: one of the options is invalid.
        """
        self.options = options
        self.finder = finder
        self.ordering: CandidateOrdering | None = None
        self.resolving = False
        self.labels: dict[str, str] = {}
        self.origins: dict[str, dict[str, str]] = {}
        self.decided: dict[tuple[bytes, bytes | None], bytes] = {}
        self.replaced: dict[str, str] = {}
        self.version_notes: dict[str, Any] = {}
        self._chosen: dict[str, str | None] = {}
        self._lists = lists
        self._foreign = foreign
        self._metadata_links: MetadataLinks = {}
        self._with_variants: set[str] = set()
        self._provider: Any = None
        self._listener: VariantReporter | None = None
        self._supposed: list[Metadata] = []
        self.kept: dict[str, str] = {}
        self.excluded: dict[str, set[str]] = {}
        self.leftovers: list[Any] = []
        self.rivals: tuple[str, ...] = ()
        self._held: Mapping[str, Any] = {}
        self.attempting = False
        self._build_labels = inherited_labels()
        self.catalog = SessionCatalog(
            options,
            finder,
            self.note_metadata,
            lambda: tuple(self.installed),
            self.constraint,
            lambda metadata: self.get_ordering().detect(metadata),
        )
        preferences = options.read_given()
        if preferences is None or preferences.use_variants:
            setattr(finder, _ATTRIBUTE, self)
            _current[:] = [self]

    # What pip's finder and resolver find.

    def start_resolving(self) -> None:
        """Let variant wheels in, and read which labels the settings files force.

        A project with a forced label is considered even if no variant wheel of it is listed.
        """
        self.resolving = True
        self._chosen.clear()
        self.options.read_files()

    def note_provider(self, provider: Any) -> None:
        """Keep pip's provider; it is extended once there are variant wheels."""
        self._provider = provider
        if self.ordering is not None:
            self.ordering.extend(provider)

    def note_metadata(self, link: Any) -> None:
        """Keep an index's link to a metadata file; nothing is fetched."""
        from pep_variants import wheel_files

        # The first one counts, as for any file that a page lists twice.
        key = source_of(link), wheel_files.parse_metadata_filename(link.filename)
        self._metadata_links.setdefault(key, link)

    def note_variants(self, project: str) -> None:
        """Keep that there are variant wheels of *project*."""
        self._with_variants.add(canonicalize_name(project))

    def with_catalog(
        self, project: str, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        """Return *own*, pip's candidates of *project*, with those of the catalogue.

        Arguments and errors as for `SessionCatalog.candidates`.
        """
        if not self.resolving or not self.catalog.wanted:
            return own
        found = self.catalog.candidates(project, own, listed)
        if found is not own:
            self._with_variants.add(canonicalize_name(project))
        return found

    def has_variants(self, project: str) -> bool:
        """Return whether pip found variant wheels of *project*, by its normalized name."""
        return project in self._with_variants

    def may_have_variants(self, project: str) -> bool:
        """Return whether the indexes or the catalogue have variants of *project*, or any is there.

        The indexes are asked if they were not yet.
        """
        if project in self.labels_for_build() or project in self.options.forced:
            return True
        if self.catalog.wanted and self.catalog.entry(project) is not None:
            return True
        self.finder.find_all_candidates(project)
        return self.has_variants(project)

    def lists_variants(self) -> bool:
        """Return whether code other than the resolver sees variant wheels.

        Programs that use parts of pip cannot rank them, and neither can the legacy resolver.
        """
        return self._lists and self.options.read_settings().use_variants

    def chooses_of(self, projects: Iterable[str]) -> bool:
        """Return whether there is something of variants to choose for *projects*."""
        return self.ordering is not None or self.catalog.concerns(projects)

    # Ordering.

    def get_ordering(self) -> CandidateOrdering:
        """Return what orders candidates; import the engine and detect with the first call.

        Raises:
            PreferenceError: the settings are invalid.
        """
        if self.ordering is None:
            from pep_variants import safe_files

            # Few of the new objects are garbage, and pip's are many.
            with safe_files.paused(True):
                from ._candidates import CandidateOrdering, Supposed, detect_for

            preferences = self.options.read_settings()
            self.options.warn()
            self.ordering = CandidateOrdering(
                self._metadata_links,
                network=self.network,
                detect=Supposed(
                    detect_for(preferences, self.finder, foreign=self._foreign),
                    self._supposed,
                    self._invisible_builds,
                ),
                preferences=preferences,
                provider=lambda: self._provider,
                catalog=self.catalog,
                listener=self._listener,
            )
            self._listener = self.ordering.listener
            self.ordering.variants.excluded = self.excluded
            if self._provider is not None:
                self.ordering.extend(self._provider)
        return self.ordering

    def suppose(self, dists: Iterable[Any]) -> None:
        """Judge variants anew, for a machine that has what the installed *dists* need."""
        found = (self.metadata_of(dist) for dist in dists)
        self._supposed += [metadata for metadata in found if metadata is not None]
        self.ordering = None

    def exclude(self, project: str, label: str) -> None:
        """Judge variants anew, without a label of a project."""
        self.excluded.setdefault(project, set()).add(label)
        self.ordering = None

    def ordered(self, project: str, infos: Iterator[Info], installed: Any) -> Iterator[Info]:
        """Return pip's candidate infos of *project* with variants filtered and ordered.

        Arguments as of `CandidateOrdering.ordered`.
        """
        if project in self._held:
            held = self.catalog.release(project, self._held[project])
            infos = (info for info in infos if self.catalog.release(project, info[0]) == held)
        forced = project in self.options.forced
        if project not in self._with_variants and not forced:
            return infos
        ordering = self.get_ordering()
        if project in self._build_labels and not forced:
            infos = iter(ordering.only_label(project, [*infos], *self._build_labels[project]))
        return ordering.ordered(project, null_last([*infos], self.finder.index_urls), installed)

    @contextmanager
    def holding(self, versions: Mapping[str, Any]) -> Iterator[None]:
        """Offer only one version of some projects; *versions* by normalized name."""
        before, self._held = self._held, versions
        try:
            yield
        finally:
            self._held = before

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Have nothing said of a result that may be given up."""
        self.attempting = True
        if self._listener is not None:
            self._listener.is_muted = True
        try:
            yield
        finally:
            self.attempting = False
            if self._listener is not None:
                self._listener.is_muted = False

    @property
    def asked_for(self) -> frozenset[str]:
        """Normalized names of what the user asks for."""
        names = () if self._provider is None else self._provider._user_requested
        return frozenset(canonicalize_name(name.partition("[")[0]) for name in names)

    def upgrades(self, project: str) -> bool:
        """Return whether pip upgrades an installed project where it can."""
        return self._provider is not None and upgrades(self._provider, project)

    def constraint(self, project: str) -> Any:
        """Return the specifier of the constraints on a project, None without any."""
        found = None if self._provider is None else self._provider._constraints.get(project)
        return None if found is None else found.specifier

    # Outcome.

    def check_sources(self) -> None:
        """Check that nothing was lacking for what is going to be locked.

        Raises:
            InstallationError: something was.
        """
        lacking = [*self.catalog.lacking, *(self._listener.lacking if self._listener else ())]
        if lacking and not self.options.read_settings().allow_missing_sources:
            text = f"Nothing is locked: {lacking[0]}; --allow-missing-sources goes on without it"
            raise InstallationError(text)

    def note_chosen(self, project: str, link: Any) -> None:
        """Keep which file is going to be installed; *link* is None for no file of an index."""
        label = None if link is None else label_of_link(link)
        known = catalog_link(link)
        if known is not None and known.origin:
            self.origins[project] = known.origin
        if label is not None:
            self.labels[project] = label
        if label is not None or project in self._with_variants:
            self._chosen[project] = label

    def of_chosen(self, project: str, candidates: list[Any]) -> list[Any]:
        """Return those of pip's candidates that are of the chosen variant; all without a choice.

        For programs that write hashes of what pip has resolved to, such as pip-compile: they list
        the dependencies of the chosen variant, so no other variant may be installed with them.
        """
        name = canonicalize_name(project)
        if name not in self._chosen:
            return candidates
        label = self._chosen[name]
        return [item for item in candidates if label_of_link(item.link) == label]

    def labels_for_build(self) -> Labels:
        """Return the variants that are installed where the command installs, for a build.

        In a build itself, also those where its own command installs.
        """
        dists = self.installed.items()
        found = {name: (str(dist.version), self.label_of(dist)) for name, dist in dists}
        return {**self._build_labels, **{name: item for name, item in found.items() if item[1]}}

    def label_of(self, dist: Any) -> str:
        """Return the label of an installed distribution, empty if it is not a variant."""
        return self.catalog.label_of(dist, self.installed)

    def metadata_of(self, dist: Any) -> Metadata | None:
        """Return the metadata of an installed variant, None if it is none that is known."""
        return metadata_of(dist) or self.catalog.metadata_of(dist, self.installed)

    def is_accelerated(self, link: Any) -> bool:
        """Return whether the file at *link*, which was chosen, is a build for an accelerator."""
        return self.ordering is not None and self.ordering.is_accelerated(link)

    def _invisible_builds(self, detect: Detect) -> list[Metadata]:
        """Return the installed builds for accelerators of which only the driver is invisible.

        None where *detect* finds any accelerator, and for a machine that the user describes.
        """
        from pep_variants import machines
        from pep_variants import selection as wheel_selection
        from pep_variants.machines import Surroundings

        if self.options.describes:
            return []
        builds: list[tuple[Any, Metadata, list[str]]] = []
        for dist in self.installed.values():
            metadata = self.metadata_of(dist)
            if metadata is not None and len(metadata.variants) == 1:
                (properties,) = metadata.variants.values()
                builds.append(
                    (dist, metadata, sorted(properties.keys() & machines.ACCELERATORS.keys()))
                )
        builds = [item for item in builds if item[2]]
        if not builds or wheel_selection.has_accelerator(detect):
            return []
        around = Surroundings.of(os.environ)
        found = []
        for dist, metadata, namespaces in builds:
            for namespace in namespaces:
                reason = machines.why_invisible(around, namespace)
                if reason:
                    found.append(metadata)
                    self.kept[dist.canonical_name] = (
                        f"{dist.canonical_name} {dist.version} is installed as variant "
                        f"{next(iter(metadata.variants))}, and builds for it are kept: {reason} "
                        f"(--variant-exclude {namespace} takes others)"
                    )
                    break
        return found

    @property
    def installed(self) -> Mapping[str, Any]:
        """What is installed where the command installs, by normalized name."""
        if self._provider is None:
            return {}
        found: Mapping[str, Any] = self._provider._factory._installed_dists
        return found

    @property
    def network(self) -> Any:
        """Pip's network session."""
        return self.finder._link_collector.session


def session_of(finder: object) -> Session | None:
    """Return the session of *finder*; None for finders of commands that take no variants."""
    return getattr(finder, _ATTRIBUTE, None) if switch.on else None


def current_session() -> Session | None:
    """Return the session of the running command, None if variants are switched off."""
    return last_session() if switch.on else None


def last_session() -> Session | None:
    """Return the session of the running command, also after variants were switched off."""
    return _current[-1] if _current else None


@contextmanager
def nested_session() -> Iterator[None]:
    """Give build requirements that are resolved in the middle of a resolution their own session.

    It has the options of the command, and the links to metadata files, because pip's finder reads
    each page once. Choices are its own.
    """
    session = current_session()
    if session is None:
        yield
        return
    inner = copy.copy(session)
    inner.labels, inner.origins, inner._chosen, inner.version_notes = {}, {}, {}, {}
    inner.decided = {}
    session.options.builds = True
    inner._build_labels = session.labels_for_build()
    inner.ordering = inner._provider = None
    setattr(session.finder, _ATTRIBUTE, inner)
    _current.append(inner)
    try:
        yield
    finally:
        _current.pop()
        setattr(session.finder, _ATTRIBUTE, session)

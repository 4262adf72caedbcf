"""The order of pip's candidate infos where a project has variant wheels, and checks of wheels.

Imports the engine: only imported when a command finds variant wheels.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from sys import version_info
from typing import TYPE_CHECKING, Any

from pip._internal.models.link import Link

from pep_variants import labels as wheel_labels
from pep_variants import machines, markers
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.errors import MetadataError, NoSuchVariant, VariantError
from pep_variants.machines import Detector, Platform, Support
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import File
from resolvelib_variants.interfaces import VersionOrder
from resolvelib_variants.ordering import VariantOrdering

from ._catalog import SessionCatalog
from ._distributions import context_of
from ._guard import Original, guarded
from ._links import (
    Info,
    MetadataLinks,
    VariantVersion,
    catalog_first,
    catalog_link,
    label_in,
    label_of_link,
    link_of,
    source_of,
)
from ._pip_provider import PipInstalled, extend
from ._release_metadata import InfoFiles
from ._reporter import VariantReporter

if TYPE_CHECKING:
    from pep_variants.lock_entries import GroupChoice, LockChoice
    from pep_variants.preferences import Sources
    from pep_variants.selection import Advice, VersionNote
    from variants_plugins.runner import PluginRunner

    from ._distributions import Detect


class CandidateOrdering:
    """Filters and orders candidate infos with the resolver extension, for one resolution.

    Attributes:
        detect: detection of the target.
        preferences: of the user.
        variants: the resolver extension's, which has decided about versions.
        listener: hears what is decided.
    """

    def __init__(
        self,
        links: MetadataLinks,
        *,
        network: Any,
        detect: Detect,
        preferences: Preferences,
        provider: Callable[[], Any] = lambda: None,
        catalog: SessionCatalog,
        listener: VariantReporter | None = None,
    ) -> None:
        """Set up.

        Args:
            links: links to metadata files; may grow.
            network: pip's network session.
            detect: detection of the target.
            preferences: of the user.
            provider: returns the provider of pip's resolver, once that has one.
            catalog: what the command takes from the catalogue.
            listener: of an earlier ordering of the command, None without one.
        """
        self.detect = detect
        self.preferences = preferences
        self._files = InfoFiles(links, network, catalog.is_build)
        self._provider = provider
        self._installed = PipInstalled(
            provider, catalog.installed, catalog.family if preferences.switch else None
        )
        self.listener = listener or VariantReporter()
        self.variants: VariantOrdering[Info] = VariantOrdering(
            self._files,
            platform=detect,
            preferences=preferences,
            listener=self.listener,
            installed=self._installed,
            together=catalog if catalog.wanted else None,
            version_order=VersionOrder(catalog.puts_build_first, self._floor),
            confirmed=lambda _, candidate: self.report(link_of(candidate)),
        )
        # By project: what its requirements admit, as pip listed it last.
        self._admitted: dict[str, list[Info]] = {}
        # Project and info of the variants offered to pip, by URL.
        self._offered: dict[str, tuple[str, Info]] = {}
        # What lock files say of wheels, by filename: nothing else is considered for their projects.
        self._locked: dict[str, LockChoice] = {}
        self._grouped: frozenset[str] = frozenset()
        # Dependencies with variant markers, by the URL of the wheel that has them.
        self._conditional: dict[str, tuple[str, ...]] = {}

    def extend(self, provider: Any) -> None:
        """Have the resolver extension extend pip's *provider*."""
        extend(provider, self.variants, self._files)

    def repeat(self, staying: Collection[str]) -> None:
        """Prepare for another resolution, in which other distributions count as installed.

        Args:
            staying: installed projects that it will not replace.
        """
        self._installed.staying = staying
        self.variants.forget_installed()

    def ordered(self, project: str, infos: list[Info], installed: Any) -> Iterator[Info]:
        """Yield *infos* in order of preference, variants with a `VariantVersion`.

        Args:
            project: normalized name.
            infos: that pip has of it.
            installed: version of the installed candidate that pip offers beside them, or None.
        """
        given = catalog_first(infos)
        if project in self._grouped or (
            given and all(link_of(info).filename in self._locked for info in given)
        ):
            yield from given  # selected from the lock file already
            return
        self._admitted[project] = given
        self._files.note(project, given)
        seen: set[str] = set()
        for info in self.variants.arrange(project, given):
            link = link_of(info)
            if self.variants.provisional(project, info):
                self._offered[link.url] = project, info
                # Different from that of the same variant, which may be offered later.
                text = f"{link.filename}, provisional"
                yield self._offered_version(project, info, installed, text), info[1]
            elif self.variants.selection(project, info) is None:
                yield info
            else:
                self._offered[link.url] = project, info
                # Offered again, after others: to pip another candidate.
                text = f"{link.filename}, again" if link.url in seen else label_in(info) or ""
                seen.add(link.url)
                version = self._offered_version(project, info, installed, text)
                yield version, self._reporting(project, info)

    def only_label(self, project: str, infos: list[Info], version: str, label: str) -> list[Info]:
        """Return *infos* with only *label* of *version*; unchanged if it does not exist or fit."""
        rest = [info for info in infos if str(info[0]) != version]
        own = [info for info in infos if str(info[0]) == version and label_in(info) == label]
        self._files.note(project, infos)
        try:
            fits = any(True for _ in self.variants.arrange(project, own, complete=False))
        except VariantError:
            fits = False  # `ordered` reports it
        if not fits:
            return infos
        # At the place of the other labels of that version.
        place = next(number for number, info in enumerate(infos) if str(info[0]) == version)
        return [*rest[:place], *own, *rest[place:]]

    def note_conditional(self, link: Any, requires: tuple[str, ...]) -> None:
        """Keep the dependencies with variant markers of the file at *link*."""
        self._conditional[link.url] = requires

    def required_by_marker(self, causes: Iterable[Any]) -> list[str]:
        """Return which *causes* of a conflict are dependencies with a variant marker."""
        found: dict[tuple[str, str], str] = {}  # only the newest version of each
        for requirement, parent in causes:
            link = None if parent is None else parent.source_link
            if link is None or link.url not in self._offered:
                continue
            project, info = self._offered[link.url]
            selection = self.variants.selection(project, info)
            if selection is None:
                continue
            requires = self._conditional.get(link.url, ())
            file = File(link.filename, source_of(link), info)
            wanted = str(requirement.project_name)
            for text in wheel_selection.required_by_marker(
                project, info[0], selection, file, requires, wanted
            ):
                found.setdefault((project, wanted), text)
        return list(found.values())

    def context(self, link: Any, variant_json: bytes | None, *, values: bool) -> VariantContext:
        """Return the context for markers of the file at *link*.

        Args:
            link: pip's link of the file.
            variant_json: the file in the wheel, None without one.
            values: whether a marker depends on which of the values are supported.
        """
        known = self._offered.get(link.url)
        if known is not None:
            return self.variants.context(*known)
        if label_of_link(link) is None:
            return markers.NON_VARIANT
        return context_of(variant_json, self.detect, values=values)

    def check(self, link: Any, label: str, read_text: Callable[[str], str]) -> None:
        """Check that the wheel at *link* has the metadata that the index promised, and fits.

        Args:
            link: pip's link of the file.
            label: the label in its name.
            read_text: reads a file of the wheel's dist-info; raises FileNotFoundError.

        Raises:
            VariantError: it has other metadata, or does not fit.
        """
        source = str(link.url_without_fragment)
        try:
            text = read_text(wheel_labels.VARIANT_FILE)
        except FileNotFoundError:
            problem = f"is named a variant wheel, but has no {wheel_labels.VARIANT_FILE}"
            raise MetadataError(source, "", problem) from None
        found = variant_metadata.read_metadata(text, f"{source}: {wheel_labels.VARIANT_FILE}")
        known = self._offered.get(link.url)
        if known is not None:
            selection = self.variants.selection(*known)
            ranking = selection.rankings.get(source_of(link)) if selection else None
            if ranking is not None:
                variant_metadata.check_promise(ranking.metadata, found, label)
            return
        locked = self._locked.get(link.filename)
        promised = locked.metadata if locked is not None else None
        variant_metadata.check_promise(promised or found, found, label)
        # The resolution considers what a wheel is built against.
        platform = wheel_selection.supporting(self.detect(found), found)
        ranking = wheel_selection.rank(found, platform, self.preferences)
        if label not in ranking.positions:
            reasons = "; ".join(wheel_selection.why_not(ranking, label))
            raise NoSuchVariant(f"{link.filename} does not fit this machine: {reasons}")

    def document(self, url: str) -> Mapping[str, Any] | None:
        """Return the variant metadata of the wheel at *url* as the index or lock file has it.

        That is the index's metadata file, or else the wheel's ``variant.json``. None for a wheel
        that was not chosen among variants.

        Raises:
            VariantError: the file cannot be read any more.
        """
        for link, (project, info) in self._offered.items():
            if link.partition("#")[0] == url:
                tree: Mapping[str, Any] = json.loads(self._files.document(project, info))
                return tree
        locked = self._locked.get(Link(url).filename)
        return None if locked is None else locked.table

    def note_group(self, choice: GroupChoice) -> None:
        """Report and keep which dependency group of a lock file was selected."""
        self.listener.grouped(choice)
        self._grouped |= choice.projects

    def note_locked(self, choice: LockChoice) -> None:
        """Report and keep what was selected from a lock file."""
        self.listener.locked(choice)
        if choice.wheel is not None and choice.metadata is not None:
            place = str(choice.wheel.get("path") or choice.wheel.get("url") or "")
            self._locked[Link(place.replace("\\", "/")).filename] = choice

    def advice(
        self, project: str, version: Any, installed: str | None, candidates: Iterable[Any]
    ) -> Advice | None:
        """Return what is better than the installed build, None for nothing.

        Args:
            project: normalized name.
            version: that is installed, the public one of a project in the catalogue.
            installed: label that is installed, None for the non-variant wheel.
            candidates: of pip's finder, all files of all versions that may be better.
        """
        infos: list[Info] = catalog_first(
            [
                (item.version, functools.partial(_no_candidate, link=item.link))
                for item in sorted(candidates, key=lambda item: item.version, reverse=True)
            ]
        )
        self._files.note(project, infos)
        return self.variants.advice(project, version, installed, infos)

    def is_accelerated(self, link: Any) -> bool:
        """Return whether the file at *link*, which pip takes, is a build for an accelerator."""
        known = self._offered.get(link.url)
        return known is not None and self.variants.is_accelerated(*known)

    def admits_several(self, project: str) -> bool:
        """Return whether the requirements admit several versions of *project*."""
        versions = map(self._files.version, self._admitted.get(project, ()))
        first = next(versions, None)
        return any(version != first for version in versions)

    def version_note(self, project: str, link: Any) -> VersionNote | None:
        """Return what to say of the version of the file at *link*, which pip takes.

        See `VariantOrdering.version_note`.
        """
        admitted = self._admitted.get(project, [])
        taken = next((info for info in admitted if link_of(info).url == link.url), None)
        if taken is None:
            return None
        return self.variants.version_note(project, taken, admitted)

    def _floor(self, project: str) -> Any:
        """Return the installed version of a project that the user does not name."""
        provider = self._provider()
        if provider is None or project in provider._user_requested:
            return None
        dist = provider._factory._installed_dists.get(project)
        return None if dist is None else dist.version

    def _offered_version(self, project: str, info: Info, installed: Any, label: str) -> Any:
        """Return the version that pip compares with the *installed* one, and with others.

        That is the installed one where it is installed, so that pip offers no other variant of it.
        Local versions of the catalogue's files tell variants apart, not older from newer. Where
        the newest build for the accelerator goes first, a newer version that is installed does not
        go before it.
        """
        version, first = self._files.version(info), self.variants.displaced.get(project)
        if installed is None:
            return VariantVersion(info[0], label)
        is_public = catalog_link(link_of(info)) is not None
        if (installed.public == str(version)) if is_public else info[0] == installed:
            return installed
        goes_first = first is not None and first.version == version != installed
        return VariantVersion(info[0], label, goes_first=goes_first)

    def report(self, link: Any) -> None:
        """Report the choice of the file at *link*, if it was chosen among variants."""
        known = self._offered.get(link.url)
        if known is not None:
            self.listener.chosen(self.variants, *known)

    def _reporting(self, project: str, info: Info) -> Callable[[], Any]:
        """Return the factory of *info*; it reports the choice when pip makes the candidate.

        A source distribution is built for that: why there is no wheel is said before it fails.
        """

        def make_candidate(original: Original) -> Any:
            if not link_of(info).filename.endswith(".whl"):
                self.listener.chosen(self.variants, project, info)
            candidate = original()
            if candidate is not None:
                self.listener.chosen(self.variants, project, info)
            return candidate

        return guarded(info[1], make_candidate)


def _no_candidate(*, link: Any) -> None:
    """Make no candidate, for infos that are only ranked."""


class Supposed:
    """Detection of a machine that, as is supposed, has what some installed builds need.

    These stay, and what is chosen has to go with them; or the driver that they need is only
    invisible.
    """

    def __init__(
        self,
        detect: Detect,
        builds: Sequence[Metadata],
        invisible: Callable[[Detect], list[Metadata]],
    ) -> None:
        """Set up.

        Args:
            detect: detection of the target.
            builds: installed builds that stay.
            invisible: returns those of which only the driver is invisible. Called at most once,
                where something is for an accelerator that is not detected.
        """
        self._detect = detect
        self._builds = [*builds]
        self._invisible = invisible
        self._looked = False

    def __call__(self, metadata: Metadata) -> Platform:
        """Return what the target supports of the namespaces of *metadata*."""
        found = self._detect(metadata)
        if not self._looked and any(
            name in machines.ACCELERATORS and not found.support(name).features
            for name in metadata.namespaces
        ):
            self._looked = True
            self._builds += self._invisible(self._detect)
        namespaces = dict(found.namespaces)
        for build in self._builds:
            for properties in build.variants.values():
                for name in (
                    properties.keys() & machines.ACCELERATORS.keys() & {*metadata.namespaces}
                ):
                    support = namespaces.get(name, Support())
                    features = {
                        feature: tuple(dict.fromkeys((*values, *support.features.get(feature, ()))))
                        for feature, values in properties[name].items()
                    }
                    merged = {**support.features, **features}
                    namespaces[name] = replace(support, features=merged, notice="")
        return replace(found, namespaces=namespaces) if self._builds else found


def detect_for(preferences: Preferences, finder: Any, *, foreign: bool) -> Detect:
    """Return the detection for a command.

    Args:
        preferences: of the user.
        finder: pip's ``PackageFinder``.
        foreign: the command has ``--platform``: this machine is not the target.

    Raises:
        PlatformFileError: the platform file is invalid.
    """

    def runner() -> PluginRunner:
        from variants_plugins.runner import PluginRunner

        return PluginRunner.of(preferences, sources_of(finder))

    environment = None
    target = finder.target_python
    if foreign or target.py_version_info[:2] != version_info[:2]:
        from pep_variants import machines

        environment = machines.target_environment(target.platforms or (), target.py_version_info)
    detector = Detector.of(preferences, runner=runner, environment=environment, here=not foreign)
    return detector.platform


def sources_of(finder: Any) -> Sources:
    """Return where plugin packages are installed from: the indexes and network settings of pip.

    pip takes the best candidate of all indexes, so ``BEST_MATCH``.
    """
    from pep_variants import preferences as user_preferences
    from pep_variants.preferences import Sources

    network = finder._link_collector.session
    urls = tuple(finder.index_urls)
    return Sources(
        index_url=urls[0] if urls else None,
        extra_index_urls=urls[1:],
        find_links=tuple(finder.find_links),
        no_index=not urls,
        index_strategy=user_preferences.BEST_MATCH,
        trusted_hosts=tuple(finder.trusted_hosts),
        # From the session: the finders of older pips do not have them.
        cert=network.verify if isinstance(network.verify, str) else None,
        client_cert=network.cert,
        proxy=getattr(network, "pip_proxy", None) or network.proxies.get("https"),
        timeout=network.timeout,
    )

"""What is installed or locked, against what the indexes have for this machine, over releases.

A build is judged by what it needs: a variant by its metadata, a publisher's wheel by the entry of
the catalogue. Nothing is resolved: each project is judged by itself, and then whether those that
belong together agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants import machines
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.errors import PluginFailed
from pep_variants.machines import Platform, Surroundings
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import Admitted, Advice, File, Selection
from variants_catalog import catalogs, installed_builds

from .._candidate import Candidate
from .._errors import PackageIndexError, Unreachable
from .._evaluator import CandidateEvaluator

if TYPE_CHECKING:
    from pep_variants.wheel_files import Installed
    from variants_catalog.entries import CatalogProject, PublishedFile
    from variants_catalog.listings import Unavailable

    from .._package_finder import PackageFinder, Project
    from ..target import Target
    from ._requirements import Requirers


@dataclass(frozen=True)
class Compared:
    """One project that is installed or locked, and what the indexes have of it.

    Attributes:
        item: what is there.
        label: of its variant, or of the build that the catalogue knows it as; None for none.
        selection: the decision about its release, None without variants.
        advice: what would be better, None for nothing.
        missed: the reason against the variant that is missed most, empty for none.
        kept: why it is kept although nothing here uses it, empty if it is not.
        unfit: why it does not fit, where nothing is known that does.
        is_listed: whether one of them has the version.
        lack: that the version has no variants, and where some are; empty if it has.
        untrusted: by requirement of a plugin that may not run, what that costs.
        warnings: what else the user should know.
        unavailable: builds of the catalogue that cannot be had for now.
        has_entry: the catalogue has an entry of the project.
        error: why it could not be judged, None if it could.
    """

    item: Installed
    label: str | None
    selection: Selection[Candidate] | None = None
    advice: Advice | None = None
    missed: str = ""
    kept: str = ""
    unfit: tuple[str, ...] = ()
    is_listed: bool = True
    lack: str = ""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    has_entry: bool = False
    error: Exception | None = None

    @property
    def name(self) -> str:
        """Project and version."""
        return f"{self.item.project} {self.item.version}"

    @property
    def release(self) -> Version:
        """The version that the indexes have it as; the catalogue knows builds by the public one."""
        return Version(self.item.version.public) if self.has_entry else self.item.version

    @property
    def now(self) -> str | None:
        """Label of what would be chosen of the release now, None for a non-variant file."""
        selection = self.selection
        chosen = None if selection is None else selection.chosen
        if selection is None or chosen is None or chosen.label is None:
            return None
        ranking = selection.rankings.get(chosen.source)
        return chosen.label if ranking is None else ranking.metadata.label_of(chosen.label)

    @property
    def labels(self) -> list[str | None]:
        """Labels of what fits of the release, best first."""
        selection = self.selection
        return [] if selection is None else list(dict.fromkeys(
            file.label if file.label is None or file.source not in selection.rankings
            else selection.rankings[file.source].metadata.label_of(file.label)
            for file in selection.files
        ))  # fmt: skip


class Comparison:
    """Compares what is there with what a finder finds for a machine.

    Attributes:
        finder: of the indexes.
    """

    def __init__(
        self,
        finder: PackageFinder,
        target: Target,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences,
        requirers: Requirers,
        surroundings: Surroundings | None = None,
    ) -> None:
        """Set up.

        Args:
            finder: of the indexes.
            target: the machine and Python.
            platform: gives the supported values for metadata, e.g. `Detector.platform`.
            preferences: of the user.
            requirers: what is installed.
            surroundings: of this machine, None if another one is described.
        """
        self.finder = finder
        self._preferences = preferences
        self._requirers = requirers
        self._surroundings = surroundings
        self._detect = platform
        self._evaluator = CandidateEvaluator(finder, target)
        self._machine = target.tags[0].platform

    def compare(self, item: Installed) -> Compared:
        """Return what the indexes have of the project of *item*.

        Raises:
            PackageIndexError: an index does not answer.
            VariantError: the catalogue or the machine cannot be read.
        """
        project = self.finder.project(item.project)
        entry = self.finder.entries.entry(item.project)
        build = None if item.label or entry is None else self._build(entry, item)
        found = Compared(
            item,
            item.label if build is None else build.label,
            warnings=project.warnings,
            has_entry=entry is not None,
        )
        try:
            found = replace(found, unavailable=self._missed(project))
        except PluginFailed as error:
            return replace(found, unavailable=project.unavailable, error=error)
        release = found.release
        found = replace(found, is_listed=release in project.versions)
        lack = self.finder.lack(item.project, release) if found.is_listed else ""
        if not project.has_variants:
            return replace(found, lack=lack)
        admitted = list(self._admitted(item.project, release))
        try:
            advice = wheel_selection.advise_over_releases(
                item.project, release, found.label, admitted, lambda: self._has_accelerator
            )
            own = next((each.judge() for each in admitted if each.version == release), None)
        except PluginFailed as error:
            return replace(found, error=error)
        if found.unavailable:
            advice = None  # what cannot be had for now may be better than what can
        if own is None:
            return replace(found, advice=advice, lack=lack)
        for ranking in own.distinct_rankings.values() if found.label is not None else ():
            # A lock has the name of older formats for the null variant.
            found = replace(found, label=ranking.metadata.label_of(str(found.label)))
        kept = self._kept(own, advice, found.label)
        missed = ""
        is_forced = item.project in self._preferences.forced
        if advice is None and own.chosen is not None and not is_forced:
            missed = wheel_selection.why_not_better(own, own.chosen)
        return replace(
            found,
            selection=own,
            advice=None if kept else advice,
            kept=kept,
            unfit=() if advice or kept else wheel_selection.why_unfit(own, found.label),
            missed=missed,
            untrusted=_untrusted(own),
            warnings=(*found.warnings, *_warnings(item.project, release, own)),
        )

    def _missed(self, project: Project) -> tuple[Unavailable, ...]:
        """Return what cannot be had of *project* for now, and this machine could take."""
        if project.entry is None or not project.unavailable:
            return project.unavailable
        return tuple(
            catalogs.missed_here(
                project.entry, project.unavailable, self._detect, self._preferences
            )
        )

    def _build(self, entry: CatalogProject, item: Installed) -> PublishedFile | None:
        versions = {name: each.version for name, each in self._requirers.items.items()}
        return installed_builds.installed_build(
            entry, item.version, item.platforms, item.requires, versions, self._machine
        )

    def _admitted(self, project: str, release: Version) -> Iterator[Admitted]:
        """Yield what may be installed of *project*, where *release* is now, newest first."""
        fixed = user_preferences.NO_PROJECTS in self._preferences.before_version
        besides = [
            name for name in self._requirers.items if self.finder.entries.together(project, name)
        ]
        for version in self.finder.project(project).versions:
            is_own = version == release
            if not is_own and (fixed or not self._requirers.admit(project, version, besides)):
                continue
            candidates = self._evaluator.candidates(project, version, pinned=is_own)
            labels = {each.label for each in candidates if each.label is not None}
            if candidates:
                judge = cache(partial(self._judged, project, candidates))
                yield Admitted(version, labels, judge)

    def _judged(
        self, project: str, candidates: tuple[Candidate, ...]
    ) -> Selection[Candidate] | None:
        first = {each.source: each for each in reversed(candidates) if each.label is not None}
        if not first:
            return None
        return wheel_selection.select(
            [File(each.filename, each.source, each) for each in candidates],
            metadata=lambda source: self._evaluator.release_metadata(first[source]).metadata,
            platform=self._platform,
            preferences=self._preferences,
            project=project,
            builds={each.source for each in candidates if each.is_build},
        )

    def _platform(self, metadata: Metadata) -> Platform:
        def version(name: str) -> str | None:
            found = self._requirers.items.get(name)
            return None if found is None else str(found.version)

        return wheel_selection.supporting(self._detect(metadata), metadata, version)

    @cached_property
    def _has_accelerator(self) -> bool:
        return wheel_selection.has_accelerator(self._detect)

    def _kept(self, own: Selection[Candidate], advice: Advice | None, label: str | None) -> str:
        """Return why a build for an accelerator is kept that nothing shows, empty for no reason."""
        if advice is None or label is None or self._surroundings is None:
            return ""
        if advice.version is not None or wheel_selection.is_accelerated(own, own.chosen):
            return ""
        for ranking in own.distinct_rankings.values():
            needed = ranking.metadata.properties_of(label) or {}
            for namespace in needed.keys() & machines.ACCELERATORS.keys():
                if not ranking.platform.support(namespace).features:
                    return machines.why_invisible(self._surroundings, namespace)
        return ""


def compare_all(
    items: Iterable[Installed],
    comparison: Callable[[str], Comparison],
    wanted: Callable[[Installed, Comparison], bool],
    progress: Callable[[str], None] | None = None,
) -> Iterator[Compared]:
    """Yield the comparison of all *items* that are *wanted*; of the catalogue and labels first.

    An index that cannot be reached ends it: the rest is not compared.

    Args:
        items: what is installed or locked.
        comparison: returns that of a project.
        wanted: which ones are looked at.
        progress: called with what is looked at.

    Raises:
        VariantError: the catalogue or the machine cannot be read.
    """
    asked = [item for item in items if wanted(item, comparison(item.project))]
    asked.sort(key=lambda item: not is_of_interest(item, comparison(item.project)))
    for number, item in enumerate(asked):
        if progress is not None:
            progress(f"looking for {item.project}")
        try:
            yield comparison(item.project).compare(item)
        except PackageIndexError as error:
            has_entry = comparison(item.project).finder.entries.entry(item.project) is not None
            yield Compared(item, item.label, has_entry=has_entry, error=error)
            if isinstance(error, Unreachable):
                return
        if number == 0:  # the index answers
            for each in asked[1:]:
                comparison(each.project).finder.start(each.project)


def is_of_interest(item: Installed, comparison: Comparison) -> bool:
    """Return whether *item* has a variant, or the catalogue knows builds of its project."""
    return item.label is not None or comparison.finder.entries.entry(item.project) is not None


def agreed(found: Iterable[Compared], together: Callable[[str, str], bool]) -> list[list[Compared]]:
    """Return *found* in groups of projects that belong together, as the catalogue has them.

    What agrees already needs no better variant of one of them, which the others do not have.

    Args:
        found: what is there.
        together: whether two projects should have the same label.
    """
    groups: list[list[Compared]] = []
    for each in found:
        mine = [each]
        for group in [one for one in groups if any(
            together(each.item.project, other.item.project) for other in one)]:  # fmt: skip
            groups.remove(group)
            mine = [*group, *mine]
        groups.append(mine)
    return [_agreed(group) for group in groups]


def _agreed(group: list[Compared]) -> list[Compared]:
    items = {each.item.project: each.item for each in group}
    needed = [name for each in items for name in wheel_selection.required_by(items, [each])]
    group.sort(key=lambda each: (-needed.count(each.item.project), each.item.project))
    first, *others = group
    common = [label for label in first.labels if all(label in each.labels for each in others)]
    moves = any(each.advice is not None and each.advice.version is not None for each in group)
    if not others or not common or moves or any(each.label != common[0] for each in group):
        return group
    return [
        replace(each, advice=None) if each.advice and not each.advice.unfit else each
        for each in group
    ]


def _untrusted(selection: Selection[Any]) -> dict[str, str]:
    return {
        support.untrusted: support.notice
        for ranking in selection.distinct_rankings.values()
        for support in ranking.platform.namespaces.values()
        if support.untrusted
    }


def _warnings(project: str, version: Version, selection: Selection[Any]) -> Iterator[str]:
    yield from wheel_selection.problems_of(project, version, selection)
    untrusted = _untrusted(selection).values()
    for ranking in selection.distinct_rankings.values():
        for notice in wheel_selection.notices(ranking):
            if notice.actionable and not any(text in notice.text for text in untrusted):
                yield notice.text

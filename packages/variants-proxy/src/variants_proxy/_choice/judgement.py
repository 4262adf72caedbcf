"""Judgement on an installed build by what the releases of its project have for the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from packaging.version import Version

from pep_variants import machines
from pep_variants import selection as wheel_selection
from pep_variants.metadata import Properties
from pep_variants.preferences import Preferences
from pep_variants.selection import Admitted, Advice
from pep_variants.wheel_files import Installed
from variants_catalog import installed_builds

from .offers import Choice, ProjectView, VersionDecision, version_in


@dataclass(frozen=True)
class Judgement:
    """Judgement on one installed project.

    Attributes:
        installed: with label and metadata of a build that only the catalogue describes.
        release: version of that, without the local part that tells builds of the catalogue apart.
        advice: what is better, None for nothing.
        newest: the release that an upgrade takes, None if none is admitted.
        has_build: whether a release has a build for an accelerator that is here.
        older: the line about an older release that has one, where that does not go first and
            nothing is better of the installed one.
        within: what is better of the installed release, None for nothing.
    """

    installed: Installed
    release: Version
    advice: Advice | None
    newest: Version | None
    has_build: bool
    older: str = ""
    within: Advice | None = None

    @property
    def leaves_idle(self) -> bool:
        """Whether an accelerator that is here is not used, though a build for it can be had."""
        metadata, label = self.installed.metadata, str(self.installed.label)
        used = {} if metadata is None else metadata.properties_of(label) or {}
        is_used = not machines.ACCELERATORS.keys().isdisjoint(used)
        advice = self.advice
        return self.has_build and advice is not None and bool(advice.unfit or not is_used)


def judge(
    shown: ProjectView,
    installed: Installed,
    others: Mapping[str, Version],
    admits: Callable[[Version], bool],
    preferences: Preferences,
    python: str = "",
) -> Judgement:
    """Judge what is installed.

    Args:
        shown: the project, as the machine has it.
        installed: of the project.
        others: versions of everything that is installed, by normalized name.
        admits: whether the requirements admit a version.
        preferences: whether a build for the accelerator goes before newer versions.
        python: version of the Python that is installed for, empty for an unknown one.
    """
    entry = shown.found.entry
    choice = shown.choice or Choice(())
    release = installed.version
    if entry is not None:
        release = Version(installed.version.public)
        known = (
            installed_builds.installed_build(
                entry, installed.version, installed.platforms, installed.requires, others
            )
            if installed.label is None and not installed.problem
            else None
        )
        if known is not None:
            installed = replace(installed, label=known.label, metadata=entry.metadata([known]))
    admitted = [
        each.admitted
        for each in choice.decisions
        if admits(each.release.version) and _may_be_taken(each, release, python)
    ]
    ranks = {each.version: each for each in admitted}
    for version in filter(None, (version_in(offer.filename) for offer in choice.offers)):
        public = version if entry is None else Version(version.public)
        if public not in ranks and not public.is_prerelease and admits(version):
            ranks[public] = Admitted(public, (), lambda: None)
    ordered = [ranks[version] for version in sorted(ranks, reverse=True)]
    has_build = any(
        wheel_selection.is_accelerated(each.selection, each.selection.chosen)
        for each in choice.decisions
    )
    by_default = entry is not None and entry.before_version
    is_first = preferences.puts_first(shown.project, by_default=by_default)
    build = (
        wheel_selection.newest_build(shown.project, ordered, lambda: has_build)
        if is_first
        else None
    )
    finals = [each.version for each in ordered if not each.version.is_prerelease] or [*ranks]
    newest = build.version if build is not None and build.version else max(finals, default=None)
    advice = within = None
    if release in ranks:
        within, advice = (
            wheel_selection.advise_over_releases(
                shown.project, release, installed.label, releases, lambda: has_build
            )
            for releases in ([ranks[release]], ordered)
        )
        # As in pip: another release that uses the accelerator is as good as a build of this one.
        if not preferences.puts_first(shown.project, by_default=True):
            advice = within
    older = None
    if within is None and has_build and not is_first:
        until = [each for each in ordered if each.version <= release]
        older = wheel_selection.newest_build(shown.project, until, lambda: True)
    text = older.missed().text if older is not None and older.version is not None else ""
    return Judgement(installed, release, advice, newest, has_build, text, within)


def labels_like(shown: ProjectView, installed: Installed) -> dict[str, tuple[str, ...]]:
    """Return by version the label that goes with an *installed* build of another project.

    It is the same label, or one for the same accelerator and major version of its platform. Whether
    it fits the machine does not matter.
    """
    if installed.metadata is None or installed.label is None:
        return {}
    wanted = _platforms(installed.metadata.properties_of(installed.label) or {})
    found: dict[str, tuple[str, ...]] = {}
    for decision in (shown.choice or Choice(())).decisions:
        known = {
            label: properties
            for ranking in decision.selection.distinct_rankings.values()
            for label, properties in ranking.metadata.variants.items()
        }
        same = [label for label, held in known.items() if _platforms(held) == wanted]
        label = installed.label if installed.label in known else next(iter(same), None)
        if label is not None:
            found[str(decision.release.version)] = (label,)
    return found


def _platforms(properties: Properties) -> set[tuple[str, str]]:
    """Return the accelerators in *properties*, each with the major version that it needs."""
    return {
        (namespace, value.partition(".")[0])
        for namespace in machines.ACCELERATORS.keys() & properties.keys()
        for feature, values in properties[namespace].items()
        if feature.endswith("_lower_bound")
        for value in values
    } or {(namespace, "") for namespace in machines.ACCELERATORS.keys() & properties.keys()}


def _may_be_taken(decision: VersionDecision, release: Version, python: str) -> bool:
    """Return whether a version counts: it is installed, or can be, and is not yanked."""
    return decision.release.version == release or (
        not decision.is_yanked and decision.is_for(python)
    )

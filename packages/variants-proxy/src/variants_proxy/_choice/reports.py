"""Reports of the decisions on a project: labels, verdicts, and notices in the engine's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.errors import some
from pep_variants.metadata import ProviderInfo
from pep_variants.selection import Admitted, File, NewestBuild, Selection, Verdict
from variants_catalog import catalogs
from variants_catalog.listings import Unavailable

from .._upstream.releases import FetchedPage, published, published_as, wheel_version
from .offers import Choice, ProjectView, VersionDecision, version_in

_MAX_LABELS = 3
_TAKEN = "{taken}"
"""Placeholder in `VersionReport.passed_over` for the version that is installed."""


@dataclass(frozen=True)
class LockedLabel:
    """Label that a lock file has of a version for the machine's platform.

    Attributes:
        label: of the variant, None for a wheel without one.
        fits: whether it fits the machine.
        why: why it does not.
        instead: label that would be chosen, None for the non-variant wheel or nothing.
    """

    label: str | None
    fits: bool
    why: str
    instead: str | None


@dataclass(frozen=True)
class VersionReport:
    """Decision on one version, with its reasons.

    Attributes:
        version: without the local part of a build that the catalogue describes.
        labels: of the files that are offered, by plain filename; None for the non-variant wheel.
        has_variants: False for a version that is there for its `older_build` alone.
        verdicts: on every variant, the chosen one first; those that a lock file has are ``locked``.
        properties: of the chosen one, as ``namespace :: feature :: value``.
        why: why the chosen one, and none that ranks higher.
        is_missed: a better variant does not fit, as `why` says.
        missing: why there is no variant that was asked for by name, empty if there is.
        notices: of the engine.
        problems: why the metadata of a source cannot be used.
        providers: that the metadata names, by namespace.
        unfit: why nothing of the version can be installed, several lines; empty if something can.
        passed_over: why an older version is taken, see `why_passed_over`.
        left_out: variants that uv cannot choose correctly.
        locked: labels that a lock file has for the machine's platform.
        published: names of the publishers' files that are offered, by plain filename.
        origins: publisher's name and version of files that have another name, by plain filename.
        older_build: an older version with a build for the accelerator, where this one has none.
    """

    version: Version
    labels: Mapping[str, str | None]
    has_variants: bool = True
    verdicts: tuple[Verdict, ...] = ()
    properties: tuple[str, ...] = ()
    why: str = ""
    is_missed: bool = False
    missing: str = ""
    notices: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    providers: Mapping[str, ProviderInfo] = field(default_factory=dict)
    unfit: str = ""
    passed_over: str = ""
    left_out: tuple[str, ...] = ()
    locked: tuple[LockedLabel, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    older_build: NewestBuild | None = None

    @property
    def chosen(self) -> Verdict | None:
        """Variant that was chosen, None if none was."""
        return next((row for row in self.verdicts if row.verdict == "chosen"), None)

    def shows(self, label: str) -> bool:
        """Return whether a file with *label* is offered; empty for the non-variant wheel."""
        return any((shown or "") == label for shown in self.labels.values())

    def origin_of(self, label: str) -> str:
        """Return the publisher's name and version of *label*, empty for the project's own."""
        named = (self.origins[plain] for plain in self.origins if self.labels.get(plain) == label)
        return next(named, "")

    def is_only_locked(self, label: str | None) -> bool:
        """Return whether *label* is offered because a lock has it, and does not fit the machine."""
        return any(row.label == label and not row.fits for row in self.locked)

    def reason_for(self, label: str) -> str:
        """Return why *label* was chosen or not, empty if there is no verdict on it."""
        if self.is_only_locked(label):
            return "the lock has it"
        if self.chosen is not None and self.chosen.label == label:
            return self.why
        return next((row.why for row in self.verdicts if row.label == label), "")

    def why_passed_over(self, taken: Version) -> str:
        """Return why the older version *taken* is installed, empty if this one can be."""
        return self.passed_over.replace(_TAKEN, str(taken))

    def to_tree(self) -> dict[str, object]:
        """Return the report as JSON data; a version without variants has few members."""
        tree: dict[str, object] = {
            "version": str(self.version),
            "files": dict(self.labels),
            "variants": [row._asdict() for row in self.verdicts],
            "notices": list(self.notices),
            "problems": list(self.problems),
            "older-build": None if self.older_build is None else _older_tree(self.older_build),
        }
        if not self.has_variants:
            return tree
        return {
            **tree,
            "published": dict(self.published),
            "origin": dict(self.origins),
            "why": self.why,
            "missed": self.is_missed,
            "missing": self.missing,
            "locked": list(map(asdict, self.locked)),
            "providers": {
                namespace: {"requires": list(provider.requires), "plugin-api": provider.plugin_api}
                for namespace, provider in self.providers.items()
            },
            "unfit": self.unfit,
            "passed-over": self.passed_over,
            "left-out": list(self.left_out),
        }


@dataclass(frozen=True)
class CatalogReport:
    """State of the catalogue for one project.

    Attributes:
        documentation: of the builds' publisher.
        unavailable: builds that cannot be had for now.
        excluded: whether builds are left out because of `Settings.hashes`.
        problem: of a catalogue that cannot be read.
    """

    documentation: str
    unavailable: tuple[Unavailable, ...]
    excluded: bool
    problem: str


@dataclass(frozen=True)
class ProjectReport:
    """Decisions on one project.

    Attributes:
        project: normalized name.
        index: name of the upstream.
        catalog: None without an entry that is used.
        versions: newest first.
    """

    project: str
    index: str
    catalog: CatalogReport | None
    versions: tuple[VersionReport, ...]

    def to_tree(self) -> dict[str, object]:
        """Return the report as JSON data."""
        return {
            "project": self.project,
            "index": self.index,
            "catalog": None if self.catalog is None else asdict(self.catalog),
            "versions": [report.to_tree() for report in self.versions],
        }


@dataclass(frozen=True)
class IndexWheel:
    """Wheel of an index, for lock files and exports.

    Attributes:
        filename: with the label.
        plain: without it.
        label: None for a wheel without one.
        url: its own URL.
        hashes: hexadecimal digests by algorithm.
        size: in bytes, None if unknown.
        upload_time: as the index spells it, None if unknown.
        requires: digest of its dependencies, None if its metadata cannot be read.
        marked: whether it has variant markers, or dependencies or a name that the catalogue gives
            it, so that this proxy rewrites it.
        served: SHA-256 of it as this proxy rewrites it, None if that is not known.
        published: its own name where the label is the catalogue's, else None.
    """

    filename: str
    plain: str
    label: str | None
    url: str
    hashes: Mapping[str, str]
    size: int | None = None
    upload_time: str | None = None
    requires: str | None = None
    marked: bool = False
    served: str | None = None
    published: str | None = None

    @property
    def origin(self) -> str:
        """Publisher's normalized name for it, empty if that is the project's."""
        texts = (self.plain, self.published or self.plain)
        own, name = (canonicalize_name(text.split("-", 1)[0]) for text in texts)
        return name if name != own else ""


@dataclass(frozen=True)
class IndexRelease:
    """Wheels of one version with variants.

    Attributes:
        documents: variant metadata as the index has it, see `write_table`.
        wheels: in the order of the index.
    """

    documents: Sequence[Mapping[str, Any]] = ()
    wheels: Sequence[IndexWheel] = ()

    def to_tree(self) -> dict[str, object]:
        """Return it as JSON data."""
        wheels = [
            {name.replace("_", "-"): value for name, value in vars(wheel).items()}
            for wheel in self.wheels
        ]
        return {"documents": list(self.documents), "wheels": wheels}


def is_notable(choice: Choice, project: str) -> bool:
    """Return whether there are notices about *project*, of which *choice* was made."""
    return any(map(_is_notable, choice.decisions)) or bool(older_builds(choice, project))


def _is_notable(decision: VersionDecision) -> bool:
    """Return whether there are notices about *decision* alone."""
    selection = decision.selection
    return bool(
        selection.problems
        or wheel_selection.is_unfit(selection)
        or left_out(selection)
        or decision.unhashed
        or is_as_listed(decision)
        or has_unfit_lock(decision)
        or any(
            notice.actionable
            for each in selection.distinct_rankings.values()
            for notice in wheel_selection.notices(each)
        )
    )


def has_unfit_lock(decision: VersionDecision) -> bool:
    """Return whether a lock file has a variant that does not fit the machine."""
    if not decision.kept:
        return False
    fitting = {file.label for file in decision.selection.files}
    return any(label is not None and label not in fitting for label in decision.kept)


def is_as_listed(decision: VersionDecision) -> bool:
    """Return whether a requirement with ``===`` leaves out the builds of the catalogue."""
    chosen = decision.selection.chosen
    return (
        decision.exact
        and chosen is not None
        and chosen.label is None
        and any(map(published, decision.release.wheels))
    )


def refusal(choice: Choice, project: str, filename: str) -> str:
    """Return why a wheel with `Offer.refused` cannot be installed, empty if it is not one."""
    wanted = version_in(filename)
    decision = next((each for each in choice.decisions if each.release.version == wanted), None)
    own = next((o for o in choice.offers if o.refused and o.filename == filename), None)
    if own is not None and own.context is not None:
        return (
            f"{own.file.filename} cannot be installed with its own hash, which is given: it has "
            "variant markers in METADATA, which uv cannot read, and without them another hash: use "
            f"the hashes of {project} that 'uv-variants pip compile --generate-hashes' or "
            "'uv-variants export' writes, or install with pip and pep-variants-shim"
        )
    if decision is None or own is None:
        return ""
    others = (version_in(offer.filename) for offer in choice.offers if not offer.refused)
    newest = max(version for version in others if version is not None)
    unfit = wheel_selection.nothing_fits(project, decision.release.version, decision.selection)
    return f"{unfit}\nThe pre-release fits: to take it, require {project}=={newest}."


def older_builds(choice: Choice, project: str, python: str = "") -> dict[Version, NewestBuild]:
    """Return the versions that have no build for the accelerator here, though an older one has.

    Each with the newest such version, or with none if too many versions would have to be read.
    Among them are versions without variants that are newer than all decisions. Nothing where the
    user forces a label.

    Args:
        choice: of the project's files.
        project: normalized name.
        python: oldest version of Python that is installed for, empty for any.
    """
    decisions = choice.decisions
    if not any(map(_is_accelerated, decisions)):
        return {}
    if any(project in each.selection.preferences.forced for each in decisions):
        return {}
    admitted = [each.admitted for each in decisions if each.is_for(python)]
    newest = decisions[0].release.version
    plain = [version for version in _plain_versions(choice, newest) if version > newest]
    admitted[:0] = [
        Admitted(version, (), lambda: None) for version in plain if not version.is_prerelease
    ]
    # An installer compiles a version of which no wheel fits, if it has sources.
    sources = {version_in(each.filename) for each in choice.offers if each.label is None}
    unfit = {each.release.version for each in decisions if not each.selection.files} & sources
    admitted = [
        Admitted(each.version, (), lambda: None) if each.version in unfit else each
        for each in admitted
    ]
    kept = {each.release.version for each in decisions if each.kept}
    yanked = {each.release.version for each in decisions if each.is_yanked}
    found: dict[Version, NewestBuild] = {}
    for number, each in enumerate(admitted):
        older = (item for item in admitted[number + 1 :] if item.version not in yanked)
        build = wheel_selection.newest_build(project, chain([each], older), lambda: True)
        if build is not None and build.newest == each.version and each.version not in kept:
            found[each.version] = build
    return found


def held_back(
    choice: Choice,
    project: str,
    python: str = "",
    admits: Callable[[Version], bool] = lambda _: True,
) -> dict[Version, NewestBuild]:
    """Return every version that an older one with a build for the accelerator goes before.

    Each is there with that build: of a range of versions, what an installer takes is decided among
    those of the range alone.

    Args:
        choice: of the project's files.
        project: normalized name.
        python: version of Python that is installed for, empty for any.
        admits: whether a version counts.
    """
    decided = {each.release.version: each for each in choice.decisions if each.is_for(python)}
    if not any(map(_is_accelerated, decided.values())):
        return {}
    left = {each.release.version for each in choice.decisions} - decided.keys()
    listed = set(filter(None, (version_in(offer.filename) for offer in choice.offers))) - left
    builds = [each for each in decided.values() if not each.is_yanked]
    admitted = [each.admitted for each in builds if admits(each.release.version)]
    found: dict[Version, NewestBuild] = {}
    start = 0
    for version in sorted(filter(admits, listed), reverse=True):
        while start < len(admitted) and admitted[start].version >= version:
            start += 1
        own = decided.get(version)
        is_judged = own is not None and bool(own.selection.files)
        first = own.admitted if own is not None and is_judged else _nothing(version)
        older = (admitted[number] for number in range(start, len(admitted)))
        build = wheel_selection.newest_build(project, chain([first], older), lambda: True)
        if build is not None and build.version is not None:
            found[version] = build
    return found


def _nothing(version: Version) -> Admitted:
    """Return a version without variants, or without one that fits."""
    return Admitted(version, (), lambda: None)


def _is_accelerated(decision: VersionDecision) -> bool:
    return wheel_selection.is_accelerated(decision.selection, decision.selection.chosen)


def left_out(selection: Selection[Any]) -> list[tuple[list[str], list[str]]]:
    """Return labels rejected because of `abi_dependency` only, and the projects it names."""
    found = []
    for ranking in selection.distinct_rankings.values():
        names: dict[str, None] = {}
        labels = []
        for label in ranking.rejected_labels:
            reasons = ranking.reasons(label)
            if reasons and all(
                reason.namespace == variant_metadata.ABI_DEPENDENCY for reason in reasons
            ):
                labels.append(label)
                names.update((reason.feature, None) for reason in reasons)
        if labels:
            found.append((labels, list(names)))
    return found


def _plain_versions(choice: Choice, unfit: Version) -> list[Version]:
    plain = (offer for offer in choice.offers if offer.label is None and not offer.refused)
    found = {version for offer in plain if (version := wheel_version(offer.filename)) is not None}
    return sorted(found - {unfit}, reverse=True)


def report(shown: ProjectView, python: str = "") -> ProjectReport:
    """Return the report on a project.

    A version without variants is in it only if it has an `VersionReport.older_build`.

    Args:
        shown: the project.
        python: see `older_builds`.
    """
    choice = shown.choice or Choice(())
    older = older_builds(choice, shown.project, python)
    decided = {decision.release.version for decision in choice.decisions}
    plain = [
        VersionReport(
            version,
            {
                offer.filename: None
                for offer in choice.offers
                if version_in(offer.filename) == version
            },
            has_variants=False,
            older_build=build,
        )
        for version, build in older.items()
        if version not in decided
    ]
    versions = [
        version_report(decision, choice, shown.project, older.get(decision.release.version))
        for decision in choice.decisions
    ]
    return ProjectReport(
        shown.project, shown.upstream.name, _catalog(shown.found), (*plain, *versions)
    )


def version_report(
    decision: VersionDecision, choice: Choice, project: str, older: NewestBuild | None = None
) -> VersionReport:
    """Return the report on *decision*, one of *choice*.

    Args:
        decision: of the version.
        choice: of the project's files.
        project: normalized name.
        older: see `VersionReport.older_build`.
    """
    version, selection, offers = decision.release.version, decision.selection, decision.offers
    rankings = selection.distinct_rankings.values()
    chosen = selection.chosen.label if selection.chosen else None
    why = wheel_selection.why_this(selection, selection.chosen, project) if selection.chosen else ""
    if decision.agrees:
        why = f"{why}; as for {decision.agrees}, which it belongs to"
    unfit = passed = ""
    if wheel_selection.is_unfit(selection):
        plain = _plain_versions(choice, version)
        unfit = str(wheel_selection.nothing_fits(project, version, selection, plain=plain))
        passed = wheel_selection.passed_over(project, [(version, selection)], _TAKEN)
    return VersionReport(
        version,
        {name: offer.label for name, offer in offers.items()},
        verdicts=tuple(
            row._replace(verdict="locked") if row.label in decision.kept else row
            for ranking in rankings
            for row in wheel_selection.verdicts(ranking, None if decision.kept else chosen)
        ),
        properties=tuple(
            str(item)
            for ranking in rankings
            for item in variant_metadata.iter_properties(
                ranking.metadata.properties_of(chosen or "") or {}
            )
        ),
        why=why,
        is_missed=bool(
            selection.chosen
            and project not in selection.preferences.forced
            and wheel_selection.why_not_better(selection, selection.chosen)
        ),
        missing=_missing(decision, project),
        notices=tuple(
            notice.text for ranking in rankings for notice in wheel_selection.notices(ranking)
        ),
        problems=tuple(map(str, selection.problems.values())),
        providers={
            namespace: provider
            for ranking in rankings
            for namespace, provider in ranking.metadata.providers.items()
            if provider.requires
        },
        unfit=unfit,
        passed_over=passed,
        left_out=tuple(_left_out_lines(decision, project)),
        locked=tuple(_locked(decision)),
        published={
            name: own.original.filename
            for name, offer in offers.items()
            if (own := published(offer.file)) is not None
        },
        origins={
            name: requirement
            for name, offer in offers.items()
            if (requirement := published_as(offer.file))
        },
        older_build=older,
    )


def _left_out_lines(decision: VersionDecision, project: str) -> Iterator[str]:
    """Yield the variants of a version that uv cannot choose correctly, each with the reason."""
    version = decision.release.version
    for labels, names in left_out(decision.selection):
        yield (
            f"{some(labels, _MAX_LABELS)} of {project} {version}: built against a version of "
            f"{some(names, _MAX_LABELS)} (abi_dependency), which uv cannot compare with what it "
            "installs; pip with the shim and variants resolve can"
        )
    if decision.unhashed:
        yield (
            f"{decision.unhashed} of {project} {version}: it has none of the hashes that the "
            "requirements give"
        )
    if is_as_listed(decision):
        yield catalogs.not_admitted(project, version)


def _missing(decision: VersionDecision, project: str) -> str:
    """Return why a version lacks the variant that is asked for by name, empty if it does not."""
    release = decision.release
    if project not in decision.selection.preferences.forced:
        return ""
    files = [File(file.filename, "", file) for file in release.wheels]
    found = wheel_selection.missing_variant(
        project, [(str(release.version), decision.selection, files)]
    )
    return "" if found is None else str(found)


def _older_tree(build: NewestBuild) -> dict[str, str | None]:
    """Return the ``version`` with a build for the accelerator, null if too many were read.

    And the lines about it: ``text`` for where the order of versions counts, ``preferred`` for where
    that build is taken.
    """
    return {
        "version": str(build.version) if build.version is not None else None,
        "text": build.missed().text if build.version is not None else "",
        "preferred": build.preferred().text,
    }


def _catalog(page: FetchedPage) -> CatalogReport | None:
    if not page.is_described:
        return None
    documentation = page.entry.documentation if page.entry is not None else ""
    return CatalogReport(documentation, tuple(page.unavailable), page.excluded, page.problem)


def _locked(decision: VersionDecision) -> Iterator[LockedLabel]:
    """Yield the labels that a lock file has of a version for the machine's platform."""
    selection = decision.selection
    fitting = {file.label for file in selection.files}
    for label in decision.kept:
        fits = label in fitting or label is None
        reasons = dict.fromkeys(
            reason
            for ranking in selection.distinct_rankings.values()
            if not fits and label is not None
            for reason in wheel_selection.why_not(ranking, label)
        )
        chosen = selection.chosen.label if selection.chosen else None
        yield LockedLabel(label, fits, "; ".join(reasons), chosen)

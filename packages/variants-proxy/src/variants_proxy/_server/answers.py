"""What a machine gets of a project, for the page for people: release, build, reasons and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from pep_variants import machines
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.selection import Selection
from variants_catalog import entries
from variants_catalog.catalogs import Source, check_line, source_of
from variants_index import target as target_machines
from variants_index.finder import CatalogFile
from variants_index.pages import PageFile

from .._choice.offers import Choice, ProjectView, VersionDecision, version_in
from .._choice.reports import CatalogReport, ProjectReport, VersionReport
from .._choice.wheel_environments import runs_on
from .._index_urls import bare_url
from .._key import Machine


@dataclass(frozen=True)
class Fact:
    """What a build needs, and how that is known.

    Attributes:
        text: itself.
        basis: whether it was measured, and when.
        page: URL of the publisher's.
        checked: day on which the entry was compared with it.
    """

    text: str
    basis: str
    page: str
    checked: str


@dataclass(frozen=True)
class Answer:
    """What a machine gets of one project.

    Attributes:
        project: normalized name.
        version: that installers take, empty if there is none.
        decision: on that version; None if it has no variants.
        chosen: in a few words.
        check: a line of Python that tells whether it works, or which version is installed.
        expected: what the line prints.
        is_idle: whether it leaves a GPU idle for which there are builds, if not for this one.
        not_newer: why not a newer one.
        fact: of a build of the catalogue, else None.
        source: where it is had without the proxy; None where no installer finds it by itself.
        files: names and labels of the wheels that are listed for the system.
        others: other versions with variants, and what is chosen of them.
        catalog: its state, None without an entry.
    """

    project: str
    version: str
    decision: VersionReport | None
    chosen: str
    check: str
    expected: str
    is_idle: bool
    not_newer: tuple[str, ...]
    fact: Fact | None
    source: Source | None
    files: Sequence[tuple[str, str | None]]
    others: Sequence[tuple[str, str]]
    catalog: CatalogReport | None


def answer(
    shown: ProjectView,
    report: ProjectReport,
    machine: Machine,
    place_of: Callable[[PageFile], str],
) -> Answer:
    """Return the answer for a project.

    Args:
        shown: itself, as the machine has it.
        report: on it.
        machine: with its target, as far as it is known.
        place_of: returns the URL of the index that a file is of.
    """
    choice, target, platform = shown.choice, machine.target, machine.platform
    newest = _taken(shown, target, machine.python)
    decisions = {each.version: each for each in report.versions if each.has_variants}
    if newest is not None and newest not in decisions:
        newest = Version(newest.public)  # builds of the catalogue have a local version
    decision = decisions.get(newest) if newest is not None else None
    made = _decision(choice, newest)
    best = made.selection.chosen if made is not None else None
    build = best.item if best is not None and isinstance(best.item, CatalogFile) else None
    is_labelled = decision is not None and decision.chosen is not None
    source = None if is_labelled or newest is None else Source(report.project, str(newest))
    if build is not None:
        source = _published(build, place_of(build))
    installed = str(newest if build is None else build.version)
    check = _check(decision, report.project, target)
    return Answer(
        report.project,
        "" if newest is None else str(newest),
        decision,
        _chosen(decision) if decision else "",
        check or f"from importlib.metadata import version; print(version('{report.project}'))",
        "True" if check else installed,
        bool(choice and made and _is_idle(choice, made.selection, platform)),
        tuple(_not_newer(choice, report, newest)),
        None if build is None else _fact(build),
        source,
        []
        if decision is None
        else sorted(
            (decision.published.get(name, name), label)
            for name, label in decision.labels.items()
            if _is_for(name, target)
        ),
        [(str(version), _chosen(each)) for version, each in decisions.items() if version != newest],
        report.catalog,
    )


def _taken(shown: ProjectView, target: str, python: str) -> Version | None:
    """Return the version that an installer takes: the newest one here that is not yanked."""
    choice = shown.choice
    files = (
        [(each.filename, each, each.yanked) for each in shown.found.page.files]
        if choice is None
        else [(each.filename, each.file, choice.yanked(each, "")) for each in choice.offers]
    )
    here = [
        each
        for each in files
        if not each[0].endswith(".whl")
        or (_is_for(each[0], target) and runs_on(each[0], each[1].requires_python, python))
    ]
    listed = [each for each in here if each[2] is None] or here or files
    there = {version for name, *_ in listed if (version := version_in(name)) is not None}
    return max(there, key=lambda version: (not version.is_prerelease, version), default=None)


def _decision(choice: Choice | None, version: Version | None) -> VersionDecision | None:
    decisions = choice.decisions if choice is not None else ()
    return next((each for each in decisions if each.release.version == version), None)


def _is_idle(choice: Choice, selection: Selection[PageFile], platform: Platform) -> bool:
    """Return whether builds of *choice* use a kind of GPU that is here, and *selection* none."""
    known = {
        namespace
        for each in choice.decisions
        for ranking in each.selection.distinct_rankings.values()
        for held in ranking.metadata.variants.values()
        for namespace in held
    }
    here = {name for name in machines.ACCELERATORS if platform.support(name).features}
    return bool(known & here) and not wheel_selection.is_accelerated(selection, selection.chosen)


def _not_newer(
    choice: Choice | None, report: ProjectReport, taken: Version | None
) -> Iterable[str]:
    """Yield why newer versions than the one that is *taken* are not."""
    if choice is None or taken is None:
        return
    newest = max((each for each in choice.held if not each.is_prerelease), default=taken)
    if newest > taken:
        yield choice.held[newest].preferred().text
    for each in report.versions:
        if each.version > taken and not each.version.is_prerelease and each.passed_over:
            yield each.why_passed_over(taken)
        if each.version == taken and each.older_build is not None and each.older_build.version:
            yield each.older_build.missed().text


def _check(decision: VersionReport | None, project: str, target: str) -> str:
    used = [text.partition(" :: ")[0] for text in (decision.properties if decision else ())]
    kinds = [name for name in used if name in machines.ACCELERATORS]
    if target == "macosx-aarch64":
        kinds.append("apple")
    return check_line(project, kinds[0]) if kinds else ""


def _published(build: CatalogFile, place: str) -> Source:
    """Return where the publisher has a *build*, which lies on the index at the URL *place*."""
    entry, at = build.entry, bare_url(place)
    page = next((entry.page(each) for each in entry.places if bare_url(each) == at), "")
    source = source_of(entry, build.published, page)
    return replace(source, place=bare_url(source.place)) if source.place else source


def _fact(build: CatalogFile) -> Fact:
    published = build.published
    return Fact(
        "; ".join(wheel_selection.all_needs(published.properties)) or "any machine",
        entries.basis(published.measured, published.version),
        build.entry.documentation,
        build.entry.checked,
    )


def _is_for(name: str, target: str) -> bool:
    tags = name.removesuffix(".whl").rpartition("-")[2]
    return target_machines.is_for_platform(tags, target)


def _chosen(decision: VersionReport) -> str:
    """Return the choice of a version, in a few words."""
    if decision.chosen is not None:
        return f"Variant {decision.chosen.label}"
    return "The wheel without a variant" if decision.labels else "Nothing fits"

"""Why there is no solution, in words: who wants what, what there is, what each variant needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from packaging.version import Version

from pep_variants import markers
from pep_variants import selection as wheel_selection
from pep_variants.selection import File
from variants_catalog import listings
from variants_catalog.listings import Unavailable
from variants_index import finder as package_finder
from variants_index.finder import Candidate, CandidateEvaluator, PackageFinder

from ..provider import MAX_VERSIONS, VariantProvider, variants_of_version
from .errors import NoSolution
from .index_provider import (
    IndexProvider,
    SpecifierRequirement,
    UnsatisfiableRequirement,
    split_identifier,
)

_MAX_LISTED = 12


def explain_failure(
    causes: Iterable[Any],
    provider: VariantProvider[Any, Candidate, str],
    plain: IndexProvider,
    evaluator: CandidateEvaluator,
    finder: PackageFinder,
    missed: Callable[[str], Iterable[Unavailable]],
    unsaid: str = "",
) -> NoSolution:
    """Return the error for what resolvelib found to be in the way.

    Args:
        causes: its `RequirementInformation`s.
        provider: the wrapped provider, which remembers what it decided.
        plain: the provider inside.
        evaluator: the files of the target.
        finder: all files.
        missed: tells what cannot be had of a project.
        unsaid: project whose versions have nothing to do with it.
    """
    details: list[str] = []
    wanted: dict[str, list[SpecifierRequirement]] = {}
    parents: dict[str, None] = {}
    for cause in sorted(causes, key=lambda item: (str(item.parent or ""), str(item.requirement))):
        requirement, parent = cause.requirement, cause.parent
        if getattr(requirement, "refusal", False):
            continue  # the variant that is chosen has a cause of its own
        project = split_identifier(provider.identify(requirement))[0]
        needs = wanted.setdefault(project, [])
        if isinstance(requirement, UnsatisfiableRequirement):
            continue  # said below
        if isinstance(requirement, SpecifierRequirement):
            needs.append(requirement)
        if parent is None:
            details.append(f"you asked for {requirement}")
        elif parent.project != unsaid:
            details.append(f"{parent} needs {requirement}")
            parents.setdefault(parent.project)
            details += _by_marker(parent, project, provider, plain)
    lacking = []
    for project, needs in sorted(wanted.items()):
        facts = list(_facts(project, needs, plain, evaluator, finder))
        unfit = all(not selection.files for _, selection in provider.ordering.judged(project))
        if facts or (unfit and any(True for _ in provider.ordering.judged(project))):
            lacking.append(project)
        details += facts if project != unsaid else ()
    for project in dict.fromkeys((*sorted(wanted), *sorted(parents))):
        details += _variants(project, provider, evaluator) if project != unsaid else ()
    details += map(str, listings.by_host(item for name in sorted(wanted) for item in missed(name)))
    if lacking:
        message = f"no version fits of {', '.join(lacking)}"
    else:
        message = f"these requirements contradict each other: {', '.join(sorted(wanted))}"
    return NoSolution(message, tuple(dict.fromkeys(details)))


def _by_marker(
    parent: Candidate,
    wanted: str,
    provider: VariantProvider[Any, Candidate, str],
    plain: IndexProvider,
) -> Iterator[str]:
    """Yield which markers make the variant *parent* require the project *wanted*."""
    selection = provider.ordering.selection(parent.project, parent)
    if selection is None or parent.label is None:
        return
    file = File(parent.filename, parent.source, parent)
    requires = filter(markers.uses_variant_terms, plain.core_metadata(parent).requires)
    yield from wheel_selection.required_by_marker(
        parent.project, parent.version, selection, file, requires, wanted
    )


def _facts(
    project: str,
    needs: Sequence[SpecifierRequirement],
    plain: IndexProvider,
    evaluator: CandidateEvaluator,
    finder: PackageFinder,
) -> Iterator[str]:
    """Yield what keeps versions of *project* from being looked at, variants aside."""
    unusable = [
        f"{candidate} cannot be used: {reason}"
        for candidate, reason in plain.unusable.items()
        if candidate.project == project
    ]
    yield from unusable[:_MAX_LISTED]
    if not needs or any(need.url is not None for need in needs):
        return
    specifiers = [need.specifier for need in needs]
    versions = plain.matching(project, specifiers)
    if not versions:
        if not all(plain.matching(project, [specifier]) for specifier in specifiers):
            yield none_wanted(project, needs, plain, evaluator, finder)
        return  # else every single one can be met: they contradict each other
    pinned = package_finder.is_pinned(specifiers)
    if any(evaluator.candidates(project, version, pinned=pinned) for version in versions):
        return
    facts = [
        f"{project} {version}: {_rejected(evaluator, project, version)}" for version in versions
    ]
    yield from facts[:_MAX_LISTED]
    if len(facts) > _MAX_LISTED:
        yield f"… and {len(facts) - _MAX_LISTED} more versions"


def _variants(
    project: str, provider: VariantProvider[Any, Candidate, str], evaluator: CandidateEvaluator
) -> Iterator[str]:
    """Yield what was decided about the variants of *project*."""
    judged = [
        (version, selection)
        for version, selection in provider.ordering.judged(project)
        if selection.rankings or selection.problems
    ]
    unfit = provider.ordering.unfit(project)
    if unfit is not None:
        plain = _plain_versions(project, evaluator)
        said = wheel_selection.nothing_fits(project, *unfit, plain=plain, more="variants explain")
        yield from str(said).splitlines()
        if len(judged) > 1:
            yield f"… and {len(judged) - 1} more versions of {project}"
        return
    for version, selection in judged[:MAX_VERSIONS]:
        yield from variants_of_version(project, version, selection)
        if selection.unknown:
            yield f"  not listed in the variant metadata: {', '.join(selection.unknown)}"
        for ranking in selection.rankings.values():
            for notice in wheel_selection.notices(ranking):
                if notice.actionable:
                    yield f"  {notice.text}"
        assert isinstance(version, Version)
        if not selection.files and all(
            item.label is not None for item in evaluator.candidates(project, version)
        ):
            yield "  and there is no non-variant file"
    if len(judged) > MAX_VERSIONS:
        yield f"… and {len(judged) - MAX_VERSIONS} more versions of {project}"


def _plain_versions(project: str, evaluator: CandidateEvaluator) -> list[Version]:
    """Return the versions of *project* with a non-variant file, newest first."""
    return [
        version
        for version in sorted(evaluator.project(project).versions, reverse=True)
        if any(item.label is None for item in evaluator.candidates(project, version))
    ]


def none_wanted(
    project: str,
    needs: Sequence[SpecifierRequirement],
    plain: IndexProvider,
    evaluator: CandidateEvaluator,
    finder: PackageFinder,
) -> str:
    """Return why there is no file of *project* that can be looked at."""
    known = evaluator.project(project)
    if not known.places:
        if not finder.places:
            return f"{project} is not found: no index or directory is configured to search"
        return f"{project} is not found on {_listed(finder.places)}"
    if not known.versions:
        return f"{project} has no wheel or source distribution on {_listed(known.places)}"
    wanted = plain.matching(project, [need.specifier for need in needs])
    if wanted:
        return f"{project} {wanted[0]}: {_rejected(evaluator, project, wanted[0])}"
    versions = _listed(map(str, known.versions))
    return f"{project} has none of the requested versions; available are: {versions}"


def _rejected(evaluator: CandidateEvaluator, project: str, version: Version) -> str:
    counts = evaluator.rejected.get((project, version))
    if not counts:
        return "no file"
    unfit = [reason for reason in (evaluator.no_python, evaluator.no_system) if reason in counts]
    return ", ".join(
        [
            *unfit[:1],
            *(
                f"{number} {'file' if number == 1 else 'files'} {reason}"
                for reason, number in sorted(counts.items())
                if reason not in unfit
            ),
        ]
    )


def _listed(items: Iterable[str]) -> str:
    found = list(items)
    shown = ", ".join(found[:_MAX_LISTED])
    return f"{shown}, … ({len(found)} in all)" if len(found) > _MAX_LISTED else shown

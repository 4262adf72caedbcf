"""Why there is no solution, in words: who wants what, what there is, what each variant needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants.explanation import notices, why_not
from pep_variants.selection import Selection

from .candidate import Candidate
from .catalog import Catalog
from .errors import NoSolution
from .provider import IndexProvider, Need, Never, split_identifier
from .shelf import Shelf, is_pinned

if TYPE_CHECKING:
    from ..provider import VariantProvider

MAX_VERSIONS = 3
"""So many versions are explained one by one."""

_MAX_LISTED = 12


def explain_failure(
    causes: Iterable[Any],
    provider: VariantProvider[Any, Candidate, str],
    plain: IndexProvider,
    shelf: Shelf,
    catalog: Catalog,
) -> NoSolution:
    """Return the error for what resolvelib found to be in the way.

    Args:
        causes: its `RequirementInformation`s.
        provider: the wrapped provider, which remembers what it decided.
        plain: the provider inside.
        shelf: the files of the target.
        catalog: all files.
    """
    found = list(causes)
    details: list[str] = []
    projects: dict[str, list[Need]] = {}
    for cause in sorted(found, key=lambda item: (str(item.parent or ""), str(item.requirement))):
        wanted = cause.requirement
        if isinstance(wanted, Never):
            projects.setdefault(wanted.candidate.project, [])
            continue
        who = "you asked for" if cause.parent is None else f"{cause.parent} requires"
        details.append(f"{who} {wanted}")
        project = split_identifier(provider.identify(wanted))[0]
        needs = projects.setdefault(project, [])
        if isinstance(wanted, Need):
            needs.append(wanted)
    lacking = []
    for project, needs in sorted(projects.items()):
        facts = list(_facts(project, needs, provider, plain, shelf, catalog))
        if facts:
            lacking.append(project)
        details += facts
    if lacking:
        message = f"nothing fits of {', '.join(lacking)}"
    else:
        message = f"these requirements contradict each other: {', '.join(sorted(projects))}"
    return NoSolution(message if projects else "nothing fits", tuple(dict.fromkeys(details)))


def _facts(
    project: str,
    needs: Sequence[Need],
    provider: VariantProvider[Any, Candidate, str],
    plain: IndexProvider,
    shelf: Shelf,
    catalog: Catalog,
) -> Iterator[str]:
    """Yield what keeps the versions of *project* from being taken; nothing if one could be."""
    if any(need.url is not None for need in needs):
        for need in needs:
            if need.url is not None:
                candidate = plain.direct_candidate(need.url)
                selection = provider.arranger.selection(project, candidate)
                if selection is not None:
                    yield from _variants(candidate, selection, ())
        return
    unusable = [
        f"{candidate} cannot be used: {reason}"
        for candidate, reason in plain.unusable.items()
        if candidate.project == project
    ]
    yield from unusable[:_MAX_LISTED]
    if not needs:
        return
    wanted = plain.matching(project, [need.specifier for need in needs])
    if not wanted:
        if not all(plain.matching(project, [need.specifier]) for need in needs):
            yield none_wanted(project, needs, plain, shelf, catalog)
        return  # else every single one can be met: they contradict each other
    facts: list[str] = []
    pinned = is_pinned([need.specifier for need in needs])
    for version in wanted:
        candidates = shelf.candidates(project, version, pinned=pinned)
        decision = provider.arranger.selection(project, candidates[0]) if candidates else None
        if decision is not None:
            if decision.files:
                return  # it was something else
            facts += _variants(candidates[0], decision, candidates)
        elif candidates:
            return
        else:
            facts.append(f"{project} {version}: {_rejected(shelf, project, version)}")
    yield from facts[:_MAX_LISTED]
    if len(facts) > _MAX_LISTED:
        yield f"… and {len(facts) - _MAX_LISTED} more lines like these"


def none_wanted(
    project: str, needs: Sequence[Need], plain: IndexProvider, shelf: Shelf, catalog: Catalog
) -> str:
    """Return why there is no file of *project* that can be looked at."""
    known = shelf.project(project)
    if not known.places:
        return f"{project} is not known to {_listed(catalog.places) or 'any source: there is none'}"
    if not known.versions:
        return f"{project} has no wheel or source distribution on {_listed(known.places)}"
    wanted = plain.matching(project, [need.specifier for need in needs])
    if wanted:
        return f"{project} {wanted[0]}: {_rejected(shelf, project, wanted[0])}"
    versions = _listed(map(str, known.versions))
    return f"{project} has none of the versions wanted; there are: {versions}"


def _variants(
    candidate: Candidate, selection: Selection[Candidate], candidates: Sequence[Candidate]
) -> Iterator[str]:
    name = f"{candidate.project} {candidate.version}"
    for problem in selection.problems.values():
        yield f"{name}: its variants cannot be used. {problem}"
    if selection.unknown:
        yield f"{name}: the index does not know of {', '.join(selection.unknown)}"
    offered = {item.label for item in candidates} or {candidate.label}
    for ranking in {id(item): item for item in selection.rankings.values()}.values():
        for label in ranking.rejected_labels:
            if label in offered:
                yield f"{name} variant {label}: {'; '.join(why_not(ranking, label))}"
        for notice in notices(ranking):
            if notice.actionable:
                yield notice.text
    if None not in offered:
        yield f"{name} has no non-variant file for this target"


def _rejected(shelf: Shelf, project: str, version: Version) -> str:
    counts = shelf.rejected.get((project, version))
    if not counts:
        return "no file"
    return ", ".join(
        f"{number} {'file' if number == 1 else 'files'} {reason}"
        for reason, number in sorted(counts.items())
    )


def _listed(items: Iterable[str]) -> str:
    found = list(items)
    shown = ", ".join(found[:_MAX_LISTED])
    return f"{shown}, … ({len(found)} in all)" if len(found) > _MAX_LISTED else shown

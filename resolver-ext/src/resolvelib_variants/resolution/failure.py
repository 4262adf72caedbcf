"""Why there is no solution, in words: who wants what, what there is, what each variant needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants.explanation import notices

from ..failure import MAX_VERSIONS, variants_of
from .candidate import Candidate
from .catalog import Catalog
from .errors import NoSolution
from .provider import IndexProvider, Need, Never, split_identifier
from .shelf import Shelf, is_pinned

if TYPE_CHECKING:
    from ..provider import VariantProvider

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
    details: list[str] = []
    wanted: dict[str, list[Need]] = {}
    parents: dict[str, None] = {}
    for cause in sorted(causes, key=lambda item: (str(item.parent or ""), str(item.requirement))):
        requirement, parent = cause.requirement, cause.parent
        project = split_identifier(provider.identify(requirement))[0]
        needs = wanted.setdefault(project, [])
        if isinstance(requirement, Never):
            continue  # said below
        if isinstance(requirement, Need):
            needs.append(requirement)
        details.append(
            f"you asked for {requirement}" if parent is None else f"{parent} needs {requirement}"
        )
        if parent is not None:
            parents.setdefault(parent.project)
    lacking = []
    for project, needs in sorted(wanted.items()):
        facts = list(_facts(project, needs, plain, shelf, catalog))
        unfit = all(not selection.files for _, selection in provider.arranger.judged(project))
        if facts or (unfit and any(True for _ in provider.arranger.judged(project))):
            lacking.append(project)
        details += facts
    for project in dict.fromkeys((*sorted(wanted), *sorted(parents))):
        details += _variants(project, provider, shelf)
    if lacking:
        message = f"nothing fits of {', '.join(lacking)}"
    else:
        message = f"these requirements contradict each other: {', '.join(sorted(wanted))}"
    return NoSolution(message, tuple(dict.fromkeys(details)))


def _facts(
    project: str, needs: Sequence[Need], plain: IndexProvider, shelf: Shelf, catalog: Catalog
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
            yield none_wanted(project, needs, plain, shelf, catalog)
        return  # else every single one can be met: they contradict each other
    pinned = is_pinned(specifiers)
    if any(shelf.candidates(project, version, pinned=pinned) for version in versions):
        return
    facts = [f"{project} {version}: {_rejected(shelf, project, version)}" for version in versions]
    yield from facts[:_MAX_LISTED]
    if len(facts) > _MAX_LISTED:
        yield f"… and {len(facts) - _MAX_LISTED} more versions"


def _variants(
    project: str, provider: VariantProvider[Any, Candidate, str], shelf: Shelf
) -> Iterator[str]:
    """Yield what was decided about the variants of *project*."""
    judged = [
        (version, selection)
        for version, selection in provider.arranger.judged(project)
        if selection.rankings or selection.problems
    ]
    for version, selection in judged[:MAX_VERSIONS]:
        yield from variants_of(project, version, selection)
        if selection.unknown:
            yield f"  the index does not know of {', '.join(selection.unknown)}"
        for ranking in selection.rankings.values():
            for notice in notices(ranking):
                if notice.actionable:
                    yield f"  {notice.text}"
        assert isinstance(version, Version)
        if not selection.files and all(
            item.label is not None for item in shelf.candidates(project, version)
        ):
            yield "  and there is no file that is no variant"
    if len(judged) > MAX_VERSIONS:
        yield f"… and {len(judged) - MAX_VERSIONS} more versions of {project}"


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

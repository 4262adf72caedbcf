"""Why a resolution failed, in words that name variants and what each of them would need."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pep_variants.choose.explanation import table_lines, verdicts
from pep_variants.choose.selection import Selection

if TYPE_CHECKING:
    from .ordering import VariantOrdering

CT = TypeVar("CT")

MAX_VERSIONS = 3
"""How many versions of a project are shown, newest first."""


def explain(
    causes: Iterable[Any],
    ordering: VariantOrdering[CT],
    *,
    describe: Callable[[CT], str],
    projects: Callable[[Any], str],
) -> str:
    """Return the conflict, a line for each cause, and what there is of the projects in it.

    Args:
        causes: of the resolver's `ResolutionImpossible`: pairs of requirement and parent.
        ordering: what decided about variants.
        describe: gives a candidate in words, e.g. ``ext 1.0 (variant cu128)``.
        projects: gives the normalized project name of a requirement or candidate.
    """
    lines: list[str] = []
    named: dict[str, None] = {}
    for requirement, parent in causes:
        if getattr(requirement, "refusal", False):
            continue  # the variant that is chosen has a cause of its own
        who = "you asked for" if parent is None else f"{describe(parent)} needs"
        lines.append(f"{who} {requirement}")
        named.update(dict.fromkeys(projects(item) for item in (requirement, parent) if item))
    lines = list(dict.fromkeys(lines))
    for project in named:
        judged = list(ordering.judged(project))
        for version, selection in judged[:MAX_VERSIONS]:
            lines += variants_of(project, version, selection)
        if len(judged) > MAX_VERSIONS:
            lines.append(f"… and {len(judged) - MAX_VERSIONS} more versions of {project}")
    return "\n".join(lines)


def variants_of(project: str, version: Hashable, selection: Selection[Any]) -> Iterator[str]:
    """Yield lines that show every variant of a version with its verdict."""
    if not selection.rankings and not selection.problems:
        return
    yield f"variants of {project} {version}:"
    for problem in selection.problems.values():
        yield f"  unusable: {problem}"
    rankings = selection.distinct_rankings.values()
    rows = [row for ranking in rankings for row in verdicts(ranking, None)]
    yield from (f"  {line}" for line in table_lines(rows))
    if any(file.label is None for file in selection.files):
        yield "  and the non-variant files"

"""Older versions with a build for the accelerator that is here, where the chosen one has none.

Newer builds need newer drivers or leave out GPUs, and sometimes a release has no builds for
accelerators at all, or not yet. The newest version is taken as always; the functions find out that
an older one has a build, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from ..model.label import NULL_LABEL, ZERO_LABEL
from ..model.metadata import Metadata
from .explanation import DEVICES

if TYPE_CHECKING:
    from ..model.platform import Platform
    from .selection import File, Selection

MAX_VERSIONS = 5
"""Older versions that are judged for this, if their metadata has to be fetched."""

_ACCELERATORS = Metadata(tuple(DEVICES))


def is_accelerated(selection: Selection[Any] | None, file: File[Any] | None) -> bool:
    """Return whether *file* is a build for an accelerator, as its version's *selection* has it."""
    if selection is None or file is None or file.label is None:
        return False
    ranking = selection.rankings.get(file.source)
    return ranking is not None and not DEVICES.keys().isdisjoint(ranking.supported(file.label))


def has_accelerator(platform: Callable[[Metadata], Platform]) -> bool:
    """Return whether the target has an accelerator; *platform* asks the built-in providers."""
    return any(support.features for support in platform(_ACCELERATORS).namespaces.values())


def is_promising(selection: Selection[Any] | None, labels: Collection[str]) -> bool:
    """Return whether an older version with *labels* may have the build that is missed.

    A label that the chosen version has means the same in both, unless that version has builds for
    accelerators: newer builds of the same label leave out GPUs.

    Args:
        selection: of the chosen version, None without variants.
        labels: of the wheels of the older version.
    """
    rankings = [] if selection is None else list(selection.distinct_rankings.values())
    if any(
        not DEVICES.keys().isdisjoint(properties)
        for ranking in rankings
        for properties in ranking.metadata.variants.values()
    ):
        known: set[str] = set()
    else:
        known = {label for ranking in rankings for label in ranking.metadata.variants}
    return bool(set(labels) - known - {NULL_LABEL, ZERO_LABEL})


def displaced_by(
    project: str,
    version: object,
    selection: Selection[Any] | None,
    file: File[Any] | None,
    older: Iterable[tuple[object, Selection[Any] | None]],
) -> str:
    """Return the line about the newest of *older* versions with a build for the accelerator.

    Args:
        project: normalized name.
        version: the chosen one.
        selection: the decision about it, None without variants.
        file: that was chosen.
        older: versions before it with their decisions, newest first. Read no further than needed.

    Returns:
        The line; empty if *file* is such a build, or if no older version has one.
    """
    if is_accelerated(selection, file):
        return ""
    for other, decision in older:
        best = None if decision is None else decision.chosen
        if decision is None or best is None or not is_accelerated(decision, best):
            continue
        lack = f"{project} {version} has no variant for an accelerator"
        if selection is not None and selection.rejected:
            lack = f"{project} {version}: only {_named(file)} fits this machine"
        return f"{lack}; {line_of(project, other, decision)}"
    return ""


def line_of(project: str, version: object, selection: Selection[Any]) -> str:
    """Return the clause about an older *version*, whose *selection* chose a variant."""
    best = selection.chosen
    assert best is not None
    why = selection.why(best)
    return (
        f"{version} has variant {best.label}{f' ({why})' if why else ''}: "
        f"to take it, require {project}=={version}"
    )


def _named(file: File[Any] | None) -> str:
    if file is None or file.label is None:
        return "the non-variant file"
    if file.label in (NULL_LABEL, ZERO_LABEL):
        return "the null variant"
    return f"variant {file.label}"

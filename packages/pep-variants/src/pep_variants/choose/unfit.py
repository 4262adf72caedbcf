"""Versions of which nothing can be installed, because no variant fits.

The line about a newer version that was passed over, and the error where no version is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..model.metadata import natural
from .comparison import (
    joined_labels,
    labels_with_files,
    nearest_first,
    rejected_labels,
)

if TYPE_CHECKING:
    from .selection import Selection

MAX_LISTED = 10
"""Rejected variants in an error; the rest is counted."""


def passed_over(
    project: str,
    passed: Sequence[tuple[object, Selection[Any]]],
    taken: object,
    verb: str = "was chosen",
) -> str:
    """Return the line about releases that were passed over because none of their variants fits.

    Args:
        project: normalized project name.
        passed: version and selection of all that was judged and is newer than *taken*, newest
            first; those that leave a file, or that could not be judged, do not count.
        taken: the version that is installed in their place.
        verb: what was done with it.

    Returns:
        The line; empty if no release was passed over for this reason.
    """
    unfit = [(version, selection) for version, selection in passed if is_unfit(selection)]
    if not unfit:
        return ""
    version, selection = unfit[0]
    others = len(unfit) - 1
    more = f" (and {others} more {'release' if others == 1 else 'releases'})" if others else ""
    reason = next((f" ({label} {why})" for label, why in nearest_first(selection)), "")
    return (
        f"{project} {version}{more} was passed over: none of its variants fits this machine"
        f"{reason}; {project} {taken} {verb}"
    )


def is_unfit(selection: Selection[Any]) -> bool:
    """Return whether a version has nothing to install because all its variants are rejected."""
    if selection.files or not selection.rejected or not selection.rankings:
        return False
    # A label that the user forces leaves out others that would fit.
    return not any(
        ranking is not None and ranking.metadata.label_of(file.label) in ranking.positions
        for file in selection.rejected
        for ranking in (selection.rankings.get(file.source),)
        if file.label is not None
    )


@dataclass(frozen=True)
class Unfit:
    """Why nothing of a version can be installed.

    Attributes:
        summary: one sentence.
        details: a line for each of the variants that come nearest to what the machine has.
        advice: what to do, as a sentence; empty if nothing is known to help.
    """

    summary: str
    details: tuple[str, ...]
    advice: str

    def __str__(self) -> str:
        lines = [self.summary + (":" if self.details else ".")]
        lines += (f"  {line}" for line in self.details)
        return "\n".join([*lines, *filter(None, (self.advice,))])


def nothing_fits(
    project: str,
    version: object,
    selection: Selection[Any],
    *,
    plain: Iterable[object] = (),
    more: str = "-v",
) -> Unfit:
    """Say why nothing of *version* can be installed, label by label, and what helps.

    Args:
        project: normalized project name.
        version: the version, or what names it.
        selection: the decision about it, which leaves no file.
        plain: versions that have a non-variant file, newest first.
        more: the option or command that shows every variant.
    """
    rows = list(nearest_first(selection))
    width = max((len(label) for label, _ in rows[:MAX_LISTED]), default=0)
    details = [f"{label:{width}}  {why}" for label, why in rows[:MAX_LISTED]]
    if len(rows) > MAX_LISTED:
        details.append(f"and {len(rows) - MAX_LISTED} more: {more} shows all")
    details += (str(problem) for problem in selection.problems.values())
    if selection.unknown:
        details.append(f"the index does not say what {joined_labels(selection.unknown)} needs")
    summary = f"None of the variants of {project} {version} fits {_machine(selection)}"
    return Unfit(summary, tuple(details), _advice(project, selection, tuple(plain)))


def _advice(project: str, selection: Selection[Any], plain: Sequence[object]) -> str:
    helpful = []
    if excluded := _excluded(selection):
        helpful.append(f"do not exclude {excluded}")
    if driver := _driver(selection):
        helpful.append(f"update the NVIDIA driver to one that supports CUDA {driver}")
    if plain:
        helpful.append(f"ask for {project}=={plain[0]}, which has a non-variant file")
    described = all(ranking.platform.described for ranking in selection.rankings.values())
    helpful.append(
        "describe the machine that counts with --variant-platform FILE"
        if described
        else "describe the target with --variant-platform FILE"
    )
    return f"What helps: {', or '.join(helpful)}."


def _excluded(selection: Selection[Any]) -> str:
    """Return the preferences that are all there is against some variant; empty if none are."""
    found: dict[str, None] = {}
    for source, ranking in selection.distinct_rankings.items():
        there = labels_with_files(selection, source)
        for label in ranking.rejected_labels:
            reasons = ranking.reasons(label) if label in there else ()
            if all(reason.excluded is not None for reason in reasons):
                found.update((repr(str(reason.excluded)), None) for reason in reasons)
    return " and ".join(found)


def _driver(selection: Selection[Any]) -> str:
    """Return the lowest CUDA version that a variant lacks nothing but; empty if there is none."""
    needed = set()
    for source, ranking in selection.distinct_rankings.items():
        for label in rejected_labels(ranking, labels_with_files(selection, source)):
            reasons = ranking.reasons(label)
            (first, *others) = reasons
            if not others and first[:2] == ("nvidia", "cuda_version_lower_bound"):
                needed.update([min(first.wanted, key=natural)] if first.supported else [])
    return min(needed, key=natural, default="")


def _machine(selection: Selection[Any]) -> str:
    for ranking in selection.distinct_rankings.values():
        if not ranking.platform.described:
            return "the target"
        if ranking.platform.source:
            return f"the machine of {ranking.platform.source}"
    return "this machine"

"""Why a file was chosen, and why no better variant, in a few words.

The functions take a finished `Selection` and do not change it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..model.property import ABI_DEPENDENCY
from .comparison import (
    joined_labels,
    joined_reasons,
    labels_with_files,
    order_if_supported,
    rejected_labels,
    unsupported_namespaces,
)
from .explanation import absent, why_not
from .ranking import Ranking

if TYPE_CHECKING:
    from .selection import File, Selection

_INSTEAD = "instead of"

_CPU = frozenset(("x86_64", "aarch64"))


def choice_line(
    selection: Selection[Any],
    file: File[Any],
    project: str,
    version: object,
    agrees_with: object = None,
) -> str:
    """Return the line that tells of the choice of *file*; empty if there was none.

    Arguments as for `why_this`.
    """
    why = why_this(selection, file, project, agrees_with)
    if not why:
        return ""
    what = "Non-variant file" if file.label is None else f"Variant {file.label}"
    mark = "" if why.startswith(_INSTEAD) else ":"
    return f"{what} for {project} {version}{mark} {why}"


def why_this(
    selection: Selection[Any], file: File[Any], project: str, agrees_with: object = None
) -> str:
    """Return in a few words why *file* of its version, and why nothing better.

    Empty where there was no choice.

    Args:
        selection: the decision about the version.
        file: one of its files, not always the most preferred one.
        project: normalized project name.
        agrees_with: what it was put first to agree with, None for nothing.
    """
    if project in selection.preferences.forced:
        return "asked for"
    if not selection.rankings:
        return ""
    best = selection.chosen.label if selection.chosen else None
    why = selection.why(file)
    if file.label != best:
        reason = f", to agree with {agrees_with}" if agrees_with is not None else ""
        rest = f": {why}" if why else ""
        return f"{_INSTEAD} {best or 'the non-variant file'}{reason}{rest}"
    better = why_not_better(selection, file)
    if why:
        return f"{why}; {better}" if better else why
    fileless = _fileless(selection)
    if fileless:
        which = "it" if len(fileless) == 1 else "them"
        return (
            f"{joined_labels(fileless)} would fit as well, but no wheel of {which} is for this "
            "platform and has an allowed hash"
        )
    plain = f"no {'variant' if file.label is None else 'other variant'} fits"
    return f"{plain} ({better})" if better else plain


def why_not_better(selection: Selection[Any], file: File[Any]) -> str:
    """Return the reason against the variant that is missed most, empty if none is.

    That is the rejected variant that comes first on a machine that supports what it needs, if it
    comes before *file* there. Variants that the user excluded are not missed, nor those for
    accelerators of another kind where *file* is for one that is here, nor those of namespaces
    that the metadata itself makes optional or keeps for other environments.
    """
    for source, ranking in selection.distinct_rankings.items():
        if file.label is not None and selection.rankings.get(file.source) is not ranking:
            continue
        chosen = None if file.label is None else ranking.metadata.label_of(file.label)
        found = missed_clause(ranking, chosen, labels_with_files(selection, source))
        if found:
            return found
    return ""


def missed_clause(ranking: Ranking, chosen: str | None, there: Collection[str]) -> str:
    """Return the clause about the rejected variant that is missed most, empty for none.

    Args:
        ranking: the judged variants.
        chosen: label that was taken, None for a non-variant file.
        there: labels that have a file.
    """
    rejected = rejected_labels(ranking, there)
    own = ranking.supported(chosen) if chosen is not None else {}
    accelerated = bool(own.keys() - _CPU - {ABI_DEPENDENCY})
    unasked = {
        namespace
        for namespace, provider in ranking.metadata.providers.items()
        if provider.optional or provider.enable_if
    }
    lacking: dict[str, frozenset[str]] = {}
    for label in rejected:
        namespaces = unsupported_namespaces(ranking, label)
        # CPUs of another kind are never missed, other accelerators only where there is none.
        if namespaces and (accelerated or namespaces & _CPU or namespaces & unasked):
            continue
        lacking[label] = namespaces
    if not lacking:
        return ""
    labels = list(lacking)
    if chosen is not None and chosen in ranking.metadata.variants:
        labels.append(chosen)
    # Without those with `abi_dependency`: only a resolver can tell whether they would be taken.
    first = next(iter(order_if_supported(ranking, labels)), chosen)
    if first is None or first == chosen:
        return ""
    if not lacking[first]:
        return f"{first} {joined_reasons(why_not(ranking, first))}"
    without = {label: namespaces for label, namespaces in lacking.items() if namespaces}
    return absent(ranking.platform, sorted(frozenset().union(*without.values())), sorted(without))


def _fileless(selection: Selection[Any]) -> list[str]:
    """Return the variants with properties that fit and of which no file is offered, in order."""
    found = []
    for source, ranking in selection.distinct_rankings.items():
        there = labels_with_files(selection, source)
        found += [
            label
            for label in ranking.labels
            if ranking.metadata.variants[label] and label not in there
        ]
    return found

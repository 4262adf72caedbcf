"""The order of rejected variants, and what each of them lacks.

Rejected variants are compared by one rule: they are ranked as the specification has it, for the
same preferences and the same metadata, on a machine that also supports what they need
(`_more_capable`). There a value that this machine lacks counts as better than what it has only
where the values of the feature are known to be steps of a ladder, such as CUDA versions and CPU
levels: then every step contains those below. A build for another GPU is not better than one for
this GPU, only different.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..model.metadata import Metadata, natural
from ..model.platform import Platform, Support
from ..model.property import ABI_DEPENDENCY
from .explanation import why_not
from .ranking import Ranking, rank

if TYPE_CHECKING:
    from .selection import Selection

_MAX_REASONS = 2
"""Reasons against one variant where it is one of several things in a line."""

_LADDERS = frozenset(
    (
        ("nvidia", "cuda_version_lower_bound"),
        ("amd", "rocm_version"),
        ("x86_64", "level"),
        ("aarch64", "version"),
    )
)
"""Features of which a higher value is better, even where the machine supports a single one."""


def nearest_first(selection: Selection[Any]) -> Iterator[tuple[str, str]]:
    """Yield label and reasons of the rejected variants, nearest to what the machine has first."""
    for source, ranking in selection.distinct_rankings.items():
        for label in nearest_labels(ranking, labels_with_files(selection, source)):
            reasons = why_not(ranking, label)
            yield label, joined_reasons(reasons)


def nearest_labels(ranking: Ranking, there: Collection[str]) -> list[str]:
    """Return the rejected labels of *there*: those with the fewest features missing first.

    A namespace of which nothing is supported counts more than any feature, and what the user
    excluded comes last. Among equals, the one that needs least comes first.
    """
    labels = [label for label in ranking.rejected_labels if label in there]
    order = {label: place for place, label in enumerate(order_if_supported(ranking, labels))}

    def distance(label: str) -> tuple[bool, int, int, int, str]:
        reasons = ranking.reasons(label)
        return (
            any(reason.excluded is not None for reason in reasons),
            len(unsupported_namespaces(ranking, label)),
            len(reasons),
            -order.get(label, 0),
            label,
        )

    return sorted(labels, key=distance)


def rejected_labels(ranking: Ranking, there: Collection[str]) -> list[str]:
    """Return the labels of *there* that this machine rejects, and not the user."""
    exclude = ranking.preferences.exclude
    return [
        label
        for label in ranking.rejected_labels
        if label in there
        and not any(selector.matches(ranking.metadata.variants[label]) for selector in exclude)
    ]


def unsupported_namespaces(ranking: Ranking, label: str) -> frozenset[str]:
    """Return the namespaces of a variant of which nothing at all is supported."""
    properties = ranking.metadata.variants[label]
    return frozenset(
        namespace
        for namespace in properties
        if namespace != ABI_DEPENDENCY and not ranking.platform.support(namespace).features
    )


def order_if_supported(ranking: Ranking, labels: Iterable[str]) -> tuple[str, ...]:
    """Return *labels* in their order on a machine that supports what all of them need."""
    variants = {label: ranking.metadata.variants[label] for label in labels}
    metadata = replace(ranking.metadata, variants=variants)
    preferences = replace(ranking.preferences, exclude=())
    return rank(metadata, _more_capable(ranking.platform, metadata), preferences).labels


def _more_capable(platform: Platform, metadata: Metadata) -> Platform:
    """Return *platform* with everything that variants of *metadata* need.

    Values that it lacks are put in where they belong if the feature is a ladder: known to be one,
    or supported in steps from the highest to the lowest. Otherwise they come last, the higher
    ones first. New features come after those that are there.
    """
    namespaces = dict(platform.namespaces)
    for namespace in metadata.namespaces:
        used = metadata.used_values(namespace)
        if namespace == ABI_DEPENDENCY or not used:
            continue
        support = platform.support(namespace)
        features: dict[str, tuple[str, ...]] = dict(support.features)
        for feature, values in used.items():
            has = features.get(feature, ())
            features[feature] = _merged(has, values, (namespace, feature) in _LADDERS)
        namespaces[namespace] = Support(features)
    return replace(platform, namespaces=namespaces)


def _merged(has: Sequence[str], used: Sequence[str], is_ladder: bool) -> tuple[str, ...]:
    new = sorted(set(used) - set(has), key=natural, reverse=True)
    if not is_ladder and (len(has) < 2 or list(has) != sorted(has, key=natural, reverse=True)):
        return (*has, *new)
    # What is supported stays in the order that it has.
    return tuple(heapq.merge(has, new, key=natural, reverse=True))


def labels_with_files(selection: Selection[Any], source: str) -> frozenset[str]:
    """Return the labels that have a file in *source*, or in one that agrees with it."""
    ranking = selection.rankings[source]
    return frozenset(
        ranking.metadata.label_of(file.label)
        for file in (*selection.files, *selection.rejected)
        if file.label is not None and selection.rankings.get(file.source) is ranking
    )


def joined_reasons(reasons: Sequence[str]) -> str:
    """Return *reasons* as one clause, many of them cut short."""
    shown = "; ".join(reasons[:_MAX_REASONS])
    more = len(reasons) - _MAX_REASONS
    if more <= 0:
        return shown
    return f"{shown}; and {more} more {'reason' if more == 1 else 'reasons'}"


def joined_labels(labels: Sequence[str]) -> str:
    """Return *labels* as a list in words, a long one cut short."""
    if len(labels) < 4:
        return f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]
    return f"{', '.join(labels[:2])} and {len(labels) - 2} more variants"

"""In which order providers list features and values, as far as machines show it.

A decision tree is for all machines, described or not, so it has to know what their providers would
say: which feature comes first, and which values imply others (a driver for CUDA 12.9 is one for
CUDA 12.8). Both are taken from the answers for known machines and from static properties.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pep_variants.model.metadata import Metadata, natural
from pep_variants.model.platform import Platform

CPU_FAMILIES = frozenset(("x86_64", "aarch64"))
"""Namespaces of which a machine supports at most one."""


@dataclass(frozen=True)
class Chain:
    """Values of which a machine that supports one supports all that follow.

    Attributes:
        steps: the values that variants use; what implies the most comes first.
    """

    steps: tuple[str, ...]


@dataclass(frozen=True)
class ProviderOrder:
    """What is known of providers, for the features that the variants of a release use.

    Attributes:
        features: features of every namespace, in the order in which they are listed.
        values: values of every feature, in the order in which they are listed; the highest first
            where no machine shows it.
        chains: the features whose values form a chain.
        implied: values that all machines with a value list after it, by namespace, feature and
            value: on a GPU of compute capability 8.9 runs what is built for 8.0, too.
    """

    features: Mapping[str, tuple[str, ...]]
    values: Mapping[tuple[str, str], tuple[str, ...]]
    chains: Mapping[tuple[str, str], Chain]
    implied: Mapping[tuple[str, str, str], tuple[str, ...]] = field(default_factory=dict)


def learn_order(metadata: Metadata, platforms: Iterable[Platform]) -> ProviderOrder:
    """Return what *platforms* show of the features that variants of *metadata* use."""
    known = list(platforms)
    features: dict[str, tuple[str, ...]] = {}
    values: dict[tuple[str, str], tuple[str, ...]] = {}
    chains: dict[tuple[str, str], Chain] = {}
    implied: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for namespace in metadata.namespaces:
        used = metadata.used_values(namespace)
        answers = [platform.support(namespace).features for platform in known]
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.static:
            answers.append(provider.static)
        features[namespace] = _joined([[name for name in a if name in used] for a in answers], used)
        for feature, wanted in used.items():
            lists = [tuple(v for v in answer.get(feature, ()) if v in wanted) for answer in answers]
            descending = tuple(sorted(wanted, key=natural, reverse=True))
            values[namespace, feature] = _joined(lists, descending)
            chain = _chain(descending, [found for found in lists if found])
            if chain is not None:
                chains[namespace, feature] = chain
            for value in wanted:
                after = [found[found.index(value) + 1 :] for found in lists if value in found]
                if after:
                    common = set(after[0]).intersection(*after)
                    kept = tuple(v for v in values[namespace, feature] if v in common)
                    implied[namespace, feature, value] = kept
    return ProviderOrder(features, values, chains, implied)


def _joined(sequences: Iterable[Sequence[str]], names: Iterable[str]) -> tuple[str, ...]:
    """Return *names* in the order of all *sequences*; in their own where these leave it open."""
    order = list(names)
    after: dict[str, set[str]] = {name: set() for name in order}
    for sequence in sequences:
        for one, other in itertools.pairwise(sequence):
            after[other].add(one)
    joined: list[str] = []
    while order:
        # In a circle, which contradictory answers make, the first one goes ahead.
        free = next((name for name in order if after[name] <= set(joined)), order[0])
        order.remove(free)
        joined.append(free)
    return tuple(joined)


def _chain(descending: tuple[str, ...], lists: Sequence[tuple[str, ...]]) -> Chain | None:
    """Return the chain that *lists* of supported values form, None if they do not."""
    if not lists:
        return None
    for steps in (descending, descending[::-1]):
        # One value at a time shows nothing: it may as well exclude the others.
        shown = len(steps) == 1 or any(len(found) > 1 for found in lists)
        if shown and all(set(found) == set(steps[-len(found) :]) for found in lists):
            return Chain(steps)
    return None

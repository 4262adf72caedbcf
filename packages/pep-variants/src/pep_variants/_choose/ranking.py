"""Which variants of a version fit a platform, and in which order (PEP 825, "Variant ordering").

A variant is compatible when every feature it lists has at least one supported value. Compatible
ones are ordered by their best supported value per feature: namespaces first, then features, then
values, each in the order that preferences, metadata and provider give, in this precedence. One
variant that goes on where the other ends comes first; the label decides what is left.

`abi_dependency` takes no part in that comparison (providers draft of September 2026): it is a
condition between candidates, which the resolver sees to. Among variants that are otherwise equal,
and there alone, the order of releases decides before the label where a resolver supplies one
(`abi.supporting`: what is installed, then the newest): by label, the build for the oldest release
of another project would often come first, and hold that project back. A preference of the user's
that names the namespace makes it one like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

from .._gc_pause import paused
from .._model.metadata import Metadata
from .._model.platform import Platform
from .._model.property import ABI_DEPENDENCY, Features, Properties, Selector
from ..labels import NULL_LABEL, ZERO_LABEL
from .preferences import Preferences, unique


class Reason(NamedTuple):
    """Why a variant was rejected, one per feature.

    Attributes:
        namespace, feature: what was not met; feature is empty for a whole namespace.
        wanted: values any of which would do.
        supported: what the platform supports of that feature, most preferred first.
        excluded: the selector of the user's that rules it out, None for incompatibility.
    """

    namespace: str
    feature: str
    wanted: tuple[str, ...]
    supported: tuple[str, ...]
    excluded: Selector | None = None


class RankedVariant(NamedTuple):
    """A compatible variant; `supported` are its properties that the platform supports."""

    label: str
    properties: Properties
    supported: Properties


class RejectedVariant(NamedTuple):
    """A variant that must not be taken, with every reason."""

    label: str
    properties: Properties
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Ranking:
    """The variants of one version, judged and ordered.

    Attributes:
        metadata: what was ranked.
        platform: for which platform.
        preferences: of the user.
        labels: compatible labels, the most preferred first.
    """

    metadata: Metadata
    platform: Platform
    preferences: Preferences
    labels: tuple[str, ...]

    @cached_property
    def rejected_labels(self) -> tuple[str, ...]:
        """The other labels, ascending."""
        return tuple(sorted({*self.metadata.variants}.difference(self.labels)))

    @cached_property
    def _places(self) -> _Places:
        return _places(self.metadata, self.platform, self.preferences)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Place of every compatible label of a filename, 0 is the most preferred.

        The null label is among them even if the metadata does not list it.
        """
        places = {label: place for place, label in enumerate(self.labels)}
        places.setdefault(NULL_LABEL, len(places))
        if self.metadata.label_of(ZERO_LABEL) == NULL_LABEL:
            places[ZERO_LABEL] = places[NULL_LABEL]
        return places

    @cached_property
    def ranked(self) -> tuple[RankedVariant, ...]:
        """Every compatible variant, the most preferred first."""
        return tuple(
            RankedVariant(label, self.metadata.variants[label], self.supported(label))
            for label in self.labels
        )

    @cached_property
    def rejected(self) -> tuple[RejectedVariant, ...]:
        """Every other variant with its reasons, labels ascending."""
        return tuple(
            RejectedVariant(label, self.metadata.variants[label], self.reasons(label))
            for label in self.rejected_labels
        )

    def supported(self, label: str) -> Properties:
        """Return the properties of *label* filtered to what the platform supports.

        Values come most preferred first; namespaces and features in ranking order.
        """
        properties = self.metadata.properties_of(label) or {}
        supported: dict[str, Features] = {}
        for namespace, places in self._places.items():
            features: list[tuple[int, str, tuple[str, ...]]] = []
            for feature, values in properties.get(namespace, {}).items():
                by_value = places.get(feature, {})
                # Calls in C, as there may be a million values.
                ranked = list(filter(by_value.__contains__, values))
                if ranked:
                    ranked.sort(key=by_value.__getitem__)
                    features.append((by_value[ranked[0]], feature, tuple(ranked)))
            if features:
                features.sort()
                supported[namespace] = {feature: ranked for _, feature, ranked in features}
        return supported

    def reasons(self, label: str) -> tuple[Reason, ...]:
        """Return why *label* is rejected; empty if it is compatible or not known at all."""
        properties = self.metadata.properties_of(label) or {}
        reasons = []
        for selector in self.preferences.exclude:
            if selector.matches(properties):
                features = properties[selector.namespace]
                wanted = features[selector.feature] if selector.feature else ()
                reasons.append(
                    Reason(selector.namespace, selector.feature or "", wanted, (), selector)
                )
        for namespace, features in sorted(properties.items()):
            offered = self.platform.support(namespace).features
            places = self._places.get(namespace, {})
            for feature, wanted in sorted(features.items()):
                by_value = places.get(feature, {})
                if not any(value in by_value for value in wanted):
                    supported = tuple(offered.get(feature, ()))
                    reasons.append(Reason(namespace, feature, wanted, supported))
        return tuple(reasons)


_Places = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Namespace to feature to value to the value's place in the ranking order, 0 is the best."""

_END = 1 << 62
_MANY = 1000


def rank(metadata: Metadata, platform: Platform, preferences: Preferences | None = None) -> Ranking:
    """Judge and order every variant that *metadata* lists.

    The result depends on the arguments alone, never on the order of their mappings' keys where
    that order carries no meaning.

    >>> from pep_variants.machines import load_machine
    >>> from pep_variants.metadata import Metadata
    >>> from pep_variants.selection import rank
    >>> drivers = {"cu126": "12.6", "cu128": "12.8", "cu130": "13.0"}
    >>> variants = {
    ...     label: {"nvidia": {"cuda_version_lower_bound": (driver,)}}
    ...     for label, driver in drivers.items()
    ... }
    >>> ranking = rank(Metadata(("nvidia",), variants), load_machine("cuda=12.8"))
    >>> ranking.labels
    ('cu128', 'cu126')
    >>> [variant.label for variant in ranking.rejected]
    ['cu130']
    """
    with paused(len(metadata.variants) > _MANY):
        return _rank(metadata, platform, preferences or Preferences())


def _rank(metadata: Metadata, platform: Platform, preferences: Preferences) -> Ranking:
    places = _places(metadata, platform, preferences)
    abi_counts = ABI_DEPENDENCY in preferences.namespace_order()
    # Variants that list the same in a namespace share one mapping (see `reader`), which is judged
    # once. The mappings outlive this function, so their identity is a key.
    judged: dict[tuple[str, int], list[int] | None] = {}
    compatible: list[tuple[list[int], list[int], str]] = []
    for label, properties in metadata.variants.items():
        key: list[int] = []
        tie = [_END] if label == NULL_LABEL else []  # last also where no feature counts
        for namespace, features in properties.items():
            identity = namespace, id(features)
            if identity not in judged:
                judged[identity] = _best(namespace, features, places, preferences)
            best = judged[identity]
            if best is None:
                break
            if namespace == ABI_DEPENDENCY and not abi_counts:
                tie = sorted(best) or tie
            else:
                key += best
        else:
            # Indices ascend with namespaces, then features: sorted, they are compared in that
            # order. The end sorts behind everything: the longer of two keys comes first.
            key.sort()
            key.append(_END)
            compatible.append((key, tie, label))
    compatible.sort()
    return Ranking(metadata, platform, preferences, tuple([label for *_, label in compatible]))


def _places(metadata: Metadata, platform: Platform, preferences: Preferences) -> _Places:
    # One integer per (namespace, feature, value): comparing them is comparing the three indices.
    places: dict[str, dict[str, dict[str, int]]] = {}
    base = 0
    for namespace in _namespaces(metadata, preferences):
        offered = _ordered(namespace, metadata, platform, preferences)
        by_feature = places[namespace] = {}
        for feature, values in offered.items():
            by_feature[feature] = {value: base + index for index, value in enumerate(values)}
            base += len(values)
    return places


def _best(
    namespace: str, features: Features, places: _Places, preferences: Preferences
) -> list[int] | None:
    """Return the index of the best supported value of each feature, None if the variant is unfit.

    It is where a feature has no supported value, and where the user excludes one of the features.
    """
    for selector in preferences.exclude:
        if selector.namespace == namespace and selector.matches({namespace: features}):
            return None
    table = places.get(namespace, {})
    best = []
    for feature, values in features.items():
        indices = table.get(feature, {})
        index = min(map(indices.get, values, repeat(_END)), default=_END)
        if index == _END:
            return None
        best.append(index)
    return best


def _namespaces(metadata: Metadata, preferences: Preferences) -> tuple[str, ...]:
    namespaces = dict.fromkeys((*metadata.namespaces, ABI_DEPENDENCY))
    wanted = (namespace for namespace in preferences.namespace_order() if namespace in namespaces)
    return unique((*wanted, *namespaces))


def _ordered(
    namespace: str, metadata: Metadata, platform: Platform, preferences: Preferences
) -> dict[str, tuple[str, ...]]:
    """Return the support of *platform* in *namespace*, features and values in ranking order."""
    offered = platform.support(namespace).features
    first = (*preferences.feature_order(namespace), *metadata.feature_priorities.get(namespace, ()))
    default = metadata.property_priorities.get(namespace, {})
    ordered = {}
    features = (*(name for name in first if name in offered), *offered) if first else offered
    for feature in unique(features):
        values = offered[feature]
        front = (*preferences.value_order(namespace, feature), *default.get(feature, ()))
        if front:
            there = frozenset(values)
            values = unique((*(value for value in front if value in there), *values))
        ordered[feature] = values
    return ordered

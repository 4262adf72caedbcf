"""Which variants of a version fit a platform, and in which order (PEP 825, "Variant ordering").

A variant is compatible when every feature it lists has at least one supported value. Compatible
ones are ordered by their best supported value per feature: namespaces first, then features, then
values, each in the order that preferences, metadata and provider give, in this precedence. One
variant that goes on where the other ends comes first; the label decides what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .collection import paused
from .label import NULL_LABEL, ZERO_LABEL
from .metadata import Metadata
from .platform import Platform
from .preferences import Preferences, unique
from .property import ABI_DEPENDENCY, Features, Properties, Selector


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
        preferences: with whose wishes.
        labels: compatible labels, the most preferred first.
        rejected_labels: the others, ascending.
    """

    metadata: Metadata
    platform: Platform
    preferences: Preferences
    labels: tuple[str, ...]
    rejected_labels: tuple[str, ...]

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
        for namespace in _namespaces(self.metadata, self.preferences):
            if namespace not in properties:
                continue
            wanted = properties[namespace]
            offered = _ordered(namespace, self.metadata, self.platform, self.preferences)
            features = {
                feature: tuple(value for value in values if value in wanted[feature])
                for feature, values in offered.items()
                if feature in wanted
            }
            kept = {feature: values for feature, values in features.items() if values}
            if kept:
                supported[namespace] = kept
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
            for feature, wanted in sorted(features.items()):
                supported = offered.get(feature, ())
                if not any(value in supported for value in wanted):
                    reasons.append(Reason(namespace, feature, wanted, tuple(supported)))
        return tuple(reasons)


_END = 1 << 62
_MANY = 1000


def rank(metadata: Metadata, platform: Platform, preferences: Preferences | None = None) -> Ranking:
    """Judge and order every variant that *metadata* lists.

    The result depends on the arguments alone, never on the order of their mappings' keys where
    that order carries no meaning.
    """
    with paused(len(metadata.variants) > _MANY):
        return _rank(metadata, platform, preferences or Preferences())


def _rank(metadata: Metadata, platform: Platform, preferences: Preferences) -> Ranking:
    # One integer per (namespace, feature, value): comparing them is comparing the three indices.
    table: dict[str, dict[str, dict[str, int]]] = {}
    base = 0
    for namespace in _namespaces(metadata, preferences):
        offered = _ordered(namespace, metadata, platform, preferences)
        by_feature = table[namespace] = {}
        for feature, values in offered.items():
            by_feature[feature] = {value: base + index for index, value in enumerate(values)}
            base += len(values)
    # Variants that list the same in a namespace share one mapping (see `reader`), which is judged
    # once. The mappings outlive this function, so their identity is a key.
    judged: dict[str, dict[int, list[int] | None]] = {name: {} for name in table}
    keyed: list[tuple[list[int], str]] = []
    rejected: list[str] = []
    exclude = preferences.exclude
    for label, properties in metadata.variants.items():
        if exclude and any(selector.matches(properties) for selector in exclude):
            rejected.append(label)
            continue
        key: list[int] = []
        for namespace, features in properties.items():
            try:
                indices = judged[namespace][id(features)]
            except KeyError:
                indices = _best(features, table.get(namespace, {}))
                judged.setdefault(namespace, {})[id(features)] = indices
            if indices is None:
                rejected.append(label)
                break
            key += indices
        else:
            key.sort()
            # The end of a key sorts behind everything: the longer of two keys comes first.
            key.append(_END)
            keyed.append((key, label))
    keyed.sort()
    rejected.sort()
    labels = tuple([label for _, label in keyed])
    return Ranking(metadata, platform, preferences, labels, tuple(rejected))


def _best(features: Features, table: Mapping[str, Mapping[str, int]]) -> list[int] | None:
    """Return the index of the best supported value of each feature, None if one has none."""
    best = []
    for feature, values in features.items():
        indices = table.get(feature, {})
        supported = [indices[value] for value in values if value in indices]
        if not supported:
            return None
        best.append(min(supported))
    return best


def _namespaces(metadata: Metadata, preferences: Preferences) -> tuple[str, ...]:
    known = (*metadata.namespaces, ABI_DEPENDENCY)
    wanted = (namespace for namespace in preferences.namespace_order() if namespace in known)
    return unique((*wanted, *known))


def _ordered(
    namespace: str, metadata: Metadata, platform: Platform, preferences: Preferences
) -> dict[str, tuple[str, ...]]:
    """Return what *platform* supports in *namespace*, features and values in ranking order."""
    offered = platform.support(namespace).features
    first = (*preferences.feature_order(namespace), *metadata.feature_priorities.get(namespace, ()))
    default = metadata.property_priorities.get(namespace, {})
    ordered = {}
    for feature in unique((*(name for name in first if name in offered), *offered)):
        values = offered[feature]
        front = (*preferences.value_order(namespace, feature), *default.get(feature, ()))
        if front:
            values = unique((*(value for value in front if value in values), *values))
        ordered[feature] = values
    return ordered

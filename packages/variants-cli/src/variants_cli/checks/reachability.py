"""Variants that no machine chooses by default, because another one always comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pep_variants.model.label import NULL_LABEL
from pep_variants.model.property import ABI_DEPENDENCY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pep_variants.model.metadata import Metadata
    from pep_variants.model.property import Features


@dataclass(frozen=True)
class Offer:
    """What is known of the provider of a namespace on every machine.

    Attributes:
        order: its features, most preferred first; empty if unknown.
        always: values by feature that every machine supports, in preference order: static
            properties. None for a provider whose answer depends on the machine.
    """

    order: tuple[str, ...] = ()
    always: Features | None = None


def unreachable(metadata: Metadata, offers: Mapping[str, Offer]) -> Iterator[tuple[str, str]]:
    """Yield each label that another label outranks on every compatible machine, and that label.

    This holds without preferences of the user, and if both have a wheel for the same platform tags.
    Only certain results are returned. Variants that no machine supports are skipped.

    Args:
        metadata: of one version.
        offers: by namespace; for others nothing is certain.
    """
    variants = dict(metadata.variants)
    variants.setdefault(NULL_LABEL, {})
    judge = _Judge(metadata, offers)
    for label in [label for label in variants if judge.never_fits(variants[label])]:
        del variants[label]
    outranked: dict[str, str] = {}
    for label, properties in sorted(variants.items()):
        for other, others in sorted(variants.items()):
            # Name a variant that can be chosen itself.
            if other == label or other in outranked or properties == others:
                continue
            if judge.always_before((other, others), (label, properties)):
                outranked[label] = other
                yield label, other
                break


class _Judge:
    def __init__(self, metadata: Metadata, offers: Mapping[str, Offer]) -> None:
        self._metadata = metadata
        self._offers = offers

    def never_fits(self, properties: Mapping[str, Features]) -> bool:
        """Return whether static properties exclude every machine for *properties*."""
        for namespace, features in properties.items():
            always = self._offers.get(namespace, Offer()).always
            if always is not None and any(
                not set(values) & set(always.get(feature, ()))
                for feature, values in features.items()
            ):
                return True
        return False

    def always_before(
        self,
        first: tuple[str, Mapping[str, Features]],
        second: tuple[str, Mapping[str, Features]],
    ) -> bool:
        """Return whether *first* is compatible and comes first wherever *second* is compatible.

        Walks along both keys as the ranking would compare them (PEP 825, "Variant ordering").
        """
        if not self._fits_wherever(first[1], second[1]):
            return False
        for namespace in self._metadata.namespaces:
            if namespace == ABI_DEPENDENCY:
                continue  # not part of the order
            ours, theirs = first[1].get(namespace, {}), second[1].get(namespace, {})
            if not ours and not theirs:
                continue
            order = self._feature_order(namespace, ours.keys() | theirs.keys())
            if order is None:
                if ours.keys() != theirs.keys():
                    return False
                order = sorted(ours)
            offer = self._offers.get(namespace, Offer())
            for feature in order:
                if feature not in ours:
                    return False  # the variant with more features comes first
                if feature not in theirs:
                    return True
                if offer.always is not None:
                    places = [
                        self._place(namespace, feature, offer.always, features[feature])
                        for features in (ours, theirs)
                    ]
                    if places[0] != places[1]:
                        return places[0] < places[1]
                # Otherwise ours has every value of theirs: it comes first, or both are equal.
        return first[0] < second[0]

    def _fits_wherever(self, first: Mapping[str, Features], second: Mapping[str, Features]) -> bool:
        for namespace, features in first.items():
            always = self._offers.get(namespace, Offer()).always or {}
            for feature, values in features.items():
                if set(values) & set(always.get(feature, ())):
                    continue
                theirs = second.get(namespace, {}).get(feature)
                if theirs is None or not set(theirs) <= set(values):
                    return False
        return True

    def _feature_order(self, namespace: str, features: set[str]) -> Sequence[str] | None:
        offer = self._offers.get(namespace, Offer())
        known = (*self._metadata.feature_priorities.get(namespace, ()), *offer.order)
        order = [feature for feature in dict.fromkeys(known) if feature in features]
        return order if len(order) == len(features) else None

    def _place(self, namespace: str, feature: str, always: Features, values: Sequence[str]) -> int:
        """Return the place of the best of *values* that every machine supports."""
        supported = always.get(feature, ())
        first = self._metadata.property_priorities.get(namespace, {}).get(feature, ())
        order = dict.fromkeys((*(value for value in first if value in supported), *supported))
        places = {value: place for place, value in enumerate(order)}
        return min((places[value] for value in values if value in places), default=len(places))

"""Reading names, features and properties out of variant metadata, within limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from .. import limits
from ..errors import shortened
from ..model.property import (
    ABI_DEPENDENCY,
    NAME,
    VALUE,
    Features,
)
from .tree import Tree


class PropertyTree(Tree):
    """A `Tree` of JSON or TOML that has namespaces, features and values in it."""

    def __init__(self, error: Callable[[str, str], Exception], kind: str = "object") -> None:
        """Set up for one document, as `Tree`."""
        super().__init__(error, kind)

    def check_count(self, value: Collection[object], path: str, most: int, kind: str) -> None:
        """Refuse more than *most* items."""
        if len(value) > most:
            raise self.error(path, f"{len(value)} {kind}, at most {most} are read")

    def check_length(self, value: str, path: str, most: int) -> None:
        """Refuse more than *most* characters."""
        if len(value) > most:
            raise self.error(
                path, f"{shortened(value)} has {len(value)} characters, at most {most} are read"
            )

    def name(self, value: object, path: str, pattern: re.Pattern[str], kind: str) -> str:
        """Return *value*, a string that matches *pattern*; *kind* says what it is."""
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.error(
                path, f"{shortened(value)} is not a valid {kind}: it must match {pattern.pattern}"
            )
        return value

    def names(
        self,
        value: object,
        path: str,
        pattern: re.Pattern[str],
        *,
        most: int = limits.VALUES,
        unique: bool = True,
    ) -> tuple[str, ...]:
        """Return *value*, a list of strings that match *pattern*.

        Args:
            value: the list.
            path: its place.
            pattern: of each item.
            most: items that it may have.
            unique: refuse an item that is listed twice.
        """
        if not isinstance(value, list):
            raise self.expected("a list of strings", value, path)
        self.check_count(value, path, most, "entries")
        for item in value:
            self.name(item, path, pattern, "entry")
        if unique and len(set(value)) != len(value):
            seen: set[str] = set()
            for item in value:
                if item in seen:
                    raise self.error(path, f"{shortened(item)} is listed twice")
                seen.add(item)
        return tuple(value)

    def properties(self, value: object, path: str) -> dict[str, Features]:
        """Return *value*, values by feature by namespace."""
        value = self.mapping(value, path)
        self.check_count(value, path, limits.NAMESPACES, "namespaces")
        return {
            self.name(namespace, path, NAME, "namespace"): self.features(
                features, f"{path}.{namespace}", VALUE
            )
            for namespace, features in value.items()
        }

    def features(
        self, value: object, path: str, pattern: re.Pattern[str]
    ) -> dict[str, tuple[str, ...]]:
        """Return *value*, lists by name whose items match *pattern*."""
        value = self.mapping(value, path)
        self.check_count(value, path, limits.FEATURES, "entries")
        return {
            self.name(name, path, NAME, "name"): self.names(items, f"{path}.{name}", pattern)
            for name, items in value.items()
        }

    def variant_features(
        self, value: object, label: str, namespace: str, namespaces: frozenset[str]
    ) -> Features:
        """Return *value*, what the variant *label* lists of *namespace*; values are ascending.

        Args:
            value: lists by feature.
            label: of the variant.
            namespace: of the features.
            namespaces: those of ``default-priorities.namespace``.
        """
        if namespace not in namespaces and namespace != ABI_DEPENDENCY:
            self.name(namespace, f"variants.{label}", NAME, "namespace")
            raise self.error(
                f"variants.{label}.{namespace}", "is not listed in default-priorities.namespace"
            )
        path = f"variants.{label}.{namespace}"
        features = self.mapping(value, path)
        self.check_count(features, path, limits.FEATURES, "features")
        checked = {}
        for feature, values in features.items():
            self.name(feature, path, NAME, "feature")
            place = f"{path}.{feature}"
            if not self.names(values, place, VALUE, unique=False):
                raise self.error(place, "needs at least one value")
            checked[feature] = tuple(sorted(set(values)))
        return checked


def in_order(features: Features, first: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return *features* with those named in *first* in front, the others after in their order."""
    return {feature: features[feature] for feature in (*first, *features) if feature in features}

"""Reading names, features and properties out of variant metadata, within limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from .. import limits
from ..errors import shortened
from ..model.property import (
    ABI_DEPENDENCY,
    NAME,
    NAME_CHARACTERS,
    VALUE,
    VALUE_CHARACTERS,
    Features,
)
from .tree import Tree

_JOINED = {
    NAME: (NAME_CHARACTERS, limits.NAME_LENGTH),
    VALUE: (VALUE_CHARACTERS, limits.VALUE_LENGTH),
}
"""What many names at once are checked with, in an eighth of the time of one after the other."""


class PropertyTree(Tree):
    """A `Tree` of JSON or TOML that has namespaces, features and values in it."""

    def __init__(self, error: Callable[[str, str], Exception], kind: str = "object") -> None:
        """Set up for one document, as `Tree`."""
        super().__init__(error, kind)
        self._features: set[str] = set()  # names that were checked
        self._values: set[str] = set()

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
        if pattern not in _JOINED or not all_match(_JOINED[pattern][0], value, _JOINED[pattern][1]):
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
            if feature not in self._features:
                self._features.add(self.name(feature, path, NAME, "feature"))
            distinct = self._distinct(values, f"{path}.{feature}")
            if len(distinct) > 1:
                # Lists usually are in order and have no value twice, so that sorting is quick.
                values = sorted(values if len(distinct) == len(values) else distinct)
                checked[feature] = tuple(values)
            else:
                checked[feature] = tuple(distinct)
        return checked

    def _distinct(self, values: object, path: str) -> set[str]:
        """Return *values*, a list of at least one feature value, as a set."""
        try:
            if type(values) is list and 0 < len(values) <= limits.VALUES:
                distinct = set(values)
                new = distinct - self._values
                if not new:
                    return distinct
                if all_match(VALUE_CHARACTERS, new, limits.VALUE_LENGTH):
                    self._values |= new
                    return distinct
        except TypeError:  # a list or a table in it
            pass
        if not self.names(values, path, VALUE, unique=False):
            raise self.error(path, "needs at least one value")
        raise AssertionError(f"{shortened(values)} is accepted one by one, but not as a whole")


def all_match(characters: re.Pattern[str], items: Collection[str], length: int) -> bool:
    """Return whether *items* are strings, one or more, of *characters* and at most *length* long.

    *characters* is one class of characters, repeated: the items match it if they do joined.
    """
    try:
        return (
            "" not in items
            and max(map(len, items), default=0) <= length
            and characters.fullmatch("".join(items)) is not None
        )
    except TypeError:
        return False


def in_order(features: Features, first: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return *features* with those named in *first* in front, the others after in their order."""
    return {feature: features[feature] for feature in (*first, *features) if feature in features}

"""Strict reading of parsed TOML and JSON.

Every value is checked when it is read, and every error names the place of the value. The readers
of variant metadata, platform files, settings, matrices and targets all use this one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from .. import limits
from .._model.property import ABI_DEPENDENCY, NAME, VALUE, Features
from ..errors import shortened
from . import toml


class Tree:
    """Checked access to the values of one document.

    Methods that take *tree*, *key* and *path* read the value of a key: *tree* is the mapping and
    *path* its place, empty for the document itself. A missing key gives the default.
    """

    def __init__(self, error: Callable[[str, str], Exception], kind: str = "table") -> None:
        """Set up for one document.

        Args:
            error: makes the error of the path of a value and the problem with it.
            kind: what the format calls a mapping: ``table`` or ``object``.
        """
        self.error = error
        self._mapping = f"an {kind}" if kind == "object" else f"a {kind}"

    def load_toml(self, data: bytes | str) -> dict[str, Any]:
        """Parse a TOML document, within the limits of `toml`."""
        try:
            return toml.read_toml(data if isinstance(data, str) else data.decode())
        except (ValueError, RecursionError) as error:
            raise self.error("", f"not valid TOML: {error}") from None

    def check_keys(self, tree: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
        """Refuse keys other than *known*: they are misspelled."""
        known = tuple(known)
        for key in tree:
            if key not in known:
                place = joined(path, shortened(key, 80)[1:-1])
                raise self.error(place, f"unknown key; the keys are {', '.join(known)}")

    def mapping(self, value: object, path: str) -> dict[str, Any]:
        """Return *value*, a mapping."""
        if not isinstance(value, dict):
            raise self.expected(self._mapping, value, path)
        return value

    def table(self, tree: Mapping[str, Any], key: str, path: str = "") -> dict[str, Any]:
        """Return the mapping at *key*, by default an empty one."""
        return self.mapping(tree.get(key, {}), joined(path, key))

    def tables(self, tree: Mapping[str, Any], key: str, path: str = "") -> list[dict[str, Any]]:
        """Return the list of mappings at *key*, by default an empty one."""
        value = tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.expected(f"tables such as [[{key}]]", value, joined(path, key))
        return value

    def string(self, tree: Mapping[str, Any], key: str, path: str = "") -> str | None:
        """Return the string at *key*, None by default."""
        value = tree.get(key)
        if value is not None and not isinstance(value, str):
            raise self.expected("a string", value, joined(path, key))
        return value

    def boolean(self, tree: Mapping[str, Any], key: str, path: str, default: bool) -> bool:
        """Return the boolean at *key*."""
        value = tree.get(key, default)
        if not isinstance(value, bool):
            raise self.expected("true or false", value, joined(path, key))
        return value

    def strings(self, tree: Mapping[str, Any], key: str, path: str = "") -> tuple[str, ...]:
        """Return the list of strings at *key*, by default an empty one."""
        return self.string_list(tree.get(key, []), joined(path, key))

    def string_list(
        self, value: object, path: str, expected: str = "a list of strings"
    ) -> tuple[str, ...]:
        """Return *value*, a list of strings; *expected* says so in the error."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.expected(expected, value, path)
        return tuple(value)

    def expected(self, what: str, value: object, path: str) -> Exception:
        """Return the error of a *value* of the wrong type."""
        return self.error(path, f"expected {what}, found {shortened(value)}")


def joined(path: str, key: str) -> str:
    """Return the path of *key* in the mapping at *path*."""
    return f"{path}.{key}" if path else key


class PropertyTree(Tree):
    """A `Tree` of JSON or TOML that has namespaces, features and values in it."""

    most: int = limits.VALUES
    """The most values in one list."""

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
        most: int | None = None,
        unique: bool = True,
    ) -> tuple[str, ...]:
        """Return *value*, a list of strings that match *pattern*.

        Args:
            value: the list.
            path: its place.
            pattern: of each item.
            most: items that it may have, `PropertyTree.most` by default.
            unique: refuse an item that is listed twice.
        """
        if not isinstance(value, list):
            raise self.expected("a list of strings", value, path)
        self.check_count(value, path, self.most if most is None else most, "entries")
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

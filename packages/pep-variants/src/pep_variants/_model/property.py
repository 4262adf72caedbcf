"""Properties and what names several of them: grammar, parsing and text form (PEP 825)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..errors import InvalidProperty, shortened
from ..limits import NAME_LENGTH, VALUE_LENGTH

ABI_DEPENDENCY = "abi_dependency"
"""Reserved namespace: features are packages of the same resolution, values their versions."""

NAME = re.compile(rf"[a-z0-9_]{{1,{NAME_LENGTH}}}")
VALUE = re.compile(rf"[a-z0-9_.]{{1,{VALUE_LENGTH}}}")

Features = Mapping[str, tuple[str, ...]]
"""Feature name to values. In a variant the values are a sorted set, from a provider an order."""

Properties = Mapping[str, Features]
"""Namespace to feature name to values: everything one label stands for."""


class Property(NamedTuple):
    """One ``namespace :: feature :: value`` triple."""

    namespace: str
    feature: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Property:
        """Parse *text*; white space around ``::`` does not matter.

        Raises:
            InvalidProperty: *text* is not a triple of well-formed names.
        """
        selector = Selector.parse(text)
        if selector.feature is None or selector.value is None:
            raise InvalidProperty(
                f"{shortened(text)} is not a property: write 'namespace :: feature :: value'"
            )
        return cls(selector.namespace, selector.feature, selector.value)

    def __str__(self) -> str:
        return " :: ".join(self)


class Selector(NamedTuple):
    """Subject of a preference: a namespace, a feature of it, or one property.

    ``feature`` and ``value`` are None where the selector means all of them.
    """

    namespace: str
    feature: str | None = None
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Parse ``ns``, ``ns :: feature`` or ``ns :: feature :: value``.

        Raises:
            InvalidProperty: more than three parts, or a part with characters that are not allowed.
        """
        parts = [part.strip() for part in text.split("::")]
        if len(parts) > 3:
            raise InvalidProperty(
                f"{shortened(text)} has {len(parts)} parts: "
                "write 'namespace', 'namespace :: feature' or 'namespace :: feature :: value'"
            )
        for part, kind, grammar in zip(
            parts, ("namespace", "feature", "value"), (NAME, NAME, VALUE), strict=False
        ):
            if not grammar.fullmatch(part):
                raise InvalidProperty(
                    f"{shortened(part)} in {shortened(text)} is not a valid {kind}: "
                    f"it must match {grammar.pattern}"
                )
        return cls(*parts)

    def matches(self, properties: Properties) -> bool:
        """Return whether a variant with *properties* has what the selector names."""
        features = properties.get(self.namespace)
        if not features:
            return False
        if self.feature is None:
            return True
        values = features.get(self.feature)
        return values is not None and (self.value is None or self.value in values)

    def __str__(self) -> str:
        return " :: ".join(part for part in self if part is not None)


def properties_tree(
    properties: Properties, *, ascending: bool = False
) -> dict[str, dict[str, list[str]]]:
    """Return *properties* as JSON data, in their order or with ascending names.

    >>> from pep_variants.metadata import properties_tree
    >>> properties_tree({"x86_64": {"level": ("v3", "v2")}})
    {'x86_64': {'level': ['v3', 'v2']}}
    """
    if ascending:
        properties = {name: dict(sorted(properties[name].items())) for name in sorted(properties)}
    return {
        namespace: {feature: list(values) for feature, values in features.items()}
        for namespace, features in properties.items()
    }


def iter_properties(properties: Properties) -> Iterator[Property]:
    """Yield every triple of *properties*, in their order."""
    for namespace, features in properties.items():
        for feature, values in features.items():
            for value in values:
                yield Property(namespace, feature, value)


def group_properties(properties: Iterable[Property]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return *properties* by namespace and feature, values in their order: as `Properties`.

    >>> from pep_variants.metadata import Property, group_properties
    >>> group_properties([Property.parse("nvidia :: sm_arch :: 90_real")])
    {'nvidia': {'sm_arch': ('90_real',)}}
    """
    grouped: dict[str, dict[str, tuple[str, ...]]] = {}
    for namespace, feature, value in properties:
        features = grouped.setdefault(namespace, {})
        features[feature] = (*features.get(feature, ()), value)
    return grouped

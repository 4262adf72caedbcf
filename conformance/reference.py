"""The rules of variant wheels, transcribed from PEP 825 and the earlier drafts.

Slow and literal on purpose, and without any code of the engine: where both agree, the engine does
what the text says. The generated families take their expectations from here. Documents are the
parsed JSON; namespaces, features and values are strings throughout.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Properties = Mapping[str, Mapping[str, Sequence[str]]]
"""Namespace to feature to values: properties of a variant, or what a machine supports."""
Triple = tuple[str, str, str]


class InconsistentDocuments(Exception):
    """Documents of one version contradict each other; the argument is the key."""


# PEP 825, "Metadata consistency".


def combine(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the union of *documents*, which have no providers."""
    namespaces: list[str] = []
    variants: dict[str, Properties] = {}
    for document in documents:
        listed = document["default-priorities"]["namespace"]
        shorter, longer = sorted((namespaces, listed), key=len)
        if longer[: len(shorter)] != shorter:
            raise InconsistentDocuments("default-priorities.namespace")
        namespaces = longer
        for label, properties in document["variants"].items():
            if label in variants and set(triples(variants[label])) != set(triples(properties)):
                raise InconsistentDocuments(f"variants.{label}")
            variants[label] = properties
    return {
        **documents[0],
        "default-priorities": {"namespace": namespaces},
        "variants": variants,
    }


# PEP 825, "Variant properties".


def triples(properties: Properties) -> list[Triple]:
    """Return every property of a variant."""
    return [
        (namespace, feature, value)
        for namespace, features in properties.items()
        for feature, values in features.items()
        for value in values
    ]


def is_supported(triple: Triple, machine: Properties) -> bool:
    """Return whether the machine supports one property."""
    namespace, feature, value = triple
    return value in machine.get(namespace, {}).get(feature, [])


def unfit_features(properties: Properties, machine: Properties) -> list[str]:
    """Return the features, ``namespace :: feature``, of which no value is supported."""
    return [
        f"{namespace} :: {feature}"
        for namespace, features in properties.items()
        for feature, values in features.items()
        if not any(is_supported((namespace, feature, value), machine) for value in values)
    ]


# PEP 817, "Providers", "Provider information" and "Static properties"; the schemas of the drafts.

WITH_PRIORITIES = ("0.0.1", "0.0.2", "0.0.3", "0.1.0")
"""Generations in which ``default-priorities`` has ``feature`` and ``property``."""


def supported(
    document: Mapping[str, Any],
    machine: Properties,
    generation: str,
    enabled: Sequence[str] = (),
    applies: Sequence[str] = (),
) -> dict[str, dict[str, list[str]]]:
    """Return what counts as supported, features and values in the order of the provider.

    What the user says of the *machine* goes before what the document says of that namespace.
    *enabled* has the namespaces of optional providers that the user enabled, *applies* the
    ``enable-if`` markers that hold.
    """
    found: dict[str, dict[str, list[str]]] = {}
    priorities = document["default-priorities"]
    for namespace in priorities["namespace"]:
        provider = document.get("providers", {}).get(namespace, {})
        static: Mapping[str, Sequence[str]] = {}
        order: Sequence[str] = ()
        if generation == "0.0.2" and provider.get("plugin-use", "all") != "all":
            static = priorities.get("property", {}).get(namespace, {})
            order = priorities.get("feature", {}).get(namespace, ())
        elif generation == "0.0.3" and provider.get("install-time", True) is False:
            static = document.get("static-properties", {}).get(namespace, {})
            order = priorities.get("feature", {}).get(namespace, ())
        elif generation == "0.2.0":
            static = provider.get("static-properties", {})
            order = provider.get("feature-order", ())
        if namespace in machine:
            static, order = machine[namespace], ()
        elif (provider.get("optional", False) and namespace not in enabled) or (
            "enable-if" in provider and provider["enable-if"] not in applies
        ):
            static = {}
        names = _in_front([name for name in order if name in static], list(static))
        found[namespace] = {name: list(static[name]) for name in names}
    return found


# PEP 825, "Variant ordering"; the orders of features and values as in PEP 817, "Variant ordering".


class Preferences(NamedTuple):
    """What the user puts first, before the order of the metadata, and what must not occur."""

    namespaces: Sequence[str]
    features: Mapping[str, Sequence[str]]
    values: Properties
    excluded: Sequence[str]
    """``namespace``, ``namespace :: feature`` or whole properties."""


NO_PREFERENCES = Preferences((), {}, {}, ())


def order(
    document: Mapping[str, Any],
    machine: Properties,
    generation: str = "0.1.1",
    preferences: Preferences = NO_PREFERENCES,
) -> list[str]:
    """Return the labels of the compatible variants, the most preferred first."""
    default = document["default-priorities"]
    own = default if generation in WITH_PRIORITIES else {}
    # Step 1.
    namespace_order = _in_front(preferences.namespaces, default["namespace"])
    feature_order: dict[str, list[str]] = {}
    value_order: dict[str, dict[str, list[str]]] = {}
    for namespace in namespace_order:
        # Step 2.
        front = [
            *preferences.features.get(namespace, ()),
            *own.get("feature", {}).get(namespace, ()),
        ]
        offered = machine.get(namespace, {})
        feature_order[namespace] = _in_front(front, list(offered))
        value_order[namespace] = {}
        for feature in feature_order[namespace]:
            # Step 3.
            front = [
                *preferences.values.get(namespace, {}).get(feature, ()),
                *own.get("property", {}).get(namespace, {}).get(feature, ()),
            ]
            value_order[namespace][feature] = _in_front(front, offered.get(feature, []))

    def best_value(namespace: str, feature: str, values: Sequence[str]) -> Triple:
        for value in value_order[namespace][feature]:
            if value in values and is_supported((namespace, feature, value), machine):
                return namespace, feature, value
        raise AssertionError("the variant should have been filtered out")

    def property_key(triple: Triple) -> tuple[int, int, int]:  # Step 5.
        namespace, feature, value = triple
        return (
            namespace_order.index(namespace),
            feature_order[namespace].index(feature),
            value_order[namespace][feature].index(value),
        )

    def sorted_properties(label: str) -> list[Triple]:  # Steps 4 and 6.
        properties: Properties = document["variants"][label]
        best = [
            best_value(namespace, feature, values)
            for namespace, features in properties.items()
            for feature, values in features.items()
        ]
        return sorted(best, key=property_key)

    def compare(first: str, second: str) -> int:  # Step 7.
        mine, theirs = sorted_properties(first), sorted_properties(second)
        for one, other in zip(mine, theirs, strict=False):
            if one != other:
                return -1 if property_key(one) < property_key(other) else 1
        if len(mine) != len(theirs):
            return -1 if len(mine) > len(theirs) else 1
        return -1 if first < second else 1

    compatible = [
        label
        for label, properties in document["variants"].items()
        if not unfit_features(properties, machine)
        and not any(_has(properties, selector) for selector in preferences.excluded)
    ]
    return sorted(compatible, key=functools.cmp_to_key(compare))


def _in_front(front: Sequence[str], rest: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*front, *rest]))


def _has(properties: Properties, selector: str) -> bool:
    parts = selector.split(" :: ")
    return any(list(triple[: len(parts)]) == parts for triple in triples(properties))


# PEP 825, "Evaluating variant markers"; "Dependency specifiers", environment markers.

Marker = tuple[Any, ...]
"""``("and", marker, …)``, ``("or", marker, …)``, ``("in", literal, variable)``, ``("not in", …)``,
``("==", variable, literal)``, ``("!=", …)``, or ``("plain", text, truth)`` for other variables."""


def holds(marker: Marker, label: str, properties: Properties, machine: Properties) -> bool:
    """Return whether a marker holds for the wheel *label*, which is empty for non-variant ones."""
    kind, *operands = marker
    if kind == "and":
        return all(holds(operand, label, properties, machine) for operand in operands)
    if kind == "or":
        return any(holds(operand, label, properties, machine) for operand in operands)
    if kind == "plain":
        return bool(operands[1])
    kept = [triple for triple in triples(properties) if is_supported(triple, machine)]
    environment: dict[str, str | set[str]] = {
        "variant_label": label,
        "variant_properties": {" :: ".join(triple) for triple in kept},
        "variant_features": {" :: ".join(triple[:2]) for triple in kept},
        "variant_namespaces": {triple[0] for triple in kept},
    }
    first, second = operands
    if kind in ("in", "not in"):
        return bool((first in environment[second]) == (kind == "in"))
    return bool((environment[first] == second) == (kind == "=="))


def simplified(
    marker: Marker, label: str, properties: Properties, machine: Properties
) -> bool | Marker:
    """Return *marker* with its variant terms evaluated: its truth, or what is left of it."""
    kind, *operands = marker
    if kind == "plain":
        return marker
    if kind not in ("and", "or"):
        return holds(marker, label, properties, machine)
    rest: list[Marker] = []
    for operand in operands:
        part = simplified(operand, label, properties, machine)
        if isinstance(part, tuple):
            rest.append(part)
        elif part is (kind == "or"):
            return bool(kind == "or")
    if not rest:
        return bool(kind == "and")
    left: Marker = (kind, *rest)
    return rest[0] if len(rest) == 1 else left

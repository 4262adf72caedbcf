"""Checks of a wheel's dependencies: requirements and their variant markers."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.choose.markers import (
    NON_VARIANT,
    VariantContext,
    reduce_requirement,
    variant_terms,
)
from pep_variants.errors import InvalidMarker, shortened
from pep_variants.model.property import Property, iter_properties

from .finding import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pep_variants.model.metadata import Metadata
    from pep_variants.model.property import Features

_TRIPLE = re.compile(r"['\"]([^'\"]*::[^'\"]*::[^'\"]*)['\"]")
_MANY = 6
"""Maximum number of properties in a marker whose combinations are tested."""


def check_requirements(requirements: Iterable[str], file: str, place: str) -> Iterator[Finding]:
    """Yield findings about ``Requires-Dist`` values that are not valid."""
    for requirement in requirements:
        try:
            plain = reduce_requirement(requirement, NON_VARIANT, publishing=True)
            if plain is not None:
                Requirement(plain)
        except (InvalidMarker, InvalidRequirement) as problem:
            yield error(
                "invalid-dependency",
                file,
                place,
                f"Requires-Dist: {shortened(requirement, 200)}: {str(problem).splitlines()[0]}",
                "correct it: installers refuse the wheel or drop the dependency",
            )


def check_markers(
    requirements: Iterable[str], metadata: Metadata, labels: Iterable[str | None], file: str
) -> Iterator[Finding]:
    """Yield the requirements whose marker holds for no variant of the version.

    Args:
        requirements: ``Requires-Dist`` values of one wheel, often the same for all of them.
        metadata: of all wheels of the version.
        labels: of the wheels of the version, None for a non-variant wheel.
        file: the wheel.
    """
    contexts = [
        NON_VARIANT if label is None else VariantContext(label, metadata.properties_of(label) or {})
        for label in sorted(labels, key=str)
    ]
    for requirement in requirements:
        if not variant_terms(requirement):
            continue
        try:
            holds = any(
                reduce_requirement(requirement, possible, publishing=True) is not None
                for context in contexts
                for possible in _possible(context, requirement)
            )
        except InvalidMarker:
            continue  # reported elsewhere
        if not holds:
            yield warning(
                "marker-never-true",
                file,
                "METADATA",
                f"Requires-Dist: {shortened(requirement, 200)}: its marker holds for no variant",
                "correct the label or property that it names, or remove it",
            )


def _possible(context: VariantContext, requirement: str) -> Iterator[VariantContext]:
    """Yield the contexts in which the marker of *requirement* may be evaluated for a variant.

    Only properties that the machine supports count, at least one of every feature. So all
    combinations of those that the marker names are possible.
    """
    yield context
    if "variant_properties" not in variant_terms(requirement):
        return
    named = {
        "::".join(part.strip() for part in text.split("::"))
        for text in _TRIPLE.findall(requirement)
    }
    held = [
        item
        for item in iter_properties(context.properties)
        if f"{item.namespace}::{item.feature}::{item.value}" in named
    ]
    if len(held) > _MANY:
        return
    for count in range(1, len(held) + 1):
        for missing in combinations(held, count):
            left = _without(context.properties, missing)
            if left is not None:
                yield VariantContext(context.label, left)


def _without(
    properties: Mapping[str, Features], missing: Iterable[Property]
) -> Mapping[str, Features] | None:
    """Return *properties* without some of them, None if a feature would have no value."""
    taken = set(missing)
    left: dict[str, dict[str, tuple[str, ...]]] = {}
    for item in iter_properties(properties):
        values = left.setdefault(item.namespace, {}).setdefault(item.feature, ())
        if item not in taken:
            left[item.namespace][item.feature] = (*values, item.value)
    if any(not values for features in left.values() for values in features.values()):
        return None
    return left

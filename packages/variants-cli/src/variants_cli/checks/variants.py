"""Checks of the variants in a document: values, duplicates, variants that are never chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from pep_variants.choose.abi import is_release
from pep_variants.detect.registry import BUILTIN_NAMESPACES, KnownProvider, find_known
from pep_variants.errors import shortened
from pep_variants.model.property import ABI_DEPENDENCY

from .finding import Finding, error, warning
from .reachability import Offer, unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pep_variants.model.metadata import Metadata


def check_variants(
    metadata: Metadata, tree: dict[str, Any], file: str, prefix: str
) -> Iterator[Finding]:
    """Check the variants of a document.

    Args:
        metadata: the document.
        tree: the document as JSON data.
        file: the file that it is, or is in.
        prefix: prefix of every place, for a document inside a wheel.
    """
    yield from _check_values(metadata, file, prefix)
    yield from _check_raw_values(tree, file, prefix)
    yield from _check_equal_variants(metadata, file, prefix)
    yield from _check_reachable(metadata, file, prefix)


def check_abi_dependencies(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    """Check the reserved namespace (PEP 817, "ABI dependency"), which only variants may use."""
    for place, names in (
        ("default-priorities.namespace", metadata.namespaces),
        (f"providers.{ABI_DEPENDENCY}", metadata.providers),
    ):
        if ABI_DEPENDENCY in names:
            yield error(
                "abi-dependency-listed",
                file,
                f"{prefix}{place}",
                f"{ABI_DEPENDENCY} is reserved: it has no priority and no provider",
                "remove it here; variants keep their properties of it",
            )
    for label, properties in metadata.variants.items():
        for feature, values in properties.get(ABI_DEPENDENCY, {}).items():
            place = f"{prefix}variants.{label}.{ABI_DEPENDENCY}.{feature}"
            wrong = [value for value in values if not is_release(value)]
            if wrong:
                yield error(
                    "abi-dependency-value",
                    file,
                    place,
                    f"{', '.join(wrong)}: not a release of one to three numbers",
                    "write the release that it was built against, such as 2.9",
                )
            normalized = canonicalize_name(feature).replace("-", "_")
            if feature != normalized:
                yield error(
                    "abi-dependency-name",
                    file,
                    place,
                    f"{feature} is not a normalized project name",
                    f"write {normalized}",
                )


def _check_values(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    """Check that there is a system every variant could fit."""
    offered = _offered(metadata)
    judged: set[tuple[str, str, tuple[str, ...]]] = set()
    for label, properties in metadata.variants.items():
        for namespace, features in properties.items():
            if namespace not in offered or namespace == ABI_DEPENDENCY:
                continue
            for feature, values in features.items():
                known = offered[namespace].get(feature, ())
                if (namespace, feature, values) in judged or set(values) & set(known):
                    continue
                judged.add((namespace, feature, values))
                found = f"{', '.join(known[:6])}{', …' * (len(known) > 6)}" or "nothing"
                provider = metadata.providers.get(namespace)
                static = provider is not None and provider.static is not None
                judge = error if static else warning
                yield judge(
                    "never-compatible" if static else "unknown-value",
                    file,
                    f"{prefix}variants.{label}.{namespace}.{feature}",
                    f"{', '.join(values)} is not supported on any machine: "
                    + ("static-properties list " if static else "the known values are ")
                    + found,
                    "correct the value" + (", or add it to static-properties" if static else ""),
                )


def _offered(metadata: Metadata) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return all values that there can be by namespace, for namespaces where that is known."""
    offered: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for namespace in metadata.namespaces:
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.static:
            offered[namespace] = provider.static
        elif (stand_in := _known_provider(namespace, metadata)) is not None:
            offered[namespace] = _known_values(stand_in)
    return offered


@cache
def _known_values(provider: KnownProvider) -> Mapping[str, tuple[str, ...]]:
    return provider.factory().known()


def _known_provider(namespace: str, metadata: Metadata) -> KnownProvider | None:
    provider = metadata.providers.get(namespace)
    if provider is None:
        return None if metadata.providers else BUILTIN_NAMESPACES.get(namespace)
    # Without markers: this is not about the machine that it is checked on.
    requires = tuple(text.partition(";")[0] for text in provider.requires)
    return find_known(namespace, replace(provider, requires=requires), dict)


def _check_raw_values(tree: dict[str, Any], file: str, prefix: str) -> Iterator[Finding]:
    """Check what reading evens out: the order of values, and values listed twice."""
    for label, properties in tree.get("variants", {}).items():
        for namespace, features in properties.items():
            for feature, values in features.items():
                # Only the first generation has strings in place of lists.
                if isinstance(values, list) and values != sorted(set(values)):
                    yield warning(
                        "values-unsorted",
                        file,
                        f"{prefix}variants.{label}.{namespace}.{feature}",
                        f"{shortened(values)} is not sorted or lists a value twice",
                        "sort the values, each once",
                    )


def _check_equal_variants(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    labels: dict[str, str] = {}
    for label, properties in sorted(metadata.variants.items()):
        key = json.dumps(properties, sort_keys=True)
        first = labels.setdefault(key, label)
        if first != label:
            yield warning(
                "same-properties",
                file,
                f"{prefix}variants.{label}",
                f"has the properties of {first!r}: if both have a compatible wheel, "
                "it is never chosen",
                "give different builds different properties, or equal builds one label",
            )


def _check_reachable(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    offers = {}
    for namespace, features in _offered(metadata).items():
        provider = metadata.providers.get(namespace)
        certain = (
            provider is not None
            and provider.static
            and not provider.optional
            and provider.enable_if is None
        )
        offers[namespace] = Offer(tuple(features), features if certain else None)
    for label, other in unreachable(metadata, offers):
        # The null variant exists without being listed.
        if label in metadata.variants:
            yield warning(
                "unreachable",
                file,
                f"{prefix}variants.{label}",
                f"is not chosen by default: wherever it is compatible, {other!r} is too and "
                "comes first; users get it with --variant-prefer or --variant only",
                "remove it, or give it a property that distinguishes it, unless that is meant",
            )

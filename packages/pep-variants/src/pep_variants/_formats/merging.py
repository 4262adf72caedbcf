"""Combining the metadata of one version's files, and holding a wheel to what its index said.

PEP 825, "Metadata consistency".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from .._model.metadata import Metadata, ProviderInfo
from .._model.property import Features, iter_properties
from ..errors import InconsistentMetadata, MetadataError, shortened

V = TypeVar("V")


def merge(first: Metadata, second: Metadata) -> Metadata:
    """Return the union of both, which is the same whichever comes first.

    Labels in both must have equal properties; of the namespace lists one must start with the
    other, the longer is kept; providers in both must be equal.

    Raises:
        InconsistentMetadata: they contradict each other; the message names both sources.

    >>> from pep_variants.metadata import Metadata, merge
    >>> old = Metadata(("x86_64",), {"v3": {"x86_64": {"level": ("v3",)}}})
    >>> new = Metadata(("x86_64",), {"v4": {"x86_64": {"level": ("v4",)}}})
    >>> sorted(merge(old, new).variants)
    ['v3', 'v4']
    """
    sources = (first.source, second.source)
    shorter, longer = sorted((first.namespaces, second.namespaces), key=len)
    if longer[: len(shorter)] != shorter:
        raise InconsistentMetadata(
            sources, "default-priorities.namespace", (first.namespaces, second.namespaces)
        )
    variants = _union(first.variants, second.variants, "variants", sources)
    providers = _union(first.providers, second.providers, "providers", sources)
    feature_priorities = _union(
        first.feature_priorities,
        second.feature_priorities,
        "default-priorities.feature",
        sources,
    )
    property_priorities: dict[str, Features] = _union(
        first.property_priorities,
        second.property_priorities,
        "default-priorities.property",
        sources,
    )
    schemas = sorted(schema for schema in (first.schema, second.schema) if schema is not None)
    return replace(
        first,
        namespaces=longer,
        variants=variants,
        providers=providers,
        feature_priorities=feature_priorities,
        property_priorities=property_priorities,
        schema=schemas[-1] if schemas else None,
        source=min(sources),
    )


def merge_all(metadata: Iterable[Metadata]) -> Metadata:
    """Merge one or more metadata into one.

    Raises:
        InconsistentMetadata: two of them contradict each other; the message names these two.
        TypeError: there are none.
    """
    seen: list[Metadata] = []
    merged: Metadata | None = None
    for other in metadata:
        try:
            merged = other if merged is None else merge(merged, other)
        except InconsistentMetadata:
            # What is merged has one source for many: find the one that is meant.
            for first in seen:
                merge(first, other)
            raise
        seen.append(other)
    if merged is None:
        raise TypeError("there is nothing to merge")
    return merged


def check_promise(promised: Metadata, wheel: Metadata, label: str) -> None:
    """Check that *wheel*, read from inside a wheel of *label*, is what the index promised.

    Raises:
        InconsistentMetadata: the properties of the label differ; the message shows both.
        MetadataError: the wheel holds other labels than its filename says.
    """
    if not wheel.lists_only(label):
        labels = ", ".join(map(shortened, sorted(wheel.variants)[:4])) or "none"
        raise MetadataError(
            wheel.source,
            "variants",
            f"the filename has label {label!r}, the metadata inside lists {labels}",
        )
    if wheel.properties_of(wheel.label_of(label)) != promised.properties_of(
        promised.label_of(label)
    ):
        raise InconsistentMetadata(
            (promised.source, wheel.source),
            f"variants.{label}",
            (_listed(promised, label), _listed(wheel, label)),
        )


def _listed(metadata: Metadata, label: str) -> list[str]:
    properties = metadata.properties_of(metadata.label_of(label))
    return sorted(map(str, iter_properties(properties or {})))


def _order(value: object) -> list[str]:
    """Return the preference order that comparing mappings does not look at."""
    return list(value.static or ()) if isinstance(value, ProviderInfo) else []


def _union(
    first: Mapping[str, V], second: Mapping[str, V], path: str, sources: tuple[str, str]
) -> dict[str, V]:
    for key in sorted(first.keys() & second.keys()):
        if first[key] != second[key] or _order(first[key]) != _order(second[key]):
            raise InconsistentMetadata(sources, f"{path}.{key}", (first[key], second[key]))
    return {**first, **second}

"""The metadata that `variants make` writes into a wheel, from options or pyproject.toml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants.errors import MetadataError, VariantError, shortened
from pep_variants.metadata import Metadata, Property

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class DescriptionError(VariantError):
    """Options that do not describe a valid variant."""


def from_options(namespaces: Sequence[str], properties: Iterable[Property]) -> Metadata:
    """Return the metadata of a project without variants.

    Args:
        namespaces: priority order; namespaces of *properties* that are missing are appended in
            the order of their first appearance.
        properties: of the variant that will be added.

    Raises:
        DescriptionError: a malformed namespace.
    """
    used = [
        item.namespace for item in properties if item.namespace != variant_metadata.ABI_DEPENDENCY
    ]
    for namespace in namespaces:
        if not variant_metadata.NAME.fullmatch(namespace):
            raise DescriptionError(
                f"{shortened(namespace)} is not a valid namespace: "
                f"it must match {variant_metadata.NAME.pattern}"
            )
    return Metadata(tuple(dict.fromkeys((*namespaces, *used))))


def from_pyproject(data: bytes, source: str) -> Metadata:
    """Return the metadata in the ``[variant]`` table of a ``pyproject.toml``.

    Raises:
        MetadataError: the table is missing or not valid.
    """
    metadata = variant_metadata.read_pyproject(data, source)
    if not metadata.namespaces:
        raise MetadataError(
            source,
            "variant.default-priorities.namespace",
            "lists no namespaces: add the [variant] table, or do not use --pyproject",
        )
    return metadata


def add_variant(project: Metadata, label: str, properties: Sequence[Property]) -> Metadata:
    """Return the metadata of a wheel with this label and these properties.

    Without properties, those that *project* lists for the label (``[variant.variants]``).

    Raises:
        InvalidLabel: a malformed label.
        DescriptionError: properties of the null variant, none of another one, or properties that
            *project* rules out.
    """
    wheel_labels.check_label(label)
    if label == wheel_labels.NULL_LABEL and properties:
        raise DescriptionError(
            f"the variant {wheel_labels.NULL_LABEL!r} has no properties: choose another label, "
            "or remove the properties"
        )
    if not properties and label in project.variants:
        return replace(project, variants={label: project.variants[label]})
    if label != wheel_labels.NULL_LABEL and not properties:
        raise DescriptionError(
            f"variant {label!r} has no properties: add at least one, "
            f"or use the label {wheel_labels.NULL_LABEL!r} for the variant that is compatible "
            "with every machine"
        )
    if not project.namespaces:
        raise DescriptionError(
            "metadata needs at least one namespace: name those of the other variants with "
            "--namespace"
        )
    for item in properties:
        if item.namespace not in (*project.namespaces, variant_metadata.ABI_DEPENDENCY):
            raise DescriptionError(
                f"{project.source}: namespace {item.namespace!r} is not listed in "
                "variant.default-priorities.namespace"
            )
        provider = project.providers.get(item.namespace)
        static = provider.static if provider is not None else None
        if static and item.value not in static.get(item.feature, ()):
            listed = ", ".join(static.get(item.feature, ())) or "nothing"
            raise DescriptionError(
                f"{project.source}: '{item}' is not supported on any machine: static-properties "
                f"of {item.namespace!r} list {listed} for {item.feature!r}"
            )
    variant = {
        namespace: {feature: tuple(sorted({*values})) for feature, values in features.items()}
        for namespace, features in variant_metadata.group_properties(properties).items()
    }
    return replace(project, variants={label: variant})


def write_description(metadata: Metadata) -> bytes:
    """Return the ``variant.json`` of *metadata*, as `add_variant` returns it.

    Its format is 0.2.0 if there are providers, and 0.1.1, which has none, otherwise.

    Raises:
        MetadataError: the format cannot express it.
    """
    for namespace, provider in metadata.providers.items():
        # The index merges the metadata of wheels, so a single wheel must not guess the values.
        if provider.static is not None and not provider.static:
            raise MetadataError(
                metadata.source,
                f"variant.providers.{namespace}",
                "lists no values: add static-properties with the values of all variants",
            )
    text = variant_metadata.write_metadata(
        metadata, variant_metadata.V0_2_0 if metadata.providers else variant_metadata.V0_1_1
    )
    written = variant_metadata.read_metadata(text, "variant.json")
    assert written.variants == metadata.variants, "the written metadata reads back differently"
    return text.encode()


def lost_priorities(metadata: Metadata) -> tuple[str, ...]:
    """Return the keys of *metadata* that do not exist in the generations that are written."""
    found = {
        "default-priorities.feature": metadata.feature_priorities,
        "default-priorities.property": metadata.property_priorities,
    }
    return tuple(key for key, value in found.items() if value)

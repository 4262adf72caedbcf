"""The metadata that `variants make` writes into a wheel, from options or pyproject.toml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.detect.registry import find_known
from pep_variants.errors import MetadataError, VariantError, shortened
from pep_variants.formats.reader import read_metadata, read_pyproject
from pep_variants.formats.writer import write_metadata
from pep_variants.model.generation import V0_1_1, V0_2_0, Generation
from pep_variants.model.label import NULL_LABEL, check_label
from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.property import ABI_DEPENDENCY, NAME, Property

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class DescriptionError(VariantError):
    """Options that do not describe a valid variant."""


def from_options(
    namespaces: Sequence[str], properties: Iterable[Property], providers: Iterable[str]
) -> Metadata:
    """Return the metadata of a project without variants.

    Args:
        namespaces: priority order; namespaces of *properties* that are missing are appended in
            the order of their first appearance.
        properties: of the variant that will be added.
        providers: ``namespace=requirement`` each.

    Raises:
        DescriptionError: a malformed namespace or provider.
    """
    used = [item.namespace for item in properties if item.namespace != ABI_DEPENDENCY]
    for namespace in namespaces:
        if not NAME.fullmatch(namespace):
            raise DescriptionError(
                f"{shortened(namespace)} is not a valid namespace: it must match {NAME.pattern}"
            )
    order = tuple(dict.fromkeys((*namespaces, *used)))
    return Metadata(order, providers=_providers(providers, order))


def from_pyproject(data: bytes, source: str) -> Metadata:
    """Return the metadata in the ``[variant]`` table of a ``pyproject.toml``.

    Raises:
        MetadataError: the table is missing or not valid.
    """
    metadata = read_pyproject(data, source)
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
    check_label(label)
    if label == NULL_LABEL and properties:
        raise DescriptionError(
            f"the variant {NULL_LABEL!r} has no properties: choose another label, "
            "or remove the properties"
        )
    if not properties and label in project.variants:
        return replace(project, variants={label: project.variants[label]})
    if label != NULL_LABEL and not properties:
        raise DescriptionError(
            f"variant {label!r} has no properties: add at least one, "
            f"or use the label {NULL_LABEL!r} for the variant that is compatible with every machine"
        )
    if not project.namespaces:
        raise DescriptionError(
            "metadata needs at least one namespace: name those of the other variants with "
            "--namespace"
        )
    features: dict[str, dict[str, set[str]]] = {}
    for item in properties:
        if item.namespace not in (*project.namespaces, ABI_DEPENDENCY):
            raise DescriptionError(
                f"{project.source}: namespace {item.namespace!r} is not listed in "
                "variant.default-priorities.namespace"
            )
        _check_static(project, item)
        features.setdefault(item.namespace, {}).setdefault(item.feature, set()).add(item.value)
    variant = {
        namespace: {feature: tuple(sorted(values)) for feature, values in by_feature.items()}
        for namespace, by_feature in features.items()
    }
    return replace(project, variants={label: variant})


def write_description(metadata: Metadata, generation: Generation | None) -> bytes:
    """Return the ``variant.json`` of *metadata*.

    Args:
        metadata: as `add_variant` returns it.
        generation: None for 0.2.0 if there are providers and 0.1.1, which has none, otherwise.

    Raises:
        MetadataError: the generation cannot express it.
    """
    generation = generation or (V0_2_0 if metadata.providers else V0_1_1)
    if generation is V0_2_0:
        for namespace, provider in metadata.providers.items():
            # The index merges the metadata of wheels, so a single wheel must not guess the values.
            if provider.static is not None and not provider.static:
                raise MetadataError(
                    metadata.source,
                    f"variant.providers.{namespace}",
                    "lists no values: add static-properties with the values of all variants",
                )
    text = write_metadata(metadata, generation)
    written = read_metadata(text, "variant.json")
    assert written.variants == metadata.variants, "the written metadata reads back differently"
    return text.encode()


def lost_priorities(metadata: Metadata) -> tuple[str, ...]:
    """Return the keys of *metadata* that do not exist in the generations that are written."""
    found = {
        "default-priorities.feature": metadata.feature_priorities,
        "default-priorities.property": metadata.property_priorities,
    }
    return tuple(key for key, value in found.items() if value)


def _providers(texts: Iterable[str], namespaces: Sequence[str]) -> Mapping[str, ProviderInfo]:
    providers: dict[str, ProviderInfo] = {}
    for text in texts:
        namespace, equals, requirement = (part.strip() for part in text.partition("="))
        if not equals or not NAME.fullmatch(namespace):
            raise DescriptionError(f"{shortened(text)} is not 'namespace=requirement'")
        if namespace not in namespaces:
            raise DescriptionError(
                f"{shortened(text)}: no property and no --namespace has {namespace!r}"
            )
        if namespace in providers:
            raise DescriptionError(f"{shortened(text)}: namespace {namespace!r} has a provider")
        try:
            Requirement(requirement)
        except InvalidRequirement as error:
            problem = str(error).partition("\n")[0]
            raise DescriptionError(
                f"{shortened(text)}: not a valid requirement: {problem}"
            ) from None
        provider = ProviderInfo(requires=(requirement,))
        # Without its marker, which does not have to hold on this machine.
        plain = ProviderInfo(requires=(requirement.partition(";")[0],))
        known = find_known(namespace, plain, dict)
        if known is not None:
            # Some installers know these packages only by their full endpoint.
            provider = replace(provider, plugin_api=known.plugin_apis[0])
        providers[namespace] = provider
    return providers


def _check_static(project: Metadata, item: Property) -> None:
    provider = project.providers.get(item.namespace)
    if provider is None or not provider.static:
        return
    values = provider.static.get(item.feature, ())
    if item.value not in values:
        raise DescriptionError(
            f"{project.source}: '{item}' is not supported on any machine: static-properties of "
            f"{item.namespace!r} list {', '.join(values) or 'nothing'} for {item.feature!r}"
        )

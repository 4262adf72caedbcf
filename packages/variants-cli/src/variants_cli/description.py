"""The metadata that `variants make` puts into a wheel, from options or from pyproject.toml."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.errors import MetadataError, VariantError, shortened
from pep_variants.generation import V0_1_1, V0_2_0, Generation
from pep_variants.label import NULL_LABEL, check_label
from pep_variants.metadata import Metadata, ProviderInfo
from pep_variants.property import ABI_DEPENDENCY, NAME, Property
from pep_variants.providers.known import find_known
from pep_variants.reader import read_metadata, read_pyproject
from pep_variants.writer import write_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class DescriptionError(VariantError):
    """What was asked for describes no variant."""


def from_options(
    namespaces: Sequence[str], properties: Iterable[Property], providers: Iterable[str]
) -> Metadata:
    """Return what a project says of its variants, without any variant.

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
                f"{shortened(namespace)} is no namespace: it must match {NAME.pattern}"
            )
    order = tuple(dict.fromkeys((*namespaces, *used)))
    return Metadata(order, providers=_providers(providers, order))


def from_pyproject(data: bytes, source: str) -> Metadata:
    """Return what the ``[variant]`` table of a ``pyproject.toml`` says.

    Raises:
        MetadataError: it breaks the format, or there is no such table.
    """
    metadata = read_pyproject(data, source)
    if not metadata.namespaces:
        raise MetadataError(
            source,
            "variant.default-priorities.namespace",
            "lists no namespaces: add the [variant] table, or leave out --pyproject",
        )
    return metadata


def add_variant(project: Metadata, label: str, properties: Sequence[Property]) -> Metadata:
    """Return the metadata of a wheel with this label and these properties.

    Raises:
        InvalidLabel: a malformed label.
        DescriptionError: properties of the null variant, none of another one, or properties that
            *project* rules out.
    """
    check_label(label)
    if label == NULL_LABEL and properties:
        raise DescriptionError(
            f"the variant {NULL_LABEL!r} has no properties: choose another label, "
            "or leave out the properties"
        )
    if label != NULL_LABEL and not properties:
        raise DescriptionError(
            f"variant {label!r} has no properties: add at least one, "
            f"or use the label {NULL_LABEL!r} for the variant that fits everywhere"
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
            # The index merges wheels, and they must agree: no wheel may guess for all of them.
            if provider.static is not None and not provider.static:
                raise MetadataError(
                    metadata.source,
                    f"variant.providers.{namespace}",
                    "lists no values: add static-properties with the values of all variants",
                )
    text = write_metadata(metadata, generation)
    written = read_metadata(text, "variant.json")
    assert written.variants == metadata.variants, "what was written reads as something else"
    return text.encode()


def lost_priorities(metadata: Metadata) -> tuple[str, ...]:
    """Return the keys of *metadata* that no generation we write has a place for."""
    found = []
    if metadata.feature_priorities:
        found.append("default-priorities.feature")
    if metadata.property_priorities:
        found.append("default-priorities.property")
    return tuple(found)


def _providers(texts: Iterable[str], namespaces: Sequence[str]) -> Mapping[str, ProviderInfo]:
    providers: dict[str, ProviderInfo] = {}
    for text in texts:
        namespace, equals, requirement = (part.strip() for part in text.partition("="))
        if not equals or not NAME.fullmatch(namespace):
            raise DescriptionError(f"{shortened(text)} is no 'namespace=requirement'")
        if namespace not in namespaces:
            raise DescriptionError(
                f"{shortened(text)}: no property and no --namespace names {namespace!r}"
            )
        if namespace in providers:
            raise DescriptionError(f"{shortened(text)}: namespace {namespace!r} has a provider")
        try:
            Requirement(requirement)
        except InvalidRequirement as error:
            problem = str(error).partition("\n")[0]
            raise DescriptionError(f"{shortened(text)} is no requirement: {problem}") from None
        provider = ProviderInfo(requires=(requirement,))
        # Without its marker: it is not about this machine.
        plain = ProviderInfo(requires=(requirement.partition(";")[0],))
        known = find_known(namespace, plain, {})
        if known is not None:
            # Some installers know these packages by their full endpoint alone.
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
            f"{project.source}: '{item}' would fit nowhere: static-properties of "
            f"{item.namespace!r} list {', '.join(values) or 'nothing'} for {item.feature!r}"
        )

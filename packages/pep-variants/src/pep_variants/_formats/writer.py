"""Writing `Metadata` as JSON, deterministically, in the generations that are current.

Reading everything and writing little is on purpose: old generations have no future.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._model.generation import V0_1_1, V0_2_0, Generation
from .._model.metadata import Metadata, ProviderInfo
from .._model.property import Properties
from ..errors import MetadataError

WRITABLE = (V0_1_1, V0_2_0)


def write_metadata(metadata: Metadata, generation: Generation = V0_2_0) -> str:
    """Return *metadata* as JSON text: keys and values sorted, priorities in their order.

    Raises:
        MetadataError: *generation* cannot express it (a provider with nothing to say where its
            values come from, say), or is not written at all.
    """
    return json.dumps(metadata_to_tree(metadata, generation), indent=2) + "\n"


def metadata_to_tree(metadata: Metadata, generation: Generation = V0_2_0) -> dict[str, Any]:
    """Return the JSON data that `write_metadata` writes.

    Raises:
        MetadataError: as `write_metadata`.
    """
    if generation not in WRITABLE:
        version = ".".join(map(str, generation.version))
        raise MetadataError(metadata.source, "$schema", f"format {version} is not written")
    tree: dict[str, Any] = {
        "$schema": generation.schema,
        "default-priorities": {"namespace": list(metadata.namespaces)},
    }
    if generation.providers:
        tree["providers"] = {
            namespace: _provider_tree(
                namespace, metadata.providers.get(namespace, ProviderInfo()), metadata
            )
            for namespace in sorted(metadata.namespaces)
        }
    tree["variants"] = {
        label: _properties_tree(metadata.variants[label]) for label in sorted(metadata.variants)
    }
    return tree


def _properties_tree(properties: Properties) -> dict[str, dict[str, list[str]]]:
    return {
        namespace: {feature: sorted(values) for feature, values in sorted(features.items())}
        for namespace, features in sorted(properties.items())
    }


def _provider_tree(namespace: str, provider: ProviderInfo, metadata: Metadata) -> Mapping[str, Any]:
    tree: dict[str, Any] = {}
    static = provider.static
    if static is not None and not static:
        static = metadata.used_values(namespace)
    static = {feature: values for feature, values in (static or {}).items() if values}
    if static:
        tree["static-properties"] = {
            feature: list(values) for feature, values in sorted(static.items())
        }
        if len(static) > 1:
            tree["feature-order"] = list(static)
    elif provider.builtin is not None:
        tree["builtin"] = provider.builtin
    elif provider.requires:
        requires = [with_marker(text, provider.enable_if) for text in provider.requires]
        tree["requires"] = requires
        if provider.plugin_api:
            tree["plugin-api"] = provider.plugin_api
    else:
        raise MetadataError(
            metadata.source,
            f"providers.{namespace}",
            "has none of requires, builtin and static-properties: "
            "add one, or write format 0.1.1, which has no providers",
        )
    if provider.enable_if and "requires" not in tree:
        raise MetadataError(
            metadata.source,
            f"providers.{namespace}.enable-if",
            "needs 'requires' in format 0.2.0: add it, or leave out enable-if",
        )
    if provider.optional:
        tree["optional"] = True
    return tree


def with_marker(requirement: str, marker: str | None) -> str:
    """Return *requirement* with *marker* added to its own marker, if it has one.

    ``enable-if`` of older generations becomes a marker of every requirement in 0.2.0: a provider
    all of whose requirements are dropped is not there, which is the same.
    """
    if marker is None:
        return requirement
    # A URL may hold semicolons itself: white space ends it.
    separator = " ;" if "@" in requirement.partition(";")[0] else ";"
    text, semicolon, own = requirement.partition(separator)
    combined = f"({own.strip()}) and ({marker})" if semicolon else marker
    return f"{text.strip()}{separator} {combined}"

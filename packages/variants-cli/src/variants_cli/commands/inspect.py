"""`variants inspect`: shows the variant metadata of a wheel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.model.filename import parse_filename
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import iter_properties, properties_tree
from pep_variants.wheelfile.wheel import read_wheel_metadata

from ..console import grouped, print_json, print_table
from ..indexing.wheelhouse import label_problem
from .arguments import FILE, json_option

if TYPE_CHECKING:
    from pep_variants.model.metadata import ProviderInfo


@click.command()
@click.argument("wheel", type=FILE)
@json_option
def inspect(wheel: Path, as_json: bool) -> None:
    """Show label, properties and providers of a wheel.

    Reports disagreements of filename and contents.
    """
    filename = parse_filename(wheel.name)
    metadata = read_wheel_metadata(wheel, str(wheel))
    problem = label_problem(filename.label, metadata)
    metadata = metadata or Metadata(())
    tree = {
        "filename": wheel.name,
        "name": filename.name,
        "version": str(filename.version),
        "build": "".join(map(str, filename.build)) or None,
        "tags": sorted(map(str, filename.tags)),
        "label": filename.label,
        "schema": metadata.schema,
        "namespaces": list(metadata.namespaces),
        "providers": {
            namespace: _provider_tree(provider)
            for namespace, provider in sorted(metadata.providers.items())
        },
        "variants": {
            label: properties_tree(dict(sorted(properties.items())))
            for label, properties in sorted(metadata.variants.items())
        },
        "problems": [problem] if problem else [],
    }
    if as_json:
        print_json(tree)
        return
    print_table(("", ""), list(grouped(_rows(tree))))


def _provider_tree(provider: ProviderInfo) -> dict[str, Any]:
    """Return *provider* with the keys that the metadata format has, those that are set."""
    tree: dict[str, Any] = {
        "requires": list(provider.requires),
        "plugin-api": provider.plugin_api,
        "builtin": provider.builtin,
        "enable-if": provider.enable_if,
        "optional": provider.optional,
    }
    tree = {key: value for key, value in tree.items() if value}
    if provider.static is not None:
        values = provider.static.items()
        tree["static-properties"] = {feature: list(found) for feature, found in values}
    return tree


def _rows(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is shown to people, several texts of one name one after the other."""
    yield "project", f"{tree['name']} {tree['version']}"
    if tree["build"]:
        yield "build", tree["build"]
    yield from (("tags", tag) for tag in tree["tags"])
    yield "label", tree["label"] or "none (not a variant wheel)"
    for label, properties in tree["variants"].items():
        name = "properties" if label == tree["label"] else f"properties of {label}"
        texts = map(str, iter_properties(properties))
        yield from ((name, text) for text in list(texts) or ["none (fits everywhere)"])
    if tree["variants"]:
        yield "priorities", ", ".join(tree["namespaces"]) or "none"
        for namespace, provider in tree["providers"].items():
            yield "providers", f"{namespace}: {'; '.join(_texts(provider))}"
        if not tree["providers"]:
            yield "providers", "none named (left to the installer)"
        yield "schema", tree["schema"] or "none"
    yield from (("problem", text) for text in tree["problems"])


def _texts(tree: dict[str, Any]) -> Iterator[str]:
    """Yield the keys of a provider with their values."""
    for key, value in tree.items():
        if isinstance(value, dict):
            values = (f"{feature} {', '.join(found)}" for feature, found in value.items())
            yield f"{key} {', '.join(values) or 'all that are used'}"
        elif isinstance(value, list):
            yield f"{key} {', '.join(value)}"
        else:
            yield key if value is True else f"{key} {value}"

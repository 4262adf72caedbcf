"""`variants inspect`: shows the variant metadata of a wheel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants import metadata as variant_metadata
from pep_variants import wheel_files
from pep_variants.errors import in_words
from pep_variants.metadata import Metadata

from .._console import grouped, print_json, print_table
from .._indexing.wheelhouse import label_problem
from .arguments import FILE, json_option

if TYPE_CHECKING:
    from pep_variants.metadata import ProviderInfo

_WIDEST = 10_000
"""Characters that are shown of one variant or provider."""


@click.command()
@click.argument("wheel", type=FILE)
@json_option
def inspect(wheel: Path, as_json: bool) -> None:
    """Show label, properties and providers of a wheel.

    Reports disagreements of filename and contents.
    """
    filename = wheel_files.parse_filename(wheel.name)
    metadata = wheel_files.read_wheel_metadata(wheel, str(wheel))
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
            label: variant_metadata.properties_tree(dict(sorted(properties.items())))
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
    """Yield what is shown to people, each item of a key by itself."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from ((key, f"{name}: {in_words(each, _WIDEST)}") for name, each in value.items())
        elif isinstance(value, list):
            yield from ((key, text) for text in value)
        elif value is not None:
            yield key, value
        elif key == "label":
            yield key, "none (not a variant wheel)"

"""`variants inspect`: shows the variant metadata of a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.model.filename import parse_filename
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import iter_properties, properties_tree
from pep_variants.wheelfile.wheel import read_wheel_metadata

from ..console import print_json, print_table
from ..indexing.wheelhouse import label_problem
from .arguments import FILE, json_option

if TYPE_CHECKING:
    from pep_variants.model.filename import WheelFilename
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
    problems = [problem] if (problem := label_problem(filename.label, metadata)) else []
    if as_json:
        print_json(_tree(wheel.name, filename, metadata, problems))
    else:
        print_table(("", ""), _rows(filename, metadata, problems))


def _tree(
    name: str, filename: WheelFilename, metadata: Metadata | None, problems: list[str]
) -> dict[str, Any]:
    metadata = metadata or Metadata(())
    return {
        "filename": name,
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
        "problems": problems,
    }


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


def _rows(
    filename: WheelFilename, metadata: Metadata | None, problems: list[str]
) -> list[tuple[str, str]]:
    rows = [("project", f"{filename.name} {filename.version}")]
    if filename.build:
        rows.append(("build", "".join(map(str, filename.build))))
    rows += _repeated("tags", sorted(map(str, filename.tags)))
    rows.append(("label", filename.label or "none (not a variant wheel)"))
    if metadata is not None:
        for label, properties in sorted(metadata.variants.items()):
            texts = [str(item) for item in iter_properties(dict(sorted(properties.items())))]
            name = "properties" if label == filename.label else f"properties of {label}"
            rows += _repeated(name, texts or ["none (fits everywhere)"])
        rows.append(("priorities", ", ".join(metadata.namespaces) or "none"))
        providers = [
            f"{name}: {_described(each)}" for name, each in sorted(metadata.providers.items())
        ]
        rows += _repeated("providers", providers or ["none named (left to the installer)"])
        rows.append(("schema", metadata.schema or "none"))
    rows += _repeated("problem", problems)
    return rows


def _described(provider: ProviderInfo) -> str:
    """Return a description of where a provider gets its supported values from."""
    if provider.static is not None:
        text = "the values in the metadata: " + (
            "; ".join(f"{feature} {', '.join(v)}" for feature, v in provider.static.items())
            or "all that are used"
        )
    elif provider.builtin is not None:
        text = f"built into the installer as {provider.builtin}"
    else:
        text = ", ".join(provider.requires) or "nothing"
        if provider.plugin_api:
            text += f" ({provider.plugin_api})"
    if provider.enable_if:
        text += f", only if {provider.enable_if}"
    return f"{text}, optional" if provider.optional else text


def _repeated(name: str, texts: list[str]) -> list[tuple[str, str]]:
    return [(name if number == 0 else "", text) for number, text in enumerate(texts)]

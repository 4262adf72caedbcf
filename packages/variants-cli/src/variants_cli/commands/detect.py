"""`variants detect`: shows what this machine supports."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.model.platform import Platform
from pep_variants.settings.loader import load_preferences

from ..console import note, print_json, print_table, warn
from ..detection import detector_for, platform_tree, read_metadata_file
from .arguments import PLUGIN_OPTIONS, json_option, option_values, preference_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pep_variants.model.platform import Support
    from pep_variants.model.property import Features

_SHOWN = 8
"""So many values of a feature are shown to people; JSON has all."""


@click.command()
@click.argument("namespaces", metavar="[NAMESPACE]...", nargs=-1)
@click.option(
    "--metadata",
    "metadata_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use the providers listed in this *-variants.json, not the built-in ones.",
)
@preference_options("variant-enable", *PLUGIN_OPTIONS)
@click.option("-v", "--verbose", is_flag=True, help="Show the source of each value, and overrides.")
@json_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a platform file for --platform; an existing file is replaced.",
)
def detect(
    namespaces: tuple[str, ...],
    metadata_file: Path | None,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show what this machine supports.

    Lists namespaces, features and values, most preferred first; of all built-in providers, or of
    the given NAMESPACEs.

    Example: variants detect -o platform.toml
    """
    preferences = load_preferences(option_values(options), os.environ, warn=warn)
    # Of this machine, whichever one a setting describes in its place.
    detector = detector_for(replace(preferences, platform_file=None))
    if metadata_file is not None:
        platform = detector.platform(read_metadata_file(metadata_file))
    else:
        platform = detector.host()
    platform = _narrowed(platform, namespaces)
    if output is not None:
        from importlib.metadata import version

        from pep_variants.files import replacing
        from pep_variants.formats.platform_file import write_platform

        text = write_platform(platform, f"variants-cli {version('variants-cli')}")
        with replacing(output) as stream:
            stream.write(text.encode())
    if as_json:
        print_json({"namespaces": platform_tree(platform)})
        return
    print_table(("namespace", "feature", "supported"), list(_rows(platform)))
    facts = list(_facts(platform)) if verbose else []
    if facts:
        click.echo()
        print_table(("namespace", "fact", "value", "source"), facts)
    for namespace, support in platform.namespaces.items():
        if verbose and support.output:
            note(f"the plugin of {namespace!r} printed: {support.output}")


def _narrowed(platform: Platform, namespaces: tuple[str, ...]) -> Platform:
    unknown = sorted(set(namespaces) - platform.namespaces.keys())
    if unknown:
        there = ", ".join(platform.namespaces)
        raise click.UsageError(f"no provider for {', '.join(unknown)}; there are {there}")
    return Platform(
        {
            namespace: support
            for namespace, support in platform.namespaces.items()
            if not namespaces or namespace in namespaces
        }
    )


def _facts(platform: Platform) -> Iterator[tuple[str, str, str, str]]:
    for namespace, support in platform.namespaces.items():
        shown = namespace
        for fact in support.facts:
            yield shown, fact.what, fact.value, fact.source + (" (forced)" if fact.forced else "")
            shown = ""
        if support.features and support.resolved and not support.facts:
            yield shown, "plugin", ", ".join(support.resolved), support.plugin_api or ""


def _rows(platform: Platform) -> Iterator[tuple[str, str, str]]:
    for namespace, support in platform.namespaces.items():
        shown = namespace
        for feature, values in _described(support):
            yield shown, feature, values
            shown = ""


def _described(support: Support) -> Iterator[tuple[str, str]]:
    if not support.features:
        yield "-", support.notice or "nothing"
        return
    for feature, values in _valued(support.features).items():
        yield feature, _some(values)
    flags = [feature for feature, values in support.features.items() if values == ("on",)]
    # Some namespaces have dozens of features with one value each.
    for start in range(0, len(flags), _SHOWN):
        yield ("on" if start == 0 else ""), " ".join(flags[start : start + _SHOWN])


def _valued(features: Features) -> Features:
    return {feature: values for feature, values in features.items() if values != ("on",)}


def _some(values: tuple[str, ...]) -> str:
    more = len(values) - _SHOWN
    return " ".join(values[:_SHOWN]) + (f" … ({len(values)} values)" if more > 0 else "")

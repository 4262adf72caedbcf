"""`variants detect`: shows what this machine supports."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants import machines, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import redacted
from pep_variants.machines import Platform

from .._console import created_by, grouped, note, print_json, print_table, warn
from .._detection import detector_for, platform_tree, plugin_runner, read_metadata_file
from .arguments import (
    FILE,
    NEW_FILE,
    PLUGIN_OPTIONS,
    json_option,
    option_values,
    preference_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pep_variants.machines import Support
    from pep_variants.preferences import Preferences

_SHOWN = 8
"""So many values of a feature are shown to people; JSON has all."""


@click.command()
@click.argument("namespaces", metavar="[NAMESPACE]...", nargs=-1)
@click.option(
    "--metadata", "metadata_file", metavar="FILE", type=FILE,
    help="Use the providers listed in this *-variants.json, not the built-in ones.",
)  # fmt: skip
@preference_options("variant-enable", *PLUGIN_OPTIONS)
@click.option(
    "-v", "--verbose", is_flag=True,
    help="Show the source of each value, overrides, and without NAMESPACE the plugins.",
)  # fmt: skip
@json_option
@click.option(
    "-o", "--output", metavar="FILE", type=NEW_FILE,
    help="Also write a platform file for --platform; an existing file is replaced.",
)  # fmt: skip
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
    preferences, origins = user_preferences.load_settings(
        option_values(options), os.environ, warn=warn
    )
    # Of this machine, whichever one a setting describes in its place.
    detector = detector_for(replace(preferences, platform_file=None))
    if metadata_file is not None:
        platform = detector.platform(read_metadata_file(metadata_file))
    else:
        platform = detector.host()
    if unknown := sorted(set(namespaces) - platform.namespaces.keys()):
        there = ", ".join(platform.namespaces)
        raise click.UsageError(f"no provider for {', '.join(unknown)}; there are {there}")
    if namespaces:
        found = platform.namespaces.items()
        platform = Platform({name: support for name, support in found if name in namespaces})
    if output is not None:
        with safe_files.replacing(output) as stream:
            stream.write(machines.write_platform(platform, created_by()).encode())
    if as_json:
        print_json({"namespaces": platform_tree(platform)})
        return
    print_table(("namespace", "feature", "supported"), list(grouped(_rows(platform))))
    if not verbose:
        return
    if facts := list(grouped(_facts(platform))):
        click.echo()
        print_table(("namespace", "fact", "value", "source"), facts)
    if not namespaces:
        click.echo()
        plugins = list(_plugins(preferences, origins.get("allow_providers", "")))
        print_table(("plugins", "what", "where"), plugins)
    for namespace, support in platform.namespaces.items():
        if support.output:
            note(f"the plugin of {namespace!r} printed: {support.output}")


def _plugins(preferences: Preferences, source: str) -> Iterator[tuple[str, str, str]]:
    """Yield the plugins that may run, those that are installed, and what confines them."""
    for requirement in preferences.allow_providers:
        yield "allowed", redacted(requirement), source
    runner = plugin_runner(preferences)
    for kept in runner.cached():
        yield "installed", ", ".join(kept.resolved), str(kept.path)
    for measure, how in confinement(runner.measures(), preferences.plugin_sandbox).items():
        yield "sandbox", measure, how


def confinement(measures: Mapping[str, str], setting: str) -> dict[str, str]:
    """Return the sandbox measures for plugins by purpose, including missing ones.

    Args:
        measures: those that the kernel has.
        setting: ``plugin-sandbox``.
    """
    from variants_plugins.runner import MEASURES

    if measures:
        return {name: measures.get(name, "none on this system") for name in MEASURES}
    return {
        "all": "it is switched off"
        if setting == user_preferences.SANDBOX_OFF
        else "none on this system"
    }


def _facts(platform: Platform) -> Iterator[tuple[str, str, str, str]]:
    for name, support in platform.namespaces.items():
        for fact in support.facts:
            yield name, fact.what, fact.value, fact.source + (" (forced)" if fact.forced else "")
        if support.features and support.resolved and not support.facts:
            yield name, "plugin", ", ".join(support.resolved), support.plugin_api or ""


def _rows(platform: Platform) -> Iterator[tuple[str, str, str]]:
    for name, support in platform.namespaces.items():
        for feature, values in _described(support):
            yield name, feature, values


def _described(support: Support) -> Iterator[tuple[str, str]]:
    if not support.features:
        yield "-", support.notice or "nothing"
        return
    # Some namespaces have dozens of features with one value each.
    flags = [feature for feature, values in support.features.items() if values == ("on",)]
    for feature, values in support.features.items():
        if values != ("on",):
            more = f" … ({len(values)} values)" if len(values) > _SHOWN else ""
            yield feature, " ".join(values[:_SHOWN]) + more
    for start in range(0, len(flags), _SHOWN):
        yield ("on" if start == 0 else ""), " ".join(flags[start : start + _SHOWN])

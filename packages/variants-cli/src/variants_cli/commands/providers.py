"""`variants providers`: who answers without a plugin, which plugins may run, which are kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from pep_variants.errors import redacted
from pep_variants.plugins import PluginRunner
from pep_variants.preferences import (
    configuration_paths,
    from_environment,
    from_options,
    load_preferences,
)
from pep_variants.providers.known import KNOWN

from ..console import counted, print_json, print_table
from .arguments import json_option, option_values, preference_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pep_variants.preferences import Preferences


@click.command(short_help="Show known providers, allowed and kept plugins.")
@preference_options("variant-allow-provider")
@click.option("--clear", is_flag=True, help="Remove all kept plugins and their answers.")
@json_option
def providers(clear: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show known providers, allowed and kept plugins.

    Built in is what answers in place of a provider package that is known, without installing it.
    Any other plugin runs only where --variant-allow-provider (or VARIANTS_ALLOW_PROVIDER, or
    variants.toml) names it; it is installed once and kept in a place of its own.
    """
    given = option_values(options)
    preferences = load_preferences(given, os.environ)
    runner = PluginRunner(preferences.allow_providers)
    if clear:
        removed = runner.clear()
        if as_json:
            print_json({"removed": removed})
        else:
            click.echo(f"{counted(removed, 'plugin')} removed")
        return
    source = _source(given) if preferences.allow_providers else ""
    if as_json:
        print_json(_tree(runner, preferences, source))
    else:
        print_table(("", "provider", "for, by, in"), list(_rows(runner, preferences, source)))


def _source(given: Mapping[str, Any]) -> str:
    """Return who allows providers: one replaces the other, see `load_preferences`."""
    if from_options(given).allow_providers:
        return "--variant-allow-provider"
    if from_environment(os.environ).allow_providers:
        return "VARIANTS_ALLOW_PROVIDER"
    return next(str(path.absolute()) for path in configuration_paths() if path.exists())


def _rows(
    runner: PluginRunner, preferences: Preferences, source: str
) -> Iterator[tuple[str, str, str]]:
    for known in KNOWN:
        yield "built in", f"{known.package}=={known.stands_for}", known.namespace
    for requirement in preferences.allow_providers:
        yield "allowed", redacted(requirement), source
    for kept in runner.cached():
        yield "kept", ", ".join(kept.resolved), str(kept.path)


def _tree(runner: PluginRunner, preferences: Preferences, source: str) -> dict[str, Any]:
    return {
        "built-in": [
            {
                "namespace": known.namespace,
                "package": known.package,
                "stands-for": known.stands_for,
                "plugin-apis": list(known.plugin_apis),
            }
            for known in KNOWN
        ],
        "allowed": [
            {"requirement": redacted(requirement), "source": source}
            for requirement in preferences.allow_providers
        ],
        "kept": [
            {
                "requirements": list(kept.requirements),
                "resolved": list(kept.resolved),
                "path": str(kept.path),
            }
            for kept in runner.cached()
        ],
    }

"""`variants providers`: which providers answer without a plugin, and which plugins are kept."""

from __future__ import annotations

from typing import Any

import click

from pep_variants.plugins import PluginRunner
from pep_variants.providers.known import KNOWN

from ..console import counted, print_json, print_table
from .arguments import json_option


@click.command(short_help="Show built-in providers and kept plugins.")
@click.option("--clear", is_flag=True, help="Remove all kept plugins and their answers.")
@json_option
def providers(clear: bool, as_json: bool) -> None:
    """Show built-in providers and kept plugins.

    Built in is what answers in place of a provider package of the field, without installing it.
    Any other plugin runs only where --variant-allow-provider (or VARIANTS_ALLOW_PROVIDER, or
    variants.toml) names it; it is installed once and kept in a place of its own.
    """
    runner = PluginRunner()
    if clear:
        removed = runner.clear()
        if as_json:
            print_json({"removed": removed})
        else:
            click.echo(f"{counted(removed, 'plugin')} removed")
        return
    if as_json:
        print_json(_tree(runner))
        return
    rows = [(known.namespace, known.package, f"as {known.stands_for}") for known in KNOWN]
    print_table(("namespace", "built in for", "version"), rows)
    kept = [(", ".join(kept.resolved), str(kept.path)) for kept in runner.cached()]
    if kept:
        click.echo()
        print_table(("kept plugin", "where"), kept)


def _tree(runner: PluginRunner) -> dict[str, Any]:
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
        "kept": [
            {
                "requirements": list(kept.requirements),
                "resolved": list(kept.resolved),
                "path": str(kept.path),
            }
            for kept in runner.cached()
        ],
    }

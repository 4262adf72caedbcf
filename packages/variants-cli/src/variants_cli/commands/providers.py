"""`variants providers`: shows built-in providers, and allowed and installed plugins."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from pep_variants.choose.preferences import SANDBOX_AUTO, SANDBOX_OFF
from pep_variants.detect.registry import KNOWN
from pep_variants.errors import redacted
from pep_variants.limits import (
    MIB,
    PLUGIN_ANSWER_BYTES,
    PLUGIN_FILE_BYTES,
    PLUGIN_MEMORY_BYTES,
    PLUGIN_NOISE_BYTES,
    PLUGIN_PROCESSES,
    PLUGIN_SECONDS,
)
from pep_variants.settings.loader import load_settings
from variants_plugins import PluginRunner

from ..console import counted, print_json, print_table, warn
from .arguments import PLUGIN_OPTIONS, json_option, option_values, preference_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pep_variants.choose.preferences import Preferences


_NO_SANDBOX = {
    SANDBOX_OFF: "none: it is switched off",
    SANDBOX_AUTO: "none on this system: plugins run with the rights of the user",
}


@click.command(short_help="Show built-in providers, allowed and installed plugins.")
@preference_options(*PLUGIN_OPTIONS)
@click.option(
    "--clear", is_flag=True, help="Remove all installed plugins and their cached results."
)
@json_option
def providers(clear: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show built-in providers, and allowed and installed plugins.

    Built-in providers replace known provider packages, which are not installed.
    Any other plugin runs only where --variant-allow-provider (or VARIANTS_ALLOW_PROVIDER, or
    variants.toml) names it. It is installed once, in a separate environment. 'In force' lists the
    restrictions of a running plugin on this machine.
    """
    preferences, origins = load_settings(option_values(options), os.environ, warn=warn)
    runner = PluginRunner.of(preferences)
    if clear:
        removed = runner.clear()
        if as_json:
            print_json({"removed": removed})
        else:
            click.echo(f"{counted(removed, 'plugin')} removed")
        return
    source = origins.get("allow_providers", "")
    if as_json:
        print_json(_tree(runner, preferences, source))
    else:
        print_table(("", "provider", "for, by, in"), list(_rows(runner, preferences, source)))


def _rows(
    runner: PluginRunner, preferences: Preferences, source: str
) -> Iterator[tuple[str, str, str]]:
    for known in KNOWN:
        yield "built in", f"{known.package}=={known.stands_for}", known.namespace
    for requirement in preferences.allow_providers:
        yield "allowed", redacted(requirement), source
    for kept in runner.cached():
        yield "kept", ", ".join(kept.resolved), str(kept.path)
    sandbox = measures_in_words(runner.measures(), preferences.plugin_sandbox)
    for name, words in (*sandbox.items(), *_limits().items()):
        yield "in force", name, words


def measures_in_words(measures: Mapping[str, str], setting: str) -> dict[str, str]:
    """Return the sandbox measures for plugins by purpose, including missing ones.

    Args:
        measures: those that the kernel has.
        setting: ``plugin-sandbox``.
    """
    from variants_plugins.sandbox import MEASURES

    if not measures:
        return {"sandbox": _NO_SANDBOX[setting]}
    return {name: measures.get(name, "none on this system") for name in MEASURES}


def _limits() -> dict[str, str]:
    """Return the limits of a plugin's run as text."""
    found = {
        "time": f"{PLUGIN_SECONDS} s",
        "output": f"an answer of {PLUGIN_ANSWER_BYTES // MIB} MiB, {PLUGIN_NOISE_BYTES // MIB} MiB "
        "printed",
    }
    if sys.platform == "linux":
        found["memory"] = f"{PLUGIN_MEMORY_BYTES // MIB} MiB"
        found["processes"] = str(PLUGIN_PROCESSES)
    if sys.platform != "win32":
        found["file size"] = f"{PLUGIN_FILE_BYTES // MIB} MiB"
    return found


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
        "sandbox": runner.measures(),
        "limits": _limits(),
    }

"""`variants check`: lists installed packages that have a better variant for this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..comparison import compare
from ..console import counted, print_json, print_table, warn
from ..environment import find_environment
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, repeated_options, resolving

if TYPE_CHECKING:
    from pep_variants.choose.advice import Advice
    from pep_variants.wheelfile.installed import Installed

    from ..environment import Environment


@click.command(short_help="List installed packages that have a better variant.")
@click.option(
    "--python",
    "python",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="An interpreter or a virtual environment. Default: the active one.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also check packages that are installed without a variant; fetches one page for each.",
)
@index_options
@json_option
def check(
    python: Path | None,
    every: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """List installed packages that have a better variant.

    Compares variants of the installed version for this machine; newer versions do not matter.
    Includes packages that the catalogue describes. Changes nothing. Exits with 1 if there are any.
    """
    from pep_variants.wheelfile.installed import find_installed

    environment = find_environment(python)
    found = list(find_installed(environment.paths))
    for item in found:
        if item.problem:
            warn(item.problem)
    set_target_of(environment, options)
    repeated = repeated_options(options)
    looked_at, advices = _advices(found, options, every=every)
    if as_json:
        print_json(
            {
                "checked": len(looked_at),
                "better": [_tree(item, advice) for item, advice in advices],
            }
        )
    elif not advices:
        click.echo(f"{counted(len(looked_at), 'package')} checked, none has a better variant")
    else:
        print_table(
            ("package", "installed", "better", "why"),
            [
                (
                    f"{item.project} {item.version}",
                    item.label or advice.installed or "(none)",
                    advice.better or "(none)",
                    _why(advice),
                )
                for item, advice in advices
            ],
        )
        click.echo(f"To switch: {switch_command(python, repeated, [item for item, _ in advices])}")
    click.get_current_context().exit(1 if advices else 0)


def set_target_of(environment: Environment, options: dict[str, Any]) -> None:
    """Make the Python of *environment* the default in *options*.

    Raises:
        UsageError: *options* name several machines, and an environment is on one.
    """
    if len(options["targets"]) > 1:
        raise click.UsageError("--platform can be given once: an environment is on one machine")
    if options["python_version"] is None:
        options["python_version"] = environment.version


def _advices(
    found: list[Installed], options: dict[str, Any], *, every: bool
) -> tuple[list[Installed], list[tuple[Installed, Advice]]]:
    """Return what was looked at, and what of it has a better variant."""
    where = places(options)
    looked_at, advices = [], []
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        for compared in compare(resolver, where.targets[0], found, every=every, progress=tell):
            looked_at.append(compared.item)
            for text in compared.explanation.warnings if compared.explanation else ():
                warn(text)
            if compared.advice is not None:
                advices.append((compared.item, compared.advice))
    return looked_at, advices


def switch_command(python: Path | None, options: list[str], items: list[Installed]) -> str:
    """Return pip's command that switches what is installed.

    Args:
        python: of the environment, None for the active one.
        options: of the command, in pip's words.
        items: what to switch.
    """
    words = ["pip", "install", "--variant-switch", *options, *(item.project for item in items)]
    if python is not None:
        words[1:1] = ["--python", str(python)]
    return " ".join(map(shlex.quote, words))


def _why(advice: Advice) -> str:
    if advice.unfit:
        return f"does not fit: {'; '.join(advice.unfit)}"
    return advice.why


def _tree(item: Installed, advice: Advice) -> dict[str, Any]:
    return {
        "project": item.project,
        "version": str(item.version),
        "installed": advice.installed,
        "better": advice.better,
        "why": advice.why,
        "unfit": list(advice.unfit),
    }

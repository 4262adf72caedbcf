"""`variants check`: lists installed packages that have a better variant for this machine."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..console import counted, print_json, print_table, warn
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, repeated_options, resolving

if TYPE_CHECKING:
    from pep_variants.choose.advice import Advice
    from pep_variants.wheelfile.installed import Installed

_PROBE = (
    "import json, sys, sysconfig; "
    "print(json.dumps([sys.version.split()[0], sysconfig.get_path('purelib'), "
    "sysconfig.get_path('platlib')]))"
)


class _Environment(NamedTuple):
    """Python version of an environment, and its package folders."""

    version: str
    paths: tuple[str, ...]


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

    environment = _environment(python)
    found = list(find_installed(environment.paths))
    for item in found:
        if item.problem:
            warn(item.problem)
    if options["python_version"] is None and not options["targets"]:
        options["python_version"] = environment.version
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
        click.echo(f"To switch: {_command(python, repeated, [item for item, _ in advices])}")
    click.get_current_context().exit(1 if advices else 0)


def _advices(
    found: list[Installed], options: dict[str, Any], *, every: bool
) -> tuple[list[Installed], list[tuple[Installed, Advice]]]:
    """Return what was looked at, and what of it has a better variant."""
    from pep_variants.choose.advice import advise
    from resolvelib_variants.resolution.errors import NoSolution
    from resolvelib_variants.resolution.explanation import explain
    from resolvelib_variants.resolution.requirements import parse_requirement

    where = places(options)
    target = where.targets[0]
    looked_at, advices = [], []
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        for item in found:
            entry = resolver.finder.entry(item.project)
            if item.label is None and entry is None and not every:
                continue
            looked_at.append(item)
            # The catalogue knows builds with another local version.
            version = item.version if entry is None else item.version.public
            wanted = parse_requirement(f"{item.project}=={version}")
            try:
                explanation = explain(resolver, wanted, target, pre=True, progress=tell)
            except NoSolution:
                continue  # no index has that version: from elsewhere, or of one's own
            for text in explanation.warnings:
                warn(text)
            if explanation.selection is not None:
                installed = item.label or explanation.label_of(item.version)
                advice = advise(explanation.selection, installed)
                if advice is not None and not explanation.is_extra(advice.better):
                    advices.append((item, advice))
    return looked_at, advices


def _command(python: Path | None, options: list[str], items: list[Installed]) -> str:
    """Return pip's command that switches *items*, with *options*, in the environment *python*."""
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


def _environment(python: Path | None) -> _Environment:
    """Return the environment of *python*, an interpreter or a virtual environment."""
    if python is None:
        active = os.environ.get("VIRTUAL_ENV")
        python = Path(active or sys.executable)
    if python.is_dir():
        folders = (python / "bin" / "python", python / "Scripts" / "python.exe")
        python = next((path for path in folders if path.exists()), python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        version, *paths = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise click.ClickException(f"{python} is not a working Python: {reason}") from None
    return _Environment(version, tuple(dict.fromkeys(paths)))

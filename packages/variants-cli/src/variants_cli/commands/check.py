"""`variants check`: which installed variants are not the best ones for this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..console import counted, print_json, print_table, warn
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, resolving

if TYPE_CHECKING:
    from pep_variants.advice import Advice
    from pep_variants.installed import Installed

_PROBE = (
    "import json, sys, sysconfig; "
    "print(json.dumps([sys.version.split()[0], sysconfig.get_path('purelib'), "
    "sysconfig.get_path('platlib')]))"
)


class _Environment(NamedTuple):
    """What the Python of an environment says of it: its version, and where packages are."""

    version: str
    paths: tuple[str, ...]


@click.command(short_help="List installed packages of which a better variant exists.")
@click.option(
    "--python",
    "python",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="An interpreter or a virtual environment. Default: the one that is active.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Look also for variants of what is installed without: a page of the index for each.",
)
@index_options
@json_option
def check(
    python: Path | None,
    every: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """List installed packages of which a better variant exists.

    Better for this machine, of the version that is installed; newer versions are another matter.
    Changes nothing. Exits with 1 if there are any.
    """
    from pep_variants.installed import find_installed

    environment = _environment(python)
    found = list(find_installed(environment.paths))
    for item in found:
        if item.problem:
            warn(item.problem)
    looked_at = [item for item in found if item.label is not None or every]
    if options["python_version"] is None and not options["targets"]:
        options["python_version"] = environment.version
    advices = _advices(looked_at, options)
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
                    item.label or "(none)",
                    advice.better or "(none)",
                    _why(advice),
                )
                for item, advice in advices
            ],
        )
        wanted = " ".join(f"{item.project}=={item.version}" for item, _ in advices)
        click.echo(f"To switch: pip install --force-reinstall --no-deps {wanted}")
    click.get_current_context().exit(1 if advices else 0)


def _advices(looked_at: list[Installed], options: dict[str, Any]) -> list[tuple[Installed, Advice]]:
    from pep_variants.advice import advise
    from resolvelib_variants.resolution.errors import NoSolution
    from resolvelib_variants.resolution.explanation import explain
    from resolvelib_variants.resolution.requirements import parse_requirement

    where = places(options)
    target = where.targets[0]
    advices = []
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        for item in looked_at:
            wanted = parse_requirement(f"{item.project}=={item.version}")
            try:
                explanation = explain(resolver, wanted, target, pre=True, progress=tell)
            except NoSolution:
                continue  # no index has that version: from elsewhere, or of one's own
            for text in explanation.warnings:
                warn(text)
            if explanation.selection is not None:
                advice = advise(explanation.selection, item.label)
                if advice is not None:
                    advices.append((item, advice))
    return advices


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
    """Return what *python*, an interpreter or an environment, says of itself."""
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
        raise click.ClickException(f"{python} is no Python that works: {reason}") from None
    return _Environment(version, tuple(dict.fromkeys(paths)))

"""`variants doctor` and `check`: what is installed, against what would fit this machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pep_variants.internal import find_installed

from ..console import counted, print_json, print_table, warn
from .arguments import Command, json_option, option_values
from .index_options import index_options, places, progress, repeated_options, resolving

if TYPE_CHECKING:
    from pep_variants.internal import Installed
    from variants_index.internal import Findings

    from ..checkup import Compared, Environment

python_option = click.option(
    "--python", "python", metavar="PATH", type=click.Path(exists=True, path_type=Path),
    help="An interpreter or a virtual environment. Default: the active one.",
)  # fmt: skip


@click.command(cls=Command)
@click.argument("projects", metavar="[PROJECT]...", nargs=-1)
@python_option
@click.option("--offline", is_flag=True, help="Ask no index; skip what is installed.")
@click.option(
    "--verify", is_flag=True,
    help="Only compare the installed files of this project and of pip with their RECORD.",
)  # fmt: skip
@index_options
@json_option
def doctor(
    projects: tuple[str, ...],
    python: Path | None,
    offline: bool,
    verify: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show why a build was chosen here, what is wrong, and what to type.

    Shows every library, tool and file that detection tries, forced values, container and device
    files, settings and where they are from, pip and uv on PATH, and installed variants against
    those that fit now. PROJECTs are also looked at if installed without a variant.
    Changes nothing. Exits with 1 if something is wrong.
    """
    from ..checkup import compare, examine

    if verify:
        from ..verification import verify as verified
        from ..verification import virtual_environment_paths

        paths = virtual_environment_paths(python) or _environment(python, options).paths
        _print(verified(paths), as_json=as_json)
    environment = _environment(python, options)
    machine = next(iter(options["targets"]), None)
    where = places(options)
    values = option_values(options)

    def lookup(found: Iterable[Installed], named: Collection[str]) -> Iterator[Compared]:
        with resolving(where, option_values(options)) as resolver, progress() as tell:
            yield from compare(resolver, where.targets[0], found, named=named, progress=tell)

    if where.targets[0].platform is not None:
        values["variant-platform"] = machine
    findings = examine(
        environment, os.environ, sources=where.sources, options=values, projects=projects,
        lookup=None if offline else lookup,
    )  # fmt: skip
    _print(findings, as_json=as_json)


@click.command(cls=Command)
@python_option
@click.option(
    "--all", "every", is_flag=True,
    help="Also check packages that are installed without a variant; fetches one page for each.",
)  # fmt: skip
@index_options
@json_option
def check(python: Path | None, every: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """List installed packages that have a better variant.

    Compares variants of the installed version for this machine; newer versions do not matter.
    Includes packages that the catalogue describes, and warns of packages that own the same files or
    lack some. Changes nothing. Exits with 1 if there are any.
    """
    from variants_index.internal import environment_problems

    from ..checkup import compare

    environment = _environment(python, options)
    found = list(find_installed(environment.paths))
    for item in found:
        if item.problem:
            warn(item.problem)
    where = places(options)
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        compared = list(compare(resolver, where.targets[0], found, every=every, progress=tell))
    for each in compared:
        for text in each.explanation.warnings if each.explanation else ():
            warn(text)
    damage = [problem.text for problem in environment_problems(environment.paths)]
    for text in damage:
        warn(f"{text} (variants doctor says what to type)")
    better = [(each.item, each.advice) for each in compared if each.advice is not None]
    if as_json:
        trees = [
            {"project": item.project, "version": str(item.version), **asdict(advice)}
            for item, advice in better
        ]
        print_json({"checked": len(compared), "better": trees})
    elif not better:
        click.echo(f"{counted(len(compared), 'package')} checked, none has a better variant")
    else:
        rows = [
            (
                f"{item.project} {item.version}",
                item.label or advice.installed or "(none)",
                advice.better or "(none)",
                f"does not fit: {'; '.join(advice.unfit)}" if advice.unfit else advice.why,
            )
            for item, advice in better
        ]
        print_table(("package", "installed", "better", "why"), rows)
        command = environment.switch_command(*(item.project for item, _ in better))
        click.echo(f"To switch: {command}")
    click.get_current_context().exit(1 if better or damage else 0)


def _print(findings: Findings, *, as_json: bool) -> NoReturn:
    """Print what was found, and exit with 1 if something is wrong."""
    from variants_index.internal import lines

    if as_json:
        print_json(findings.as_tree())
    else:
        for line in lines(findings):
            click.echo(line)
    click.get_current_context().exit(0 if findings.is_well else 1)


def _environment(python: Path | None, options: dict[str, Any]) -> Environment:
    """Return the environment, whose Python is the default in *options*.

    Raises:
        UsageError: *options* name several machines, and an environment is on one.
    """
    from ..checkup import find_environment

    if len(options["targets"]) > 1:
        raise click.UsageError("--platform can be given once: an environment is on one machine")
    environment = find_environment(python)
    if options["python_version"] is None:
        options["python_version"] = environment.version
    return environment._replace(options=tuple(repeated_options(options)))

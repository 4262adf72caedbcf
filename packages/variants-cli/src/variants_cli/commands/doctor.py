"""`variants doctor`: says why this machine gets the builds that it gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..comparison import compare
from ..console import print_json
from ..environment import find_environment
from .arguments import json_option, option_values
from .check import set_target_of, switch_command
from .index_options import index_options, places, progress, repeated_options, resolving

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pep_variants.wheelfile.installed import Installed

    from ..comparison import Compared
    from ..doctor.examination import Inquiry


@click.command(short_help="Show why a build was chosen here, what is wrong, and what to type.")
@click.argument("projects", metavar="[PROJECT]...", nargs=-1)
@click.option(
    "--python",
    "python",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="An interpreter or a virtual environment. Default: the active one.",
)
@click.option("--offline", is_flag=True, help="Ask no index; skip what is installed.")
@index_options
@json_option
def doctor(
    projects: tuple[str, ...],
    python: Path | None,
    offline: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show why a build was chosen here, what is wrong, and what to type.

    Shows every library, tool and file that detection tries, forced values, container and device
    files, settings and where they are from, pip and uv on PATH, and installed variants against
    those that fit now. PROJECTs are also looked at if installed without a variant.
    Changes nothing. Exits with 1 if something is wrong.
    """
    from variants_index.doctor.text import lines

    from ..doctor.examination import examine

    found = examine(_inquiry(projects, python, options, offline=offline), os.environ)
    if as_json:
        print_json(found.as_tree())
    else:
        for line in lines(found):
            click.echo(line)
    click.get_current_context().exit(0 if found.is_well else 1)


def _inquiry(
    projects: tuple[str, ...], python: Path | None, options: dict[str, Any], *, offline: bool
) -> Inquiry:
    """Return what the arguments ask."""
    from ..doctor.examination import Inquiry

    environment = find_environment(python)
    set_target_of(environment, options)
    repeated = repeated_options(options)
    machine = next(iter(options["targets"]), None)
    where = places(options)
    values = option_values(options)
    if where.targets[0].platform is not None:
        values["variant-platform"] = machine

    def lookup(found: Iterable[Installed], named: Collection[str]) -> Iterator[Compared]:
        with resolving(where, values) as resolver, progress() as tell:
            yield from compare(resolver, where.targets[0], found, named=named, progress=tell)

    return Inquiry(
        environment,
        where.sources,
        values,
        projects,
        None if offline else lookup,
        lambda item: switch_command(python, repeated, [item]),
        tuple(repeated),
    )

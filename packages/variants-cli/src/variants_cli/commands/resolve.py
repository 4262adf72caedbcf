"""`variants resolve`: what to install, of indexes with variants, for this machine or others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..console import print_json, print_table, warn
from .arguments import json_option, option_values
from .index_options import index_options, places, progress, resolving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from resolvelib_variants.resolution.requirements import Wishes
    from resolvelib_variants.resolution.result import Resolution

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Resolve requirements over indexes, variants included.")
@click.argument("requirements", metavar="[REQUIREMENT]...", nargs=-1)
@click.option(
    "-r", "--requirement", "files", metavar="FILE", type=_FILE, multiple=True,
    help="Also what this requirements file lists; repeatable.",
)  # fmt: skip
@click.option(
    "-c", "--constraint", "constraints", metavar="FILE", type=_FILE, multiple=True,
    help="Hold to the versions in this file; repeatable.",
)  # fmt: skip
@index_options
@json_option
def resolve(
    requirements: tuple[str, ...],
    files: tuple[Path, ...],
    constraints: tuple[Path, ...],
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Resolve requirements over indexes, variants included.

    Prints every file that would be installed, on this machine or on those of --target. Nothing is
    built and nothing is installed.

    Example: variants resolve torch torchvision --target h100.toml -o pylock.toml
    """
    wishes = _wishes(requirements, files, constraints)
    if not wishes.requirements:
        raise click.UsageError("give a requirement, or a file of them with -r")
    where = places(options, wishes)
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        resolutions = [resolver.resolve(wishes, target, tell) for target in where.targets]
    if as_json:
        print_json({"resolutions": [resolution.to_tree() for resolution in resolutions]})
    else:
        for number, resolution in enumerate(resolutions):
            if len(resolutions) > 1:
                click.echo(f"{'' if number == 0 else chr(10)}{resolution.target.name}")
            _show(resolution)
    for text in dict.fromkeys(text for found in resolutions for text in found.warnings):
        warn(text)


def _wishes(
    requirements: Sequence[str], files: Sequence[Path], constraints: Sequence[Path]
) -> Wishes:
    from resolvelib_variants.resolution.errors import RequirementError
    from resolvelib_variants.resolution.requirements import Wishes, parse_requirement, read_file

    try:
        wishes = Wishes(tuple(map(parse_requirement, requirements)))
        for path in files:
            wishes += read_file(path, os.environ)
        for path in constraints:
            wishes += read_file(path, os.environ, constraints=True)
    except RequirementError as error:
        raise click.UsageError(str(error)) from None
    return wishes


def _show(resolution: Resolution) -> None:
    packages = resolution.packages
    if any(package.why or package.label is not None for package in packages):
        rows = [
            (package.name, str(package.version), package.label or "-", package.why)
            for package in packages
        ]
        print_table(("project", "version", "variant", "why"), rows)
    elif packages:
        print_table(("project", "version"), [(item.name, str(item.version)) for item in packages])

"""Arguments and options that several commands have, and checks of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

wheels_argument = click.argument(
    "wheels",
    metavar="WHEEL...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    nargs=-1,
    required=True,
)

output_option = click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write. Default: beside the wheel.",
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def check_targets(targets: Mapping[Path, Path], *, force: bool) -> None:
    """Refuse to write two wheels to one path, or, without *force*, over a file.

    Args:
        targets: path to write by path to read.
        force: files that exist may be replaced.
    """
    sources: dict[Path, Path] = {}
    for source, target in targets.items():
        if target in sources:
            raise click.ClickException(
                f"{sources[target]} and {source} would both be written to {target}"
            )
        sources[target] = source
        if target.exists() and not force:
            raise click.ClickException(f"{target} exists: use --force to replace it")

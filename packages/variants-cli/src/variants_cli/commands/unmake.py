"""`variants unmake`: variant wheels back into plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pep_variants.filename import parse_filename
from pep_variants.label import split_label

from ..atomic import replacing
from ..console import note
from ..rewriting import open_source
from .arguments import check_targets, force_option, output_option, wheels_argument

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="Turn variant wheels back into plain ones.")
@wheels_argument
@output_option
@force_option
def unmake(wheels: tuple[Path, ...], output: Path | None, force: bool) -> None:
    """Turn variant wheels back into plain ones.

    The inverse of make: the label leaves the name, variant.json the dist-info, and everything
    else is copied as it is. The paths of the new wheels are printed.
    """
    targets = {}
    for wheel in wheels:
        parse_filename(wheel.name)
        plain, _ = split_label(wheel.name)
        targets[wheel] = (output or wheel.parent) / plain
    check_targets(targets.items(), force=force)
    for wheel, target in targets.items():
        with open_source(wheel) as source:
            if not source.is_variant:
                raise click.ClickException(f"{wheel} is no variant wheel: it has no variant.json")
            for signature in source.signatures:
                note(f"{wheel}: its signature {signature} is left out, it would not hold any more")
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                source.write(stream, None)
        click.echo(target)

"""`variants unmake`: turns variant wheels into plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pep_variants.files import replacing
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import split_label
from pep_variants.wheelfile.rewriting import open_source

from ..console import note
from .arguments import (
    check_targets,
    force_option,
    json_option,
    output_option,
    wheels_argument,
)
from .written_wheels import print_written, written_wheel

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="Turn variant wheels back into plain ones.")
@wheels_argument
@output_option
@force_option
@json_option
def unmake(wheels: tuple[Path, ...], output: Path | None, force: bool, as_json: bool) -> None:
    """Turn variant wheels back into plain ones.

    The inverse of make: removes the label from the name and variant.json from dist-info; everything
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
                raise click.ClickException(f"{wheel}: not a variant wheel: it has no variant.json")
            for signature in source.signatures:
                note(f"{wheel}: {signature} is not copied: it does not sign the new RECORD")
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as stream:
                source.write(stream, None)
    written = [written_wheel(wheel, target) for wheel, target in targets.items()]
    print_written(written, as_json=as_json)

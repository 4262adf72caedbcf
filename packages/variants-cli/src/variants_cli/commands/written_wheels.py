"""What `make` and `unmake` print of the wheels that they wrote."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from pep_variants.model.label import split_label

from ..console import print_json
from ..matrix.building import file_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class WrittenWheel:
    """A wheel that a command wrote.

    Attributes:
        path: of the file.
        source: path of the wheel that it was made from.
        label: its label, None for a non-variant wheel.
        size: in bytes.
        sha256: hexadecimal.
    """

    path: str
    source: str
    label: str | None
    size: int
    sha256: str


def written_wheel(source: Path, target: Path) -> WrittenWheel:
    """Return what is known of the wheel *target*, made from *source*."""
    return WrittenWheel(
        str(target),
        str(source),
        split_label(target.name)[1],
        target.stat().st_size,
        file_digest(target),
    )


def print_written(wheels: Sequence[WrittenWheel], *, as_json: bool) -> None:
    """Print the paths of *wheels*, or all that is known of them as JSON."""
    if as_json:
        print_json([asdict(wheel) for wheel in wheels])
        return
    for wheel in wheels:
        click.echo(wheel.path)

"""Options and errors of building a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pep_variants.errors import VariantError

from .model import Matrix


class BuildError(VariantError):
    """A build that failed.

    Attributes:
        tail: the last lines of its log.
    """

    def __init__(self, message: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tail = tuple(tail)


class Foundation(Protocol):
    """What a variant is built against, see `built_against.Against`."""

    @property
    def digest(self) -> str:
        """Digest of it."""

    def constraints(self, folder: Path) -> Path | None:
        """Write constraints for isolated builds to *folder*; None without isolation."""

    def environment(self, environ: Mapping[str, str], constraints: Path | None) -> dict[str, str]:
        """Return variables for a build in *environ*."""


@dataclass(frozen=True)
class Plan:
    """Options of a build.

    Attributes:
        matrix: the matrix.
        output: folder for the wheels.
        frontend: one of `frontends.FRONTENDS`.
        isolated: build in isolated environments.
        jobs: number of parallel builds.
        fresh: rebuild wheels that are up to date.
        against: what variants are built against, by name; nothing for others.
        subfolder: folder below `folder` for what belongs to this project alone; empty for none.
        gate: refuse variants that are slower than the null variant.
    """

    matrix: Matrix
    output: Path
    frontend: str
    isolated: bool = True
    jobs: int = 1
    fresh: bool = False
    against: Mapping[str, Foundation] = field(default_factory=dict)
    subfolder: str = ""
    gate: bool = True

    @property
    def folder(self) -> Path:
        """Folder for logs, results and source trees, beside the one for wheels."""
        output = self.output.absolute()
        return output.with_name(f"{output.name}-build") / self.subfolder

    @property
    def has_checks(self) -> bool:
        """Whether built wheels are tested or measured before they are put into `output`."""
        return bool(self.matrix.build.tests) or self.matrix.build.benchmark is not None

    @property
    def unchecked(self) -> Path:
        """Folder for wheels that were not checked yet, or failed."""
        return self.folder / "unchecked"

    @property
    def target(self) -> Path:
        """Folder that wheels are written to when they are built."""
        return self.unchecked if self.has_checks else self.output

    def place(self, wheel: str) -> Path:
        """Return the path of the wheel with this name: checked, else unchecked."""
        places = (self.output / wheel, self.unchecked / wheel)
        return next((path for path in places if path.exists()), self.target / wheel)

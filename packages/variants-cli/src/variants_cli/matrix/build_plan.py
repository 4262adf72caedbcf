"""Options and errors of building a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """

    matrix: Matrix
    output: Path
    frontend: str
    isolated: bool = True
    jobs: int = 1
    fresh: bool = False

    @property
    def folder(self) -> Path:
        """Folder for logs, results and source trees, beside the one for wheels."""
        return self.output.absolute().with_name(f"{self.output.absolute().name}-build")

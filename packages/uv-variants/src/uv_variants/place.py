"""Where a uv command runs: its directories and environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from variants_index.uv_files import is_on

if TYPE_CHECKING:
    from .invocation import Invocation


@dataclass(frozen=True)
class Place:
    """Directories and variables of a command.

    Attributes:
        cwd: working directory of uv.
        project: directory from which uv looks for the project.
        environ: environment variables of the user.
    """

    cwd: Path
    project: Path
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, invocation: Invocation, cwd: Path, environ: Mapping[str, str]) -> Place:
        """Return the place of *invocation*, started in *cwd*."""
        there = cwd / (invocation.last("directory") or environ.get("UV_WORKING_DIR") or "")
        project = there / (invocation.last("project") or environ.get("UV_PROJECT") or "")
        return cls(there, project, environ)

    def is_on(self, variable: str) -> bool:
        """Return whether *variable* is set, and not to a word for no."""
        return is_on(self.environ.get(variable, ""))

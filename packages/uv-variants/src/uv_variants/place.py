"""Where a uv command runs: its directories and variables, and the project or script it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from variants_index.internal import is_on, script_tree, workspace_root

if TYPE_CHECKING:
    from .invocation import Invocation


@dataclass(frozen=True)
class Place:
    """Directories and variables of a command.

    Attributes:
        cwd: working directory of uv.
        project: directory from which uv looks for the project.
        environ: environment variables of the user.
        script: with inline metadata, which uv then works on in place of the project; None without.
        uses_project: whether uv looks for a project at all.
    """

    cwd: Path
    project: Path
    environ: Mapping[str, str] = field(repr=False)
    script: Path | None = None
    uses_project: bool = True

    @classmethod
    def of(cls, invocation: Invocation, cwd: Path, environ: Mapping[str, str]) -> Place:
        """Return the place of *invocation*, started in *cwd*."""
        there = cwd / (invocation.last("directory") or environ.get("UV_WORKING_DIR") or "")
        project = there / (invocation.last("project") or environ.get("UV_PROJECT") or "")
        without = invocation.has("no-project") or is_on(environ.get("UV_NO_PROJECT", ""))
        uses_project = not (without and invocation.command == ("run",))
        return cls(there, project, environ, _script(invocation, there), uses_project)

    def is_on(self, variable: str) -> bool:
        """Return whether *variable* is set, and not to a word for no."""
        return is_on(self.environ.get(variable, ""))

    @cached_property
    def root(self) -> Path | None:
        """The directory of the project or workspace, None if the command is about none."""
        if self.script is not None or not self.uses_project:
            return None
        return workspace_root(self.project.absolute())

    @property
    def lock_path(self) -> Path | None:
        """The lock file of the script or of the project, whether it exists or not."""
        if self.script is not None:
            return self.script.with_name(f"{self.script.name}.lock")
        return self.root / "uv.lock" if self.root is not None else None


def _script(invocation: Invocation, cwd: Path) -> Path | None:
    """Return the script with inline metadata that uv works on, None without one."""
    if invocation.command != ("run",):
        named = invocation.last("script")
        return cwd / named if named else None
    operand = next(iter(invocation.operands), "")
    if operand.endswith((".py", ".pyw")) or invocation.has("script", "s"):
        path = cwd / operand
        return path if script_tree(path) is not None else None  # else it runs in the project
    return None

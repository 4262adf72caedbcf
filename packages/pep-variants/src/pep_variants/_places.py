"""Where a ``variants.toml`` may be.

Imports very little, as pip looks for these files at every start of its resolver. `loader` reads
them.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from . import _directories as directories

FILENAME = "variants.toml"
FOUND = "found from the working directory"
"""Origin of a project's environment that no variable names, see `active_environment`."""

_TOOLS = ("uv-receipt.toml", "pipx_metadata.json")
"""Files that uv and pipx put into the environment of a tool."""


class Role(enum.Enum):
    """Whose settings a file holds."""

    PROJECT = "project"
    ENVIRONMENT = "virtual environment"
    USER = "user"
    SYSTEM = "system"


class Place(NamedTuple):
    """A path where a ``variants.toml`` may be.

    Attributes:
        path: of the file.
        role: whose settings it holds; `Role.PROJECT` for all that may come with a checkout.
    """

    path: Path
    role: Role


def places(
    cwd: Path | None = None, prefix: str | None = None, *, prefix_is_project: bool = False
) -> tuple[Place, ...]:
    """Return where ``variants.toml`` is looked for, the most important place first.

    Args:
        cwd: working directory; None for the one of this process.
        prefix: directory of the virtual environment; None for the one that Python runs from,
            whose code runs already, or for the activated one where uv or pipx made that for a tool.
        prefix_is_project: *prefix* was found in a project, where it may have come with the
            checkout, and is neither activated nor what Python runs from.
    """
    environment = Role.PROJECT if prefix_is_project else Role.ENVIRONMENT
    return (
        # Relative, because a working directory may have been removed.
        Place((cwd or Path()) / FILENAME, Role.PROJECT),
        Place(Path(prefix or _prefix()) / FILENAME, environment),
        Place(directories.user_config() / FILENAME, Role.USER),
        Place(directories.system_config() / FILENAME, Role.SYSTEM),
    )


def is_of_tool(prefix: str) -> bool:
    """Return whether *prefix* is an environment that uv or pipx made for a tool."""
    folders = [os.path.dirname(prefix), os.path.dirname(os.path.dirname(prefix))]  # noqa: PTH120
    marks = [os.path.join(prefix, name) for name in _TOOLS]  # noqa: PTH118
    # That of a tool that is run once is in uv's cache.
    marks += (os.path.join(folder, "CACHEDIR.TAG") for folder in folders)  # noqa: PTH118
    return any(map(os.path.exists, marks))


def _prefix() -> str:
    active = os.environ.get("VIRTUAL_ENV")
    if active and active != sys.prefix and is_of_tool(sys.prefix):
        return active
    return sys.prefix


def active_environment(environ: Mapping[str, str], cwd: Path) -> tuple[Path, str] | None:
    """Return the environment that uv would take, and what names it; None without one.

    That is the activated one, or else ``.venv`` in the working directory or above. conda's base
    environment, which is often active all the time, comes last.
    """
    conda = environ.get("CONDA_PREFIX")
    is_base = environ.get("CONDA_DEFAULT_ENV") in ("base", "root")
    if environ.get("VIRTUAL_ENV"):
        return Path(environ["VIRTUAL_ENV"]), "VIRTUAL_ENV"
    if conda and not is_base:
        return Path(conda), "CONDA_PREFIX"
    start = cwd.absolute()
    for folder in (start, *start.parents):
        if (folder / ".venv" / "pyvenv.cfg").is_file():
            return folder / ".venv", FOUND
    return (Path(conda), "CONDA_PREFIX") if conda else None

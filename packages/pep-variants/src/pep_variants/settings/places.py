"""Where a ``variants.toml`` may be.

Imports very little, as pip looks for these files at every start of its resolver. `loader` reads
them.
"""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path
from typing import NamedTuple

from .. import directories

FILENAME = "variants.toml"


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
            whose code runs already.
        prefix_is_project: *prefix* was found in a project, where it may have come with the
            checkout, and is neither activated nor what Python runs from.
    """
    environment = Role.PROJECT if prefix_is_project else Role.ENVIRONMENT
    return (
        # Relative, because a working directory may have been removed.
        Place((cwd or Path()) / FILENAME, Role.PROJECT),
        Place(Path(prefix or sys.prefix) / FILENAME, environment),
        Place(directories.user_config() / FILENAME, Role.USER),
        Place(directories.system_config() / FILENAME, Role.SYSTEM),
    )


def any_file() -> bool:
    """Return whether there is anything at one of the `places`, readable or not."""
    return any(os.path.lexists(place.path) for place in places())

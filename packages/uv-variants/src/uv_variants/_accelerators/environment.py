"""Which groups of accelerators an environment has, and which one a person asked for there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

NO_GROUP = "UV_NO_GROUP"
"""The variable with the names of the groups that uv leaves out."""

_RECORD = "uv-variants-group"
"""In an environment: the group that was named when it was synchronized."""
_PLAN = ("sync", "--frozen", "--dry-run", "--offline", "--color=never")
_CHANGE = re.compile(r"^ [+~-] .*", re.MULTILINE)


def without_others(
    environ: Mapping[str, str], groups: Iterable[str], group: str | None
) -> dict[str, str]:
    """Return the variables with which uv takes *group* of *groups*."""
    others = [name for name in groups if name != group]
    return {**environ, NO_GROUP: " ".join([*others, *environ.get(NO_GROUP, "").split()])}


def installed_groups(
    uv: str, root: Path, environ: Mapping[str, str], groups: Iterable[str]
) -> list[str]:
    """Return those of *groups* for which uv would change nothing but what it would for all.

    Args:
        uv: path of uv.
        root: of the project, whose environment it is.
        environ: environment variables.
        groups: of the accelerators.
    """
    changes = {
        group: set(_CHANGE.findall(_planned(uv, root, without_others(environ, groups, group))))
        for group in (None, *groups)
    }
    common = set.intersection(*changes.values())
    return [group for group, found in changes.items() if group and found == common]


def _planned(uv: str, root: Path, environ: Mapping[str, str]) -> str:
    command = [uv, *_PLAN, "--directory", str(root)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False).stderr


def record_group(environment: Path, group: str) -> None:
    """Note that a person asked for *group* in an environment."""
    (environment / _RECORD).write_text(f"{group}\n", encoding="utf-8")


def recorded_group(environment: Path) -> str:
    """Return the group that a person asked for in an environment, empty for none."""
    path = environment / _RECORD
    return path.read_text("utf-8", "replace").strip() if path.is_file() else ""

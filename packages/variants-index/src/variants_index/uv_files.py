"""uv's configuration files: which it reads, in its order, and what is in them.

Files are only read, and what is not valid is skipped: uv reports it itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pep_variants import limits, safe_files

__all__ = [
    "UvTable", "is_on", "project_settings", "project_table", "read_toml", "script_tree",
    "settings_tables", "system_path", "table_of", "workspace_root",
]  # fmt: skip

_SCRIPT = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+?)^# ///\s*$")
_NO = ("", "0", "false", "no", "off", "f", "n")


@dataclass(frozen=True)
class UvTable:
    """The settings of uv in one file.

    Attributes:
        path: of the file.
        settings: its tables and keys, of ``pyproject.toml`` those below ``[tool.uv]``.
    """

    path: Path
    settings: Mapping[str, Any]

    @property
    def base(self) -> Path:
        """The directory that paths in it are relative to."""
        return self.path.absolute().parent


def settings_tables(
    start: Path,
    environ: Mapping[str, str],
    *,
    config_file: str | None = None,
    no_config: bool = False,
    project: bool = True,
) -> list[UvTable]:
    """Return the settings that uv reads, those that come first in it first.

    Args:
        start: directory from which the project is looked for.
        environ: environment variables.
        config_file: the only file to read, as ``--config-file`` has it.
        no_config: read no file.
        project: read the project's file, which uv does not do for tools.
    """
    if config_file is not None:
        return _uv_toml(Path(config_file))
    if no_config:
        return []
    tables = _project(start) if project else []
    for path in (_user_path(environ), system_path(environ)):
        tables += _uv_toml(path) if path is not None else []
    return tables


def workspace_root(start: Path) -> Path | None:
    """Return the directory of the project or workspace around *start*, None without one."""
    nearest: Path | None = None
    for folder in (start, *start.parents):
        tree = read_toml(folder / "pyproject.toml")
        if tree is None:
            continue
        nearest = nearest or folder
        if "workspace" in _uv_settings(tree):
            return folder
    return nearest


def project_table(root: Path) -> Mapping[str, Any]:
    """Return the table ``[project]`` of the project in *root*, empty without one."""
    tree = read_toml(root / "pyproject.toml")
    return table_of(tree.get("project")) if tree else {}


def project_settings(folder: Path) -> UvTable:
    """Return ``[tool.uv]`` of the project in *folder*, empty without one."""
    path = folder / "pyproject.toml"
    tree = read_toml(path)
    return UvTable(path, _uv_settings(tree) if tree else {})


def read_toml(path: Path) -> Mapping[str, Any] | None:
    """Return the content of the file, None where it is absent or not valid TOML."""
    try:
        # In a checkout it may be a device, which never ends, or a pipe, which uv has to read.
        return safe_files.read_toml(safe_files.read_text(path, limits.PYPROJECT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def script_tree(path: Path) -> Mapping[str, Any] | None:
    """Return the inline metadata of the script (PEP 723), None without any.

    Metadata that is not valid TOML is empty.
    """
    try:
        text = safe_files.read_text(path, limits.LOCK_BYTES, errors="replace")
    except (OSError, ValueError):
        return None
    match = _SCRIPT.search(text.replace("\r\n", "\n"))
    if match is None:
        return None
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in match[0].splitlines()[1:])
    content = "\n".join(list(lines)[:-1])
    try:
        return safe_files.read_toml(content)
    except (ValueError, RecursionError):
        return {}


def table_of(value: object) -> Mapping[str, Any]:
    """Return *value* if it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def is_on(text: str) -> bool:
    """Return whether *text*, the value of a variable, is set and no word for no.

    >>> from variants_index.uv_files import is_on
    >>> is_on("1"), is_on("false"), is_on("")
    (True, False, False)
    """
    return text.strip().lower() not in _NO


def _project(start: Path) -> list[UvTable]:
    for folder in (start, *start.parents):
        found = _uv_toml(folder / "uv.toml")
        if found:
            return found
        table = project_settings(folder)
        if "workspace" in table.settings or (
            table.settings and workspace_root(folder) in (None, folder)
        ):
            return [table]
    return []


def _uv_toml(path: Path) -> list[UvTable]:
    tree = read_toml(path)
    return [] if tree is None else [UvTable(path, tree)]


def _uv_settings(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    return table_of(table_of(tree.get("tool")).get("uv"))


def _user_path(environ: Mapping[str, str]) -> Path | None:
    if sys.platform == "win32":
        folder = environ.get("APPDATA")
        return Path(folder, "uv", "uv.toml") if folder else None
    folder = environ.get("XDG_CONFIG_HOME")
    if folder:
        return Path(folder, "uv", "uv.toml")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(home, ".config", "uv", "uv.toml")


def system_path(environ: Mapping[str, str]) -> Path | None:
    """Return uv's file for all users, None without one; on Windows it need not exist."""
    if sys.platform == "win32":
        folder = environ.get("PROGRAMDATA", environ.get("SYSTEMDRIVE", "C:") + "\\ProgramData")
        return Path(folder, "uv", "uv.toml")
    folders = [folder for folder in environ.get("XDG_CONFIG_DIRS", "").split(":") if folder]
    candidates = [Path(folder, "uv", "uv.toml") for folder in folders or ["/etc/xdg"]]
    candidates.append(Path("/etc/uv/uv.toml"))
    return next((path for path in candidates if path.is_file()), None)

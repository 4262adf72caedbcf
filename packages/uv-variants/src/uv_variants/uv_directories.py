"""Directories of uv: its cache and its tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def cache_directory(
    environ: Mapping[str, str], option: str | None, configured: object, cwd: Path
) -> Path:
    """Return uv's cache: from ``--cache-dir``, ``UV_CACHE_DIR``, a file, or its default."""
    given = option or environ.get("UV_CACHE_DIR")
    if given:
        return cwd / given
    if isinstance(configured, str):
        return cwd / os.path.expanduser(configured)  # noqa: PTH111
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA", Path.home()), "uv", "cache")
    base = environ.get("XDG_CACHE_HOME")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(base, "uv") if base else Path(home, ".cache", "uv")


def tool_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of uv's tools."""
    named = environ.get("UV_TOOL_DIR")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(environ.get("APPDATA", Path.home()), "uv", "tools")
    base = environ.get("XDG_DATA_HOME")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(base, "uv", "tools") if base else Path(home, ".local", "share", "uv", "tools")

"""Directories of uv: its cache and its tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

SHARED = "shared"
"""Cache that all commands use."""


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


def variants_caches(plain: Path) -> Path:
    """Return the folder of the caches that uv has for commands of uv-variants, see `SHARED`.

    uv keys pages and wheels by their URLs. The pages that it gets here are others at the same
    URLs, so they must not meet in one cache with those of plain uv, at *plain*. The folder is
    beside that: ``uv cache prune`` removes all folders inside that it does not know. Only if
    *plain* is a volume of its own, as in a container build, or nothing can be written beside it,
    there is no other place.
    """
    beside = plain.with_name(f"{plain.name}-variants")
    if beside.is_dir():
        return beside
    parent = plain.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if os.access(parent, os.W_OK | os.X_OK) and not plain.is_mount():
        return beside
    return plain / "variants"

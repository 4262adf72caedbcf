"""The uv to run: unmodified, whichever the user has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import UvNotFound
from .wishes import UV_VARIABLE


def find_uv(environ: Mapping[str, str]) -> str:
    """Return the path of uv: of the variable, on PATH, or beside the running Python.

    Raises:
        UvNotFound: there is none.
    """
    import shutil

    named = environ.get(UV_VARIABLE)
    if named:
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise UvNotFound(f"{UV_VARIABLE}={named}: there is no such program")
        return str(Path(found).absolute())
    here = Path(sys.argv[0]).resolve()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("uv", path=folder)
        # A link called uv that leads here would go round in circles.
        if found is not None and Path(found).resolve() != here:
            return str(Path(found).absolute())
    beside = shutil.which("uv", path=str(Path(sys.executable).parent))
    if beside is None:
        raise UvNotFound(
            "uv is not on PATH: install it (https://docs.astral.sh/uv/), "
            f"or name it in {UV_VARIABLE}"
        )
    return beside


def become_uv(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run uv in place of this process, where a system can do that; return its exit code else."""
    if os.name == "nt":
        from .process import run_uv

        return run_uv(command, environ)
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execve(command[0], list(command), dict(environ))  # noqa: S606 - no shell is wanted


def cache_directory(
    environ: Mapping[str, str], option: str | None, configured: object, cwd: Path
) -> Path:
    """Return uv's cache: of ``--cache-dir``, ``UV_CACHE_DIR``, a file, or where uv has it."""
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
    """Return where uv has its tools."""
    named = environ.get("UV_TOOL_DIR")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(environ.get("APPDATA", Path.home()), "uv", "tools")
    base = environ.get("XDG_DATA_HOME")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(base, "uv", "tools") if base else Path(home, ".local", "share", "uv", "tools")

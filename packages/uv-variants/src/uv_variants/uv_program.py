"""The user's uv: finding the program, and running it in place of this process.

The module imports very little, because commands without an index become uv at once.
"""

# ruff: noqa: PTH100, PTH113, PTH118, PTH120 - pathlib would take as long as the rest

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` would take longer than everything here
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UV_VARIABLE = "VARIANTS_UV"


def find_uv(environ: Mapping[str, str]) -> str:
    """Return the path of uv: from the variable, on PATH, or beside the running Python.

    Raises:
        UvNotFound: uv is in none of these places.
    """
    path = environ.get("PATH", os.defpath)
    named = environ.get(UV_VARIABLE)
    if named:
        found = _which(named, path)
        if found is None:
            raise _not_found(f"{UV_VARIABLE}={named}: no such program; set it to the path of uv")
        return os.path.abspath(found)
    here = os.path.realpath(sys.argv[0])
    for folder in path.split(os.pathsep):
        found = _which("uv", folder)
        # A link named uv to this program would run it again without end.
        if found is not None and os.path.realpath(found) != here:
            return os.path.abspath(found)
    beside = _which("uv", os.path.dirname(sys.executable))
    if beside is None:
        raise _not_found(
            "uv is not on PATH: install it (https://docs.astral.sh/uv/), "
            f"or set {UV_VARIABLE} to its path"
        )
    return beside


def become_uv(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Replace this process by uv; on Windows, which cannot do that, run it and return its code."""
    if os.name == "nt":
        from .uv_process import run_uv

        return run_uv(command, environ)
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execve(command[0], list(command), dict(environ))  # noqa: S606 - no shell is wanted


def _which(name: str, path: str) -> str | None:
    """Return what `shutil.which` returns; `shutil` imports the modules of all archive formats."""
    if os.name == "nt":
        import shutil

        return shutil.which(name, path=path)
    folders = [""] if os.path.dirname(name) else path.split(os.pathsep)
    for folder in folders:
        file = os.path.join(folder, name)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None


def _not_found(text: str) -> Exception:
    from .errors import UvNotFound

    return UvNotFound(text)

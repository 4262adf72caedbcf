"""The user's uv: finding the program, its version, and running it in place of this process.

Commands that need no index, such as ``uv-variants pip list``, are recognized here and replaced by
uv at once. Command lines that begin with an option are left to `_command_line`, which knows all of
uv's options.
"""

# ruff: noqa: PTH100, PTH120 - pathlib would take as long as the rest

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence

DIRECT = (
    *("auth", "format", "generate-shell-completion", "help", "init"),
    *("publish", "python", "self", "workspace"),
)
"""Commands that are uv's alone, and never need an index, as `cache_command` does not."""

PIP = ("install", "sync", "compile", "download", "wheel")
"""Commands of ``uv pip`` that need one; others with ``--outdated`` only."""

TOOL = ("install", "run", "upgrade")
"""The same of ``uv tool``."""


OWN_OPTIONS = ("--variant", "--no-vari", "--allow-miss")
"""Beginnings of options that are not uv's."""


def is_direct(arguments: Sequence[str]) -> bool:
    """Return whether *arguments*, those after ``uv``, are surely for uv alone."""
    if any(text.startswith(OWN_OPTIONS) for text in arguments):
        return False
    first, second = (*arguments[:2], "", "")[:2]
    if first in DIRECT:
        return True
    if first not in ("pip", "tool") or not second or second.startswith("-"):
        return False
    ours = (*PIP, "check") if first == "pip" else TOOL  # see `_pip_check`
    return second not in ours and "--outdated" not in arguments


UV_VARIABLE = "VARIANTS_UV"


def find_uv(environ: Mapping[str, str]) -> str:
    """Return the path of uv: from the variable, on PATH, or beside the running Python.

    Raises:
        UvNotFound: uv is in none of these places.
    """
    path = environ.get("PATH", os.defpath)
    named = environ.get(UV_VARIABLE)
    if named:
        found = shutil.which(named, path=path)
        if found is None:
            raise _not_found(f"{UV_VARIABLE}={named}: no such program; set it to the path of uv")
        return os.path.abspath(found)
    here = os.path.realpath(sys.argv[0])
    for folder in path.split(os.pathsep):
        found = shutil.which("uv", path=folder)
        # A link named uv to this program would run it again without end.
        if found is not None and os.path.realpath(found) != here:
            return os.path.abspath(found)
    beside = shutil.which("uv", path=os.path.dirname(sys.executable))
    if beside is None:
        raise _not_found(
            "uv is not on PATH: install it (https://docs.astral.sh/uv/), "
            f"or set {UV_VARIABLE} to its path"
        )
    return beside


def become_uv(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Replace this process by uv; on Windows, which cannot do that, run it and return its code."""
    if os.name == "nt":
        from ._uv_process import run_uv

        return run_uv(command, environ)
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execve(command[0], list(command), dict(environ))  # noqa: S606 - no shell is wanted


def _not_found(text: str) -> Exception:
    from ._errors import UvNotFound  # not where uv is found, which is all that most commands need

    return UvNotFound(text)

"""The user's uv: finding the program, its version, and running it in place of this process.

``uv-variants pip list`` becomes uv as fast as Python starts, so the module imports very little.
What uv needs no index for is told apart here; command lines that begin with an option are left to
`command_line`, which knows all of uv's options.
"""

# ruff: noqa: PTH100, PTH113, PTH118, PTH120 - pathlib would take as long as the rest

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
    """Return whether *arguments*, those after ``uv``, surely need no index."""
    if any(text.startswith(OWN_OPTIONS) for text in arguments):
        return False
    first, second = (*arguments[:2], "", "")[:2]
    if first in DIRECT:
        return True
    if first not in ("pip", "tool") or not second or second.startswith("-"):
        return False
    return second not in (PIP if first == "pip" else TOOL) and "--outdated" not in arguments


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
        from ._uv_process import run_uv

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
    from ._errors import UvNotFound

    return UvNotFound(text)


TESTED_UVS = ("0.5.31", "0.8.24", "0.11.19", "0.13.8", "0.13.9")
"""The releases of uv that the tests run with, oldest first."""


def own_version() -> str:
    """Return the version of the distribution ``uv-variants``."""
    from importlib.metadata import version

    return version("uv-variants")


def uv_version(uv: str, environ: Mapping[str, str]) -> str:
    """Return the version of the program *uv*, as ``uv --version`` prints it after the name.

    Raises:
        OSError: the program cannot be run.
        UvNotFound: it runs, and is not uv.
    """
    import subprocess

    done = subprocess.run([uv, "--version"], env=dict(environ), capture_output=True, check=False)
    name, _, version = done.stdout.decode("utf-8", "replace").strip().partition(" ")
    if done.returncode != 0 or name != "uv" or not version:
        from ._errors import UvNotFound

        raise UvNotFound(f"{uv}: is not uv: '--version' ended with {done.returncode}")
    return version.partition(" ")[0]


def release_of(uv: str, environ: Mapping[str, str], folder: Path) -> tuple[int, ...]:
    """Return the release (``(0, 13, 9)``) of the program *uv*, empty if it does not say.

    The program is run once: what it says is kept in *folder*, a directory of our cache. Scripts and
    launchers, which may choose another uv each time, are always asked.
    """
    import contextlib
    import re
    from pathlib import Path

    from ._errors import UvNotFound

    kept: Path | None = None
    text = ""
    with contextlib.suppress(OSError, UvNotFound):
        path = Path(uv).resolve()
        if path.name in ("uv", "uv.exe"):
            with path.open("rb") as program:
                is_script = program.read(2) == b"#!"
            stat = path.stat()
            file = f"{stat.st_dev}-{stat.st_ino}-{stat.st_mtime_ns}-{stat.st_size}"
            kept = None if is_script else folder / file
        with contextlib.suppress(OSError):
            text = kept.read_text("utf-8") if kept is not None else ""
        if not text:
            text = uv_version(uv, environ)
            if kept is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                kept.write_text(text, "utf-8")
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def print_version(program: str, environ: Mapping[str, str]) -> int:
    """Print the line of ``--version``; return the exit code.

    Our own version is printed even if there is no uv, because reports of that need it.

    Args:
        program: ``uv-variants`` or ``uvx-variants``.
        environ: which says what uv is run.

    Raises:
        UvNotFound: there is no uv; our own version is printed.
        OSError: it cannot be run; our own version is printed.
    """
    own = f"{program} {own_version()}"
    try:
        print(f"{own} (uv {uv_version(find_uv(environ), environ)})")
    except Exception:
        print(own, flush=True)
        raise
    return 0

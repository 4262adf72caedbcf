"""The version of the user's uv, and our own."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from ._errors import UvNotFound
from ._uv_program import find_uv

TESTED_UVS = ("0.5.31", "0.8.24", "0.11.19", "0.13.8", "0.13.9")
"""The releases of uv that the tests run with, oldest first."""


def own_version() -> str:
    """Return the version of the distribution ``uv-variants``."""
    return metadata.version("uv-variants")


def uv_version(uv: str, environ: Mapping[str, str]) -> str:
    """Return the version of the program *uv*, as ``uv --version`` prints it after the name.

    Raises:
        OSError: the program cannot be run.
        UvNotFound: it runs, and is not uv.
    """
    done = subprocess.run([uv, "--version"], env=dict(environ), capture_output=True, check=False)
    name, _, version = done.stdout.decode("utf-8", "replace").strip().partition(" ")
    if done.returncode != 0 or name != "uv" or not version:
        raise UvNotFound(f"{uv}: is not uv: '--version' ended with {done.returncode}")
    return version.partition(" ")[0]


def release_of(uv: str, environ: Mapping[str, str], folder: Path) -> tuple[int, ...]:
    """Return the release (``(0, 13, 9)``) of the program *uv*, empty if it does not say.

    The program is run once: what it says is kept in *folder*, a directory of our cache. Scripts and
    launchers, which may choose another uv each time, are always asked.
    """
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

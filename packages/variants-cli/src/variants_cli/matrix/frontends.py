"""Build frontends: the commands that turn a source tree into a wheel (PEP 517)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

FRONTENDS = ("uv", "build")
AUTO = "auto"


def find_frontend(name: str) -> str:
    """Return the frontend *name*; for `AUTO`, uv if it is installed, because it is faster."""
    if name == AUTO:
        return "uv" if _uv() else "build"
    return name


def command(
    frontend: str,
    kind: str,
    source: Path,
    target: Path,
    config_settings: Mapping[str, tuple[str, ...]],
    *,
    isolated: bool = True,
) -> list[str]:
    """Return the command line that builds *source* with the running Python.

    Args:
        frontend: one of `FRONTENDS`.
        kind: ``wheel`` or ``sdist``.
        source: the source tree.
        target: the folder that gets the result.
        config_settings: for the build backend.
        isolated: build in an isolated environment.
    """
    if frontend == "uv":
        line = [_uv() or "uv", "build", "--python", sys.executable, "--out-dir", str(target)]
        line += [] if isolated else ["--no-build-isolation"]
    else:
        line = [sys.executable, "-m", "build", "--outdir", str(target)]
        # Like uv, without checking the installed dependencies.
        line += [] if isolated else ["--no-isolation", "--skip-dependency-check"]
    settings = (f"-C{key}={text}" for key, texts in config_settings.items() for text in texts)
    return [*line, f"--{kind}", *settings, str(source)]


def _uv() -> str | None:
    # Prefer the one in the current environment.
    return shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")

"""Build frontends: the commands that turn a source tree into a wheel (PEP 517)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

UV = "uv"
FRONTENDS = (UV, "build")
AUTO = "auto"


def find_frontend(name: str) -> str:
    """Return the frontend *name*; for `AUTO`, uv if it is installed, because it is faster."""
    if name == AUTO:
        return UV if find_uv() else "build"
    return name


def command(
    frontend: str,
    kind: str,
    source: Path,
    target: Path,
    config_settings: Mapping[str, tuple[str, ...]],
    *,
    isolated: bool = True,
    python: str = sys.executable,
    constraints: Path | None = None,
) -> list[str]:
    """Return the command line that builds *source*.

    Args:
        frontend: one of `FRONTENDS`.
        kind: ``wheel`` or ``sdist``.
        source: the source tree.
        target: the folder that gets the result.
        config_settings: for the build backend.
        isolated: build in an isolated environment.
        python: the interpreter to build with, by default the running one.
        constraints: file with constraints on what an isolated environment gets; `build` takes
            pip's variables instead.
    """
    if frontend == UV:
        line = [find_uv() or UV, "build", "--python", python, "--out-dir", str(target)]
        line += [] if isolated else ["--no-build-isolation"]
        line += ["--build-constraints", str(constraints)] if constraints is not None else []
    else:
        line = [python, "-m", "build", "--outdir", str(target)]
        # Like uv, without checking the installed dependencies.
        line += [] if isolated else ["--no-isolation", "--skip-dependency-check"]
    settings = (f"-C{key}={text}" for key, texts in config_settings.items() for text in texts)
    return [*line, f"--{kind}", *settings, str(source)]


def find_uv() -> str | None:
    """Return the path of uv, None if it is not installed."""
    # Prefer the one in the current environment.
    return shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")

"""Commands that come with drivers: finding them, and their output within limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .attempts import tried

TIME_LIMIT = 10.0
"""Seconds that a command may take."""


class LimitExceeded(Exception):
    """A command was stopped; the message says which limit it exceeded."""


def find_command(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the path of the command in the first of *folders* that has it, None if none has.

    Relative folders do not count: they would mean the working directory.
    """
    for folder in folders:
        path = folder / name
        if folder.is_absolute() and path.is_file() and os.access(path, os.X_OK):
            return path
    tried(name, "is not on PATH, nor where its driver puts it")
    return None


def command_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of ``PATH``."""
    return [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep)]


def command_output(
    path: Path,
    *arguments: str,
    environ: Mapping[str, str],
    time_limit: float = TIME_LIMIT,
) -> str | None:
    """Return what the command at *path* prints, None if it fails.

    It has no input, and its error output is discarded.

    Raises:
        LimitExceeded: it takes longer than *time_limit* seconds, or prints far too much.
    """
    from .process import run

    try:
        outcome = run([path, *arguments], environ=environ, cwd=path.parent, time_limit=time_limit)
    except OSError as error:
        tried(str(path), f"cannot be started: {error}")
        return None
    if outcome.exceeded:
        tried(str(path), outcome.exceeded)
        raise LimitExceeded(f"{path} {outcome.exceeded}")
    if outcome.status:
        tried(str(path), f"fails with status {outcome.status}: {outcome.errors}")
        return None
    tried(str(path), "answers", found=True)
    return outcome.output.decode(errors="replace")

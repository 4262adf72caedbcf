"""Commands that come with drivers: finding them, and their output within limits."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

logger = logging.getLogger(__name__)

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
    from ..process import run

    try:
        outcome = run([path, *arguments], environ=environ, cwd=path.parent, time_limit=time_limit)
    except OSError as error:
        logger.debug("%s cannot be started: %s", path, error)
        return None
    if outcome.exceeded:
        raise LimitExceeded(f"{path} {outcome.exceeded}")
    if outcome.status:
        logger.debug("%s fails with status %s: %s", path, outcome.status, outcome.errors)
        return None
    return outcome.output.decode(errors="replace")

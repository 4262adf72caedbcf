"""Keeping a cache directory within its limit: what was written first goes first."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)

_LEAVE = 0.8
"""Part of the limit that is left, so that not every new file costs an old one its place."""


def trim(folder: Path, limit: int) -> int:
    """Remove the oldest files below *folder* until they have well below *limit* bytes.

    Of several processes one does it; the others have better things to do meanwhile. Whatever is
    removed can be fetched again.

    Returns:
        How many files were removed.
    """
    if not folder.is_dir():
        return 0
    try:
        with FileLock(folder / "trim.lock", timeout=0):
            return _trim(folder, limit)
    except (Timeout, OSError) as error:
        logger.debug("%s is not trimmed: %s", folder, error)
        return 0


def _trim(folder: Path, limit: int) -> int:
    files: list[tuple[float, int, str]] = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 - there may be very many
            with contextlib.suppress(OSError):
                stat = os.stat(path)  # noqa: PTH116
                files.append((stat.st_mtime, stat.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= limit:
        return 0
    removed = 0
    for _, size, path in sorted(files):
        if total <= limit * _LEAVE:
            break
        if path.endswith(".lock"):
            continue
        with contextlib.suppress(OSError):  # Windows: somebody reads it
            os.unlink(path)  # noqa: PTH108
            total -= size
            removed += 1
    return removed

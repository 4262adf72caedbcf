"""The cache directory of a command, replaced by a temporary one if it cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .report import warn


@contextmanager
def writable_cache(directory: Path) -> Iterator[Path]:
    """Yield *directory*, or with a warning a temporary one if it cannot be written."""
    problem = _problem(directory)
    if problem is None:
        yield directory
        return
    warn(
        f"{directory}: the cache cannot be written ({problem}): using a temporary one; "
        "set VARIANTS_CACHE_DIR to a writable directory"
    )
    from .private_folder import PrivateFolder

    temporary = PrivateFolder()
    try:
        yield temporary.path
    finally:
        temporary.remove()


def _problem(directory: Path) -> str | None:
    """Return why *directory* cannot be written, None if it can."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"

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
    import shutil
    import tempfile

    # The proxy may still write into it when the command ends, so errors are ignored.
    temporary = Path(tempfile.mkdtemp(prefix="uv-variants-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _problem(directory: Path) -> str | None:
    """Return why *directory* cannot be written, None if it can."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"

"""The cache directory of a command, replaced by a temporary one if it cannot be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pep_variants.internal import NotPrivate, make_private

from .report import warn


@contextmanager
def writable_cache(directory: Path) -> Iterator[Path]:
    """Yield *directory*, or with a warning a temporary one.

    That is if it cannot be written, or if other users could write it: nothing in it is opened then.
    """
    problem = _problem(directory)
    if problem is None:
        yield directory
        return
    warn(
        f"{directory}: the cache cannot be used ({problem}): using a temporary one; "
        "set VARIANTS_CACHE_DIR to a writable directory"
    )
    from .private_folder import PrivateFolder

    temporary = PrivateFolder()
    try:
        yield temporary.path
    finally:
        temporary.remove()


def _problem(directory: Path) -> str | None:
    """Return why *directory* cannot be used, None if it can."""
    try:
        make_private(directory)
    except NotPrivate as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"

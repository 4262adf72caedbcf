"""The directory of all caches; anything in it may be deleted at any time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import user_directories

VARIABLE = "VARIANTS_CACHE_DIR"
"""Environment variable that moves the directory."""


def cache_directory(environ: Mapping[str, str], name: str) -> Path:
    """Return the directory of the cache *name*, which may not exist.

    It is below the directory in `VARIABLE`, else below the user's caches of this platform.
    """
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).absolute() / name
    return user_directories.user_cache() / name

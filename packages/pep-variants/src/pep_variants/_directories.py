"""The directories of the user's and the system's files, and of all caches."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

_NAME = "variants"

VARIABLE = "VARIANTS_CACHE_DIR"
"""Environment variable that moves the directory of all caches."""


def user_cache() -> Path:
    """Return the directory of the user's caches, which may not exist."""
    return _of_user(lambda: platformdirs.user_cache_path(_NAME, appauthor=False))


def user_config() -> Path:
    """Return the directory of the user's settings, which may not exist."""
    return _of_user(lambda: platformdirs.user_config_path(_NAME, appauthor=False, roaming=True))


def user_data() -> Path:
    """Return the directory of what the user's commands remember, which may not exist."""
    return _of_user(lambda: platformdirs.user_data_path(_NAME, appauthor=False))


def system_config() -> Path:
    """Return the directory of the settings for all users, which may not exist."""
    return platformdirs.site_config_path(_NAME, appauthor=False)


def _of_user(find: Callable[[], Path]) -> Path:
    """Return the result of *find*; a path that cannot exist for a user without a home directory.

    That is one without HOME and without an entry in passwd, in a container for example. No other
    place is certain to be the user's own.
    """
    try:
        return find()
    except RuntimeError:
        return Path(os.devnull) / _NAME


def cache_directory(environ: Mapping[str, str], name: str) -> Path:
    """Return the directory of the cache *name*, which may not exist.

    Anything in it may be deleted at any time. It is below the directory in `VARIABLE`, else below
    the user's caches of this platform.
    """
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).absolute() / name
    return user_cache() / name

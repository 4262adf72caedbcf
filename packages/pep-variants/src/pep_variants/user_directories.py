"""The directories of the user's and the system's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

_NAME = "variants"


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
    """Return what *find* returns; a path that cannot exist for a user without a home directory.

    That is one without HOME and without an entry in passwd, in a container for example. No other
    place is certain to be the user's own.
    """
    try:
        return find()
    except RuntimeError:
        return Path(os.devnull) / _NAME

"""The directories of the user's and the system's files."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_NAME = "variants"


def user_cache() -> Path:
    """Return the directory of the user's caches, which may not exist."""
    return platformdirs.user_cache_path(_NAME, appauthor=False)


def user_config() -> Path:
    """Return the directory of the user's settings, which may not exist."""
    return platformdirs.user_config_path(_NAME, appauthor=False, roaming=True)


def user_data() -> Path:
    """Return the directory of what the user's commands remember, which may not exist."""
    return platformdirs.user_data_path(_NAME, appauthor=False)


def system_config() -> Path:
    """Return the directory of the settings for all users, which may not exist."""
    return platformdirs.site_config_path(_NAME, appauthor=False)

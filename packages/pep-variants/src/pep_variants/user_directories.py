"""The directories of the user's and the system's files, as platformdirs has them.

On Linux they take two environment variables and a default each; importing platformdirs for them
takes 17 million instructions (4 ms) of every command and of every pip that resolves, most of them
for `tempfile`. It decides wherever that is not all there is to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAME = "variants"


def user_cache() -> Path:
    """Return the directory of the user's caches, which may not exist."""
    if found := _linux("XDG_CACHE_HOME", ".cache"):
        return found
    import platformdirs

    return platformdirs.user_cache_path(_NAME, appauthor=False)


def user_config() -> Path:
    """Return the directory of the user's settings, which may not exist."""
    if found := _linux("XDG_CONFIG_HOME", ".config"):
        return found
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False, roaming=True)


def user_data() -> Path:
    """Return the directory of what the user's commands remember, which may not exist."""
    if found := _linux("XDG_DATA_HOME", ".local/share"):
        return found
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def system_config() -> Path:
    """Return the directory of the settings for all users, which may not exist."""
    first = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").partition(":")[0]
    if _is_linux() and first.startswith("/"):
        return Path(first, _NAME)
    import platformdirs

    return platformdirs.site_config_path(_NAME, appauthor=False)


def _linux(variable: str, default: str) -> Path | None:
    """Return the directory of *variable*, else *default* in the home directory; None if unsure."""
    if not _is_linux():
        return None
    if path := os.environ.get(variable):
        return Path(path, _NAME) if path.startswith("/") else None
    # An absolute HOME is the home directory; without one the user database would tell.
    home = os.environ.get("HOME", "")
    return Path(f"{home.rstrip('/')}/{default}/{_NAME}") if home.startswith("/") else None


def _is_linux() -> bool:
    # Python of Android says "linux" before 3.13; what else of it looks like this, platformdirs
    # finds out.
    return sys.platform == "linux" and "ANDROID_DATA" not in os.environ

"""The client of a request: the machine that its platform key describes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pep_variants.formats.platform_file import load_platform
from pep_variants.model.platform import Platform

from .errors import InvalidKey
from .key import decode
from .settings import Settings
from .views import Client


class Clients:
    """Reads platform keys, and the platform files that they name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._decode = lru_cache(maxsize=1024)(decode)
        self._platforms: dict[str, tuple[tuple[int, int], Platform]] = {}

    def client(self, key: str) -> Client:
        """Return the client with the platform key *key*, or a floating name.

        Raises:
            InvalidKey: it is not valid, or names an unknown platform.
            VariantError: its platform file cannot be read.
        """
        floating = key in self._settings.floating
        if floating:
            key = self._settings.floating[key]
        machine = self._decode(key)
        if not machine.name:
            return Client(machine, key, floating)
        path = self._settings.platforms.get(machine.name)
        if path is None:
            known = ", ".join(sorted(self._settings.platforms)) or "none"
            raise InvalidKey(f"unknown platform {machine.name!r}; known platforms: {known}")
        platform, version = self._platform(path)
        # The file may change: choices for its old contents must not be used for the new ones.
        return Client(replace(machine, platform=platform), f"{key}@{version}", floating)

    def _platform(self, path: Path) -> tuple[Platform, str]:
        try:
            stat = path.stat()
        except OSError:
            return load_platform(path), ""  # raises the error
        state = (stat.st_mtime_ns, stat.st_size)
        known = self._platforms.get(str(path))
        if known is None or known[0] != state:
            known = self._platforms[str(path)] = (state, load_platform(path))
        return known[1], f"{state[0]:x}"

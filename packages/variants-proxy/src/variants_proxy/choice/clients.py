"""The client of a request: the machine that its platform key describes, and a registered client.

A program that runs the service for its own clients registers each with what no URL has room for,
and uses the name that it gets in place of a platform key. The name is a digest of everything that
answers depend on, contents of a platform file included: a URL always means the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import Version

from pep_variants import Platform, load_machine, load_platform
from pep_variants.internal import BY_NAME, PlatformFileError, names_file, read_version

from ..client.key import decode
from ..errors import InvalidKey, UnknownClient
from ..settings import Settings
from ..upstream.lru import LRUCache
from .views import Client

_REGISTERED = "c~"
_MERGING = ("uv/", "poetry/", "pdm/")
_MOST = 1024
_SHOWN = 5


def merges_versions(user_agent: str) -> bool:
    """Return whether a client takes the METADATA of one wheel for all wheels of a version.

    Those that lock for several platforms do. Only uv asks for pages in place of an index's own
    (`Client.is_at_index`). See `served_metadata`.
    """
    return user_agent.startswith(_MERGING)


@dataclass(frozen=True)
class ClientSettings:
    """A client to register, for in-place pages.

    Attributes:
        key: platform key of its machine.
        locked: what a lock file has, by project and version: labels (`cu128`), of which each tag
            set gets the first that it has; or URLs of wheels (`…/.variant/cu128/torch-….whl`, with
            and without a label), which stand for their tags alone: so a lock file with one label
            for Linux and another for Windows stays as it is. A version with none of them is one
            that is to be chosen from, however many newer ones there are.
        floating: files with variants are selected when they are requested; pages have no hashes
            of them.
        hashes: for a lock file: pages have hashes of wheels with variant markers, which may take
            downloading them.
        shared: pages are at URLs of the proxy, with its own credentials for the upstreams.
    """

    key: str
    locked: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    floating: bool = False
    hashes: bool = True
    shared: bool = False


class Clients:
    """Reads platform keys, and the platform files that they name; knows registered clients."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._decode = lru_cache(maxsize=1024)(decode)
        self._known = lru_cache(maxsize=1024)(load_machine)
        self._files = lru_cache(maxsize=1024)(_platform_file)
        self._registered: LRUCache[str, Client] = LRUCache(_MOST)

    def register(self, settings: ClientSettings) -> str:
        """Return the name of a client for URLs, in place of a platform key.

        The same settings have the same name. The least recently used of many are dropped: a
        request for them is answered with 410, and they have to be registered again.

        Raises:
            InvalidKey: the key is not valid, or names an unknown platform.
            VariantError: its platform file cannot be read.
        """
        known = self.client(settings.key)
        locked = _locked(settings.locked)
        versions = [
            (project, canonicalize_version(version), items)
            for project, found in locked.items()
            for version, items in found.items()
        ]
        # Of a named platform with what its file says.
        platform = known.machine.platform if known.machine.name else None
        parts = (
            settings.key,
            platform,
            versions,
            settings.floating,
            settings.hashes,
            settings.shared,
        )
        digest = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{_REGISTERED}{digest[:32]}"
        if self._registered.get(name) is None:
            client = Client(
                known.machine,
                name,
                settings.floating,
                in_place=True,
                locked=locked,
                hashes=settings.hashes,
                merges=True,
                shared=settings.shared,
            )
            self._registered.put(name, client)
        return name

    def in_place(self, key: str) -> Client:
        """Return the client called *key*, as of `client`, for in-place pages."""
        client = self.client(key)
        if client.in_place:
            return client
        return self.client(self.register(ClientSettings(client.key)))

    def client(self, key: str) -> Client:
        """Return the client with the platform key *key*, or a registered client.

        Raises:
            InvalidKey: it is not valid, or names an unknown platform.
            UnknownClient: it is not registered.
            VariantError: its platform file cannot be read.
        """
        if key.startswith(_REGISTERED):
            registered = self._registered.get(key)
            if registered is None:
                raise UnknownClient("this client is not registered, or not any more: run it again")
            return registered
        machine = self._decode(key)
        if not machine.name:
            return Client(machine, key)
        platform, version = self._named(machine.name)
        # The file may change: choices for its old contents must not be used for the new ones.
        return Client(replace(machine, platform=platform), f"{key}@{version}")

    def _named(self, name: str) -> tuple[Platform, str]:
        """Return the platform called *name*, and the version of its file.

        Raises:
            InvalidKey: there is none.
            VariantError: its platform file cannot be read.
        """
        given = self._settings.platforms.get(name, name)
        if isinstance(given, Path):
            return self._platform(given)
        if names_file(given):  # no client names files of this machine
            raise InvalidKey(f"unknown platform {name!r}; {_known(name, self._settings)}")
        try:
            return self._known(given), ""
        except PlatformFileError as error:
            raise InvalidKey(str(error)) from None

    def _platform(self, path: Path) -> tuple[Platform, str]:
        try:
            stat = path.stat()
        except OSError:
            return load_platform(path), ""  # raises the error
        return self._files(path, stat.st_size, stat.st_mtime_ns), f"{stat.st_mtime_ns:x}"


def _known(name: str, settings: Settings) -> str:
    """Return the platforms that may be meant by *name*, in words."""
    known = sorted({*settings.platforms, *BY_NAME})
    close = get_close_matches(name, known, _SHOWN) if len(known) > _SHOWN else []
    listed = ", ".join(close or known[:_SHOWN]) or "none"
    more = len(known) - _SHOWN
    if close:
        return f"did you mean {listed}?"
    return f"known platforms: {listed}" + (f" and {more} more" if more > 0 else "")


def _locked(
    given: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> dict[str, dict[Version, tuple[str, ...]]]:
    """Return *given* in order, with normalized names and versions, without what is not one."""
    return {
        canonicalize_name(project): {
            version: tuple(items)
            for text, items in sorted(versions.items())
            if (version := read_version(text)) is not None
        }
        for project, versions in sorted(given.items())
    }


def _platform_file(path: Path, size: int, changed: int) -> Platform:  # noqa: ARG001 - cache keys
    """Return what is in a platform file of this size that was changed at this time."""
    return load_platform(path)

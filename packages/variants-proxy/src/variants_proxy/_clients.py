"""The client of a request: the machine that its platform key describes.

A program that uses the service itself, for pages in place of an index's own, has clients with what
no URL has room for. The key of such a client is a digest of everything that answers depend on,
contents of a platform file included.

Notices belong to a choice, which many requests share: `NotedProjects` has them, by client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import machines, wheel_files
from pep_variants.errors import PlatformFileError, VariantError, some
from pep_variants.machines import Platform

from ._key import Machine, decode
from ._sharing import LRUCache
from .errors import InvalidKey, NoKey
from .settings import ClientSettings, Settings, ShownHashes

HOW = (
    "the user name for this index is the platform key of your machine: use the URL that "
    "'variants-proxy url --keyed' prints on it"
)

_UV = "uv/"
_OTHERS = ("poetry/", "pdm/")
_SHOWN = 5


@dataclass(frozen=True)
class Client:
    """The client of a request.

    Attributes:
        machine: described by the platform key of the URL.
        key: the platform key.
        at_index: whether pages stand in for the index's own: the client asks for them at its URLs,
            and has its own credentials.
        locked: what a lock file has of a project's versions, by project and version: labels, or
            URLs of wheels, which stand for their tags only.
        exact: versions by project of which requirements name the very build: with a local part, or
            after ``===``.
        hashes: whether wheels with variant markers are read to know their hash: only lock files
            need it.
        portable: whether what a URL has must be the same for every machine: it may go into a lock
            file without the machine's key.
        merges: whether it takes the METADATA of one wheel for all wheels of a version, see
            `merged_metadata`.
        reads_any: whether that may be any of these wheels, not the one with the highest build tag.
        by_hash: whether it prefers the METADATA of a file whose hash its lock has, be it a source
            distribution, to that of others.
        shown_hashes: see `ShownHashes`.
        in_order: projects of which no release is yanked for an older one's build, None for all:
            who stands in for an index may have an order of versions of its own.
    """

    machine: Machine
    key: str
    at_index: bool = False
    locked: Mapping[str, Mapping[Version, tuple[str, ...]]] = field(default_factory=dict)
    exact: Mapping[str, frozenset[Version]] = field(default_factory=dict)
    hashes: bool = True
    portable: bool = False
    merges: bool = False
    reads_any: bool = False
    by_hash: bool = False
    shown_hashes: ShownHashes = "served"
    in_order: Collection[str] | None = ()

    def puts_first(self, project: str, *, by_default: bool) -> bool:
        """Return whether an older release with a build goes first, see `Preferences.puts_first`."""
        if self.in_order is None or project in self.in_order:
            return False
        return self.machine.preferences.puts_first(project, by_default=by_default)


def merging(client: Client, user_agent: str) -> Client:
    """Return *client* with what its ``User-Agent`` says of it.

    Those that lock for several platforms take the METADATA of one wheel for all wheels of a
    version. Only uv asks for pages in place of an index's own (`Client.at_index`). See
    `merged_metadata`.
    """
    if user_agent.startswith(_UV):
        any_file = not client.at_index
        return replace(client, merges=True, reads_any=any_file, by_hash=any_file)
    if user_agent.startswith(_OTHERS):
        return replace(client, merges=True, reads_any=True)
    return client


class Clients:
    """Reads platform keys, and the platform files that they name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._decode = lru_cache(maxsize=1024)(decode)
        self._known = lru_cache(maxsize=1024)(machines.load_machine)
        self._files = lru_cache(maxsize=1024)(_platform_file)

    def in_place(self, settings: ClientSettings) -> Client:
        """Return the client of in-place pages with these *settings*.

        Raises:
            InvalidKey: the key is not valid, or names an unknown platform.
            VariantError: its platform file cannot be read.
        """
        known = self.client(settings.key)
        # Of a named platform with what its file says.
        parts = (settings, known.machine.platform)
        digest = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
        return Client(
            known.machine,
            f"c~{digest[:32]}",
            at_index=True,
            locked=_locked(settings.locked),
            exact=settings.exact,
            hashes=settings.hashes,
            portable=settings.hashes,
            merges=True,
            shown_hashes=settings.shown_hashes,
            in_order=settings.in_order,
        )

    def client(self, key: str) -> Client:
        """Return the client with the platform key *key*.

        Raises:
            InvalidKey: it is not valid, or names an unknown platform.
            VariantError: its platform file cannot be read.
        """
        machine = self._decode(key)
        if not machine.name:
            return Client(machine, key)
        platform, version = self._named(machine.name)
        # The file may change: choices for its old contents must not be used for the new ones.
        return Client(replace(machine, platform=platform), f"{key}@{version}")

    def of_user(self, key: str) -> Client:
        """Return the client whose platform key is a user name.

        Raises:
            NoKey: it is not valid.
        """
        try:
            if not key:
                raise InvalidKey("there is none")
            client = self.client(key)
        except (InvalidKey, VariantError) as error:
            raise NoKey(f"{HOW} ({error})") from None
        return replace(client, key=f"{client.key}#", portable=True)

    def _named(self, name: str) -> tuple[Platform, str]:
        """Return the platform called *name*, and the version of its file.

        Raises:
            InvalidKey: there is none.
            VariantError: its platform file cannot be read.
        """
        given = self._settings.platforms.get(name, name)
        if isinstance(given, Path):
            return self._platform(given)
        if machines.names_file(given):  # no client names files of this machine
            raise InvalidKey(f"unknown platform {name!r}; {_known(name, self._settings)}")
        try:
            return self._known(given), ""
        except PlatformFileError as error:
            raise InvalidKey(str(error)) from None

    def _platform(self, path: Path) -> tuple[Platform, str]:
        try:
            stat = path.stat()
        except OSError:
            return machines.load_platform(path), ""  # raises the error
        return self._files(path, stat.st_size, stat.st_mtime_ns), f"{stat.st_mtime_ns:x}"


def _known(name: str, settings: Settings) -> str:
    """Return the platforms that may be meant by *name*, in words."""
    known = sorted({*settings.platforms, *machines.BY_NAME})
    close = get_close_matches(name, known, _SHOWN) if len(known) > _SHOWN else []
    if close:
        return f"did you mean {', '.join(close)}?"
    return f"known platforms: {some(known, _SHOWN) or 'none'}"


def _locked(
    given: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> dict[str, dict[Version, tuple[str, ...]]]:
    """Return *given* in order, with normalized names and versions, without what is not one."""
    return {
        canonicalize_name(project): {
            version: tuple(items)
            for text, items in sorted(versions.items())
            if (version := wheel_files.read_version(text)) is not None
        }
        for project, versions in sorted(given.items())
    }


def _platform_file(path: Path, size: int, changed: int) -> Platform:  # noqa: ARG001 - cache keys
    """Read a platform file of this size that was changed at this time."""
    return machines.load_platform(path)


MOST_NOTED = 20_000
"""Projects with notices that are remembered, of all clients together."""


class NotedProjects:
    """The projects whose decision report has notices for the user of a client."""

    def __init__(self) -> None:
        self._projects: LRUCache[tuple[str, str], bool] = LRUCache(MOST_NOTED)

    def add(self, client: Client, project: str) -> None:
        """Note *project*, a normalized name."""
        self._projects.put((client.key, project), True)

    def has(self, client: Client, project: str) -> bool:
        """Return whether there are notices about *project*."""
        return self._projects.get((client.key, project)) is not None

"""What is known of a uv command before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .choices import warn
from .command_line import Scope
from .environments import SHARED, Search, cache_directory, variants_caches
from .indexes import UsedIndexes, shown_directories, used_indexes
from .named_projects import Place, exact_versions, further_texts, requested, requirement_texts
from .uv_lock import Lock, Names, kept_names
from .uv_process import Check

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants import Preferences
    from variants_catalog.internal import Catalog, CatalogProject

    from .command_line import Invocation
    from .indexes import UserIndex
    from .own_options import Options


_RENEW_ALL = (
    "no-variants",
    "variant-prefer",
    "variant-exclude",
    "variant-platform",
    "variant-enable",
    "variant-catalog",
    "variant-catalog-mirror",
)
"""Options after which the variants of a lock are chosen anew."""


@dataclass(frozen=True)
class Context:
    """One command of uv's.

    Attributes:
        uv: path of uv.
        invocation: uv's command line.
        scope: what it works on.
        place: where it runs.
        options: our own options.
        preferences: which variants are preferred or forced, from options, variables and files.
        cache: directory of our cache.
        lock: the lock file before the command, without a path for commands that use none.
        check: whether it changes nothing.
    """

    uv: str
    invocation: Invocation
    scope: Scope
    place: Place
    options: Options
    preferences: Preferences
    cache: Path
    lock: Lock
    check: Check = field(default_factory=Check)

    @classmethod
    def of(
        cls,
        uv: str,
        invocation: Invocation,
        scope: Scope,
        options: Options,
        environ: Mapping[str, str],
        cache: Path,
        check: Check | None = None,
    ) -> Context:
        """Return the command of *invocation* in the working directory."""
        place = Place.of(invocation, Path(), environ)
        lock = Lock.read(place.lock_path if scope is Scope.PROJECT else None)
        preferences = read_preferences(options, place)
        known = (uv, invocation, scope, place, options, preferences, cache, lock)
        return cls(*known, check or Check())

    @cached_property
    def requested(self) -> list[str]:
        """Names of the projects that the command names, or that its project depends on."""
        return requested(self.invocation, self.place)

    @cached_property
    def indexes(self) -> UsedIndexes:
        """The indexes that uv uses."""
        return used_indexes(self.invocation, self.scope, self.place)

    @cached_property
    def catalog(self) -> Catalog | None:
        """The catalogue on this machine, None without one and for one at a URL."""
        from variants_proxy.internal import local_catalog

        found = local_catalog(self.preferences, self.place.cwd)
        return None if found is None else found[1]

    def entry_of(self, name: str) -> CatalogProject | None:
        """Return the entry of the catalogue on a project (normalized name), None without one."""
        return None if self.catalog is None else self.catalog.project(name)

    @cached_property
    def local_links(self) -> dict[str, UserIndex]:
        """The directories of find-links that have variants, by `UserIndex.proxy_name`."""
        return shown_directories(self.indexes, self.lock.path or self.place.cwd / "uv.lock")

    @cached_property
    def uv_caches(self) -> Path:
        """The folder of the caches that uv gets."""
        plain = cache_directory(
            self.place.environ,
            self.invocation.last("cache-dir"),
            self.indexes.configuration.scalars.get("cache-dir"),
            self.place.cwd,
        )
        return variants_caches(plain.absolute())

    @cached_property
    def environments(self) -> tuple[Path, ...]:
        """Where the command installs."""
        return Search(
            self.uv,
            self.invocation,
            self.place,
            self.indexes.configuration.scalars,
            self.uv_caches / SHARED,
        ).environments()

    @property
    def is_frozen(self) -> bool:
        """Whether the lock file has to stay as it is."""
        return self.invocation.has("frozen", "locked") or any(
            self.place.is_on(name) for name in ("UV_FROZEN", "UV_LOCKED")
        )

    @property
    def is_checked(self) -> bool:
        """Whether uv compares the lock file with what it would write, or leaves it as it is."""
        return self.is_frozen or self.invocation.has("check", "check-exists", "dry-run")

    @property
    def renewed(self) -> frozenset[str] | None:
        """Projects of the lock whose variant is chosen anew, None for all; none of them offline."""
        if self.is_offline or (asked := self.asked_anew) is None:
            return frozenset() if self.is_offline else None
        return asked | self._beside_other_builds

    @cached_property
    def _beside_other_builds(self) -> frozenset[str]:
        """Projects that go with one of which requirements name another build than the lock has."""
        locked = self.lock.versions if self.preferences.catalog is not None else {}
        names = [
            name
            for name, wanted in (self.exact if locked else {}).items()
            if name in locked and locked[name].isdisjoint(map(str, wanted))
        ]
        entries = filter(None, map(self.entry_of, names))
        return frozenset(each for entry in entries for each in entry.coherent if each in locked)

    @cached_property
    def exact(self) -> Mapping[str, frozenset[Version]]:
        """The versions of which requirements name the very build, by project."""
        texts = requirement_texts(self.invocation, self.place)
        further = further_texts(self.invocation, self.place)
        return exact_versions([*texts, *self.indexes.configuration.requirements, *further])

    @property
    def asked_anew(self) -> frozenset[str] | None:
        """Projects of the lock whose variant shall be chosen anew, None for all.

        Options on the command line are for this command. Variables and files are there for every
        command, and a lock stays as it is.
        """
        given = self.options.variants
        is_switched = self.invocation.command == ("lock",) and "variant-switch" in given
        if is_switched or any(name in given for name in _RENEW_ALL):
            return None
        return frozenset(self.preferences.forced) if "variant" in given else frozenset()

    @cached_property
    def kept(self) -> Names:
        """The wheels of the lock that stay as they are."""
        if self.is_frozen:
            return self.lock.names
        return kept_names(self.lock.names, self.invocation, self.renewed)

    @property
    def asks_offline(self) -> bool:
        """Whether options ask for other variants, and nothing can be chosen without the network."""
        asks = self.asked_anew != frozenset() or "variant-switch" in self.options.variants
        return asks and self.is_offline

    @property
    def is_lenient(self) -> bool:
        """Whether the command goes on without what cannot be had for now."""
        return self.preferences.allow_missing_sources or self.is_offline

    @property
    def is_offline(self) -> bool:
        """Whether uv may use no network."""
        return bool(self.offline_by)

    @cached_property
    def offline_by(self) -> str:
        """What keeps uv from the network: its last option, else its variable, else a file."""
        given = [flag for flag in self.invocation.flags if flag in ("offline", "no-offline")]
        if given:
            return "--offline" if given[-1] == "offline" else ""
        if self.place.environ.get("UV_OFFLINE"):
            return "UV_OFFLINE" if self.place.is_on("UV_OFFLINE") else ""
        return "the setting offline" if self.indexes.configuration.scalars.get("offline") else ""

    @cached_property
    def hashes(self) -> Mapping[str, frozenset[str]]:
        """SHA-256 by project (normalized name) with which uv compares files."""
        configuration, given = self.indexes.configuration, self.invocation.has
        if self.scope is Scope.TOOL:
            return {}  # uv compares nothing then
        without = configuration.scalars.get("verify-hashes") is False
        without = without or self.place.is_on("UV_NO_VERIFY_HASHES") or given("no-verify-hashes")
        return {} if without and not given("require-hashes") else configuration.hashes

    @property
    def is_quiet(self) -> bool:
        """Whether uv was asked to print no more than it has to."""
        return self.invocation.has("q", "quiet")

    @property
    def is_verbose(self) -> bool:
        """Whether uv was asked to print more."""
        return self.invocation.has("v", "verbose")


def read_preferences(options: Options, place: Place) -> Preferences:
    """Return the preferences of options, variables and ``variants.toml``.

    Raises:
        PreferenceError: one of them is not valid.
    """
    from pep_variants import load_preferences
    from pep_variants.internal import places

    # An activated environment is the user's; the one in a project may come with the checkout.
    activated = place.environ.get("VIRTUAL_ENV")
    candidates = places(
        place.cwd, activated or str(place.project / ".venv"), prefix_is_project=not activated
    )
    return load_preferences(options.variants, place.environ, warn=warn, candidates=candidates)

"""The question of a uv command: its command line, settings, indexes, lock and place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pep_variants import preferences as user_preferences
from pep_variants import safe_files, wheel_files
from pep_variants.errors import PlatformFileError
from variants_catalog import setting
from variants_index import uv_files
from variants_proxy import urls as proxy_urls

from ._command_line import Scope
from ._environments import SHARED, Search, cache_directory, python_version, variants_caches
from ._errors import warn
from ._indexes import UsedIndexes, UserIndex, shown_directories, used_indexes
from ._named_projects import (
    CommandPlace,
    exact_versions,
    further_texts,
    pinned_versions,
    requested,
    requirement_texts,
)
from ._uv_lock import Lock, LockMachine, Names, kept_names
from ._uv_process import Check

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.preferences import Preferences
    from variants_catalog.catalogs import Catalog
    from variants_catalog.entries import CatalogProject

    from ._command_line import Invocation
    from ._own_options import Options

ALL_HASHES = "VARIANTS_ALL_HASHES"
"""Variable of those who want large wheels read for their hash."""
_CHANGE_LOCKS = (("lock",), ("add",), ("remove",))
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
    place: CommandPlace
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
        place = CommandPlace.of(invocation, Path(), environ)
        lock = Lock.read(place.lock_path if scope is Scope.PROJECT else None)
        listed = used_indexes(invocation, scope, place).configuration.labels
        variants = user_preferences.with_listed(options.variants, listed)
        options = options._replace(variants=variants)
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
    def catalog(self) -> str | None:
        """Catalogue of existing builds, None without one.

        None also with uv's own choice among PyTorch's indexes.

        Raises:
            CatalogError: it cannot be read.
        """
        preferences = self.preferences
        if preferences.catalog is None or not preferences.use_variants or self.uses_torch_backend:
            return None
        return setting.checked_catalog(preferences, self.place.cwd)

    @cached_property
    def local_catalog(self) -> Catalog | None:
        """The catalogue on this machine, None without one and for one at a URL."""
        found = setting.local_catalog(self.preferences, self.place.cwd)
        return None if found is None else found[1]

    def entry_of(self, name: str) -> CatalogProject | None:
        """Return the entry of the catalogue on a project (normalized name), None without one."""
        return None if self.local_catalog is None else self.local_catalog.project(name)

    def used_entry(self, name: str) -> CatalogProject | None:
        """Return the same, None where the command leaves the catalogue alone."""
        return None if self.catalog is None else self.entry_of(name)

    @cached_property
    def uses_torch_backend(self) -> bool:
        """Whether uv chooses among PyTorch's indexes itself, which it can without a lock."""
        if self.invocation.last("torch-backend"):
            return True
        if self.invocation.command[:1] not in (("pip",), ("tool",)):
            return False
        return bool(
            self.place.environ.get("UV_TORCH_BACKEND")
            or self.indexes.configuration.scalars.get("torch-backend")
        )

    @cached_property
    def texts(self) -> list[str]:
        """The requirements of the command, of its files and of its project."""
        texts = requirement_texts(self.invocation, self.place)
        return [*texts, *self.indexes.configuration.requirements]

    def asked_versions(self) -> dict[str, list[Version]]:
        """Return the public versions by project that the requirements pin now."""
        texts = requirement_texts(self.invocation, self.place)
        pinned = pinned_versions([*texts, *self.indexes.configuration.requirements])
        return {
            name: [
                version
                for text in pins
                if (version := wheel_files.read_version(text.partition("+")[0]))
            ]
            for name, pins in pinned.items()
        }

    @property
    def pinned(self) -> tuple[str, ...]:
        """The projects that have an index of their own."""
        named = [*self.indexes.configuration.pinned.values(), *self.indexes.projects.values()]
        return tuple(sorted({name for names in named for name in names}))

    @property
    def index_strategy(self) -> str | None:
        """Uv's index strategy, None for its default."""
        given = self.invocation.last("index-strategy")
        return given or self.place.environ.get("UV_INDEX_STRATEGY")

    @property
    def keyring(self) -> bool:
        """Whether uv asks the keyring for credentials."""
        provider = (
            self.invocation.last("keyring-provider")
            or self.place.environ.get("UV_KEYRING_PROVIDER")
            or self.indexes.configuration.scalars.get("keyring-provider")
        )
        return provider == "subprocess"

    @property
    def insecure_hosts(self) -> tuple[str, ...]:
        """Hosts whose certificates are not verified."""
        hosts = self.invocation.values("allow-insecure-host")
        hosts += self.place.environ.get("UV_INSECURE_HOST", "").split()
        configured = self.indexes.configuration.scalars.get("allow-insecure-host")
        return (*hosts, *(configured if isinstance(configured, list) else ()))

    @property
    def answered_indexes(self) -> dict[str, UserIndex]:
        """The indexes whose pages a session answers, by `UserIndex.proxy_name`, in order.

        Those that the lock has variants of are among them: a frozen lock is used whatever indexes
        the command has.
        """
        found = {
            name: index
            for name, index in self.indexes.indexes.items()
            if not safe_files.is_local(index.url)
        }
        found |= self.local_links
        known = {index.url.rstrip("/") for index in found.values()}
        for url in self.lock.indexes:
            if url not in known and url.startswith(("http://", "https://")):
                index = UserIndex(url, explicit=True)
                found.setdefault(index.proxy_name, index)
        return found

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
        return self.find_environments()

    def find_environments(self) -> tuple[Path, ...]:
        """Find where the command installs: uv may make the environment of a script meanwhile."""
        return Search(
            self.uv,
            self.invocation,
            self.place,
            self.indexes.configuration.scalars,
            self.uv_caches / SHARED,
        ).environments()

    @cached_property
    def lock_machine(self) -> LockMachine | None:
        """The machine that the lock is for, None if it is not known or another one is asked for.

        What ``run --with`` adds is not locked, and is for the machine at hand.

        Raises:
            PlatformFileError: the file that says so cannot be read, and the lock is to change.
        """
        invocation = self.invocation
        if self.lock.path is None or self.is_frozen or not self.preferences.use_variants:
            return None
        if "variant-platform" in self.options.variants or (
            invocation.command == ("run",) and invocation.values("with")
        ):
            return None
        try:
            return LockMachine.read(self.lock.path)
        except PlatformFileError as error:
            if invocation.command in _CHANGE_LOCKS:
                raise
            warn(f"{error}; it is left out")  # a checkout must not keep installs from working
            return None

    @cached_property
    def environment_python(self) -> str:
        """Version of the Python that is installed for, empty for an unknown one.

        A lock is for several, so it has variants that all of them can use.
        """
        if self.scope is Scope.PROJECT:
            return ""
        given = self.invocation.last("python-version")
        found = [given] if given else map(python_version, self.environments)
        return next((match[0] for text in found if (match := proxy_urls.PYTHON.match(text))), "")

    @cached_property
    def python(self) -> str:
        """The oldest version of Python that is installed for, empty for an unknown one."""
        if self.scope is not Scope.PROJECT:
            return self.environment_python
        place = self.place
        tree = (
            uv_files.script_tree(place.script)
            if place.script
            else uv_files.project_table(place.root or Path())
        )
        locked = re.search(r'(?m)^requires-python = "(.*)"', self.lock.text or "")
        with suppress(InvalidSpecifier):
            text = str(locked[1] if locked else (tree or {}).get("requires-python") or "")
            minors = (f"3.{minor}.99" for minor in range(8, 40))
            return next(SpecifierSet(text).filter(minors), "") if text else ""
        return ""

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
        return exact_versions([*self.texts, *further_texts(self.invocation, self.place)])

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
        """The reason why uv uses no network: its last option, else its variable, else a file."""
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


def read_preferences(options: Options, place: CommandPlace) -> Preferences:
    """Return the preferences of options, variables and ``variants.toml``.

    Raises:
        PreferenceError: one of them is not valid.
    """
    # An activated environment is the user's; the one in a project may come with the checkout.
    activated = place.environ.get("VIRTUAL_ENV")
    candidates = user_preferences.places(
        place.cwd, activated or str(place.project / ".venv"), prefix_is_project=not activated
    )
    return user_preferences.load_preferences(
        options.variants, place.environ, warn=warn, candidates=candidates
    )

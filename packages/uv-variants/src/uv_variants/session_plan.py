"""The settings of a command's session: indexes, machine, and what a lock keeps."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.internal import is_local, redacted
from variants_index.internal import project_table, script_tree

from .checks import asked_versions
from .choices import warn
from .command_line import EXPORTING, Scope
from .environments import SHARED, python_version
from .indexes import UserIndex, sources_of
from .locked_hashes import ALL_HASHES
from .named_projects import pinned_versions, requirement_texts
from .uv_environment import PROXY_VARIABLES
from .uv_lock import Lock
from .uv_program import release_of

if TYPE_CHECKING:
    from variants_proxy import Limits
    from variants_proxy.internal import ShownHashes

    from .context import Context
    from .platform_key import PlatformKey
    from .provider_plugins import Plugins
    from .session import SessionSettings
    from .uv_lock import LockMachine

_logger = logging.getLogger(__name__)

_KEEPS_BUILD_TAGS = (0, 6, 12)
"""The first release of uv that was found to tell wheels of its cache apart by their build tags."""


_NETWORK_VARIABLES = (
    *PROXY_VARIABLES,
    *("NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "NETRC"),
    *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "HOME", "USERPROFILE", "PATH"),
)
"""Variables that say how the user's uv reaches the network; a session has no others."""

_CHANGE_LOCKS = (("lock",), ("add",), ("remove",))


class SessionPlan:
    """The settings of a command's session, found out when they are needed.

    Attributes:
        context: the command.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    @cached_property
    def plugins(self) -> Plugins | None:
        """The plugins that the user allowed, None if there are none to run."""
        preferences = self.context.preferences
        if not preferences.allow_providers or preferences.platform_file is not None:
            return None
        from variants_plugins import PluginRunner

        from .provider_plugins import Plugins

        context = self.context
        usual = (index for index in context.indexes.indexes.values() if not index.explicit)
        sources = sources_of(usual, self.strategy)
        runner = PluginRunner.of(preferences, sources, offline=context.is_offline)
        return Plugins(context.cache, preferences, runner)

    @property
    def strategy(self) -> str | None:
        """Uv's index strategy, None for its default."""
        given = self.context.invocation.last("index-strategy")
        return given or self.context.place.environ.get("UV_INDEX_STRATEGY")

    @cached_property
    def machine(self) -> PlatformKey:
        """The machine that is installed for: that of the lock, if it says which."""
        return self._key(self.lock_machine)

    @cached_property
    def machine_here(self) -> PlatformKey:
        """The machine at hand, as the user's settings describe it, or as it is detected."""
        return self._key(None) if self.lock_machine is not None else self.machine

    @cached_property
    def lock_machine(self) -> LockMachine | None:
        """The machine that the lock is for, None if it is not known or another one is asked for.

        What ``run --with`` adds is not locked, and is for the machine at hand.

        Raises:
            PlatformFileError: the file that says so cannot be read, and the lock is to change.
        """
        context, invocation = self.context, self.context.invocation
        if context.lock.path is None or context.is_frozen:
            return None
        if not context.preferences.use_variants:
            return None
        if "variant-platform" in context.options.variants or (
            invocation.command == ("run",) and invocation.values("with")
        ):
            return None
        from pep_variants.internal import PlatformFileError

        from .uv_lock import LockMachine

        try:
            return LockMachine.read(context.lock.path)
        except PlatformFileError as error:
            if invocation.command in _CHANGE_LOCKS:
                raise
            warn(f"{error}; it is left out")  # a checkout must not keep installs from working
            return None

    @property
    def is_locked_for(self) -> bool:
        """Whether the lock is for the machine that the command names, and nothing else is asked."""
        from .uv_lock import LockMachine

        lock, given = self.context.lock.path, self.context.options.variants
        if lock is None or {*given} != {"variant-platform"}:
            return False
        known = LockMachine.read(lock)
        return known is not None and known.is_like(self.machine.machine)

    @property
    def lock_note(self) -> str:
        """The words that a failure ends with if the lock is for another machine than this one."""
        locked = self.lock_machine
        if locked is None or locked.is_like(self.machine_here.machine):
            return ""
        return (
            f" ({locked.path.name} says that the lock is for another machine than this one; "
            "--variant-platform names one to lock for)"
        )

    @property
    def _platforms_here(self) -> Mapping[str, Path]:
        """Platform files of the machine at hand, where a lock is for another one."""
        return self.machine_here.platforms if self.lock_machine is not None else {}

    def _key(self, locked: LockMachine | None) -> PlatformKey:
        from .platform_key import platform_key

        return platform_key(
            # Bounds of versions put builds first: a page without newer versions would break pins.
            replace(self.context.preferences, before_version=frozenset()),
            self.context.cache,
            python_platform=self.context.invocation.last("python-platform"),
            answers=self.plugins.answers if self.plugins is not None else None,
            locked=locked,
            python=self._python(),
        )

    def _python(self) -> str:
        """Return the version of the Python that is installed for, empty for an unknown one.

        A lock is for several, so it has variants that all of them can use.
        """
        context = self.context
        if context.scope is Scope.PROJECT:
            return ""
        from variants_proxy.internal import PYTHON

        given = context.invocation.last("python-version")
        found = [given] if given else map(python_version, context.environments)
        return next((match[0] for text in found if (match := PYTHON.match(text))), "")

    @cached_property
    def python(self) -> str:
        """The oldest version of Python that is installed for, empty for an unknown one."""
        place = self.context.place
        if self.context.scope is not Scope.PROJECT:
            return self._python()
        tree = script_tree(place.script) if place.script else project_table(place.root or Path())
        locked = re.search(r'(?m)^requires-python = "(.*)"', self.context.lock.text or "")
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        with suppress(InvalidSpecifier):
            text = str(locked[1] if locked else (tree or {}).get("requires-python") or "")
            minors = (f"3.{minor}.99" for minor in range(8, 40))
            return next(SpecifierSet(text).filter(minors), "") if text else ""
        return ""

    @property
    def uv_cache(self) -> Path:
        """The cache directory that uv gets.

        uv never asks again for wheels that it has in its cache. Every machine has a cache of its
        own with a uv that keeps wheels without their build tag, which is the label.
        """
        name = SHARED
        if self._has_own_cache:
            import hashlib

            name = hashlib.sha256(self.machine.key.encode()).hexdigest()[:16]
        return self.context.uv_caches / name

    @cached_property
    def _has_own_cache(self) -> bool:
        """Whether this uv takes a variant from its cache for another one of the same version.

        It finds wheels there by version and tags, and before 0.6 also the environments of scripts
        and tools.
        """
        context = self.context
        release = release_of(context.uv, context.place.environ, context.cache / "uv-versions")
        return () < release < _KEEPS_BUILD_TAGS

    @property
    def indexes(self) -> dict[str, UserIndex]:
        """The indexes whose pages the session answers, by `UserIndex.proxy_name`, in order.

        Those that the lock has variants of are among them: a frozen lock is used whatever indexes
        the command has.
        """
        found = {
            name: index
            for name, index in self.context.indexes.indexes.items()
            if not is_local(index.url)
        }
        found |= self.context.local_links
        known = {index.url.rstrip("/") for index in found.values()}
        for url in self.context.lock.indexes:
            if url not in known and url.startswith(("http://", "https://")):
                index = UserIndex(url, explicit=True)
                found.setdefault(index.proxy_name, index)
        return found

    def relearned(self) -> None:
        """Find the machine out anew, after plugins have given answers."""
        self.__dict__.pop("machine", None)

    def settings(self) -> SessionSettings:
        """Return the settings.

        Raises:
            ProxyError, VariantError: one of them is not valid.
        """
        from variants_proxy import Settings

        from .session import SessionSettings

        context = self.context
        indexes = self.indexes
        for index in indexes.values():
            _logger.debug("Answering for the index %s", redacted(index.url))
        for name in sorted(self.context.lock.projects if context.lock.path else ()):
            _logger.debug("The lock has %s: its variants stay unless they are renewed", name)
        _logger.debug("Choosing for the machine with the platform key %s", self.machine.key)
        proxy = Settings(
            tuple(each.upstream() for each in indexes.values()),
            context.cache,
            {**self.machine.platforms, **self._platforms_here},
            limits=self._limits,
            fresh_seconds=10.0**9,  # each page is asked for once, or when uv asks for a new one
            insecure_hosts=frozenset(self.insecure_hosts),
            keyring=self.keyring,
            environ=network_variables(context.place.environ),
            failures=self.plugins.failures if self.plugins is not None else {},
            requested=frozenset(
                self._expected() if any(each.links for each in indexes.values()) else ()
            ),
            catalog=self.catalog,
            catalog_mirrors=context.preferences.catalog_mirrors if self.catalog else {},
            pinned=frozenset(self.pinned if self.catalog else ()),
            hashes=context.hashes,
            offline=context.is_offline,
            serves_old=context.is_lenient,
            allow_missing_sources=context.is_lenient,
            versions=asked_versions(context),
        )
        return SessionSettings(
            proxy,
            tuple(indexes.values()),
            self.machine.key,
            projects={
                name: context.indexes.projects.get(name, frozenset())
                for name, index in indexes.items()
                if index.explicit
            },
            locked=self._locked(),
            exact=context.exact if self.catalog else {},
            hashes=context.scope is Scope.PROJECT or context.invocation.command in EXPORTING,
            shown_hashes=self._shown_hashes,
            forced=frozenset(context.preferences.forced),
            system_certs=context.invocation.has("native-tls", "system-certs"),
            python=self.python,
        )

    @property
    def _limits(self) -> Limits:
        from variants_proxy import Limits

        # As uv, which asks again itself for pages, and is not to wait for ours in vain.
        asked = Limits(retries=3, patient=False, page_retries=0)
        if not self.context.place.is_on(ALL_HASHES):
            return asked
        return replace(asked, hashed=sys.maxsize, hashed_bytes=sys.maxsize)

    @property
    def _shown_hashes(self) -> ShownHashes:
        if self.context.scope is not Scope.PROJECT:
            return "published" if self.context.invocation.command in EXPORTING else "served"
        return "served" if self.context.is_checked else "none"

    @cached_property
    def catalog(self) -> str | None:
        """The catalogue of existing builds, None without one.

        None also with uv's own choice among PyTorch's indexes.

        Raises:
            CatalogError: it cannot be read.
        """
        context = self.context
        preferences = context.preferences
        if preferences.catalog is None or not preferences.use_variants:
            return None
        if uses_torch_backend(context):
            return None
        from variants_proxy.internal import checked_catalog

        return checked_catalog(preferences, context.place.cwd)

    def _locked(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the wheels that the lock keeps, and none for versions that requirements pin.

        The proxy chooses from these versions as well, however old they are.
        """
        context, kept = self.context, self.context.kept
        if context.scope is Scope.BUILD:  # it will be beside what the project has locked
            source = next(iter(context.invocation.operands), context.place.project)
            project = replace(context.place, project=context.place.cwd / source)
            kept = Lock.read(project.lock_path).names
        found = {name: {**versions} for name, versions in kept.items()}
        if context.asks_offline:  # what they would be, uv does not ask
            found = {name: dict.fromkeys(versions, ()) for name, versions in found.items()}
        for name, versions in pinned_versions(self._texts).items():
            for version in versions:
                found.setdefault(name, {}).setdefault(version, ())
        return found

    @cached_property
    def _texts(self) -> list[str]:
        """The requirements of the command, of its files and of its project."""
        context = self.context
        texts = requirement_texts(context.invocation, context.place)
        return [*texts, *context.indexes.configuration.requirements]

    @property
    def pinned(self) -> tuple[str, ...]:
        """The projects that have an index of their own."""
        indexes = self.context.indexes
        named = [*indexes.configuration.pinned.values(), *indexes.projects.values()]
        return tuple(sorted({name for names in named for name in names}))

    @property
    def keyring(self) -> bool:
        """Whether uv asks the keyring for credentials."""
        provider = (
            self.context.invocation.last("keyring-provider")
            or self.context.place.environ.get("UV_KEYRING_PROVIDER")
            or self.context.indexes.configuration.scalars.get("keyring-provider")
        )
        return provider == "subprocess"

    @property
    def insecure_hosts(self) -> tuple[str, ...]:
        """Hosts whose certificates are not verified."""
        hosts = self.context.invocation.values("allow-insecure-host")
        hosts += self.context.place.environ.get("UV_INSECURE_HOST", "").split()
        configured = self.context.indexes.configuration.scalars.get("allow-insecure-host")
        return (*hosts, *(configured if isinstance(configured, list) else ()))

    def _expected(self) -> list[str]:
        """Return the projects for which uv is going to ask indexes, as far as known."""
        return sorted({*self.context.requested, *self.context.lock.versions})


def uses_torch_backend(context: Context) -> bool:
    """Return whether uv chooses among PyTorch's indexes itself, which it can without a lock."""
    if context.invocation.last("torch-backend"):
        return True
    if context.invocation.command[:1] not in (("pip",), ("tool",)):
        return False
    return bool(
        context.place.environ.get("UV_TORCH_BACKEND")
        or context.indexes.configuration.scalars.get("torch-backend")
    )


def network_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of the user's variables that a session has; uv ignores what is no proxy."""
    return {
        name: environ[name]
        for name in _NETWORK_VARIABLES
        if environ.get(name) and (name not in PROXY_VARIABLES or _may_be_proxy(name, environ[name]))
    }


def _may_be_proxy(name: str, value: str) -> bool:
    from variants_index.internal import InvalidProxy, read

    try:
        read(value, name)
    except InvalidProxy:
        return value.startswith("socks")  # one that uv does not know either is its error
    return True

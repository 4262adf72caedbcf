"""The answers to a uv command: machine, session, choices, and what was installed before.

uv compares versions only: an installed variant that is no longer the one that would be chosen is
replaced only with ``--reinstall-package``.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from ._choices import Choices
from ._environments import SHARED, installed, installed_variants, installed_versions, listed
from ._platform_key import machine_key
from ._session import CommandSession
from ._uv_lock import Lock, LockMachine
from ._uv_version import release_of

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.wheel_files import Installed

    from ._context import Context
    from ._platform_key import PlatformKey
    from ._provider_plugins import Plugins
    from ._session_settings import SessionSettings

_KEEPS_BUILD_TAGS = (0, 6, 12)
"""The first release of uv that was found to tell wheels of its cache apart by their build tags."""

MAX_AGE = 86400.0
"""Seconds for which an installed variant is not compared with the proxy's choice again."""


class FittingMarks(NamedTuple):
    """One file for each installed variant that fits one machine and list of indexes.

    Attributes:
        folder: of the files.
        words: platform key of the machine, names of the indexes, and so on.
    """

    folder: Path
    words: Sequence[str]

    def is_known(self, fitting: Installed | str) -> bool:
        """Return whether *fitting* was found to fit not long ago."""
        return self.said(fitting) is not None

    def said(self, fitting: Installed | str) -> str | None:
        """Return the text that was remembered of *fitting* not long ago, None without one."""
        mark = self._mark(fitting)
        try:
            age = time.time() - mark.stat().st_mtime
            return mark.read_text("utf-8") if 0 <= age < MAX_AGE else None
        except (OSError, ValueError):
            return None

    def remember(self, fitting: Installed | str, text: str = "") -> None:
        """Remember that *fitting* does; without a writable cache the next command asks again."""
        mark = self._mark(fitting)
        with contextlib.suppress(OSError):
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.write_text(text, "utf-8")

    def _mark(self, fitting: Installed | str) -> Path:
        words: tuple[str, ...] = (
            ("lock", fitting)
            if isinstance(fitting, str)
            else (fitting.project, str(fitting.version), str(fitting.label), *sorted(fitting.tags))
        )
        text = "\0".join((*words, *self.words))
        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:32]


class CommandState:
    """Machine, session, choices and environment of a command, until it has ended.

    Attributes:
        context: the command.
        plugins: that the user allowed, None if there are none to run.
        session: that answers uv, and the command itself.
        choices: of the session.
        installed: what was installed before uv ran, by project.
    """

    def __init__(self, context: Context, plugins: Plugins | None = None) -> None:
        """Read what is installed; the session opens when it is asked for something."""
        self.context = context
        self.plugins = plugins
        self.session = CommandSession(self.settings)
        self.choices = Choices(self.session)
        self.installed = installed(context.environments)

    @cached_property
    def machine(self) -> PlatformKey:
        """The machine that is installed for: that of the lock, if it says which."""
        return machine_key(self.context, self.plugins, self.context.lock_machine)

    @cached_property
    def machine_here(self) -> PlatformKey:
        """The machine at hand, as the user's settings describe it, or as it is detected."""
        if self.context.lock_machine is None:
            return self.machine
        return machine_key(self.context, self.plugins)

    @property
    def is_locked_for(self) -> bool:
        """Whether the lock is for the machine that the command names, and nothing else is asked."""
        lock, given = self.context.lock.path, self.context.options.variants
        if lock is None or {*given} != {"variant-platform"}:
            return False
        machine = LockMachine.read(lock)
        return machine is not None and machine.is_like(self.machine.machine)

    @property
    def lock_note(self) -> str:
        """The words that a failure ends with if the lock is for another machine than this one."""
        locked = self.context.lock_machine
        if locked is None or locked.is_like(self.machine_here.machine):
            return ""
        return (
            f" ({locked.path.name} says that the lock is for another machine than this one; "
            "--variant-platform names one to lock for)"
        )

    @property
    def uv_cache(self) -> Path:
        """The cache directory that uv gets.

        uv never asks again for wheels that it has in its cache. Every machine has a cache of its
        own with a uv that keeps wheels without their build tag, which is the label.
        """
        name = SHARED
        if self._has_own_cache:
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

    def settings(self) -> SessionSettings:
        """Return the settings of the session.

        Raises:
            ProxyError, VariantError: one of them is not valid.
        """
        # Not imported where nothing is asked: 35 ms, for HTTP.
        from ._session_settings import session_settings

        platforms = self.machine.platforms
        if self.context.lock_machine is not None:
            platforms = {**platforms, **self.machine_here.platforms}
        failures = self.plugins.failures if self.plugins is not None else {}
        return session_settings(self.context, self.machine.key, platforms, failures)

    @property
    def places(self) -> tuple[str, ...]:
        """All that decides what fits best besides the machine: indexes, and given hashes."""
        hashes = sorted(each for given in self.context.hashes.values() for each in given)
        return (*self.context.answered_indexes, *hashes)

    def marks(self, *words: str) -> FittingMarks:
        """Return the marks for this list of indexes, and *words*."""
        return FittingMarks(self.context.cache / "fits", (*words, *self.places))

    @cached_property
    def fitting(self) -> FittingMarks:
        """The installed variants that are known to be the proxy's choice."""
        return self.marks(self.machine.key)

    @cached_property
    def environments_now(self) -> tuple[Path, ...]:
        """Where uv has installed: it may have made the environment of a script meanwhile."""
        context = self.context
        if context.environments or context.invocation.command != ("sync",):
            return context.environments
        return context.find_environments()

    @property
    def before(self) -> dict[str, Installed]:
        """Variants that were installed before it, by project."""
        return {name: each for name, each in self.installed.items() if each.label is not None}

    def is_variant(self, name: str) -> bool:
        """Return whether a project (normalized name) is installed from a variant wheel."""
        return name in self.installed and self.installed[name].label is not None

    def is_built(self, name: str) -> bool:
        """Return whether an installed project is from a directory, repository or URL."""
        folder = self.installed[name].folder
        return bool(folder) and Path(folder, "direct_url.json").exists()

    def taken(self, noted: Iterable[str], *, verbose: bool) -> list[Installed]:
        """Return the variants, and builds of the catalogue, that were installed or locked.

        Args:
            noted: projects (normalized names) that uv asked for and that may have builds.
            verbose: also variants that were there before.
        """
        environments, builds = self.context.environments, self.builds(noted)
        if not environments:
            return [*self._locked_now(verbose=verbose), *builds]
        now = installed_variants(environments)
        new = [each for name, each in now.items() if verbose or self.before.get(name) != each]
        return [*new, *builds]

    def builds(self, names: Iterable[str]) -> list[Installed]:
        """Return the new builds of projects (normalized names) that the catalogue describes.

        They are publishers' files without variant metadata in them: the proxy knows which label
        stands for ``torch 2.9.0+cu128``.
        """
        names = list(names)
        if self.context.preferences.catalog is None or not names:
            return []
        self.choices.ask(names)
        return list(dict.fromkeys(self._builds(names)))

    def _builds(self, names: Iterable[str]) -> Iterator[Installed]:
        environments, before = self.context.environments, self.context.lock
        if environments:
            there = installed(environments)
            for each in (there[name] for name in names if name in there):
                label = self.choices.label_of(each) if each.label is None else None
                if label is not None and self.installed.get(each.project) != each:
                    yield replace(each, label=label)
            return
        now = Lock.read(before.path)
        for name in names:
            versions = now.names.get(name, {})
            labels = {
                file: choice.labels.get(plain)
                for choice in self.choices.of(name).values()
                for plain, file in choice.published.items()
            }
            for version, items in versions.items() if versions != before.names.get(name) else ():
                for label in filter(None, (labels.get(unquote(item)) for item in items)):
                    yield from listed([(name, version, label)])

    def versions_now(self) -> dict[str, set[Version]]:
        """Return the versions that are installed or locked now, by project."""
        found = [*installed_versions(self.context.environments)]
        for name, versions in Lock.read(self.context.lock.path).versions.items():
            found += [(name, version) for version in versions]
        return versions_by_project(found)

    def projects_now(self) -> list[str]:
        """Return everything that is installed or locked now (normalized names)."""
        locked = Lock.read(self.context.lock.path).versions
        return sorted({*installed(self.context.environments), *locked})

    def _locked_now(self, *, verbose: bool) -> list[Installed]:
        """Return the variants of the lock file; without *verbose* only if the file changed."""
        before = self.context.lock
        now = Lock.read(before.path)
        if now.text is None or (now.text == before.text and not verbose):
            return []
        return [
            *listed(
                (name, version, label)
                for name, versions in now.labels.items()
                for version, labels in versions.items()
                for label in labels
            )
        ]


def versions_by_project(named: Iterable[tuple[str, str]]) -> dict[str, set[Version]]:
    """Return valid versions by project (normalized name)."""
    found: dict[str, set[Version]] = {}
    for each in listed((name, version, None) for name, version in named):
        found.setdefault(each.project, set()).add(each.version)
    return found

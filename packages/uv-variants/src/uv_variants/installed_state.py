"""The variants that a command finds and leaves, and which of them uv has to replace.

uv compares versions only: an installed variant that is no longer the one that would be chosen is
replaced only with ``--reinstall-package``.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.files import read_text
from pep_variants.limits import LOCK_TEXT_BYTES
from pep_variants.model.filename import read_version

from .configuration import workspace_root
from .lockfile import locked_variants, locked_versions
from .site_packages import (
    Installed,
    environment_of,
    installed_names,
    installed_variants,
    installed_versions,
    installed_without_variant,
)

if TYPE_CHECKING:
    from packaging.version import Version

    from .context import Context
    from .proxy_client import Choices

MAX_AGE = 86400.0
"""Seconds for which an installed variant is not compared with the proxy's choice again."""

_INSTALLING = (("pip", "install"), ("pip", "sync"), ("sync",), ("run",), ("add",))


@dataclass(frozen=True)
class InstalledState:
    """The environment and lock file of a command.

    Attributes:
        context: the command.
        choices: of the proxy.
        environment: where it installs, None if nowhere or not known.
        before: variants that were installed before it, by name.
        locked: text of the lock file before it, None without one.
        machine_key: platform key of the machine, also where a floating name stands for it.
    """

    context: Context
    choices: Choices
    environment: Path | None
    before: Mapping[str, Installed]
    locked: str | None
    machine_key: str

    @classmethod
    def of(cls, context: Context, choices: Choices, machine_key: str) -> InstalledState:
        """Read the state before the command of *context*."""
        invocation, place = context.invocation, context.place
        environment = None
        if invocation.command in _INSTALLING and not invocation.has("no-sync", "dry-run"):
            root = context.lock.parent if context.lock else workspace_root(place.project)
            environment = environment_of(invocation, place, root)
        before = installed_variants(environment)
        return cls(context, choices, environment, before, lock_text(context.lock), machine_key)

    def reinstall_options(self) -> list[str]:
        """Return uv's options that replace what is no longer what would be chosen.

        Variants always; projects that are installed without variant if a label of theirs is forced,
        or if the command names them with ``--variant-switch``, which also ignores the age of
        earlier comparisons.
        """
        candidates = list(self.before.values())
        preferences = self.context.preferences
        names = dict.fromkeys(preferences.forced)
        if preferences.switch:
            names |= dict.fromkeys(self._switched_projects())
        for name in names:
            if name not in self.before:
                other = installed_without_variant(self.environment, name)
                candidates += [other] if other is not None else []
        unknown = [
            each for each in candidates if preferences.switch or not self._is_known_to_fit(each)
        ]
        if not unknown:
            return []
        self.choices.ask(each.name for each in unknown)
        options = []
        for each in unknown:
            choice = self.choices.of_installed(each)
            if choice is None:
                continue
            if choice.label_for(each.tags) == each.label:
                self._remember(each)
            else:
                options += ["--reinstall-package", each.name]
        return options

    def taken(self, *, verbose: bool) -> list[Installed]:
        """Return the variants that the command installed or locked.

        Args:
            verbose: also those that were there before.
        """
        if self.environment is None:
            return self._locked_now(verbose=verbose)
        now = installed_variants(self.environment)
        return [each for name, each in now.items() if verbose or self.before.get(name) != each]

    def remember_fitting(self, taken: Iterable[Installed]) -> None:
        """Remember those of *taken* that are the proxy's choice."""
        for each in taken:
            choice = self.choices.of_installed(each)
            if choice is not None and choice.label_for(each.tags) == each.label:
                self._remember(each)

    def versions_now(self) -> dict[str, set[Version]]:
        """Return the versions that are installed or locked now, by project."""
        listed = [*installed_versions(self.environment)]
        for name, versions in locked_versions(lock_text(self.context.lock) or "").items():
            listed += [(name, version) for version in versions]
        found: dict[str, set[Version]] = {}
        for name, text in listed:
            version = read_version(text)
            if version is not None:
                found.setdefault(name, set()).add(version)
        return found

    def projects_now(self) -> list[str]:
        """Return everything that is installed or locked now (normalized names)."""
        text = lock_text(self.context.lock) or ""
        return sorted({*installed_names(self.environment), *locked_versions(text)})

    def _switched_projects(self) -> Iterable[str]:
        """Return the projects that ``--variant-switch`` is about (normalized names)."""
        if self.context.invocation.command != ("pip", "install"):
            return sorted(installed_names(self.environment))  # the command names them all
        return self.context.requested

    def _locked_now(self, *, verbose: bool) -> list[Installed]:
        """Return the variants of the lock file; without *verbose* only if the file changed."""
        text = lock_text(self.context.lock)
        if text is None or (text == self.locked and not verbose):
            return []
        names = locked_variants(text)
        self.choices.ask(names)
        versions = locked_versions(text)
        return [
            Installed(name, version, choice.chosen.label)
            for name in names
            for version, choice in self.choices.of(name).items()
            if version in versions.get(name, ()) and choice.chosen is not None
        ]

    def _is_known_to_fit(self, installed: Installed) -> bool:
        try:
            age = time.time() - self._mark(installed).stat().st_mtime
        except OSError:
            return False
        return 0 <= age < MAX_AGE

    def _remember(self, installed: Installed) -> None:
        mark = self._mark(installed)
        try:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch()
            os.utime(mark)
        except OSError:
            pass  # the next command asks the proxy again

    def _mark(self, installed: Installed) -> Path:
        text = "\0".join(
            (
                installed.name,
                installed.version,
                str(installed.label),
                *sorted(installed.tags),
                self.machine_key,
                *self.choices.client.indexes,
            )
        )
        return self.context.cache / "fits" / hashlib.sha256(text.encode()).hexdigest()[:32]


def lock_text(path: Path | None) -> str | None:
    """Return the text of a lock file, None if there is none or it cannot be read."""
    try:
        return read_text(path, LOCK_TEXT_BYTES) if path is not None else None
    except (OSError, ValueError):
        return None

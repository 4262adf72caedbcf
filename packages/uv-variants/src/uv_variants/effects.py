"""What a command changes: which variants are there before it, and which after it.

uv compares versions, nothing else: a variant that is installed already, but is no longer the one
that fits, has to be named for it to be replaced.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .configuration import workspace_root
from .installed import (
    Installed,
    environment_of,
    installed_names,
    installed_variants,
    installed_without_variant,
)
from .lockfile import locked_variants, locked_versions

if TYPE_CHECKING:
    from .decisions import Asked, Decision
    from .session import Session

MAX_AGE = 86400.0
"""Seconds for which it is remembered that what is installed is what would be chosen."""

_INSTALLING = (("pip", "install"), ("pip", "sync"), ("sync",), ("run",), ("add",))


@dataclass
class Effects:
    """The variants that a command meets and leaves.

    Attributes:
        session: the command.
        asked: whom to ask for decisions.
        environment: where it installs, None if that is nowhere or not known.
        before: variants that were there, by name.
        locked: contents of the lock file before, None without one.
        described: platform key of the machine, also where a floating name is asked for.
    """

    session: Session
    asked: Asked
    environment: Path | None
    before: Mapping[str, Installed]
    locked: str | None
    described: str
    _decided: dict[str, dict[str, Decision]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Session, asked: Asked, described: str) -> Effects:
        """Look at what is there before *session*'s command."""
        invocation, place = session.invocation, session.place
        environment = None
        if invocation.command in _INSTALLING and not invocation.has("no-sync", "dry-run"):
            root = session.lock.parent if session.lock else workspace_root(place.project)
            environment = environment_of(invocation, place, root)
        before = installed_variants(environment)
        return cls(session, asked, environment, before, _text(session.lock), described)

    def reinstall(self) -> list[str]:
        """Return the options that have uv replace variants that are no longer what is chosen."""
        candidates = list(self.before.values())
        for name in self.session.preferences.forced:
            if name not in self.before:
                other = installed_without_variant(self.environment, name)
                candidates += [other] if other is not None else []
        unknown = [each for each in candidates if not self._remembered(each)]
        if not unknown:
            return []
        from .decisions import decision_on

        self._ask(each.name for each in unknown)
        options = []
        for each in unknown:
            decision = decision_on(self._decided, each)
            if decision is None:
                continue
            if decision.label_for(each.tags) == each.label:
                self._remember(each)
            else:
                options += ["--reinstall-package", each.name]
        return options

    def report(self) -> None:
        """Say which variants have been taken."""
        invocation = self.session.invocation
        if invocation.has("q", "quiet") or invocation.has("dry-run"):
            return
        verbose = invocation.has("v", "verbose")
        if invocation.command == ("run",) and not verbose:
            return  # what was run has the last word
        if self.environment is not None:
            now = installed_variants(self.environment)
            taken = [each for name, each in now.items() if verbose or self.before.get(name) != each]
        else:
            taken = self._locked(verbose=verbose)
        if not taken:
            return
        from .report import report

        self._ask(each.name for each in taken)
        from .decisions import decision_on

        for each in taken:
            decision = decision_on(self._decided, each)
            if decision is not None and decision.label_for(each.tags) == each.label:
                self._remember(each)
        report(taken, self._decided, verbose=verbose)
        self._tell_of_plugins(taken)

    def _tell_of_plugins(self, taken: Iterable[Installed]) -> None:
        """Say which namespaces were skipped because nobody allowed their plugins."""
        from .decisions import decision_on
        from .providers import Wanted, refusal

        preferences = self.session.preferences
        if preferences.platform_file is not None:
            return
        said: set[str] = set()
        for each in taken:
            decision = decision_on(self._decided, each)
            for namespace, tree in decision.providers.items() if decision is not None else ():
                if namespace not in said:
                    said.add(namespace)
                    why = refusal(Wanted.read(namespace, tree), preferences)
                    if why is not None:
                        text = f"Namespace {namespace!r} is skipped: {why}"
                        print(f"uv-variants: {text}", file=sys.stderr)

    def projects(self) -> list[str]:
        """Return everything that is installed or locked now (normalized names)."""
        text = _text(self.session.lock)
        return sorted({*installed_names(self.environment), *locked_versions(text or "")})

    def explain_failure(self) -> None:
        """Say so if it is for a variant that the user forced that uv found no solution."""
        from .report import why_missing

        forced = self.session.preferences.forced
        self._ask(forced)
        for name, label in forced.items():
            text = why_missing(name, label, self._decided.get(name, {}))
            if text is not None:
                print(f"uv-variants: {text}", file=sys.stderr)

    def _locked(self, *, verbose: bool) -> list[Installed]:
        """Return the variants of the lock file, if it is another one now."""
        lock = self.session.lock
        text = _text(lock)
        if text is None or (text == self.locked and not verbose):
            return []
        names = locked_variants(text)
        self._ask(names)
        versions = locked_versions(text)
        return [
            Installed(name, version, decision.chosen.label)
            for name in names
            for version, decision in self._decided.get(name, {}).items()
            if version in versions.get(name, ()) and decision.chosen is not None
        ]

    def _ask(self, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self._decided]
        self._decided.update(self.asked.decisions(missing))

    def _remembered(self, installed: Installed) -> bool:
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
            pass  # then it is asked again

    def _mark(self, installed: Installed) -> Path:
        text = "\0".join(
            (
                installed.name,
                installed.version,
                str(installed.label),
                *sorted(installed.tags),
                self.described,
                *self.asked.indexes,
            )
        )
        return self.session.cache / "fits" / hashlib.sha256(text.encode()).hexdigest()[:32]


def _text(path: Path | None) -> str | None:
    try:
        return path.read_text("utf-8") if path is not None else None
    except (OSError, ValueError):
        return None

"""The variants that a command finds and leaves, and which of them uv has to replace.

uv compares versions only: an installed variant that is no longer the one that would be chosen is
replaced only with ``--reinstall-package``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from .choices import label_for
from .environments import (
    installed,
    installed_variants,
    installed_versions,
    listed,
)
from .named_projects import are_tags_of
from .uv_lock import Lock

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.internal import Installed

    from .choices import Choices
    from .context import Context


MAX_AGE = 86400.0
"""Seconds for which an installed variant is not compared with the proxy's choice again."""


class FittingMarks(NamedTuple):
    """One file for each installed variant that fits one machine and list of indexes.

    Attributes:
        folder: of the files.
        machine: returns the platform key of the machine, which takes time to detect.
        indexes: names of the indexes, in order, and hashes that requirements give.
    """

    folder: Path
    machine: Callable[[], str]
    indexes: Sequence[str]

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
        text = "\0".join((*words, self.machine(), *self.indexes))
        import hashlib  # few environments have variants

        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:32]


class InstalledState(NamedTuple):
    """The environments and the lock file of a command.

    Attributes:
        context: the command.
        installed: what was installed before it, by project.
        choices: of the proxy.
        marks: which variants are known to be the proxy's choice.
    """

    context: Context
    installed: Mapping[str, Installed]
    choices: Choices
    marks: FittingMarks

    @classmethod
    def of(cls, context: Context, choices: Choices, marks: FittingMarks) -> InstalledState:
        """Read the state before the command of *context*."""
        return cls(context, installed(context.environments), choices, marks)

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

    def replaced(
        self, hidden: Callable[[Installed], str], judged: Collection[str] = ()
    ) -> tuple[list[str], list[str]]:
        """Return the projects (normalized names) that uv has to reinstall, and lines for the user.

        Variants that are no longer what would be chosen always. Projects that are installed without
        variant if a label of theirs is forced or locked, or if the command names them with
        ``--variant-switch``, which also ignores the age of earlier comparisons.

        Args:
            hidden: returns the line about a build that stays: its accelerator may be here unseen.
            judged: projects that are decided about, see `switching`.
        """
        preferences = self.context.preferences
        candidates = [each for each in self.before.values() if each.project not in judged]
        names = dict.fromkeys((*preferences.forced, *self._locked_names()))
        if preferences.switch:
            names |= dict.fromkeys(self._switched_projects())
        plain = (self.installed.get(name) for name in names if name not in judged)
        candidates += [each for each in plain if each and each.label is None and not each.problem]
        found: dict[str, None] = {}
        lines: list[str] = []
        unknown = []
        asks = self.context.asks_offline or not self.context.is_offline
        for each in candidates:
            locked = self.locked_label(each)
            if locked is not None:
                if not each.is_variant(locked or None):
                    found[each.project] = None
            elif not preferences.use_variants:
                if each.label is not None:
                    found[each.project] = None
            elif preferences.switch or not self.marks.is_known(each):
                unknown += [each] if asks or each.project in preferences.forced else []
        self.choices.ask(each.project for each in unknown)
        for each in unknown:
            choice = self.choices.of_installed(each)
            if choice is None:
                continue
            if not self.choices.as_installed(each).is_variant(label_for(choice, each.tags)):
                is_forced = each.project in preferences.forced
                if not is_forced and (text := hidden(each)):
                    lines.append(text)
                    continue
                found[each.project] = None
            elif not choice.is_only_locked(each.label):
                self.marks.remember(each)
        return list(found), lines

    def locked_label(self, installed: Installed) -> str | None:
        """Return the label that the lock has for what is *installed*, empty for none.

        None if the lock does not say: it has no such version, or is about to change.
        """
        context, key = self.context, (installed.project, str(installed.version))
        if installed.project not in context.kept:
            return None
        if key[1] not in context.lock.versions.get(installed.project, ()):
            return None
        wheels = [wheel for wheel in context.lock.wheels if (wheel.project, wheel.version) == key]
        if not wheels:
            return "" if installed.label is not None else None
        for wheel in wheels:
            if are_tags_of(wheel.plain, installed.tags):
                return wheel.label or ""
        return ""

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

    def _locked_names(self) -> Iterator[str]:
        """Yield the projects of a lock that have variants, or may have them after the command."""
        context = self.context
        if context.lock.text is not None and context.environments:
            yield from context.lock.projects
            yield from (name for name in context.lock.names if name not in context.kept)

    def _switched_projects(self) -> Iterable[str]:
        """Return the projects that ``--variant-switch`` is about (normalized names)."""
        if self.context.invocation.command != ("pip", "install"):
            return sorted(installed(self.context.environments))  # the command names them all
        return self.context.requested

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

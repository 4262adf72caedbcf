"""The variants that a command finds and leaves, and which of them uv has to replace.

uv compares versions only: an installed variant that is no longer the one that would be chosen is
replaced only with ``--reinstall-package``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variants_proxy.choice.in_place_names import HERE

from .locked_variants import Lock
from .named_projects import are_tags_of
from .site_packages import (
    Installed,
    installed_names,
    installed_variants,
    installed_versions,
    installed_without_variant,
)

if TYPE_CHECKING:
    from packaging.version import Version

    from .context import Context
    from .fitting_marks import FittingMarks
    from .proxy_client import Choices


@dataclass(frozen=True)
class InstalledState:
    """The environments and the lock file of a command.

    Attributes:
        context: the command.
        before: variants that were installed before it, by name.
        choices: of the proxy.
        marks: which of them are known to be the proxy's choice.
        versions_before: name and version of everything that was installed, with a catalogue.
    """

    context: Context
    before: Mapping[str, Installed]
    choices: Choices
    marks: FittingMarks
    versions_before: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, context: Context, choices: Choices, marks: FittingMarks) -> InstalledState:
        """Read the state before the command of *context*."""
        versions = installed_versions(context.environments) if context.preferences.catalog else ()
        variants = installed_variants(context.environments)
        return cls(context, variants, choices, marks, frozenset(versions))

    def replaced(self) -> list[str]:
        """Return the projects (normalized names) that uv has to reinstall.

        Variants that are no longer what would be chosen always. Projects that are installed without
        variant if a label of theirs is forced or locked, or if the command names them with
        ``--variant-switch``, which also ignores the age of earlier comparisons.
        """
        preferences = self.context.preferences
        candidates = list(self.before.values())
        names = dict.fromkeys((*preferences.forced, *self._locked_names()))
        if preferences.switch:
            names |= dict.fromkeys(self._switched_projects())
        environments = self.context.environments
        for name in names:
            if name not in self.before:
                other = installed_without_variant(environments, name)
                candidates += [other] if other is not None else []
        found: dict[str, None] = {}
        unknown = []
        for each in candidates:
            locked = self.locked_label(each)
            if locked is not None:
                if locked != (each.label or ""):
                    found[each.name] = None
            elif not preferences.use_variants:
                if each.label is not None:
                    found[each.name] = None
            elif preferences.switch or not self.marks.is_known(each):
                unknown.append(each)
        self.choices.ask(each.name for each in unknown)
        for each in unknown:
            choice = self.choices.of_installed(each)
            if choice is None:
                continue
            if choice.label_for(each.tags) != self.choices.label_of(each):
                found[each.name] = None
            elif not choice.is_only_locked(each.label):
                self.marks.remember(each)
        return list(found)

    def locked_label(self, installed: Installed) -> str | None:
        """Return the label that the lock has for what is *installed*, empty for none.

        None if the lock does not say: it has no such version, or is about to change, or floats.
        """
        context = self.context
        if installed.name not in context.kept:
            return None
        if installed.version not in context.lock.versions.get(installed.name, ()):
            return None
        wheels = [
            wheel
            for wheel in context.lock.wheels
            if (wheel.project, wheel.version) == (installed.name, installed.version)
        ]
        if not wheels:
            return "" if installed.label is not None else None
        for wheel in wheels:
            if are_tags_of(wheel.plain, installed.tags):
                return None if wheel.label == HERE else wheel.label or ""
        return ""

    def taken(self, *, verbose: bool) -> list[Installed]:
        """Return the variants that the command installed or locked.

        Args:
            verbose: also those that were there before.
        """
        if not self.context.environments:
            return self._locked_now(verbose=verbose)
        now = installed_variants(self.context.environments)
        return [each for name, each in now.items() if verbose or self.before.get(name) != each]

    def remember_fitting(self, taken: Iterable[Installed]) -> None:
        """Remember those of *taken* that are the proxy's choice."""
        for each in taken:
            choice = self.choices.of_installed(each)
            if choice is None or choice.is_only_locked(each.label):
                continue
            if choice.label_for(each.tags) == each.label:
                self.marks.remember(each)

    def versions_now(self) -> dict[str, set[Version]]:
        """Return the versions that are installed or locked now, by project."""
        listed = [*installed_versions(self.context.environments)]
        for name, versions in Lock.read(self.context.lock.path).versions.items():
            listed += [(name, version) for version in versions]
        return versions_by_project(listed)

    def projects_now(self) -> list[str]:
        """Return everything that is installed or locked now (normalized names)."""
        locked = Lock.read(self.context.lock.path).versions
        return sorted({*installed_names(self.context.environments), *locked})

    def _locked_names(self) -> Iterator[str]:
        """Yield the projects of a lock that have variants, or may have them after the command."""
        context = self.context
        if context.lock.text is not None and context.environments:
            yield from context.lock.projects
            yield from (name for name in context.lock.names if name not in context.kept)

    def _switched_projects(self) -> Iterable[str]:
        """Return the projects that ``--variant-switch`` is about (normalized names)."""
        if self.context.invocation.command != ("pip", "install"):
            return sorted(installed_names(self.context.environments))  # the command names them all
        return self.context.requested

    def _locked_now(self, *, verbose: bool) -> list[Installed]:
        """Return the variants of the lock file; without *verbose* only if the file changed."""
        before = self.context.lock
        now = Lock.read(before.path)
        if now.text is None or (now.text == before.text and not verbose):
            return []
        return [
            Installed(name, version, label)
            for name, versions in now.labels.items()
            for version, labels in versions.items()
            for label in labels
        ]


def versions_by_project(listed: Iterable[tuple[str, str]]) -> dict[str, set[Version]]:
    """Return valid versions by project (normalized name)."""
    from pep_variants.model.filename import read_version

    found: dict[str, set[Version]] = {}
    for name, text in listed:
        version = read_version(text)
        if version is not None:
            found.setdefault(name, set()).add(version)
    return found

"""What is wrong with what is installed in one environment: the same for every command.

`Checkup` reads the environment; `comparison` asks the indexes, or nothing does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import machines, wheel_files
from pep_variants import selection as wheel_selection
from pep_variants.errors import CatalogError, listed, redacted
from pep_variants.machines import Platform, Surroundings
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences, Sources
from pep_variants.wheel_files import Installed
from variants_catalog import catalogs, missed_builds, project_names
from variants_catalog.missed_builds import Taken

from ._commands import Commands
from ._comparison import Compared, Comparison, is_of_interest
from ._findings import Problem
from ._packages import Asked, environment_problems, package_problems, requirement_problems
from ._requirements import Requirers

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject
    from variants_catalog.missed_builds import MissedBuild

    from .._package_finder import PackageFinder
    from ..target import Target


@dataclass(frozen=True)
class Checkup:
    """One environment.

    Attributes:
        paths: its package folders.
        target: its Python, and the machine.
        detect: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: of the user.
        sources: the indexes.
        commands: what to type there.
        named: normalized names of projects that the user asks about.
    """

    paths: Sequence[str]
    target: Target
    detect: Callable[[Metadata], Platform]
    preferences: Preferences
    sources: Sources
    commands: Commands = field(default_factory=Commands)
    named: Collection[str] = ()

    @cached_property
    def items(self) -> list[Installed]:
        """What is installed, by project."""
        return list(wheel_files.find_installed(self.paths))

    @cached_property
    def requirers(self) -> Requirers:
        """What requires what of it."""
        return Requirers(self.items, self.target.environment)

    @property
    def asked(self) -> Asked:
        """How it is compared."""
        sources = self.sources
        urls = sources.links if sources.no_index else (*sources.indexes, *sources.links)
        shown = ", ".join(map(redacted, urls)) or ("no index" if sources.no_index else "PyPI")
        return Asked(shown, self.preferences.catalog is not None, self.named)

    def comparison(
        self, finder: PackageFinder, environ: Mapping[str, str], root: Path = Path("/")
    ) -> Comparison:
        """Return what compares it with what *finder* finds.

        Args:
            finder: of the indexes.
            environ: environment variables.
            root: of the file system of this machine.
        """
        target = self.target
        here = target.here and target.platform is None and self.preferences.platform_file is None
        surroundings = Surroundings.of(environ, root) if here else None
        return Comparison(
            finder, target, self.detect, self.preferences, self.requirers, surroundings
        )

    def problems(
        self,
        groups: Sequence[Sequence[Compared]] = (),
        switch: Callable[[Sequence[Compared]], str] | None = None,
        *,
        reads_settings: bool = True,
    ) -> Iterator[Problem]:
        """Yield what is wrong with what is installed.

        Args:
            groups: what it was compared with, from `agreed`; nothing where no index was asked.
            switch: see `package_problems`.
            reads_settings: no setting is wrong, such as the name of a catalogue.
        """
        commands = self.commands
        for item in self.items:
            if item.problem:
                yield Problem("metadata", item.problem, commands.switched([item.project]))
        yield from environment_problems(self.paths, commands, self.requirers, self._build)
        yield from package_problems(groups, commands, self.asked, switch)
        advised = {each.item.project for group in groups for each in group if each.advice}
        names = {item.project for item in self.items if item.label} | project_names()
        yield from requirement_problems(self.requirers, names - advised, commands)
        preferences = self.preferences
        if reads_settings and preferences.catalog is None and preferences.use_variants:
            yield from self._without_catalog()
        for name in sorted(set(self.named) - self.requirers.items.keys()):
            text = f"{name} is not installed in {self.paths[0] if self.paths else 'no environment'}"
            command = f"{commands.explain} {shlex.quote(name)}"
            yield Problem("not-installed", text, command, fails=False)

    def _without_catalog(self) -> Iterator[Problem]:
        """Yield what the catalogue has builds of, and whether they are missed."""
        missed: list[MissedBuild] = []
        others: list[str] = []
        for item in self.items:
            known = not item.label and item.project in project_names()
            entry = _shipped(item.project) if known else None
            if entry is not None:
                found = self._missed(entry, item)
                if found is None:
                    others.append(item.project)
                else:
                    missed.append(found)
        commands = self.commands
        if missed and commands.knows_variants:
            names = [each.project for each in missed]
            what = "; ".join(f"{each.project} {each.version} {each.lack}" for each in missed)
            yield Problem(
                "catalog-off",
                f"{what}: the catalogue, which is off, has builds that do",
                f"{commands.catalog} && {commands.switched(names)}",
            )
        elif others and not missed:
            has = "has" if len(others) == 1 else "have"
            yield Problem(
                "catalog-off",
                f"{listed(others, 'and')} {has} builds for GPUs and CPUs in the catalogue, which "
                "is off: enable it to get the one that fits",
                commands.catalog,
                fails=False,
            )

    def _missed(self, entry: CatalogProject, item: Installed) -> MissedBuild | None:
        beside = {name: each.version for name, each in self.requirers.items.items()}
        urls = (*self.sources.indexes, *self.sources.links)
        taken = Taken(item.version, item.platforms, item.requires, beside, indexes=urls)
        machine = self.target.tags[0].platform
        return missed_builds.missed_build(entry, taken, machine, self.detect, self.preferences)

    def _build(self, owners: Sequence[str]) -> str:
        """Return which of *owners*, ``name==version``, to install: that for the accelerator."""
        entries = [_shipped(owner.partition("==")[0]) for owner in owners]
        entry = next(filter(None, entries), None)
        if entry is None:
            return ""
        if self.preferences.catalog is not None:
            return entry.name
        for owner in owners:
            name, _, text = owner.partition("==")
            version, machine = wheel_files.read_version(text), self.target.tags[0].platform
            wheel = f"{name.replace('-', '_')}-{version}-py3-none-{machine}.whl"
            metadata = entry.metadata(list(entry.renamed_files(wheel)))
            ranking = wheel_selection.rank(metadata, self.detect(metadata), self.preferences)
            if any(not machines.ACCELERATORS.keys().isdisjoint(ranking.supported(label))
                   for label in ranking.labels):  # fmt: skip
                return owner
        return ""


def _shipped(name: str) -> CatalogProject | None:
    try:
        return catalogs.shipped_catalog().project(name)
    except CatalogError:  # it is damaged
        return None


def wants(named: Collection[str], *, every: bool) -> Callable[[Installed, Comparison], bool]:
    """Return whether to compare a distribution: those of interest, those *named*, or all."""

    def is_wanted(item: Installed, comparison: Comparison) -> bool:
        return every or item.project in named or is_of_interest(item, comparison)

    return is_wanted

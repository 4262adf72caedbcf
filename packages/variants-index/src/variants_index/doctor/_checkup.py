"""What is wrong with what is installed in one environment: the same for every command.

`Checkup` reads the environment; `comparison` asks the indexes, or nothing does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
from ._gpu_code import Codes, Lacking, find_lacking, read_codes
from ._packages import Asked, environment_problems, package_problems, requirement_problems
from ._requirements import Requirers

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject
    from variants_catalog.missed_builds import MissedBuild

    from .._cache import Store
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
        store: keeps what was read of libraries, None for nothing.
    """

    paths: Sequence[str]
    target: Target
    detect: Callable[[Metadata], Platform]
    preferences: Preferences
    sources: Sources
    commands: Commands = field(default_factory=Commands)
    named: Collection[str] = ()
    store: Store | None = None

    @cached_property
    def items(self) -> list[Installed]:
        """What is installed, by project."""
        return list(wheel_files.find_installed(self.paths))

    @cached_property
    def requirers(self) -> Requirers:
        """What requires what of it."""
        return Requirers(self.items, self.target.environment)

    @cached_property
    def codes(self) -> Codes:
        """The GPU code inside of it."""
        return read_codes(self.items, self.store)

    @cached_property
    def lacking(self) -> list[Lacking]:
        """What has no code for a GPU that is here."""
        required = self.requirers.required()
        return [*find_lacking(self.items, self.codes, self.detect, required)] if self.codes else []

    @property
    def asked(self) -> Asked:
        """How it is compared."""
        sources = self.sources
        urls = sources.links if sources.no_index else (*sources.indexes, *sources.links)
        shown = ", ".join(map(redacted, urls)) or ("no index" if sources.no_index else "PyPI")
        lacking = {each.item.project for each in self.lacking if each.fails}
        has_catalog = self.preferences.catalog is not None
        return Asked(shown, has_catalog, self.named, self.codes.keys(), lacking)

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
        preferences = self.preferences
        is_off = reads_settings and preferences.catalog is None and preferences.use_variants
        for each in self.lacking:
            yield self._lack(each, groups, switch, is_off=is_off)
        yield from package_problems(groups, commands, self.asked, switch)
        advised = {each.item.project for group in groups for each in group if each.advice}
        names = {item.project for item in self.items if item.label} | project_names()
        yield from requirement_problems(self.requirers, names - advised, commands)
        if is_off:
            yield from self._without_catalog()
        for name in sorted(set(self.named) - self.requirers.items.keys()):
            text = f"{name} is not installed in {self.paths[0] if self.paths else 'no environment'}"
            command = f"{commands.explain} {shlex.quote(name)}"
            yield Problem("not-installed", text, command, fails=False)

    def _lack(
        self,
        lacking: Lacking,
        groups: Sequence[Sequence[Compared]],
        switch: Callable[[Sequence[Compared]], str] | None,
        *,
        is_off: bool,
    ) -> Problem:
        """Return the problem of what is *lacking*, with the build that has it, if one is known.

        Args:
            lacking: of a distribution.
            groups, switch: as of `problems`.
            is_off: the catalogue is, and may have one.
        """
        item, commands, gpu = lacking.item, self.commands, lacking.gpu
        group = next((group for group in groups if item in [each.item for each in group]), ())
        found = next((each for each in group if each.item == item), None)
        more = command = ""
        if not gpu or not lacking.fails:
            if gpu and found is not None and found.selection is not None:
                release = shlex.quote(f"{item.project}=={found.release}")
                command = f"{commands.explain} {release} --variant-platform {gpu}"
            return Problem("gpu-code" if gpu else "cpu-level", lacking.text, command, fails=False)
        if found is not None and found.advice is not None:
            more = f"{found.advice.build} fits"
            command = (
                switch(group) if switch else commands.switched(each.item.project for each in group)
            )
        elif other := self._other(item):
            more = f"{other} fits"
            command = f"{commands.install} {shlex.quote(other)}"
            if canonicalize_name(Requirement(other).name) != item.project:
                command = f"{commands.removed([item.project])} && {command}"
        elif is_off and item.project in self._missed:
            has = "has" if self._missed[item.project] else "may have"
            more = f"the catalogue, which is off, {has} a build that fits"
            command = f"{commands.catalog} && {commands.switched([item.project])}"
        elif found is None or found.error is not None or found.unavailable:
            command = f"{commands.doctor} {item.project}"
        elif found.selection is None or found.unfit or found.now == found.label:
            more = "no build that has it is known"
        return Problem("gpu-code", "; ".join(filter(None, (lacking.text, more))), command)

    def _other(self, item: Installed) -> str:
        """Return the build to require in place of one that has its publisher's name."""
        machine = next(iter(self.target.tags)).platform
        with suppress(CatalogError):
            return missed_builds.other_build(
                item.project, item.version, self.detect, self.preferences, machine
            )
        return ""

    @cached_property
    def _missed(self) -> dict[str, MissedBuild | None]:
        """What is missed where the catalogue is off, by project that it has builds of."""
        names = project_names()
        known = {each.project: each for each in self.items if not each.label}
        entries = {name: _shipped(name) for name in known if name in names}
        return {
            name: self._missed_of(entry, known[name]) for name, entry in entries.items() if entry
        }

    def _without_catalog(self) -> Iterator[Problem]:
        """Yield what the catalogue has builds of, and whether they are missed."""
        told = self.asked.lacking
        missed = [each for each in self._missed.values() if each and each.project not in told]
        others = [name for name, each in self._missed.items() if not each and name not in told]
        commands = self.commands
        names = [each.project for each in missed]
        what = "; ".join(f"{each.project} {each.version} {each.lack}" for each in missed)
        if commands.sync and missed:
            text = f"{what}: uv.lock has groups for accelerators, the one that fits may have them"
            yield Problem("catalog-off", text, commands.sync, fails=False)
        elif missed and commands.knows_variants:
            yield Problem(
                "catalog-off",
                f"{what}: the catalogue, which is off, has builds that do",
                f"{commands.catalog} && {commands.switched(names)}",
            )
        elif others and not any(self._missed.values()) and not commands.sync:
            has = "has" if len(others) == 1 else "have"
            yield Problem(
                "catalog-off",
                f"{listed(others, 'and')} {has} builds for GPUs and CPUs in the catalogue, which "
                "is off: enable it to get the one that fits",
                commands.catalog,
                fails=False,
            )

    def _missed_of(self, entry: CatalogProject, item: Installed) -> MissedBuild | None:
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

"""A project of which uv locks a group for each accelerator."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants import machines, safe_files
from pep_variants.errors import LockError
from pep_variants.machines import Platform
from variants_catalog import catalogs, setting
from variants_index import uv_files

from .._catalog_command import fetch_catalog
from .._command_line import Scope, parse
from .._context import read_preferences
from .._errors import AcceleratorsUnknown, warn
from .._indexes import sources_of, used_indexes
from .._named_projects import CommandPlace, name_of
from .._uv_process import run_uv
from .._uv_program import find_uv
from .._uv_version import release_of
from .declared import Declared, group_requirements, project_requirements
from .exporting import Commands, export_groups
from .lock import GroupedLock, Pyproject
from .plan import Plan, check_known, check_members, planned
from .tables import rewritten
from .twins import Requirer, requirers

if TYPE_CHECKING:
    from pep_variants.preferences import Preferences, Sources

    from .._context import Context
    from .._own_options import Options

_OLDEST = (0, 10, 12)
"""The first release of uv that was seen to lock groups in conflict right."""
_PASSES = 4
"""Locks until no other project with builds is among what is locked."""


class AcceleratedProject(GroupedLock):
    """A project or workspace of which uv locks a group for each accelerator."""

    @classmethod
    def of(
        cls, directory: Path, options: Options, environ: Mapping[str, str]
    ) -> AcceleratedProject:
        """Return the project in *directory*.

        Raises:
            AcceleratorsUnknown: there is none.
        """
        place = CommandPlace.of(parse(["lock", "--directory", str(directory)]), Path(), environ)
        if place.root is None or not (place.root / "pyproject.toml").is_file():
            raise AcceleratorsUnknown(f"{directory.absolute()}: no pyproject.toml here or above")
        return cls.open(place.root, read_preferences(options, place), environ)

    @classmethod
    def open(
        cls, root: Path, preferences: Preferences, environ: Mapping[str, str]
    ) -> AcceleratedProject:
        """Return the project in *root*, with the catalogue that is preferred or the default one."""
        return cls(root, setting.open_preferred(preferences, fetch_catalog), preferences, environ)

    def compare(self, wanted: Sequence[str], *, checked: bool) -> int:
        """Print how pyproject.toml would change; return the exit code.

        Args:
            wanted: accelerators.
            checked: ask uv as well whether the lock is up to date; a change is an error.
        """
        changed = [(file, text) for file, text in self._planned(wanted)[0] if text != file.text]
        for file, text in changed:
            name = str(file.path.relative_to(self.root))
            versions = file.text.splitlines(), text.splitlines()
            for line in difflib.unified_diff(*versions, name, name, lineterm=""):
                click.echo(line)
        if not checked:
            return 0
        if changed:
            warn("pyproject.toml is not as the catalogue has it: type uv-variants accelerators")
        return self.lock("--check") or (1 if changed else 0)

    def write(self, wanted: Sequence[str]) -> int:
        """Write the groups of the accelerators *wanted* and lock them; return the exit code.

        All files are as before if uv fails. What else turns out to be locked is planned as well.
        """
        before = self._files()
        lock = self.root / "uv.lock"
        locked = lock.read_bytes()
        for _ in range(_PASSES):
            texts, plans = self._planned(wanted)
            if all(file.text == text for file, text in texts):
                break
            for file, text in texts:
                file.write(text)
            code = self.lock()
            if code:
                for file in before:
                    file.write(file.text)
                lock.write_bytes(locked)
                warn("pyproject.toml and uv.lock are as before")
                return code
            self.declared = Declared.read(self.root)
        self._tell(wanted, plans)
        return 0

    def _tell(self, wanted: Sequence[str], plans: Sequence[Plan]) -> None:
        for each in dict.fromkeys(each for plan in plans for each in plan.requirers):
            names = ", ".join(sorted({twin.name for twin in each.twins}))
            warn(f"{each.name} {each.version} requires {names}, which the groups have in its place")
        for text in (text for plan in plans for text in plan.moved):
            warn(f"{text} stands in the groups, no longer among the dependencies of the project")
        for line in (line for plan in plans for line in plan.lacking):
            warn(line)
        for line in self._differing():
            warn(line)
        if wanted:
            click.echo(f"{', '.join(wanted)} in uv.lock; here: uv-variants sync")
            with suppress(LockError):
                click.echo(f"With plain uv: {variable(wanted, self.chosen().name)} uv sync")

    def _differing(self) -> Iterator[str]:
        """Yield a line for each project that is not of the same version in all groups."""
        versions: dict[str, dict[str, str]] = {}
        for group, builds in self._builds().items():
            for item in builds:
                versions.setdefault(item.entry.name, {})[group] = item.version.public
        for name, by_group in versions.items():
            if len(set(by_group.values())) > 1:
                listed = ", ".join(f"{version} in {group}" for group, version in by_group.items())
                yield f"{name} is {listed}: require one version of it to have that in all"

    def outdated(self) -> list[str]:
        """Return the projects whose builds are in no group, though they are required."""
        texts, plans = self._planned(self.declared.accelerators)
        names: set[str] = set()
        for (file, text), plan in zip(texts, plans, strict=True):
            groups = uv_files.table_of(file.tree.get("dependency-groups")).values()
            present = {name_of(str(each)) for group in groups for each in group}
            items = (item for group in plan.groups.values() for item in group)
            if text != file.text:
                names |= {item.project for item in items if item.name not in present}
        return sorted(names)

    def lock(self, *options: str) -> int:
        """Run ``uv lock``; return the exit code.

        Raises:
            AcceleratorsUnknown: uv is too old for groups in conflict.
        """
        uv = find_uv(self._environ)
        cache = safe_files.cache_directory(self._environ, "proxy")
        release = release_of(uv, self._environ, cache / "uv-versions")
        if release < _OLDEST:
            raise AcceleratorsUnknown(
                f"uv {'.'.join(map(str, release))} locks groups in conflict wrongly: "
                f"use uv {'.'.join(map(str, _OLDEST))} or newer"
            )
        self.__dict__.pop("_lock", None)
        return run_uv([uv, "lock", *options, "--directory", str(self.root)], self._environ)

    def export(self, context: Context, commands: Commands) -> int:
        """Export the groups of all accelerators; see `export_groups`."""
        return export_groups(context, self._builds, commands)

    def table(self) -> Iterator[str]:
        """Yield the lines of a table: known machines, and the group that each takes."""
        rows: dict[str, Platform | None] = {"this machine": None}
        rows |= {each.name: machines.load_machine(each.name) for each in machines.KNOWN_MACHINES}
        width = max(map(len, rows))
        for name, platform in rows.items():
            try:
                found = self.chosen(platform)
                group, why = found.name, found.why or "; ".join(found.unfit)
            except LockError as error:
                group, why = "none", str(error)
            yield f"{name:{width}}  {group:10}  {why}".rstrip()

    def _planned(self, wanted: Sequence[str]) -> tuple[list[tuple[Pyproject, str]], list[Plan]]:
        """Return each file with its text for the accelerators *wanted*, and their plans.

        Raises:
            AcceleratorsUnknown: no project has a build for one of them.
        """
        files, told = self._files(), list[Requirer]()
        if any(name != catalogs.CPU for name in wanted):
            before = {name for file in files for name in Declared.of(file.tree).requirers}
            offline = uv_files.is_on(self._environ.get("UV_OFFLINE", ""))
            told += requirers(self._lock, self._catalog, before, self._sources, offline)
        plans = [self._plan(file, wanted, told) for file in files]
        check_known(self._catalog, wanted, plans)
        apart = [
            file.name for file, plan in zip(files, plans, strict=True) if any(plan.groups.values())
        ]
        plans = [
            plan if any(plan.groups.values()) or file is files[0] else replace(plan, groups={})
            for file, plan in zip(files, plans, strict=True)
        ]
        check_members(apart, wanted)
        plans[0] = replace(plans[0], apart=tuple(apart) if len(apart) > 1 else ())
        texts = [rewritten(file.text, plan) for file, plan in zip(files, plans, strict=True)]
        return list(zip(files, texts, strict=True)), plans

    def _plan(self, file: Pyproject, wanted: Sequence[str], told: Sequence[Requirer]) -> Plan:
        names = self._locked(file)
        twins = [each for each in told if each.name in names]
        required, in_groups = project_requirements(file.tree), group_requirements(file.tree)
        return planned(self._catalog, wanted, required, names, twins, in_groups)

    @property
    def _sources(self) -> Sources:
        invocation = parse(["lock", "--directory", str(self.root)])
        place = CommandPlace.of(invocation, Path(), self._environ)
        used = used_indexes(invocation, Scope.PROJECT, place).indexes.values()
        return sources_of((each for each in used if not each.explicit), None)


def variable(accelerators: Sequence[str] | Mapping[str, object], group: str) -> str:
    """Return the variable with which plain uv takes *group*, as a shell has it."""
    others = " ".join(name for name in accelerators if name != group)
    return f'UV_NO_GROUP="{others}"'

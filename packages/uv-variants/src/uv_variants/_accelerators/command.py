"""`uv-variants accelerators`: writes the group of each accelerator, and has uv lock them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants import machines, safe_files
from pep_variants.machines import Detector
from variants_catalog import catalogs, setting
from variants_index import uv_files

from .._catalog_command import fetch_catalog
from .._command_line import parse
from .._context import read_preferences
from .._errors import AcceleratorsUnknown, warn
from .._named_projects import CommandPlace, name_of, normalized
from .._uv_process import run_uv
from .._uv_program import find_uv
from .._uv_version import release_of
from .groups import Pick, group_builds, pick
from .plan import Plan, planned
from .tables import Declared, project_requirements, rewritten
from .twins import Requirer, requirers

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from pep_variants.preferences import Preferences
    from variants_catalog.catalogs import Catalog

    from .._own_options import Options

_OLDEST = (0, 10, 12)
"""The first release of uv that was seen to lock groups in conflict right."""
_PASSES = 4
"""Locks until no other project with builds is among what is locked."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", metavar="[ACCELERATOR|MACHINE]...", nargs=-1)
@click.option("--add", "added", metavar="NAME", multiple=True, help="Another one.")
@click.option("--remove", "removed", metavar="NAME", multiple=True, help="One less.")
@click.option("--check", is_flag=True, help="Write nothing; 1 if tables or lock are out of date.")
@click.option("--explain", is_flag=True, help="Print which machine takes which group.")
@click.option("--dry-run", is_flag=True, help="Print what would change in pyproject.toml.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="The project there.",
)
@click.pass_context
def accelerators(
    context: click.Context,
    *,
    names: Sequence[str],
    added: Sequence[str],
    removed: Sequence[str],
    check: bool,
    explain: bool,
    dry_run: bool,
    directory: Path,
) -> None:
    """Lock builds for several accelerators in one uv.lock, which each machine takes its own of.

    ACCELERATOR is cpu, or the name of a build: cuda12.6, rocm7.2. MACHINE is a name of 'variants
    platforms', a description, or 'native' for this one. Each gets a dependency group in
    pyproject.toml; 'uv-variants sync' takes the one that fits.
    """
    project = AcceleratedProject.of(directory, *context.obj)
    changes = bool(names or added or removed)
    writes = changes or bool(project.declared.accelerators)
    if writes and not (check or dry_run or explain) and (code := project.lock()):
        context.exit(code)  # the lock tells what is required of others
    wanted = list(dict.fromkeys(map(project.named, names or project.declared.accelerators)))
    wanted += [name for name in map(project.named, added) if name not in wanted]
    wanted = [name for name in wanted if normalized(name) not in set(map(normalized, removed))]
    if not wanted and not changes:
        wanted = list(dict.fromkeys((catalogs.CPU, project.named("native"))))
        warn(f"nothing is written; type: uv-variants accelerators {' '.join(wanted)}")
        dry_run = True
    if explain:
        for line in project.table():
            click.echo(line)
        return
    if check or dry_run:
        context.exit(project.compare(wanted, checked=check))
    context.exit(project.write(wanted))


class AcceleratedProject:
    """A project of which uv locks a group for each accelerator.

    Attributes:
        root: its directory.
        declared: what its pyproject.toml says.
    """

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        preferences: Preferences,
        environ: Mapping[str, str],
    ) -> None:
        self.root = root
        self.declared = Declared.read(root)
        self._catalog, self._preferences, self._environ = catalog, preferences, environ
        self._path = root / "pyproject.toml"

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

    def named(self, text: str) -> str:
        """Return the accelerator that *text* names, that of a machine for one."""
        if catalogs.is_accelerator(text):
            return text
        machine = None if text == "native" else machines.load_machine(text)
        detector = Detector.of(self._preferences, platform=machine)
        required = {normalized(item.name): item for item in self._required}
        for name in (*required, *self._locked):
            entry = self._catalog.project(name)
            wanted = required[name].specifier if name in required else None
            if entry is not None and catalogs.build_for(entry, "cpu") is not None:
                return catalogs.accelerator_of(entry, detector.platform, self._preferences, wanted)
        return catalogs.CPU

    def plan(self, wanted: Sequence[str]) -> Plan:
        """Return the groups of the accelerators *wanted*."""
        found: list[Requirer] = []
        if any(name != catalogs.CPU for name in wanted):
            lock = uv_files.read_toml(self.root / "uv.lock") or {}
            found += requirers(lock, self._catalog, self.declared.requirers, self._environ)
        return planned(self._catalog, wanted, self._required, self._locked, found)

    def compare(self, wanted: Sequence[str], *, checked: bool) -> int:
        """Print how pyproject.toml would change; return the exit code.

        Args:
            wanted: accelerators.
            checked: ask uv as well whether the lock is up to date; a change is an error.
        """
        before = self._text()
        after = rewritten(before, self.plan(wanted))
        name = self._path.name
        versions = before.splitlines(), after.splitlines()
        for line in difflib.unified_diff(*versions, name, name, lineterm=""):
            click.echo(line)
        if not checked:
            return 0
        if before != after:
            warn(f"{name} is not as the catalogue has it: type uv-variants accelerators")
        return self.lock("--check") or (1 if before != after else 0)

    def write(self, wanted: Sequence[str]) -> int:
        """Write the groups of the accelerators *wanted* and lock them; return the exit code.

        Both files are as before if uv fails. What else turns out to be locked is planned as well.
        """
        before = self._text()
        lock = self.root / "uv.lock"
        locked = lock.read_bytes() if lock.is_file() else None
        plan = self.plan(wanted)
        for _ in range(_PASSES):
            self._write(rewritten(self._text(), plan))
            code = self.lock()
            if code:
                self._write(before)
                if locked is not None:
                    lock.write_bytes(locked)
                else:
                    lock.unlink(missing_ok=True)
                warn("pyproject.toml and uv.lock are as before")
                return code
            self.declared = Declared.read(self.root)
            again = self.plan(wanted)
            if again == plan:
                break
            plan = again
        for each in plan.requirers:
            names = ", ".join(sorted({twin.name for twin in each.twins}))
            warn(f"{each.name} {each.version} requires {names}, which the groups have in its place")
        for text in plan.moved:
            warn(f"{text} is required by the groups now, as its builds have several names")
        self.declared = Declared.read(self.root)
        if plan.groups:
            found = self.picked(Detector.of(self._preferences))
            click.echo(f"{', '.join(plan.groups)} in uv.lock; here: uv-variants sync")
            if found.group is not None:
                click.echo(f"With plain uv: {variable(plan.groups, found.group)} uv sync")
        return 0

    def outdated(self) -> list[str]:
        """Return the projects whose builds are in no group, though they are required."""
        plan = self.plan(self.declared.accelerators)
        if rewritten(self._text(), plan) == self._text():
            return []
        members = uv_files.read_toml(self._path) or {}
        groups = uv_files.table_of(members.get("dependency-groups")).values()
        present = {name_of(str(text)) for group in groups for text in group}
        return sorted({m.project for g in plan.groups.values() for m in g if m.name not in present})

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
        return run_uv([uv, "lock", *options, "--directory", str(self.root)], self._environ)

    def picked(self, detector: Detector) -> Pick:
        """Return the group of the lock for the machine of *detector*."""
        tree = uv_files.read_toml(self.root / "uv.lock") or {}
        name = normalized(str(uv_files.project_table(self.root).get("name", "")))
        found = group_builds(tree, name, self.declared.accelerators, self._catalog)
        return pick(found, detector.platform, self._preferences)

    def table(self) -> Iterator[str]:
        """Yield the lines of a table: known machines, and the group that each takes."""
        this = ("this machine", self.picked(Detector.of(self._preferences)))
        rows = [this] + [
            (known.name, self.picked(Detector(platform=machines.load_machine(known.name))))
            for known in machines.KNOWN_MACHINES
        ]
        width = max(len(name) for name, _ in rows)
        for name, found in rows:
            group = found.group or catalogs.CPU
            yield f"{name:{width}}  {group:10}  {found.why}".rstrip()

    @property
    def _required(self) -> list[Requirement]:
        return project_requirements(uv_files.read_toml(self._path) or {})

    @property
    def _locked(self) -> list[str]:
        tree = uv_files.read_toml(self.root / "uv.lock") or {}
        return sorted({str(item.get("name")) for item in tree.get("package", ())})

    def _text(self) -> str:
        return self._path.read_bytes().decode("utf-8")

    def _write(self, text: str) -> None:
        if text != self._text():
            with safe_files.replacing(self._path) as stream:
                stream.write(text.encode("utf-8"))


def variable(accelerators: Sequence[str] | Mapping[str, object], group: str) -> str:
    """Return the variable with which plain uv takes *group*, as a shell has it."""
    others = " ".join(name for name in accelerators if name != group)
    return f'UV_NO_GROUP="{others}"'

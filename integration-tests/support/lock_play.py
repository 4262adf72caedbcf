"""Type the commands of a world, and compare each lock with one that is made from nothing.

    cd integration-tests; python -m support.lock_play SEED COUNT [UV …]

plays worlds, and prints those that go wrong as small as they still do.
"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.version import Version

from .environments import ROOT, Environments, Result
from .lock_worlds import MACHINES, NEWER, World, public_version, put, world_of
from .nvidia_drivers import driver_library, driver_variables
from .published_builds import Field, standing_in
from .uvs import UVS, Machine, downloaded_uv, uv_variants

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EVERY_UV = tuple(sorted({*UVS, "0.9.30", "0.10.12"}, key=Version))
"""Those whose locks are tried: of each series that reads files in a way of its own."""
HEAD = '[project]\nname = "{}"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
SCRIPT = '# /// script\n# requires-python = ">=3.10"\n# dependencies = {}\n# ///\nprint(1)\n'
SYSTEMS = (
    ("linux", "Linux", "x86_64", "posix"),
    ("linux", "Linux", "aarch64", "posix"),
    ("darwin", "Darwin", "arm64", "posix"),
    ("win32", "Windows", "AMD64", "nt"),
)
ENVIRONMENTS = tuple(
    {
        "sys_platform": system,
        "platform_system": name,
        "platform_machine": processor,
        "os_name": os_name,
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.1",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    for system, name, processor, os_name in SYSTEMS
    for minor in (10, 11, 12, 13, 14)
)
"""Environments in which locks are compared."""


class Wrong(AssertionError):
    """A lock is not what it should be; says how to see it again."""


@dataclass
class Play:
    """A world that is played.

    Attributes:
        world: as it is now.
        machine: whose cache lives as long as the play.
        newest: the newest uv.
        field: the indexes.
        libraries: folder of the driver's library.
        environ: of every command.
        here: name of the machine at hand.
        chosen: machine at hand and options with which the lock was chosen.
        forced: labels that were asked for, by project.
        typed: what was typed so far.
        compared: how many locks were compared.
        unsolved: how many commands fail without a lock as well.
    """

    world: World
    machine: Machine
    newest: Path
    field: Field
    libraries: Path | None
    environ: Mapping[str, str]
    here: str = ""
    chosen: tuple[str, tuple[str, ...]] = ("", ())
    forced: dict[str, str] = dataclasses.field(default_factory=dict)
    typed: list[str] = dataclasses.field(default_factory=list)
    compared: int = 0
    unsolved: int = 0

    @property
    def uv(self) -> str:
        """Its path, in which its version is."""
        return str(self.machine.uv)

    @property
    def lock(self) -> Path:
        """The lock file."""
        name = "script.py.lock" if self.world.place == "script" else "uv.lock"
        return self.machine.work / name

    @property
    def text(self) -> str:
        """Contents of the lock file, empty without."""
        return self.lock.read_text() if self.lock.exists() else ""

    @property
    def has_record(self) -> bool:
        """Whether the machine of the lock is beside it."""
        return self.lock.with_name(self.lock.name[: -len("lock")] + "variants.toml").exists()

    def on(self, machine: Machine, name: str) -> Machine:
        """Return *machine* with the devices of the machine of that name."""
        variables, _ = MACHINES[name]
        if self.libraries is not None and name in ("12.8", "13.0"):
            variables = driver_variables(self.libraries, name, "9.0")
        return machine.with_environ({**self.environ, **variables})

    def run(self, words: tuple[str, ...]) -> Result:
        """Type a command."""
        self.typed.append(f"[{self.here}] uv-variants {' '.join(words)}")
        return self.on(self.machine, self.here).run(*words)

    def play(self) -> None:
        """Type all commands.

        Raises:
            Wrong: a lock is not what it would be without the one before.
        """
        self.write()
        self.here = self.world.machine
        self.chosen = self.here, ()
        for step in self.world.steps:
            self.step(step)
            if self.unsolved and not self.text:
                return
            # What has no variants is for no machine, and options are for one command: from now on
            # the machine at hand counts.
            is_passing = {"--no-variants", "--variant-exclude"} & {*self.chosen[1]}
            is_for_none = self.chosen != (self.here, ()) and not self.has_record
            if self.text and (is_passing or is_for_none):
                self.step("--variant-platform native lock")

    def write(self) -> None:
        """Write the project."""
        work, listed = self.machine.work, list(self.world.start)
        if self.world.place == "script":
            (work / "script.py").write_text(SCRIPT.format(listed))
            return
        text = HEAD.format("project") + f"dependencies = {listed}\n"
        if self.world.place == "workspace":
            text += '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
            member = work / "packages" / "member"
            member.mkdir(parents=True)
            own = HEAD.format("member") + f"dependencies = {listed[-1:]}\n"
            (member / "pyproject.toml").write_text(own)
            text = text.replace(str(listed), str(listed[:-1]))
        (work / "pyproject.toml").write_text(text)

    def step(self, step: str) -> None:
        """Type a command of the world and look at the lock afterwards."""
        words = tuple(step.split())
        if step == NEWER:
            self.machine = replace(self.machine, uv=self.newest)
            self.typed.append(NEWER)
        elif words[0] == "at":
            self.here = words[1]
            self.typed.append(f"[{self.here}]")
        elif words[0] == "publish":
            self.world = self.world.published(words[1])
            put(self.field, self.world.project(words[1]))
            self.typed.append(f"# {words[1]} {self.world.project(words[1]).versions[-1]}")
        elif "version" not in words or (self.world.place != "script" and "0.5." not in self.uv):
            self.command(self.full(words))

    def full(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return all words of a command."""
        name = next(word for word in words if word in COMMANDS)
        if self.world.place == "script":
            if name == "run":
                return (*words[: words.index("run")], "run", "script.py")
            return (*(word for word in words if word != "--dev"), "--script", "script.py")
        more: tuple[str, ...] = ("--no-sync",) if name in ("add", "remove", "version") else ()
        if self.world.place == "workspace" and name in ("add", "remove"):
            member = (self.machine.work / "packages" / "member" / "pyproject.toml").read_text()
            has_it = any(f"{quote}{words[-1]}" in member for quote in "'\"")
            if has_it if name == "remove" else words[-1] < "k":
                more += ("--package", "member")
        return (*words, *more)

    def command(self, words: tuple[str, ...]) -> None:
        """Type a command and look at the lock afterwards."""
        before, project = self.text, self.copy("before")
        if not before:
            self.chosen = self.here, ()
        done = self.run(words)
        if done.code:
            if self.text != before:
                self.wrong("fails, and changes the lock", done, before)
            said = "for another machine than this one" in done.err and "--variant" in words
            if not said and not self.fails_from_nothing(project, words):
                self.wrong("fails, and does not without the lock", done)
            self.unsolved += 1
            return
        if before and is_kept(words):
            if self.text != before:
                self.wrong("changes the lock", done, before)
            return
        self.follow(words, locked_versions(before))
        for problem in self.without_hash():
            self.wrong(problem, done)
        if before:
            self.compare(words, done)
        if before != self.text:
            checked = self.run((*self.full(("lock",)), "--locked"))
            if checked.code:
                self.wrong("has another opinion of the lock than the command before", checked)

    def follow(self, words: tuple[str, ...], before: Mapping[str, set[str]]) -> None:
        """Note for which machine and with which labels the lock is now.

        A label stays as long as the version does.
        """
        options = dict(itertools.pairwise(words))
        ours = tuple(itertools.takewhile(lambda word: word not in COMMANDS, words))
        if "--variant" not in ours:
            if ours == ("--variant-platform", "native"):
                self.chosen = self.here, ()
            elif "--variant-platform" in ours:
                self.chosen = self.here, ours
            elif ours and ours != ("--variant-switch",):
                self.chosen = self.chosen[0], (*self.chosen[1], *ours)
            if ours or "--upgrade" in words:
                self.forced = {}
        self.forced.pop(options.get("--upgrade-package", ""), None)
        locked = locked_versions(self.text)
        kept = {name: label for name, label in self.forced.items() if name in locked}
        self.forced = {name: kept[name] for name in kept if locked[name] == before.get(name)}
        if forced := options.get("--variant"):
            self.forced |= dict([forced.split("=")])

    def compare(self, words: tuple[str, ...], done: Result) -> None:
        """Compare the lock with one from nothing.

        Raises:
            Wrong: they differ.
        """
        self.compared += 1
        here, options = self.chosen
        command = (*options, *self.named, *self.full(("lock",)))
        with self.only_locked(is_on="--upgrade" not in words):
            fresh = self.fresh(self.copy("now"))
            new = self.on(fresh, here).run(*command)
        if new.code:
            self.wrong(f"succeeds, and fails from nothing: {' '.join(command)}\n{new}", done)
        found = (fresh.work / self.lock.name).read_text()
        if differences := "\n".join(compared(self.text, found)):
            said = f"{differences}\n(- as it is, + from nothing: [{here}] {' '.join(command)})"
            self.wrong(f"leaves another lock than one from nothing:\n{said}", done)
        shutil.rmtree(fresh.home.parent)

    @property
    def named(self) -> list[str]:
        """The options for labels that were asked for."""
        return [part for it in self.forced.items() for part in ("--variant", "=".join(it))]

    def without_hash(self) -> Iterator[str]:
        """Yield the files of the lock without a hash, where their pages have hashes."""
        for package in packages(self.text):
            items = [it for it in self.world.projects if package["name"] == it.name]
            if all(item.hashed and not item.large for item in items):
                for file in files_of(package):
                    if "hash" not in file:
                        yield f"leaves no hash of {file['url']}"

    @contextmanager
    def only_locked(self, *, is_on: bool) -> Iterator[None]:
        """Have the indexes list only the versions that are in the lock, of projects that are."""
        locked = locked_versions(self.text) if is_on else {}
        owners = {page: item.name for item in self.world.projects for page in item.pages}
        for index in (self.field.index, self.field.builds):
            for names in index.files.values():
                for filename in names:
                    page, version = public_version(filename)
                    if version not in locked.get(owners.get(page, page), {version}):
                        index.unlisted.add(filename)
        try:
            yield
        finally:
            self.field.index.unlisted.clear()
            self.field.builds.unlisted.clear()

    def fails_from_nothing(self, project: Path, words: tuple[str, ...]) -> bool:
        """Return whether a command fails in *project* without a lock as well."""
        fresh = self.fresh(project)
        here, options = self.chosen
        mine = () if words[0].startswith("--") else (*options, *self.named)
        return self.on(fresh, here).run(*mine, *words).code != 0

    def copy(self, name: str) -> Path:
        """Return a copy of the project, without lock."""
        folder = self.machine.work.parent / name / "work"
        shutil.rmtree(folder.parent, ignore_errors=True)
        unwanted = shutil.ignore_patterns(".venv", "*.lock", "*.variants.toml")
        shutil.copytree(self.machine.work, folder, ignore=unwanted)
        return folder

    def fresh(self, work: Path) -> Machine:
        """Return a machine without caches that works in *work*."""
        home = work.parent / "home"
        home.mkdir()
        return replace(self.machine, home=home, work=work)

    def wrong(self, what: str, done: Result, before: str = "") -> None:
        """Raise what is wrong."""
        lines = "\n".join(self.typed)
        changes = "\n".join(compared(self.text, before)) if before else ""
        raise Wrong(f"{what}\n{changes}\n--- typed\n{lines}\n--- the last but from nothing\n{done}")


COMMANDS = ("add", "remove", "lock", "sync", "tree", "export", "run", "version")


def is_kept(words: tuple[str, ...]) -> bool:
    """Return whether a command has no reason to change a lock that is up to date."""
    changes = {"add", "remove", "version", "--upgrade", "--upgrade-package"}
    return not words[0].startswith("--") and changes.isdisjoint(words)


def packages(lock: str) -> list[dict[str, Any]]:
    """Return the packages of a lock."""
    found: list[dict[str, Any]] = tomllib.loads(lock).get("package", [])
    return found


def files_of(package: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files of a package that are of an index."""
    sources = [package["sdist"]] if "url" in package.get("sdist", {}) else []
    return [*sources, *package.get("wheels", ())]


def locked_versions(lock: str) -> dict[str, set[str]]:
    """Return the public versions of every package of an index."""
    found: dict[str, set[str]] = {}
    for package in packages(lock):
        if "registry" in package["source"]:
            version = package["version"].partition("+")[0]
            found.setdefault(package["name"], set()).add(version)
    return found


def compared(lock: str, other: str) -> Iterator[str]:
    """Yield in what two locks differ: files, and what is installed where because of what."""
    if lock == other:
        return
    ours, theirs = facts(lock), facts(other)
    for kind in ours:
        for sign, left, right in (("-", ours, theirs), ("+", theirs, ours)):
            for text in sorted(left[kind].keys() - right[kind].keys()):
                yield f"{sign} {kind}: {text}"
        for text in sorted(ours[kind].keys() & theirs[kind].keys()):
            where, there = set(ours[kind][text]), set(theirs[kind][text])
            if where != there:
                yield f"! {kind}: {text}: only here {where - there}, only there {there - where}"


def facts(lock: str) -> dict[str, dict[str, list[str]]]:
    """Return files with their hashes, and who requires what in which environments."""
    each = packages(lock)
    files: dict[str, list[str]] = {}
    for package in each:
        for file in files_of(package):
            files.setdefault(f"{file['url']} {file.get('hash')}", [])
    edges: dict[str, list[str]] = {}
    for environment in ENVIRONMENTS:
        name = "{sys_platform} {platform_machine} {python_version}".format(**environment)
        for edge in edges_in(each, environment):
            edges.setdefault(edge, []).append(name)
    return {"file": files, "requirement": edges}


def edges_in(each: list[dict[str, Any]], environment: Mapping[str, str]) -> set[str]:
    """Return who requires what in an environment, from the projects on."""
    found: set[str] = set()
    roots = [it for it in each if not it["source"].get("registry")]
    waiting = [(it, "") for it in roots]
    seen: set[tuple[str, str, str]] = set()
    while waiting:
        package, extra = waiting.pop()
        key = package["name"], package.get("version", ""), extra
        if key in seen:
            continue
        seen.add(key)
        optional = package.get("optional-dependencies", {})
        for item in optional.get(extra, ()) if extra else package.get("dependencies", ()):
            if "marker" in item and not _marker(item["marker"]).evaluate(dict(environment)):
                continue
            for other in each:
                if other["name"] != item["name"]:
                    continue
                if item.get("version", other.get("version")) != other.get("version"):
                    continue
                extras = item.get("extra", [])
                waiting += [(other, name) for name in ("", *extras)]
                target = f"{other['name']} {other.get('version', '')}{extras or ''}"
                found.add(f"{key[0]} {key[1]}{f'[{extra}]' if extra else ''} -> {target}")
    return found


@cache
def _marker(text: str) -> Marker:
    return Marker(text)


def play(world: World, uv: str, environments: Environments, folder: Path) -> Play:
    """Play a world with a uv, in a new *folder*; return what was done.

    Raises:
        Wrong: a lock is not what it should be.
    """
    if uv.startswith("0.5.") and world.place == "script":
        world = replace(world, place="project")  # it cannot export scripts
    folder.mkdir()
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    program, newest = (downloaded_uv(it, environments.wheelhouse) for it in (uv, EVERY_UV[-1]))
    machine = Machine(program, uv_variants(environments.folder), home, work)
    found = world.field()
    libraries = driver_library(environments) if world.library else None
    with standing_in(found):
        world.write_catalog(found.builds, folder / "catalog")
        environ = {
            "UV_DEFAULT_INDEX": found.index.url,
            "UV_PYTHON": sys.executable,
            "VARIANTS_CATALOG": str(folder / "catalog"),
        }
        playing = Play(world, machine, newest, found, libraries, environ)
        try:
            playing.play()
        except Wrong as error:
            raise Wrong(f"{error}\n--- the world, for uv {uv}\n{world!r}") from None
    shutil.rmtree(folder)
    return playing


def smaller(world: World) -> Iterator[World]:
    """Yield worlds with less in them."""
    for number in range(len(world.steps) - 1, 0, -1):
        yield replace(world, steps=world.steps[:number] + world.steps[number + 1 :])
    for item in world.projects:
        words = {word for step in world.steps for word in step.replace("=", " ").split()}
        rest = tuple(each for each in world.projects if each is not item)
        start = tuple(text for text in world.start if text.partition("=")[0] != item.name)
        if item.name not in words and start:
            without = (
                replace(it, requires=tuple(name for name in it.requires if name != item.name))
                for it in rest
            )
            yield replace(world, projects=tuple(without), start=start)
        elif start not in ((), world.start):
            yield replace(world, start=start)
        changes: tuple[dict[str, Any], ...] = (
            {"versions": item.versions[-1:]},
            {"requires": ()},
            {"library": ""},
            {"plain": ()},
            {"sdist": False},
            {"tags": ("py3-none-any",)},
            {"markers": False},
            {"metadata_files": True},
            {"hashed": True},
            {"large": False},
            *({"labels": tuple(it for it in item.labels if it != name)} for name in item.labels),
        )
        for change in changes:
            less = replace(item, **change)
            if less != item and (less.labels or less.plain or less.kind == "plain"):
                projects = tuple(less if each is item else each for each in world.projects)
                yield replace(world, projects=projects)
    others: tuple[dict[str, Any], ...] = (
        {"place": "project"},
        {"ranges": True},
        {"library": False},
    )
    for change in others:
        if replace(world, **change) != world:
            yield replace(world, **change)


def problem(world: World, uv: str, environments: Environments, folder: Path) -> str:
    """Return what goes wrong in a world, empty for nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        play(world, uv, environments, folder)
    except Wrong as error:
        return str(error)
    return ""


def reduced(world: World, uv: str, environments: Environments, folder: Path) -> tuple[World, str]:
    """Return the smallest world found with a problem that begins with the same words."""
    said = problem(world, uv, environments, folder)
    begins = said[:20]
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for less in smaller(world):
            found = problem(less, uv, environments, folder)
            if found.startswith(begins):
                world, said, is_smaller = less, found, True
                break
    return world, said


def main(seed: int, count: int, *uvs: str) -> None:
    """Play *count* worlds from *seed* on, each with one of *uvs* by turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environments = Environments(folder / "environments", ROOT / ".pytest_cache/d/wheelhouse")
        environments.folder.mkdir()
        environments.wheelhouse.mkdir(parents=True, exist_ok=True)
        for number in range(seed, seed + count):
            uv = (uvs or EVERY_UV)[number % len(uvs or EVERY_UV)]
            world = world_of(number)
            said = problem(world, uv, environments, folder / "world")
            if said and count == 1:
                _, said = reduced(world, uv, environments, folder / "world")
            print(f"=== seed {number}, uv {uv}: {said or 'right'}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])

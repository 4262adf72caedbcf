"""What runners have in common: the base classes, and the options of several programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from hostile.clients import found

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import Finished, Program


class Runner:
    """A client.

    Attributes:
        name: short name, as in ``differences.json`` and ``clients`` of a case.
        title: what it is, with its version.
        is_ours: it is of this project: what it says is compared as well.
        plays: what it can do in cases with steps, see ``README.md``.
    """

    name: str
    title: str
    is_ours = True
    plays: frozenset[str] = frozenset()

    def refuses(self, case: Case) -> str:
        """Return why *case* cannot be given to this client, empty if it can."""
        raise NotImplementedError

    def given(self, case: Case) -> Case:
        """Return *case* as this client is given it."""
        return case

    def play(self, case: Case, place: Place) -> Outcome:
        """Let the client do what *case* asks for, at *place*."""
        raise NotImplementedError

    def environment(self, place: Place) -> AbstractContextManager[Path]:
        """Make an environment for the steps of a case; yield the folder that it installs to."""
        raise NotImplementedError

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Do what a *step* asks for in the environment of *folder*."""
        raise NotImplementedError

    def close(self) -> None:
        """End what is still running."""


class Installer(Runner):
    """Base of runners that start one program, by default one in Python.

    Attributes:
        entry: the function that is the program, ``MODULE:FUNCTION``.
        command: what the program is called by.
        remembered: functions that return the same in each run, and take long.
    """

    entry: str
    command: str
    remembered: Sequence[str] = ()

    def __init__(self, python: str) -> None:
        self._program = Program(python, self.entry, *self.remembered)

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index."""
        return not_for_installers(case)

    def start(self, arguments: Sequence[str], place: Place, **variables: str) -> Finished:
        """Run the program once; *variables* of the environment besides those of *place*."""
        variables = {**place.variables, **variables}
        return self._program.run([self.command, *arguments], variables, place.work)

    def run(self, place: Place, *commands: Sequence[str]) -> Outcome:
        """Run commands until one fails; return what is installed after the last."""
        output = ""
        for arguments in commands:
            done = self.start(arguments, place)
            output += done.output
            if done.code:
                break
        failed = done.code != 0
        # What `variants resolve` had downloaded when it failed is not installed.
        left = {} if failed and self.command == "variants" else found(place.target)
        return Outcome(failed, installed=left, output=output)


def not_for_installers(case: Case, *, locks: bool = False) -> str:
    """Return why *case* is not for an installer over an index, or one that has *locks* as well."""
    if not case.is_installable:
        return "about a library"
    return "needs a lock file" if case.form == "lock" and not locks else ""


def not_for_others(case: Case) -> str:
    """Return why *case* is not for a client of another project."""
    if "options" in case.tree or "settings" in case.tree:
        return "options of this project"
    if case.tree.get("machine") == "detected":
        return "detects the machine in a way of its own"
    return ""


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return *option* with each of *values*."""
    return [part for value in values for part in (option, value)]


def variant_options(case: Case, place: Place) -> list[str]:
    """Return this project's options as *case* wants them, and the platform file."""
    arguments = [] if place.platform is None else ["--variant-platform", str(place.platform)]
    for name, values in case.tree.get("options", {}).items():
        arguments += [f"--{name}"] if values is True else each(f"--{name}", values)
    return arguments


def index_options(place: Place, *, last_is_main: bool = False) -> list[str]:
    """Return the options that name the indexes of a case.

    With *last_is_main*, ``--index-url`` is the index of least rank, as in uv and our resolver.
    """
    indexes = list(place.served.indexes)
    main = indexes.pop(-1 if last_is_main else 0)
    options = ["--index-url", main, *each("--extra-index-url", indexes)]
    return [*options, *each("--find-links", place.served.find_links)]


def _linux(arch: str, oldest: int, *legacy: str) -> tuple[str, ...]:
    """Return the platform tags of Linux with glibc 2.28; pip implies no older ones."""
    perennial = (f"manylinux_2_{minor}_{arch}" for minor in range(28, oldest - 1, -1))
    return (*perennial, *(f"{name}_{arch}" for name in (*legacy, "linux")))


PLATFORMS: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("linux", "x86_64"): (
        "x86_64-manylinux_2_28",
        _linux("x86_64", 5, "manylinux2014", "manylinux2010", "manylinux1"),
    ),
    ("linux", "aarch64"): ("aarch64-manylinux_2_28", _linux("aarch64", 17, "manylinux2014")),
    ("macos", "arm64"): ("aarch64-apple-darwin", ("macosx_14_0_arm64", "macosx_11_0_arm64")),
    ("macos", "x86_64"): ("x86_64-apple-darwin", ("macosx_14_0_x86_64", "macosx_11_0_x86_64")),
    ("windows", "x86_64"): ("x86_64-pc-windows-msvc", ("win_amd64",)),
}
"""uv's name and the platform tags, best first, by system and processor of a target."""


def target_options(case: Case, platform: str, *more: str) -> list[str]:
    """Return *more* and the options for the target of *case*, if it has one; pip's spelling.

    *platform* is the name of the option for a platform tag.
    """
    target = case.tree.get("target")
    if target is None:
        return []
    _, tags = PLATFORMS[target["os"], target["arch"]]
    return [*more, "--python-version", target["python"], *each(platform, tags)]

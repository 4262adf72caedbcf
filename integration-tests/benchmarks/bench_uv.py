"""`uv-variants` beside plain uv, without variants around: what uv-variants costs by itself.

Both run in turn, in one run, against the same index in a thread of this process, each with a home
and caches of its own. CPU time is that of the command and of what it starts and waits for; the
daemon that stays for later commands is on the wall clock only.
"""

from __future__ import annotations

import itertools
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from support.environments import uv_command
from support.index import JSON, Answer, Index, served
from support.uvs import Machine, project, uv_variants
from support.wheels import Wheel

from .report import Row, in_turn

PACKAGES = 127
VERSIONS = 20
INSTALLED = 30
ROUNDS = 15


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        folder = Path(name)
        for api in ("json", "html"):
            index = _Static(api=api)
            for number in range(PACKAGES):
                _add(index, number)
            with served(index):
                if api == "json":
                    yield from _small(folder / "small", index)
                yield from _lock(folder / api, index)


@dataclass
class _Static(Index):
    """An index whose pages are written once: its own work is not what is measured.

    It is at ``/0/simple/``, ``/1/simple/``, … as well: places that no cache knows yet.
    """

    pages: dict[tuple[str, bool], Answer] = field(default_factory=dict)

    def answer(self, path: str, headers: dict[str, str]) -> Answer:  # type: ignore[override]
        """Return the answer to a request."""
        key = re.sub(r"^/[0-9]+/", "/", path), JSON in headers.get("Accept", "")
        if key not in self.pages:
            self.pages[key] = super().answer(key[0], headers)
        return self.pages[key]


def _add(index: Index, number: int) -> None:
    """Add a package that requires two others, as the nodes of a tree do; its wheels are small."""
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PACKAGES]
    requires = tuple(f"package-{child}>=3" for child in children)
    for version in range(1, VERSIONS + 1):
        index.add_wheel(
            Wheel(f"package-{number}", f"{version}.0", requires=requires), metadata_file=True
        )


def _cpu() -> float:
    """Return the seconds of CPU time of processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _machine(folder: Path, index: Index) -> Machine:
    """Return a machine with a home and a place to work below *folder*."""
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    program = uv_variants(folder.parent)
    uv = Path(uv_command()[0])
    environ = {"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable}
    return Machine(uv, program, home, work, environ)


def _calls(
    machine: Machine, *arguments: str, environ: Mapping[str, str] | None = None
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return calls of uv-variants and of uv, with caches of their own.

    *environ* is read at each call: more variables.
    """

    def call(kind: str) -> Callable[[], object]:
        cache = {"UV_CACHE_DIR": str(machine.home / f"cache-{kind}")}

        def now() -> None:
            own = machine.with_environ({**cache, **(environ or {})})
            done = own.run(*arguments) if kind == "ours" else own.plain(*arguments)
            if done.code:
                raise RuntimeError(str(done))

        return now

    return call("ours"), call("theirs")


def _small(folder: Path, index: Index) -> Iterator[Row]:
    """Measure commands that have nothing to do."""
    machine = _machine(folder, index)
    names = [f"package-{number}" for number in range(PACKAGES - INSTALLED, PACKAGES)]
    project(machine.work, names)
    machine.create_environment(sys.executable)
    ours, theirs = _calls(machine, "sync")
    theirs()
    ours()
    for arguments, goal, limit in (
        (("pip", "list"), "at most 15 ms more CPU", 0.015),
        (("sync", "--frozen"), "at most 25 ms more CPU", 0.025),
    ):
        calls = _calls(machine, *arguments)
        mine, its = in_turn(*calls, rounds=ROUNDS, warmups=2, clock=_cpu)
        what = f"{' '.join(arguments)}, nothing to do"
        met = mine - its <= limit
        yield Row(f"{what}, CPU", mine * 1e3, its * 1e3, "ms", "uv", goal, met)
        mine, its = in_turn(*calls, rounds=ROUNDS, warmups=0)
        yield Row(f"{what}, wall", mine * 1e3, its * 1e3, "ms", "uv")
    calls = _calls(machine, "pip", "install", "--dry-run", "--upgrade", "package-0")
    mine, its = in_turn(*calls, rounds=ROUNDS, warmups=2)
    what = "pip install --dry-run, warm"
    yield Row(f"{what}, wall", mine * 1e3, its * 1e3, "ms", "uv", "at most 1.5x", mine <= its * 1.5)
    mine, its = in_turn(*calls, rounds=ROUNDS, warmups=0, clock=_cpu)
    yield Row(f"{what}, CPU", mine * 1e3, its * 1e3, "ms", "uv")
    machine.run("stop")


def _lock(folder: Path, index: Index) -> Iterator[Row]:
    """Measure locks of all packages from pages that were never read."""
    machine = _machine(folder, index)
    project(machine.work, ["package-0"])
    environ: dict[str, str] = {}
    numbers = itertools.count()

    def cold(*, stop: bool = False) -> None:
        """Let all be as at first: no lock, nothing in caches, an index at another place."""
        (machine.work / "uv.lock").unlink(missing_ok=True)
        for kind in ("ours", "theirs"):
            shutil.rmtree(machine.home / f"cache-{kind}", ignore_errors=True)
        url = index.url.replace("/simple/", f"/{next(numbers)}/simple/")
        environ["UV_DEFAULT_INDEX"] = url
        if stop:
            machine.run("stop")

    calls = _calls(machine, "lock", environ=environ)
    what = f"lock of {PACKAGES} packages, {index.api} pages, cold"
    mine, its = in_turn(*calls, rounds=ROUNDS, warmups=2, prepare=cold)
    yield Row(
        f"{what}, wall", mine * 1e3, its * 1e3, "ms", "uv", "at most 1.15x", mine <= its * 1.15
    )
    mine, its = in_turn(*calls, rounds=ROUNDS, warmups=0, clock=_cpu, prepare=cold)
    yield Row(f"{what}, CPU", mine * 1e3, its * 1e3, "ms", "uv")
    mine, its = in_turn(*calls, rounds=5, warmups=0, prepare=partial(cold, stop=True))
    yield Row(f"{what}, no daemon before, wall", mine * 1e3, its * 1e3, "ms", "uv")
    machine.run("stop")

"""`uv-variants` beside plain uv, without variants around: what uv-variants costs by itself.

Both run in turn, in one run, against the same index in a thread of this process, each with a home
and caches of its own. CPU time is that of the command and of what it starts and waits for.
"""

from __future__ import annotations

import itertools
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
ROUND_TRIP = 0.03
"""Seconds; a package index across a continent."""


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        folder = Path(name)
        index = _Static()
        for number in range(PACKAGES):
            _add(index, number)
        with served(index):
            yield from _small(folder / "small", index)
            index.delay = ROUND_TRIP
            yield from _lock(folder / "far", index)


@dataclass
class _Static(Index):
    """An index whose pages are written once: its own work is not what is measured.

    It is at ``/0/simple/``, ``/1/simple/``, … as well: places that no cache knows yet.
    """

    pages: dict[tuple[str, bool], Answer] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before each answer, as of an index that is far away."""

    def answer(self, path: str, headers: dict[str, str]) -> Answer:  # type: ignore[override]
        """Return the answer to a request."""
        time.sleep(self.delay)
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
    for what, arguments, most in (
        ("pip list, nothing to do", ("pip", "list"), 60),
        ("sync --frozen, nothing to do", ("sync", "--frozen"), 60),
        ("lock, nothing to do", ("lock",), 250),
        (
            "pip install --dry-run, warm",
            ("pip", "install", "--dry-run", "--upgrade", "package-0"),
            250,
        ),
    ):
        calls = _calls(machine, *arguments)
        mine, its = in_turn(*calls, rounds=ROUNDS, warmups=2)
        yield _more(f"{what}, wall", mine, its, most)
        mine, its = in_turn(*calls, rounds=ROUNDS, warmups=0, clock=_cpu)
        yield Row(f"{what}, CPU", mine * 1e3, its * 1e3, "ms", "uv")


def _more(what: str, mine: float, its: float, most: int) -> Row:
    """Return a row whose goal is at most *most* milliseconds more than uv takes."""
    goal, met = f"at most {most:,} ms more", (mine - its) * 1e3 <= most
    return Row(what, mine * 1e3, its * 1e3, "ms", "uv", goal, met)


def _lock(folder: Path, index: Index) -> Iterator[Row]:
    """Measure locks of all packages with nothing in caches, from pages that were never read."""
    machine = _machine(folder, index)
    project(machine.work, ["package-0"])
    environ: dict[str, str] = {}
    numbers = itertools.count()

    def cold() -> None:
        (machine.work / "uv.lock").unlink(missing_ok=True)
        for kind in ("ours", "theirs"):
            shutil.rmtree(machine.home / f"cache-{kind}", ignore_errors=True)
        environ["UV_DEFAULT_INDEX"] = index.url.replace("/simple/", f"/{next(numbers)}/simple/")

    mine, its = in_turn(*_calls(machine, "lock", environ=environ), rounds=5, prepare=cold)
    what = f"lock of {PACKAGES} packages, cold, an index {ROUND_TRIP * 1e3:.0f} ms away, wall"
    yield _more(what, mine, its, 2000)

"""`uv-variants` beside plain uv, without variants around: what uv-variants costs by itself.

And what it costs to pick one of the groups that a lock has for accelerators.

Both run in turn, in one run, against the same index in a thread of this process, each with caches
of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.environments import uv_command
from support.index import JSON, Answer, Index, served
from support.projects import CUDA_12_8
from support.published_builds import published, standing_in
from support.uvs import Machine, project, uv_variants
from support.wheels import Wheel

from .report import Row, in_turn

PACKAGES = 127
VERSIONS = 20
INSTALLED = 30
ROUND_TRIP = 0.03
"""Seconds; a package index across a continent."""
SMALL = {
    ("pip", "list"): ("pip list, nothing to do", 60),
    ("sync", "--frozen"): ("sync --frozen, nothing to do", 60),
    ("lock",): ("lock, nothing to do", 250),
    ("pip", "install", "--dry-run", "--upgrade", "package-0"): ("pip install --dry-run, warm", 250),
}
"""Commands that have nothing to do, and how many milliseconds more than uv they may take."""
ACCELERATORS = ("cpu", "cuda12.6", "cuda13.0")
BESIDE = 63
"""Packages of the lock that are the same for all accelerators."""


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
            yield _lock(folder / "far", index)
        yield _accelerators(folder / "groups")


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


def _add(index: Index, number: int, packages: int = PACKAGES) -> None:
    """Add a package that requires two others, as the nodes of a tree do; its wheels are small."""
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < packages]
    requires = tuple(f"package-{child}>=3" for child in children)
    for version in range(1, VERSIONS + 1):
        wheel = Wheel(f"package-{number}", f"{version}.0", requires=requires)
        index.add_wheel(wheel, metadata_file=True)


def _machine(folder: Path, index: Index, *requirements: str) -> Machine:
    """Return a machine with a home, and a project with *requirements*, below *folder*."""
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    project(work, list(requirements))
    environ = {"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable}
    return Machine(Path(uv_command()[0]), uv_variants(folder.parent), home, work, environ)


def _calls(machine: Machine, *arguments: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return calls of uv-variants and of uv, with caches of their own."""

    def call(kind: str) -> Callable[[], None]:
        def now() -> None:
            own = machine.with_environ({"UV_CACHE_DIR": str(machine.home / f"cache-{kind}")})
            done = own.run(*arguments) if kind == "ours" else own.plain(*arguments)
            if done.code:
                raise RuntimeError(str(done))

        return now

    return call("ours"), call("theirs")


def _row(what: str, mine: float, its: float, most: int) -> Row:
    """Return a row whose goal is at most *most* milliseconds more than uv takes."""
    goal, met = f"at most {most:,} ms more", (mine - its) * 1e3 <= most
    return Row(what, mine * 1e3, its * 1e3, "ms", "uv", goal, met)


def _small(folder: Path, index: Index) -> Iterator[Row]:
    """Measure commands that have nothing to do."""
    names = [f"package-{number}" for number in range(PACKAGES - INSTALLED, PACKAGES)]
    machine = _machine(folder, index, *names)
    machine.create_environment(sys.executable)
    for prepare in _calls(machine, "sync"):
        prepare()
    for arguments, (what, most) in SMALL.items():
        yield _row(what, *in_turn(*_calls(machine, *arguments), rounds=15, warmups=2), most)


def _lock(folder: Path, index: Index) -> Row:
    """Measure locks of all packages with nothing in caches, from pages that were never read."""
    machine = _machine(folder, index, "package-0")
    environ = dict(machine.environ)
    numbers = itertools.count()

    def cold() -> None:
        (machine.work / "uv.lock").unlink(missing_ok=True)
        for cache in machine.home.glob("cache-*"):
            shutil.rmtree(cache)
        environ["UV_DEFAULT_INDEX"] = index.url.replace("/simple/", f"/{next(numbers)}/simple/")

    machine = dataclasses.replace(machine, environ=environ)
    figures = in_turn(*_calls(machine, "lock"), rounds=5, prepare=cold)
    what = f"lock of {PACKAGES} packages, cold, an index {ROUND_TRIP * 1e3:.0f} ms away"
    return _row(what, *figures, 2000)


def _accelerators(folder: Path) -> Row:
    """Measure a sync that has nothing to do, of a lock with a group for each accelerator.

    uv-variants detects the machine and picks the group; plain uv has it from `UV_NO_GROUP`.
    """
    found = published(torch=["2.9.1"], torchvision=["0.24.1"])
    for number in range(BESIDE):
        _add(found.index, number, BESIDE)
    with standing_in(found):
        machine = _machine(folder, found.index, "package-0", "torch", "torchvision")
        settings = {"VARIANTS_CATALOG_MIRROR": " ".join(found.mirrors), **CUDA_12_8}
        machine = machine.with_environ(settings)
        done = machine.run("accelerators", *ACCELERATORS)
        told = re.search('UV_NO_GROUP="(.*)"', done.text)
        if told is None:
            raise RuntimeError(str(done))
        calls = (
            _calls(machine, "sync", "--locked")[0],
            _calls(machine.with_environ({"UV_NO_GROUP": told[1]}), "sync", "--locked")[1],
        )
        for prepare in calls:
            prepare()
        number = (machine.work / "uv.lock").read_text("utf-8").count("[[package]]")
        what = "sync --locked, nothing to do, a lock of "
        what += f"{number} packages, {len(ACCELERATORS)} accelerators"
        return _row(what, *in_turn(*calls, rounds=15, warmups=2), 500)

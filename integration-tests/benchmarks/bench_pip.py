"""Start-up and installing, with the shim and without, beside each other.

CPU time of the processes that pip runs in, so that other work on the machine counts little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from support.backtracking import WANTED, backtracking_index
from support.environments import Environment, Environments, clean_environ
from support.index import Index, served
from support.wheels import X86_64, Release, Wheel, metadata

from .report import Row, in_turn

PIP = "26.3"
PACKAGES = 30
VARIANT_PROJECTS = 10
"""Of the packages."""
ROUNDS = 15
_DRY_RUN = "pip install --dry-run"
_VARIANTS = metadata(
    {"null": {}, **{f"x86_64_v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (2, 3, 4)}},
    namespaces=["x86_64"],
    providers={"x86_64": X86_64},
)


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as folder:
        environments = Environments(Path(folder, "environments"), Path(folder, "wheelhouse"))
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        shim, none = environments.patched(python, PIP), environments.plain(python, PIP)
        yield _start_up(shim, none)
        yield from _backtracking(shim, none)
        what = f"{_DRY_RUN}, {PACKAGES} plain packages"
        with served(plain_index()) as plain, served(plain_index(VARIANT_PROJECTS)) as mixed:
            yield _installing(what, (shim, plain), (none, plain), 1.05)
            what += f", {VARIANT_PROJECTS} of them with variants"
            yield _installing(what, (shim, mixed), (none, plain), 1.20)


def _installing(
    what: str,
    ours: tuple[Environment, Index],
    theirs: tuple[Environment, Index],
    goal: float,
) -> Row:
    mine, its = in_turn(_install(*ours), _install(*theirs), rounds=ROUNDS, clock=_children)
    return Row(
        what, mine * 1e3, its * 1e3, "ms", f"pip {PIP} without the shim, plain",
        f"at most {goal:.2f}x CPU", mine <= goal * its,
    )  # fmt: skip


def _backtracking(shim: Environment, none: Environment) -> Iterator[Row]:
    """Count requests: 30 versions, 9 variants of each, and dependencies that conflict."""
    for what, core_metadata, goal in (
        ("requests of backtracking over 30 versions of 9 variants", True, 1.1),
        ("the same without core metadata: wheels", False, 1.1),
    ):
        counts = []
        for environment, variants in ((shim, True), (none, False)):
            index = backtracking_index(variants=variants, core_metadata=core_metadata)
            with served(index):
                options = ("install", "--quiet", "--dry-run", "--index-url", index.url)
                done = environment.pip(*options, *WANTED)
                if done.code:
                    raise RuntimeError(done.text)
            wheels = [name for name in index.fetched if name.endswith(".whl")]
            counts.append(len(index.requests) if core_metadata else len(wheels))
        ours, theirs = counts
        yield Row(
            what, ours, theirs, "", f"pip {PIP} without the shim, plain",
            f"at most {goal:.1f}x", ours <= goal * theirs,
        )  # fmt: skip


def _start_up(shim: Environment, none: Environment) -> Row:
    def start(environment: Environment) -> Callable[[], object]:
        command, environ = [environment.python, "-c", "pass"], clean_environ()
        return lambda: subprocess.run(command, env=environ, check=True)

    ours, theirs = in_turn(
        start(shim), start(none), rounds=200, warmups=10, clock=time.perf_counter
    )
    return Row(
        "python -c pass", ours * 1e3, theirs * 1e3, "ms", "without the shim",
        "at most 0.5 ms more", ours - theirs <= 0.5e-3,
    )  # fmt: skip


def _install(environment: Environment, index: Index) -> Callable[[], object]:
    def call() -> None:
        done = environment.pip(
            "install", "--quiet", "--dry-run", "--index-url", index.url, "package-0"
        )
        if done.code:
            raise RuntimeError(done.text)

    return call


def plain_index(variants: int = 0) -> Index:
    """Return an index of packages each of which requires the next, some of them with variants."""
    index = Index()
    for number in range(PACKAGES):
        name = f"package-{number}"
        requires = (f"package-{number + 1}",) if number + 1 < PACKAGES else ()
        if number < variants:
            index.add_release(Release(name, "1.0", _VARIANTS, requires))
        else:
            index.add_wheel(Wheel(name, "1.0", requires=requires))
    return index


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime

"""Start-up and installing, with the shim and without, beside each other.

CPU time of the processes that pip runs in, so that other work on the machine counts little.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from support.backtracking import WANTED, backtracking_index
from support.environments import Environment, Environments, clean_environ
from support.index import Index, served
from support.wheels import X86_64, Release, Wheel, metadata

from .report import Row, children, in_turn

PIP = "26.3"
PACKAGES = 30
VARIANT_PROJECTS = 10
"""Of the packages."""
VARIANTS = metadata(
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
        yield _backtracking(shim, none)
        what = f"pip install --dry-run, {PACKAGES} plain packages"
        with served(index_of()) as plain, served(index_of(VARIANT_PROJECTS)) as mixed:
            yield _installing(what, _install(shim, plain), _install(none, plain), 1.05)
            what += f", {VARIANT_PROJECTS} of them with variants"
            yield _installing(what, _install(shim, mixed), _install(none, plain), 1.20)


def _installing(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], goal: float
) -> Row:
    mine, its = in_turn(ours, theirs, rounds=15, clock=children)
    return Row(
        what, mine * 1e3, its * 1e3, "ms", f"pip {PIP} without the shim, plain",
        f"at most {goal:.2f}x CPU", mine <= goal * its,
    )  # fmt: skip


def _backtracking(shim: Environment, none: Environment) -> Row:
    """Count requests: 30 versions, 9 variants of each, and dependencies that conflict."""
    counts = []
    for environment, variants in ((shim, True), (none, False)):
        with served(backtracking_index(variants=variants)) as index:
            _install(environment, index, *WANTED)()
        counts.append(len(index.requests))
    ours, theirs = counts
    return Row(
        "requests of backtracking over 30 versions of 9 variants", ours, theirs, "",
        f"pip {PIP} without the shim, plain", "at most 1.1x", ours <= 1.1 * theirs,
    )  # fmt: skip


def _start_up(shim: Environment, none: Environment) -> Row:
    def start(environment: Environment) -> Callable[[], object]:
        command, environ = [environment.python, "-c", "pass"], clean_environ()
        return lambda: subprocess.run(command, env=environ, check=True)

    ours, theirs = in_turn(start(shim), start(none), rounds=200, warmups=10)
    return Row(
        "python -c pass", ours * 1e3, theirs * 1e3, "ms", "without the shim",
        "at most 0.5 ms more", ours - theirs <= 0.5e-3,
    )  # fmt: skip


def _install(environment: Environment, index: Index, *wanted: str) -> Callable[[], object]:
    options = ("install", "--quiet", "--dry-run", "--index-url", index.url)

    def call() -> None:
        done = environment.pip(*options, *(wanted or ("package-0",)))
        if done.code:
            raise RuntimeError(done.text)

    return call


def index_of(variants: int = 0, *, metadata_file: bool = False) -> Index:
    """Return an index of packages each of which requires the next, some of them with variants."""
    index = Index()
    for number in range(PACKAGES):
        name = f"package-{number}"
        requires = (f"package-{number + 1}",) if number + 1 < PACKAGES else ()
        if number < variants:
            release = Release(name, "1.0", VARIANTS, requires)
            index.add_release(release, metadata_file=metadata_file)
        else:
            index.add_wheel(Wheel(name, "1.0", requires=requires), metadata_file=metadata_file)
    return index

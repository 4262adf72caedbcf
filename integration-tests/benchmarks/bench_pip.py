"""Start-up and installing, with the shim and without, beside each other.

CPU time of the processes that pip runs in, so that other work on the machine counts little.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from support.backtracking import WANTED, backtracking_index
from support.environments import Environment, Environments, clean_environ
from support.index import Index, served
from support.projects import CUDA_12_8
from support.published_builds import TORCH, published, standing_in
from support.wheels import X86_64, Release, Wheel, metadata

from .report import Row, children, in_turn

PIP = "26.3"
PACKAGES = 30
VARIANT_PROJECTS = 10
"""Of the packages."""
MATCHING = {
    "torch": TORCH,
    "torchvision": ("0.20.1", "0.22.1", "0.23.0", "0.24.1", "0.25.0", "0.28.0", "0.29.0"),
    "onnxruntime": ("1.20.0", "1.22.0", "1.23.2", "1.24.1", "1.31.1"),
    "cupy": ("13.6.0", "14.0.0", "14.1.0", "14.2.0"),
}
"""Projects of the catalogue, with the versions that there are of each."""
CATALOG = ("--variant-catalog", "default")
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
            with_variants = f"{what}, {VARIANT_PROJECTS} of them with variants"
            yield _installing(with_variants, _install(shim, mixed), _install(none, plain), 1.20)
            what += ", the catalogue on"
            ours = _install(shim, plain, options=CATALOG)
            yield _installing(f"{what}, nothing matching", ours, _install(none, plain), 1.06)
        found = published(**MATCHING)
        for files in index_of().files.values():
            for name, content in files.items():
                found.index.add(name.partition("-py3")[0].rpartition("-")[0], name, content)
        with standing_in(found):
            wanted = ("package-0", *MATCHING)
            theirs = _install(none, found.index, *wanted)
            options = (*CATALOG, *found.options)
            for machine, env in (("no GPU", {}), ("CUDA 12.8", CUDA_12_8)):
                ours = _install(shim, found.index, *wanted, options=options, env=env)
                yield _installing(f"{what}, 4 matching projects more, {machine}", ours, theirs, 1.3)
        yield _installing("pip list, the catalogue on", _listing(shim), _listing(none), 1.05)


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


def _install(
    environment: Environment,
    index: Index,
    *wanted: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Callable[[], object]:
    given = ("install", "--quiet", "--dry-run", "--index-url", index.url, *options)
    return _pip(environment, *given, *(wanted or ("package-0",)), env=env)


def _listing(environment: Environment) -> Callable[[], object]:
    return _pip(environment, "list", env={"VARIANTS_CATALOG": CATALOG[1]})


def _pip(
    environment: Environment, *arguments: str, env: Mapping[str, str] | None = None
) -> Callable[[], object]:
    def call() -> None:
        done = environment.pip(*arguments, env=env)
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

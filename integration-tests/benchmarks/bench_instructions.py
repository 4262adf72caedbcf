"""Instructions of what has to be light: engine, resolver, starts of Python, indexing, pip.

Counted, see `benchmarks.instructions`; `make bench-compare` fails where a line grew. Where a line
is about what is added to something, ours is the difference.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.environments import Environments
from support.index import served

from .bench_engine import GOAL, pytorch_matrix, random_file
from .bench_pip import PACKAGES, PIP, plain_index
from .bench_publish import fill
from .bench_resolver import GOALS
from .instructions import MISSING, UNIT, Counter, counter
from .report import BenchmarkError, Row

_HERE = Path(__file__).resolve().parents[1]
_ENGINE = """\
import json, sys
from pathlib import Path
from benchmarks.bench_engine import ranked
large, small = (Path(path).read_bytes() for path in sys.argv[1:])
ranked(small), json.loads(small)
"""
"""Everything is imported and was called once, with other metadata."""
_RESOLVER = """\
import sys
from benchmarks.bench_resolver import Universe, VERSIONS, WITH_VARIANTS, plain, wrapped
size = int(sys.argv[1])
few = Universe(20, VERSIONS, WITH_VARIANTS)
plain(few), wrapped(few)
without, mixed = Universe(size, VERSIONS, None), Universe(size, VERSIONS, WITH_VARIANTS)
"""
_COMMAND = "import sys; sys.argv[0] = 'variants'; from variants_cli.main import main; main()"


def rows() -> Iterator[Row]:
    """Count."""
    found = counter()
    if found is None:
        raise BenchmarkError(MISSING)
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as name:
        folder = Path(name)
        yield from _engine(found, folder)
        yield from _resolver(found, folder)
        yield from _import(found, folder)
        yield from _publish(found, folder)
        yield from _pip(found, folder)


def _engine(found: Counter, folder: Path) -> Iterator[Row]:
    small = _written(folder / "small.json", random_file(30, seed=2))
    for what, tree, goal in (
        ("read + rank 10,000 variants", random_file(10_000), GOAL),
        ("read + rank a PyTorch matrix of 59", pytorch_matrix(), 0),
    ):
        large = _written(folder / "large.json", tree)

        def counted(call: str, large: str = large) -> float:
            command = [sys.executable, "-c", f"{_ENGINE}{call}", large, small]
            return found.count(command, folder, _HERE)

        base = counted("")
        ours, theirs = counted("ranked(large)") - base, counted("json.loads(large)") - base
        yield Row(
            what, ours, theirs, UNIT, "json.loads",
            f"at most {goal}x" if goal else "", ours <= goal * theirs if goal else None,
        )  # fmt: skip


def _resolver(found: Counter, folder: Path) -> Iterator[Row]:
    size = 100

    def counted(call: str) -> float:
        return found.count([sys.executable, "-c", f"{_RESOLVER}{call}", str(size)], folder, _HERE)

    base = counted("")
    theirs = counted("plain(without)") - base
    for what, call in (
        (f"resolve {size} projects, a tenth with variants", "wrapped(mixed)"),
        (f"resolve {size} projects, none with variants", "wrapped(without)"),
    ):
        ours = counted(call) - base
        yield Row(
            what, ours, theirs, UNIT, "resolvelib, no variants", f"at most {GOALS[size]:.2f}x",
            ours <= GOALS[size] * theirs,
        )  # fmt: skip


def _import(found: Counter, folder: Path) -> Iterator[Row]:
    base, ours = (
        found.count([sys.executable, "-c", code], folder, folder)
        for code in ("pass", "import pep_variants")
    )
    yield Row("import pep_variants, more than", ours - base, base, UNIT, "python -c pass")


def _publish(found: Counter, folder: Path) -> Iterator[Row]:
    dist = folder / "dist"
    dist.mkdir()
    count = fill(dist, 1)

    def counted(code: str, *args: str) -> float:
        return found.count([sys.executable, "-c", code, *args], folder, folder)

    base = counted("pass")
    # Each is run once before: the index is there when it is counted.
    for command in (("index", "--fresh"), ("validate",)):
        run = counted(_COMMAND, *command, str(dist))
        what = f"variants {command[0]}, {count} wheels, more than"
        yield Row(what, run - base, base, UNIT, "python -c pass")


def _pip(found: Counter, folder: Path) -> Iterator[Row]:
    environments = Environments(folder / "environments", folder / "wheelhouse")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    shim, none = environments.patched(python, PIP), environments.plain(python, PIP)
    ours, theirs = (
        found.count([each.python, "-c", "pass"], folder, folder) for each in (shim, none)
    )
    yield Row(
        "python -c pass with the shim, more than", ours - theirs, theirs, UNIT, "without the shim"
    )
    with served(plain_index()) as index:
        args = ("-m", "pip", "install", "--quiet", "--dry-run", "--index-url", index.url)
        ours, theirs = (
            found.count([each.python, *args, "package-0"], folder, folder) for each in (shim, none)
        )
    yield Row(
        f"pip install --dry-run, {PACKAGES} plain packages", ours, theirs, UNIT,
        f"pip {PIP} without the shim", "at most 1.05x", ours <= 1.05 * theirs,
    )  # fmt: skip


def _written(path: Path, tree: object) -> str:
    path.write_text(json.dumps(tree), "utf-8")
    return str(path)

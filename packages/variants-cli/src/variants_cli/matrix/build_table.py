"""Reading the ``[build]`` table of a matrix file (see docs/reference/matrix.md)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.errors import shortened

from .after_table import read_after
from .backends import BACKENDS
from .checked_commands import AS_FAST, AUTO, MEASURES, REQUIRED, ROUNDS, Benchmark, Test
from .memory import read_size
from .model import Build
from .repairing import PLACEHOLDERS, SYSTEMS
from .table_checks import TableChecks

_KEYS = ("source", "backend", "repair", "test", "benchmark", "memory", "after")
_TEST = ("command", "requires", "only")
_BENCHMARK = ("command", "requires", "rounds", "measure", "tolerance", "baseline", "require")
_MOST_ROUNDS = 1000


def read_build(table: dict[str, Any], folder: Path, checks: TableChecks) -> Build:
    """Return the contents of the table.

    Args:
        table: the table; empty if the file has none.
        folder: that of the file, which paths are relative to.
        checks: of the file.

    Raises:
        MatrixError: unknown keys or wrong values.
    """
    checks.check_keys(table, "build", _KEYS)
    backend = checks.string(table, "backend", "build", "")
    if backend and backend not in BACKENDS:
        raise checks.error(
            "build.backend",
            f"{shortened(backend)} is not among those that write variant metadata "
            f"({', '.join(sorted(BACKENDS))}): leave it out to have wheels wrapped",
        )
    return Build(
        source=folder / checks.string(table, "source", "build", "."),
        backend=backend,
        repair=_repair(table, checks),
        after=read_after(table, folder, checks),
        tests=_tests(table.get("test", []), checks),
        benchmark=_benchmark(table.get("benchmark"), checks),
        memory=_memory(table, checks),
    )


def _tests(value: object, checks: TableChecks) -> tuple[Test, ...]:
    """Read ``build.test``: a command, a table, or a list of tables."""
    path = "build.test"
    tests = value if isinstance(value, list) else [value]
    found = []
    for test in tests:
        table = {"command": test} if isinstance(test, str) else test
        if not isinstance(table, dict):
            raise checks.error(path, f"expected a command or tables, found {shortened(test)}")
        checks.check_keys(table, path, _TEST)
        found.append(
            Test(
                _words(table, path, checks),
                _requirements(table, path, checks),
                checks.strings(table.get("only", []), f"{path}.only", "a list"),
            )
        )
    return tuple(found)


def _benchmark(value: object, checks: TableChecks) -> Benchmark | None:
    path = "build.benchmark"
    if value is None:
        return None
    table = {"command": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise checks.error(path, f"expected a command or a table, found {shortened(value)}")
    checks.check_keys(table, path, _BENCHMARK)
    measure = checks.string(table, "measure", path, AUTO)
    if measure not in MEASURES:
        raise checks.error(
            f"{path}.measure",
            f"{shortened(measure)} is not a measure; there are {', '.join(MEASURES)}",
        )
    require = checks.string(table, "require", path, AS_FAST)
    if require not in REQUIRED:
        raise checks.error(
            f"{path}.require", f"expected one of {', '.join(REQUIRED)}, found {shortened(require)}"
        )
    rounds = table.get("rounds", ROUNDS)
    if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= _MOST_ROUNDS:
        raise checks.error(
            f"{path}.rounds",
            f"expected a whole number from 1 to {_MOST_ROUNDS}, found {shortened(rounds)}",
        )
    tolerance = table.get("tolerance", Benchmark.tolerance)
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not tolerance >= 0:
        raise checks.error(
            f"{path}.tolerance", f"expected a share such as 0.02, found {shortened(tolerance)}"
        )
    return Benchmark(
        _words(table, path, checks),
        _requirements(table, path, checks),
        rounds,
        measure,
        float(tolerance),
        checks.string(table, "baseline", path, Benchmark.baseline),
        require,
    )


def _words(table: dict[str, Any], path: str, checks: TableChecks) -> tuple[str, ...]:
    words = _split(checks.string(table, "command", path, ""), f"{path}.command", checks)
    if not words:
        raise checks.error(f"{path}.command", "there is none: give the command to run")
    return words


def _requirements(table: dict[str, Any], path: str, checks: TableChecks) -> tuple[str, ...]:
    path = f"{path}.requires"
    found = checks.strings(table.get("requires", []), path, "a list")
    for text in found:
        try:
            Requirement(text)
        except InvalidRequirement:
            raise checks.error(path, f"{shortened(text)} is not a valid requirement") from None
    return found


def _memory(table: dict[str, Any], checks: TableChecks) -> int:
    text = checks.string(table, "memory", "build", "")
    try:
        return read_size(text) if text else 0
    except ValueError:
        raise checks.error(
            "build.memory", f"{shortened(text)} is not a size such as '16GB' or '512MiB'"
        ) from None


def _repair(build: dict[str, Any], checks: TableChecks) -> dict[str, tuple[str, ...]]:
    path, repair = "build.repair", build.get("repair", {})
    if isinstance(repair, str):
        return dict.fromkeys(SYSTEMS, _command(repair, path, checks)) if repair.strip() else {}
    if not isinstance(repair, dict):
        raise checks.error(
            path,
            f"expected a command, or a table of commands by system, found {shortened(repair)}",
        )
    checks.check_keys(repair, path, SYSTEMS)
    return {
        system: _command(checks.string(repair, system, path, ""), f"{path}.{system}", checks)
        for system in repair
    }


def _command(text: str, path: str, checks: TableChecks) -> tuple[str, ...]:
    words = _split(text, path, checks)
    for name in PLACEHOLDERS:
        if not any(name in word for word in words):
            raise checks.error(
                path, f"{shortened(text)} has no {name}: say where the command gets it"
            )
    return words


def _split(text: str, path: str, checks: TableChecks) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise checks.error(path, f"{shortened(text)} is not a valid command: {error}") from None

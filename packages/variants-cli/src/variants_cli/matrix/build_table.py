"""Reading the ``[build]`` table of a matrix file (see MATRIX.md)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from pep_variants.errors import shortened

from .after_table import read_after
from .backends import BACKENDS
from .model import Build
from .repairing import PLACEHOLDERS, SYSTEMS
from .table_checks import TableChecks

_KEYS = ("source", "backend", "repair", "after")


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
    )


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
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise checks.error(path, f"{shortened(text)} is not a valid command: {error}") from None
    for name in PLACEHOLDERS:
        if not any(name in word for word in words):
            raise checks.error(
                path, f"{shortened(text)} has no {name}: say where the command gets it"
            )
    return words

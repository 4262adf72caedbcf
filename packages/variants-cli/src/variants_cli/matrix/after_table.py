"""Reading ``build.after`` of a matrix file: the projects that its variants are built against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pep_variants.errors import shortened

from .model import After
from .table_checks import TableChecks

_KEYS = ("matrix", "axes", "abi")
ABI = {"none": 0, "major": 1, "minor": 2, "patch": 3}
"""Components of a release that an ``abi_dependency`` names."""


def read_after(build: dict[str, Any], folder: Path, checks: TableChecks) -> tuple[After, ...]:
    """Return the entries of ``after`` in the table ``[build]``.

    Args:
        build: the table ``[build]``.
        folder: that of the file, which paths are relative to.
        checks: of the file.

    Raises:
        MatrixError: unknown keys or wrong values.
    """
    path, after = "build.after", build.get("after", [])
    if isinstance(after, dict):
        return tuple(_entry(name, after, folder, checks) for name in after)
    names = checks.strings(after, path, "a table of projects, or a list")
    projects = [checks.project(name or " ", path) for name in names]
    return tuple(map(After, dict.fromkeys(projects)))


def _entry(name: str, after: dict[str, Any], folder: Path, checks: TableChecks) -> After:
    path = "build.after"
    table = checks.table(after, name, path)
    project = checks.project(name or " ", path)
    path = f"{path}.{name}"
    checks.check_keys(table, path, _KEYS)
    matrix = checks.string(table, "matrix", path, "")
    abi = checks.string(table, "abi", path, "minor")
    if abi not in ABI:
        raise checks.error(f"{path}.abi", f"{shortened(abi)} is none of {', '.join(ABI)}")
    axes = None
    if "axes" in table:
        axes = checks.strings(table["axes"], f"{path}.axes", "a list")
    return After(project, folder / matrix if matrix else None, axes, ABI[abi])

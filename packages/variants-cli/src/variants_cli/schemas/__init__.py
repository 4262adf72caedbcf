"""JSON schemas (draft 2020-12) of what commands print with ``--json``.

`COMMAND.schema.json` is that of ``variants COMMAND``; the name of a subcommand follows a dash, as
in `catalog-list.schema.json`. That of ``variants doctor`` is in `variants_index.doctor`, as
``uv-variants doctor`` prints the same. Keys are only ever added, each to its schema as well, as no
object has additional properties.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from variants_index import doctor

__all__ = ["names", "schema"]

_DOCTOR = "doctor"


def names() -> tuple[str, ...]:
    """Return the commands that have a schema, as they are named here, ascending."""
    suffix = ".schema.json"
    files = Path(__file__).parent.glob(f"*{suffix}")
    return tuple(sorted([_DOCTOR, *(path.name.removesuffix(suffix) for path in files)]))


def schema(name: str) -> dict[str, Any]:
    """Return the schema of a command.

    Args:
        name: of the command, ``rank`` or ``catalog-list``.

    Raises:
        FileNotFoundError: there is none.
    """
    if name == _DOCTOR:
        return doctor.report_schema()
    path = Path(__file__).parent / f"{name}.schema.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found

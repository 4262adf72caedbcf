"""What `variants doctor` and `uv-variants doctor` find about a machine and its installers.

Every module answers one question with a `findings.Part`: rows for people, a tree for JSON, and the
problems in it. Nothing is changed, and nothing but pip and uv is run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .configuration import settings_of
from .environment import catalog_hints, environment_problems
from .examination import common_parts
from .findings import Findings, Part, Problem
from .installers import installers_part, uv_part
from .states import UNKNOWN, State, state_of, state_problem
from .text import lines

__all__ = [
    "UNKNOWN", "Findings", "Part", "Problem", "State", "catalog_hints", "common_parts",
    "environment_problems",
    "installers_part", "lines", "report_schema", "settings_of", "state_of", "state_problem",
    "uv_part",
]  # fmt: skip


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what both commands print with ``--json``."""
    path = Path(__file__).parent / "report.schema.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found

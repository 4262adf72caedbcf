"""What `variants doctor` and `uv-variants doctor` find about a machine and its installers.

Every module answers one question with a `findings.Part`: rows for people, a tree for JSON, and the
problems in it. Nothing is changed, and nothing but pip and uv is run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .configuration import configuration_part, settings_of
from .drivers import Drivers
from .environment import environment_problems
from .findings import Findings, Part, Problem
from .installers import installers_part, uv_part
from .machine import machine_part
from .states import UNKNOWN, State, missed_problem, state_of, switch_problem
from .surroundings import surroundings_part
from .text import lines

__all__ = [
    "UNKNOWN", "Drivers", "Findings", "Part", "Problem", "State", "configuration_part",
    "environment_problems", "installers_part", "lines", "machine_part", "missed_problem",
    "report_schema", "settings_of", "state_of", "surroundings_part", "switch_problem", "uv_part",
]  # fmt: skip


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what both commands print with ``--json``."""
    path = Path(__file__).parent / "report.schema.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found

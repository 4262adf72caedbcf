"""What `variants doctor` and `uv-variants doctor` find about a machine and its installers.

Every module answers one question with a `findings.Part`: rows for people and the problems in it.
Nothing is changed, and nothing but pip and uv is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._checkup import Checkup, wants
from ._commands import SYSTEM, Commands, choose_pip, pip_commands, pip_settings, uv_commands
from ._comparison import Compared, Comparison, agreed, compare_all
from ._environment import Environment, find_environment
from ._findings import Findings, Part, Problem, lines
from ._gpu_code import code_part
from ._installers import Pip, find_pips, installers_part, programs, uv_part
from ._machine import Drivers, machine_part, surroundings_part
from ._origins import MEANINGS, catalog_problems, configuration_part, settings_of
from ._packages import (
    environment_problems,
    package_problems,
    packages_part,
    shown_states,
    states_tree,
)
from ._requirements import Requirers

if TYPE_CHECKING:
    from pep_variants.preferences import Place, Sources, UserSettings

__all__ = [
    "MEANINGS", "SYSTEM", "Checkup", "Commands", "Compared", "Comparison", "Environment",
    "Findings", "Part", "Pip", "Problem", "Requirers", "agreed", "catalog_problems", "choose_pip",
    "code_part", "common_parts", "compare_all", "environment_part", "environment_problems",
    "find_environment", "find_pips", "installers_part", "lines", "package_problems",
    "packages_part", "pip_commands", "pip_settings", "programs", "report_schema", "settings_of",
    "shown_states", "states_tree", "uv_commands", "uv_part", "wants",
]  # fmt: skip


def environment_part(path: Path | None, found_by: str = "", version: str = "") -> Part:
    """Return the part that says which environment is looked at.

    Args:
        path: of the environment, None without one.
        found_by: what names it.
        version: of its Python.
    """
    rows = [("path", str(path or "none"))]
    rows += [(subject, text) for subject, text in (("from", found_by), ("Python", version)) if text]
    return Part(tuple(rows), tree=str(path or ""))


def common_parts(
    settings: UserSettings,
    problems: Iterable[Problem],
    environ: Mapping[str, str],
    sources: Sources,
    installers: Callable[[Drivers], Part],
    *,
    root: Path,
    start: Path,
    candidates: Sequence[Place] | None = None,
    pip: bool = True,
) -> dict[str, Part]:
    """Return what is found of the machine, its surroundings, the settings and the installers.

    Args:
        settings, problems: as `settings_of` returns them.
        environ: environment variables.
        sources: the indexes.
        installers: returns the part about them, given the drivers that detection found.
        root: of the file system in which drivers and device files are looked for.
        start, candidates, pip: see `configuration_part`.
    """
    machine, drivers = machine_part(environ, root)
    described = settings.preferences.platform_file is not None
    configuration = configuration_part(
        settings, problems, environ, sources, start=start, drivers=drivers, candidates=candidates,
        pip=pip,
    )  # fmt: skip
    return {
        "machine": machine._replace(is_blind=machine.is_blind and not described),
        "surroundings": surroundings_part(environ, root, drivers, is_described=described),
        "configuration": configuration,
        "installers": installers(drivers),
    }


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what both commands print with ``--json``."""
    path = Path(__file__).parent / "report.schema.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found

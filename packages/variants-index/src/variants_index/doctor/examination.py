"""The parts of an examination that are the same for every installer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .configuration import configuration_part
from .drivers import Drivers
from .findings import Part, Problem
from .machine import machine_part
from .surroundings import surroundings_part

if TYPE_CHECKING:
    from pep_variants.internal import Place, Settings, Sources


def common_parts(
    settings: Settings,
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
    return {
        "machine": machine,
        "surroundings": surroundings_part(environ, root, drivers, is_described=described),
        "configuration": configuration_part(
            settings,
            problems,
            environ,
            sources,
            start=start,
            drivers=drivers,
            candidates=candidates,
            pip=pip,
        ),
        "installers": installers(drivers),
    }

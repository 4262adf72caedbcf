"""The oldest releases that the distributions admit, one requirement a line, for `make audit`.

    python floors.py > floors.txt

Of extras as well. Requirements between the distributions are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from release import distributions

ROOT = Path(__file__).resolve().parent.parent


def admitted(root: Path) -> Iterator[tuple[str, str, Version | None]]:
    """Yield distribution, project and the oldest release of each requirement; None for any."""
    projects = [ProjectMetadata(str(root / name), PluginManager()) for name in distributions(root)]
    own = {canonicalize_name(project.core.name) for project in projects}
    for project in projects:
        extras = project.core.optional_dependencies.values()
        texts = [*project.core.dependencies, *(text for extra in extras for text in extra)]
        for requirement in map(Requirement, texts):
            name = canonicalize_name(requirement.name)
            if name not in own:
                lowest = [
                    Version(item.version)
                    for item in requirement.specifier
                    if item.operator in (">=", "==", "~=")
                ]
                yield project.core.name, name, max(lowest, default=None)


def main() -> None:
    """Print the oldest of all distributions."""
    floors: dict[str, Version] = {}
    for _, name, floor in admitted(ROOT):
        if floor is not None:
            floors[name] = min(floor, floors.get(name, floor))
    sys.stdout.writelines(f"{name}=={floors[name]}\n" for name in sorted(floors))


if __name__ == "__main__":
    main()

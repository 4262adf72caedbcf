"""Source trees: the static metadata in their ``pyproject.toml``, without a build.

That is the ``[project]`` table without its ``dynamic`` fields (pyproject.toml specification).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import reduce_requirement
from pep_variants.internal import (
    NON_VARIANT,
    PYPROJECT_BYTES,
    InvalidMarker,
    read_regular,
    shortened,
    toml,
)

from .candidate import CoreMetadata
from .errors import InvalidSourceTree

FILENAME = "pyproject.toml"

_NEEDED = ("version", "dependencies", "optional-dependencies", "requires-python")


@dataclass(frozen=True)
class SourceTree:
    """The static metadata of a source tree.

    Attributes:
        path: of the directory.
        name: normalized project name.
        version: of the project.
        core: core metadata of the distributions that it builds.
    """

    path: Path
    name: str
    version: Version
    core: CoreMetadata


def read_source_tree(path: Path) -> SourceTree:
    """Return the static metadata of the directory *path*.

    Raises:
        InvalidSourceTree: its ``pyproject.toml`` is missing or broken, or has a needed field in
            ``dynamic``; the message names the file, and says what to do.
    """
    file = path / FILENAME
    table = _project(file)
    dynamic = table.get("dynamic", [])
    if not isinstance(dynamic, list):
        raise InvalidSourceTree(f"{file}: project.dynamic: expected a list")
    left = [key for key in _NEEDED if key in dynamic]
    if left:
        raise _needs_build(path, f"its {FILENAME} leaves {', '.join(left)} to it")
    for key in ("name", "version"):
        if not isinstance(table.get(key), str):
            raise _needs_build(path, f"its {FILENAME} has no project.{key}")
    try:
        name = canonicalize_name(table["name"], validate=True)
        version = Version(table["version"])
    except ValueError as error:  # InvalidName, InvalidVersion; `int` of thousands of digits
        raise InvalidSourceTree(f"{file}: {error}") from None
    requires = _requirements(table.get("dependencies", []), f"{file}: project.dependencies")
    extras = table.get("optional-dependencies", {})
    if not isinstance(extras, dict):
        raise InvalidSourceTree(f"{file}: project.optional-dependencies: expected a table")
    for extra, items in extras.items():
        place = f"{file}: project.optional-dependencies.{extra}"
        requires += _requirements(items, place, f"extra == '{canonicalize_name(extra)}'")
    python = table.get("requires-python")
    if python is not None and not isinstance(python, str):
        raise InvalidSourceTree(f"{file}: project.requires-python: expected a string")
    core = CoreMetadata(tuple(requires), frozenset(map(canonicalize_name, extras)), python)
    return SourceTree(path, name, version, core)


def _project(file: Path) -> Mapping[str, Any]:
    try:
        tree = toml.loads(read_regular(file, PYPROJECT_BYTES).data.decode())
    except FileNotFoundError:
        raise _needs_build(file.parent, f"it has no {FILENAME}") from None
    except OSError as error:
        raise InvalidSourceTree(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSourceTree(f"{file}: not valid TOML: {error}") from None
    table = tree.get("project")
    if not isinstance(table, dict):
        raise _needs_build(file.parent, f"its {FILENAME} has no [project] table")
    return table


def _requirements(items: object, place: str, condition: str = "") -> list[str]:
    """Return requirements as a build backend writes them, each with the marker *condition*."""
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidSourceTree(f"{place}: expected a list of strings, found {shortened(items)}")
    found = []
    for item in items:
        try:
            reduced = reduce_requirement(item, NON_VARIANT)  # a source tree is no variant
            if reduced is None:
                continue
            requirement = Requirement(reduced)
        except (InvalidMarker, InvalidRequirement) as error:
            raise InvalidSourceTree(f"{place}: {' '.join(str(error).split())}") from None
        markers = [f"({requirement.marker})" if requirement.marker else "", condition]
        if any(markers):
            requirement.marker = Marker(" and ".join(filter(None, markers)))
        found.append(str(requirement))
    return found


def _needs_build(path: Path, reason: str) -> InvalidSourceTree:
    return InvalidSourceTree(
        f"{path} needs a build ({reason}), and nothing is built here: "
        f"run 'pip wheel --no-deps {path} -w DIR' and name the wheel in DIR instead"
    )

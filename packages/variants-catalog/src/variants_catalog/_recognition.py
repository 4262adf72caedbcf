"""Which of an entry's builds an installed distribution is.

A publisher's wheel that is installed unchanged has no variant metadata. Its local version tells the
build, or the dependencies that are installed with it do, or it is the project's own file, which the
entry describes by version and platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ._installed_builds import added_requirements
from .entries import CatalogProject, PublishedFile


def installed_build(
    entry: CatalogProject,
    version: Version,
    platforms: Iterable[str],
    requires: Iterable[str],
    installed: Mapping[str, Version | None],
    machine: str = "",
) -> PublishedFile | None:
    """Return the build that is installed of the project, None if nothing tells.

    Args:
        entry: of the project.
        version: that is installed.
        platforms: platform tags of the wheel, as its WHEEL file has them; ``any`` or nothing for
            one that does not tell.
        requires: its ``Requires-Dist`` values.
        installed: versions of what is installed, by normalized name; None for one that is not
            valid.
        machine: platform tag of the machine, where the wheel does not tell; may be empty.
    """
    tags = ".".join(dict.fromkeys(platforms)) or "any"
    tags = machine if tags == "any" and machine else tags
    filename = f"{entry.name}-{version}-py3-none-{tags}.whl"
    marked = {item.place for item in entry.variants if item.place and item.local}
    given = list(requires)
    for place in entry.places if version.local else ():
        for file in entry.files(place, filename) if place in marked else ():
            if _has_extras(file, given, installed):
                return file
    return next(
        (file for file in entry.own_files(filename) if _has_extras(file, given, installed)), None
    )


def _has_extras(
    file: PublishedFile, requires: list[str], installed: Mapping[str, Version | None]
) -> bool:
    """Return whether what *file* requires besides *requires* is installed."""
    if not file.requires:
        return True  # the project's own wheel is this build
    project = canonicalize_name(file.filename.partition("-")[0])
    added = map(_parsed, added_requirements(requires, project, file))
    needed = [item for item in added if item is not None]
    return bool(needed) and all(_is_met(item, installed) for item in needed)


def _parsed(text: str) -> Requirement | None:
    """Return the requirement if it applies here, None otherwise."""
    try:
        found = Requirement(text)
        applies = found.marker is None or found.marker.evaluate()
    except (InvalidRequirement, LookupError, RecursionError):  # what packaging raises
        return None
    return found if applies else None


def _is_met(requirement: Requirement, installed: Mapping[str, Version | None]) -> bool:
    found = installed.get(canonicalize_name(requirement.name))
    return found is not None and requirement.specifier.contains(found, prereleases=True)

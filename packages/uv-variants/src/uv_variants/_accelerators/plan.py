"""What the dependency group of each accelerator has: builds of the projects of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from variants_catalog import catalogs
from variants_catalog.entries import filled

from .._errors import AcceleratorsUnknown
from .._named_projects import normalized

if TYPE_CHECKING:
    from variants_catalog.catalogs import Catalog
    from variants_catalog.entries import CatalogProject, CatalogVariant

_COMPANIONS = {"rocm": "triton-rocm", "xpu": "triton-xpu"}
"""What torch's builds require that only the publisher's index has, which uv has to be told."""


@dataclass(frozen=True)
class Member:
    """A requirement of a group.

    Attributes:
        project: normalized name of the project in the catalogue.
        requirement: as it stands in the group.
        index: URL of the index that it is from, empty for the indexes of the user.
    """

    project: str
    requirement: str
    index: str = ""

    @property
    def name(self) -> str:
        """Normalized name of what is required."""
        return normalized(Requirement(self.requirement).name)


@dataclass(frozen=True)
class Plan:
    """The groups of a project.

    Attributes:
        groups: members by accelerator.
        moved: requirements of the project itself that its groups have in its place, as another
            project has the build for some accelerator.
        names: normalized names of all that may be a member of a group.
    """

    groups: Mapping[str, Sequence[Member]]
    moved: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


def planned(
    catalog: Catalog,
    accelerators: Sequence[str],
    required: Iterable[Requirement],
    locked: Iterable[str] = (),
) -> Plan:
    """Return the groups of *accelerators*.

    Args:
        catalog: of existing builds.
        accelerators: names, see `is_accelerator`.
        required: what the project itself requires.
        locked: normalized names of all that its lock has.

    Raises:
        AcceleratorsUnknown: no project has a build for one of them.
    """
    own = {normalized(item.name): item for item in required}
    entries = [
        entry
        for name in dict.fromkeys((*own, *sorted(set(locked) - own.keys())))
        if (entry := catalog.project(name)) is not None and _has_accelerators(entry)
    ]
    entries.sort(key=lambda entry: -len(entry.coherent))  # torch before what goes with it
    groups: dict[str, list[Member]] = {}
    for accelerator in accelerators:
        members: list[Member] = []
        groups[accelerator] = members
        is_known = False
        for entry in entries:
            wanted = own.get(entry.name)
            build = catalogs.build_for(
                entry, accelerator, wanted.specifier if wanted is not None else None
            )
            is_known = is_known or build is not None
            if build is not None:
                members += _members(entry, build, wanted)
        companion = catalog.project(_COMPANIONS.get(re.sub("[0-9.]", "", accelerator), ""))
        if companion is not None and any(item.project == "torch" for item in members):
            members.append(Member(companion.name, companion.name, companion.places[0]))
        if not is_known:
            raise AcceleratorsUnknown(_unknown(accelerator, entries))
    moved = {
        item.project
        for members in groups.values()
        for item in members
        if item.project in own and item.name != item.project
    }
    for accelerator, members in groups.items():
        has = {item.project for item in members}
        members += [
            Member(entry.name, str(own[entry.name]))
            for entry in entries
            if entry.name in moved - has and catalogs.build_for(entry, accelerator) is not None
        ]
    names = {entry.name for entry in entries}.union(*(entry.targets for entry in entries))
    return Plan(
        groups,
        tuple(str(own[name]) for name in own if name in moved),
        frozenset((*names, *_COMPANIONS.values())),
    )


def _has_accelerators(entry: CatalogProject) -> bool:
    """Return whether *entry* has builds for accelerators that stand in a group by themselves."""
    return any(item.properties and catalogs.is_accelerator(item.label) for item in entry.variants)


def _members(
    entry: CatalogProject, build: CatalogVariant, wanted: Requirement | None
) -> Iterable[Member]:
    """Yield the members of a group for a *build*; none for the project's own files."""
    if build.index is not None:
        yield Member(entry.name, entry.name, build.index)
    for template in build.requires:
        item = Requirement(filled(template, {"version": "0"}))
        is_same = normalized(item.name) == entry.name
        specifier = SpecifierSet() if is_same else build.versions
        if wanted is not None and not is_same:
            specifier = wanted.specifier or specifier
            item.marker = wanted.marker
        item.specifier = specifier
        yield Member(entry.name, str(item))


def _unknown(accelerator: str, entries: Sequence[CatalogProject]) -> str:
    labels = dict.fromkeys(
        item.label
        for entry in entries
        for item in entry.variants
        if catalogs.is_accelerator(item.label)
    )
    if not labels:
        return (
            "nothing that this project requires has builds for accelerators in the catalogue: "
            "uv-variants catalog list has those that do"
        )
    return f"no project has a build for {accelerator}; there are cpu, {', '.join(labels)}"

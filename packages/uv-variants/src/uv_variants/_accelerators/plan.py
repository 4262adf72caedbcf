"""What the dependency group of each accelerator has: builds of the projects of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from variants_catalog import catalogs
from variants_catalog.entries import filled

from .._errors import AcceleratorsUnknown
from .._named_projects import normalized

if TYPE_CHECKING:
    from variants_catalog.catalogs import Catalog
    from variants_catalog.entries import CatalogProject, CatalogVariant

    from .twins import Requirer

_COMPANIONS = {"rocm": "triton-rocm", "xpu": "triton-xpu"}
"""What torch's builds require that only the publisher's index has, which uv has to be told."""
_SYSTEMS = {
    "linux_x86_64": (
        "sys_platform == 'linux' and platform_machine == 'x86_64'",
        "(sys_platform != 'linux' or platform_machine != 'x86_64')",
    ),
    "linux_aarch64": ("platform_machine == 'aarch64'", "platform_machine != 'aarch64'"),
    "win_amd64": ("sys_platform == 'win32'", "sys_platform != 'win32'"),
    "macosx_11_0_arm64": ("sys_platform == 'darwin'", "sys_platform != 'darwin'"),
}
"""Platform tags of the systems of machines, each with a marker of it and one of all others."""
_GROUPS = 24
"""In a workspace: uv 0.13.9 locks 8 members with 3 groups in 18 s, 750 MB; 10 take over 4 GB."""
_ONLY_CPU = "macosx_11_0_arm64"
"""The system that has none of the accelerators."""


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
            project has the build for some accelerator, or a person added them there.
        names: normalized names of all that may be a member of a group.
        requirers: packages that require what groups have under other names.
        known: accelerators that some project has a build for.
        lacking: a line for each project without a build for an accelerator.
        apart: names of projects of a workspace whose groups are in conflict with each other's.
    """

    groups: Mapping[str, Sequence[Member]]
    moved: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    requirers: tuple[Requirer, ...] = ()
    known: frozenset[str] = frozenset()
    lacking: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


def planned(
    catalog: Catalog,
    accelerators: Sequence[str],
    required: Iterable[Requirement],
    locked: Iterable[str] = (),
    requirers: Iterable[Requirer] = (),
    in_groups: Iterable[Requirement] = (),
) -> Plan:
    """Return the groups of *accelerators*.

    Args:
        catalog: of existing builds.
        accelerators: names, see `is_accelerator`.
        required: what the project itself requires.
        locked: normalized names of all that its lock has.
        requirers: those of the lock that require projects with builds of other names.
        in_groups: those of *required* that groups have in place of the project.
    """
    required = list(required)
    own = _by_name(required)
    requirers = tuple(requirers)
    wanted = _by_name([*required, *(twin for each in requirers for twin in each.twins)])
    entries = [
        entry
        for name in dict.fromkeys((*wanted, *sorted(set(locked) - wanted.keys())))
        if (entry := catalog.project(name)) is not None and _has_accelerators(entry)
    ]
    entries.sort(key=lambda entry: -len(entry.coherent))  # torch before what goes with it
    builds = {name: _builds(entries, name, wanted) for name in accelerators}
    renamed = {
        project
        for found in builds.values()
        for project, by_system in found.items()
        for build in by_system.values()
        for name in _names(build)
        if project in wanted and name != project
    }
    groups: dict[str, list[Member]] = {}
    known = {catalogs.CPU} if entries else set()
    lacking: list[str] = []
    for accelerator in accelerators:
        members: list[Member] = []
        groups[accelerator] = members
        for entry in entries:
            asked = wanted.get(entry.name, [])
            found = builds[accelerator][entry.name]
            if any(_build(entry, [accelerator], asked, system) for system in found):
                known.add(accelerator)
            lacking += (
                f"group {accelerator}: {entry.name}, without a build{text}"
                for text in _lacking(found, is_cpu=accelerator == catalogs.CPU)
            )
            for member in _members(entry, found, asked, is_moved=entry.name in renamed):
                if all(member.requirement != other.requirement for other in members):
                    members.append(member)
        companion = catalog.project(_COMPANIONS.get(re.sub("[0-9.]", "", accelerator), ""))
        if companion is not None and any(item.project == "torch" for item in members):
            members.append(Member(companion.name, companion.name, companion.places[0]))
    moved = renamed.union(normalized(item.name) for item in in_groups if groups)
    names = {entry.name for entry in entries}.union(*(entry.targets for entry in entries))
    added = (item for entry in entries for item in entry.variants if item.place is not None)
    names |= {normalized(asked.name) for item in added for asked in _asked(item)}
    return Plan(
        groups,
        tuple(str(item) for name in own if name in moved & names for item in own[name]),
        frozenset((*names, *_COMPANIONS.values())),
        tuple(
            each
            for each in requirers
            if not renamed.isdisjoint(normalized(twin.name) for twin in each.twins)
        ),
        frozenset(known),
        lacking=tuple(lacking),
    )


def check_known(catalog: Catalog, accelerators: Sequence[str], plans: Sequence[Plan]) -> None:
    """Check that each of *accelerators* is one that a project of *plans* has a build for.

    Raises:
        AcceleratorsUnknown: one is not.
    """
    unknown = [name for name in accelerators if not any(name in plan.known for plan in plans)]
    if unknown:
        names = sorted(frozenset().union(*(plan.names for plan in plans)))
        entries = [entry for name in names if (entry := catalog.project(name)) is not None]
        raise AcceleratorsUnknown(_unknown(unknown[0], entries))


def check_members(members: Sequence[str], accelerators: Sequence[str]) -> None:
    """Check that uv can lock the groups of these *members* of a workspace.

    Raises:
        AcceleratorsUnknown: there are too many.
    """
    most = _GROUPS // max(len(accelerators), 1)
    if len(members) > most > 0:
        raise AcceleratorsUnknown(
            f"{len(members)} members of the workspace require builds: {', '.join(members)}; uv "
            f"needs gigabytes and minutes to lock {len(accelerators)} accelerators for more than "
            f"{most}: name fewer accelerators, or leave members out of the workspace "
            "(tool.uv.workspace.exclude), each as a project of its own"
        )


def _by_name(requirements: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for item in requirements:
        found.setdefault(normalized(item.name), []).append(item)
    return found


def _has_accelerators(entry: CatalogProject) -> bool:
    """Return whether *entry* has builds for accelerators that stand in a group by themselves."""
    return any(item.properties and catalogs.is_accelerator(item.label) for item in entry.variants)


def _builds(
    entries: Sequence[CatalogProject],
    accelerator: str,
    wanted: Mapping[str, Sequence[Requirement]],
) -> dict[str, dict[str, CatalogVariant | None]]:
    """Return the build of each project by system, the one for CPUs where there is no other.

    Systems are those on which one of the projects has a build for *accelerator*.
    """
    names = [accelerator, *_older(accelerator)]
    asked = {entry.name: wanted.get(entry.name, ()) for entry in entries}
    systems = [each for each in _SYSTEMS if accelerator == catalogs.CPU or each != _ONLY_CPU]
    used = [
        system
        for system in systems
        if any(_build(entry, names, asked[entry.name], system) for entry in entries)
    ]
    names.append(catalogs.CPU)
    return {
        entry.name: {
            system: _build(entry, names, asked[entry.name], system) for system in used or systems
        }
        for entry in entries
    }


def _build(
    entry: CatalogProject, accelerators: Iterable[str], wanted: Sequence[Requirement], system: str
) -> CatalogVariant | None:
    """Return the build for the first of *accelerators* that *entry* has one for."""
    specifier = wanted[0].specifier if len(wanted) == 1 else None
    found = (catalogs.build_for(entry, name, specifier, system) for name in accelerators)
    return next((build for build in found if build is not None), None)


def _lacking(found: Mapping[str, CatalogVariant | None], *, is_cpu: bool) -> Iterator[str]:
    """Yield what is in a group where a project has no build for it, and on which systems."""
    absent = [system for system, build in found.items() if build is None]
    others = [system for system, build in found.items() if build and not build.properties]
    for systems, taken in ((absent, "is not in it"), (others, "is the one for CPUs")):
        if systems and not (is_cpu and systems is others):
            where = f" for {', '.join(systems)}" if len(systems) < len(found) else ""
            yield f"{where}, {taken}{where and ' there'}"


def _older(accelerator: str) -> list[str]:
    """Return the older generations of CUDA, which drivers for *accelerator* run as well."""
    match = re.match(r"cuda([0-9]+)", accelerator)
    return [f"cuda{number}" for number in range(int(match[1]) - 1, 10, -1)] if match else []


def _names(build: CatalogVariant | None) -> list[str]:
    """Return the normalized names of the projects that have *build* in place of its own."""
    if build is None or build.place is not None:
        return []
    return [normalized(item.name) for item in _asked(build)]


def _asked(build: CatalogVariant) -> list[Requirement]:
    return [Requirement(filled(template, {"version": "0"})) for template in build.requires]


def _members(
    entry: CatalogProject,
    found: Mapping[str, CatalogVariant | None],
    wanted: Sequence[Requirement],
    *,
    is_moved: bool,
) -> Iterator[Member]:
    """Yield the members of a group for the builds *found*; markers say where they differ."""
    having: dict[Member, list[str]] = {}
    for system, build in found.items():
        for member in _of_build(entry, build, wanted, system, is_moved=is_moved) if build else ():
            having.setdefault(member, []).append(system)
    for member, systems in having.items():
        others = [system for system in found if system not in systems]
        if not others:
            yield member
            continue
        marker = " or ".join(_SYSTEMS[system][0] for system in systems)
        if next(iter(found)) in systems:  # on what else there is as well
            marker = " and ".join(_SYSTEMS[system][1] for system in others)
        item = Requirement(member.requirement)
        item.marker = Marker(f"({item.marker}) and ({marker})" if item.marker else marker)
        yield replace(member, requirement=_text(item))


def _of_build(
    entry: CatalogProject,
    build: CatalogVariant,
    wanted: Sequence[Requirement],
    system: str,
    *,
    is_moved: bool,
) -> Iterator[Member]:
    """Yield the members of a group for a *build*; none for files that the project requires itself.

    Most other indexes have no other builds, see `_of_index`; elsewhere its versions are those of
    the build, and where groups stand for the project those that are *wanted* as well.
    """
    stands = is_moved or build.index or build.properties
    versions = _of_index(build) if build.index else catalogs.build_versions(entry, build, system)
    asked = _asked(build)
    if build.place is not None:  # what is required besides is on that index
        others = [item for item in asked if normalized(item.name) != entry.name]
        yield from (Member(entry.name, _text(item), build.index or "") for item in others)
        asked = [item for item in asked if item not in others]
    for item in asked or ([Requirement(entry.name)] if stands else []):
        for each in (wanted if is_moved else ()) or [Requirement(entry.name)]:
            item.specifier, item.marker = each.specifier & versions, each.marker
            yield Member(entry.name, _text(item), build.index or "")


def _of_index(build: CatalogVariant) -> SpecifierSet:
    """Return the version of a build for one GPU: its index has those for other ROCms as well."""
    pins = [each.version for each in build.versions if each.operator == "=="]
    if not (build.family and build.local and pins):
        return SpecifierSet()
    return SpecifierSet(f"=={pins[0]}+{build.local[0]}")


def _text(requirement: Requirement) -> str:
    """Return *requirement* with quotes that TOML need not escape."""
    return str(requirement).replace('"', "'")


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

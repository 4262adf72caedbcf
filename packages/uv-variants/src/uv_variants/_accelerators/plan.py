"""What the dependency group of each accelerator has: builds of the projects of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    from .twins import Requirer

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
    builds = {
        (accelerator, entry.name): _build(entry, accelerator, wanted.get(entry.name, ()))
        for accelerator in accelerators
        for entry in entries
    }
    renamed = {
        entry.name
        for entry in entries
        for accelerator in accelerators
        for name in _names(builds[accelerator, entry.name])
        if entry.name in wanted and name != entry.name
    }
    groups: dict[str, list[Member]] = {}
    known = {catalogs.CPU} if entries else set()
    lacking: list[str] = []
    for accelerator in accelerators:
        members: list[Member] = []
        groups[accelerator] = members
        for entry in entries:
            asked = wanted.get(entry.name, [])
            build = builds[accelerator, entry.name]
            if build is not None:
                known.add(accelerator)
            for other in _older(accelerator) if build is None else ():
                build = build or _build(entry, other, asked)
            if build is None:
                build = _build(entry, catalogs.CPU, asked)
                taken = "is not in it" if build is None else "is the one for CPUs"
                lacking.append(f"group {accelerator}: {entry.name}, without a build, {taken}")
            if build is not None:
                members += _members(entry, build, asked, is_moved=entry.name in renamed)
        companion = catalog.project(_COMPANIONS.get(re.sub("[0-9.]", "", accelerator), ""))
        if companion is not None and any(item.project == "torch" for item in members):
            members.append(Member(companion.name, companion.name, companion.places[0]))
    moved = renamed.union(normalized(item.name) for item in in_groups if groups)
    names = {entry.name for entry in entries}.union(*(entry.targets for entry in entries))
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


def _by_name(requirements: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for item in requirements:
        found.setdefault(normalized(item.name), []).append(item)
    return found


def _has_accelerators(entry: CatalogProject) -> bool:
    """Return whether *entry* has builds for accelerators that stand in a group by themselves."""
    return any(item.properties and catalogs.is_accelerator(item.label) for item in entry.variants)


def _build(
    entry: CatalogProject, accelerator: str, wanted: Sequence[Requirement]
) -> CatalogVariant | None:
    specifier = wanted[0].specifier if len(wanted) == 1 else None
    return catalogs.build_for(entry, accelerator, specifier)


def _older(accelerator: str) -> list[str]:
    """Return the older generations of CUDA, which drivers for *accelerator* run as well."""
    match = re.match(r"cuda([0-9]+)", accelerator)
    return [f"cuda{number}" for number in range(int(match[1]) - 1, 10, -1)] if match else []


def _names(build: CatalogVariant | None) -> list[str]:
    """Return the normalized names of the projects that have *build* in place of its own."""
    return [normalized(item.name) for item in _asked(build)] if build is not None else []


def _asked(build: CatalogVariant) -> list[Requirement]:
    return [Requirement(filled(template, {"version": "0"})) for template in build.requires]


def _members(
    entry: CatalogProject, build: CatalogVariant, wanted: Sequence[Requirement], *, is_moved: bool
) -> Iterator[Member]:
    """Yield the members of a group for a *build*; none for files that the project requires itself.

    Other indexes have no other builds; elsewhere its versions are those of the build, and where
    groups stand for the project those that are *wanted* as well.
    """
    stands = is_moved or build.index or build.properties
    versions = SpecifierSet() if build.index else catalogs.build_versions(entry, build)
    for item in _asked(build) or ([Requirement(entry.name)] if stands else []):
        for each in (wanted if is_moved else ()) or [Requirement(entry.name)]:
            item.specifier, item.marker = each.specifier & versions, each.marker
            yield Member(entry.name, str(item), build.index or "")


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

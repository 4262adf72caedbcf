"""Which group of a lock a machine takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import lock_entries, machines, wheel_files
from variants_catalog import catalogs
from variants_catalog.entries import filled
from variants_index import uv_files

from .._named_projects import normalized

if TYPE_CHECKING:
    from pep_variants.lock_entries import GroupChoice
    from pep_variants.machines import Platform
    from pep_variants.metadata import Metadata
    from pep_variants.preferences import Preferences
    from variants_catalog.catalogs import Catalog
    from variants_catalog.entries import CatalogProject, CatalogVariant


@dataclass(frozen=True)
class GroupBuild:
    """A build that a group of a lock has.

    Attributes:
        entry: of its project.
        variant: which build it is.
        version: that is locked.
    """

    entry: CatalogProject
    variant: CatalogVariant
    version: Version

    @property
    def described(self) -> tuple[str, tuple[str, Metadata]]:
        """The project, and the label of the build with the metadata of that label."""
        values = self.variant.placeholders(self.version) or {}
        label = filled(self.variant.label, values)
        builds = {label: (self.variant, self.version)}
        return self.entry.name, (label, catalogs.described(self.entry, builds))


def required_names(lock: Mapping[str, Any], project: str, without: Iterable[str]) -> set[str]:
    """Return the normalized names of all that *project* requires in a lock.

    Args:
        lock: the tree of uv.lock.
        project: normalized name of one of its packages.
        without: groups of the project that do not count.
    """
    left_out = set(map(normalized, without))
    packages = _packages(lock)
    found: set[str] = set()
    waiting = [project]
    while waiting:
        for package in packages.get(waiting.pop(), ()):
            listed = [package.get("dependencies", ())]
            listed += uv_files.table_of(package.get("optional-dependencies")).values()
            groups = uv_files.table_of(package.get("dev-dependencies"))
            listed += (each for name, each in groups.items() if name not in left_out)
            names = {str(item.get("name")) for items in listed for item in items} - found
            found |= names
            waiting += names
    return found


def group_builds(
    lock: Mapping[str, Any],
    projects: Iterable[str],
    groups: Iterable[str],
    catalog: Catalog,
    machine: str,
) -> dict[str, list[GroupBuild]]:
    """Return the builds of each of *groups*, in the order of its members.

    Args:
        lock: the tree of uv.lock.
        projects: normalized names of the projects whose groups they are.
        groups: as written.
        catalog: of existing builds.
        machine: platform tag of the machine, such as ``linux_x86_64``.
    """
    packages = _packages(lock)
    own = {name: package for name in projects for package in packages.get(name, ())[:1]}
    environment = machines.target_environment([machine], sys.version_info[:3])
    found: dict[str, list[GroupBuild]] = {group: [] for group in groups}
    for group, builds in found.items():
        name_in_lock = normalized(group)
        for dependency in (
            each
            for project, package in own.items()
            for each in uv_files.table_of(package.get("dev-dependencies")).get(name_in_lock, ())
            if _holds(each, {**environment, "extra": _as_extra(project, name_in_lock)})
        ):
            name = str(dependency.get("name"))
            entry = catalog.project(name) or _entry_of_target(catalog, name)
            package = _package(packages.get(name, ()), dependency)
            version = wheel_files.read_version(str(package.get("version")))
            if entry is None or version is None:
                continue
            extras = ",".join(dependency.get("extra", ()))
            build = catalogs.locked_build(
                entry,
                Requirement(f"{name}[{extras}]" if extras else name),
                version,
                str(uv_files.table_of(package.get("source")).get("registry", "")),
                machine,
            )
            if build is not None:
                builds.append(GroupBuild(entry, build, version))
    return found


def choose(
    found: Mapping[str, Sequence[GroupBuild]],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    named: Collection[str] = (),
) -> GroupChoice:
    """Return the group of a lock that a machine takes, as clients of a pylock.toml choose it.

    Args:
        found: what each group has, by its name as written.
        platform: gives the supported values for metadata.
        preferences: of the user.
        named: groups that the user named.

    Raises:
        LockError: none fits.
    """
    names: dict[str, str] = {canonicalize_name(group): group for group in found}
    tables = (
        (
            canonicalize_name(group),
            "",
            {
                name: (label, lock_entries.build_table(metadata, label))
                for name, (label, metadata) in (build.described for build in builds)
            },
        )
        for group, builds in found.items()
    )
    own = lock_entries.write_groups(tables)
    tree = {"dependency-groups": list(names), "tool": {lock_entries.TOOL: own}}
    choice = lock_entries.choose_group(tree, "", {}, platform, preferences, named)
    assert choice is not None, "each group is for any environment"
    return replace(choice, name=names[choice.name])


def _entry_of_target(catalog: Catalog, name: str) -> CatalogProject | None:
    entries = map(catalog.project, catalog.names())
    return next((entry for entry in entries if entry and name in entry.targets), None)


def _as_extra(project: str, group: str) -> str:
    """Return the extra that a group of *project* is in the markers of a lock."""
    return f"group-{len(project)}-{project}-{group}"


def _holds(dependency: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    try:
        return Marker(str(dependency["marker"])).evaluate({**environment})
    except (KeyError, ValueError):
        return True


def _packages(lock: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    packages: dict[str, list[Mapping[str, Any]]] = {}
    for item in lock.get("package", ()):
        packages.setdefault(str(item.get("name")), []).append(item)
    return packages


def _package(
    candidates: Iterable[Mapping[str, Any]], dependency: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the package of a lock that *dependency* names; empty if that is not told."""
    wanted = [
        item
        for item in candidates
        if dependency.get("version") in (None, item.get("version"))
        and dependency.get("source") in (None, item.get("source"))
    ]
    return wanted[0] if wanted else {}

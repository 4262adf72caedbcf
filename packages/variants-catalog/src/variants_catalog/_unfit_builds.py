"""Builds under a publisher's own name that do not run on the accelerator that is here.

``onnxruntime-gpu`` and ``cupy-cuda13x`` are wheels without variants: an installer takes the newest,
whatever driver there is. What they need stands in the entry of their project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pep_variants import machines
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences

from ._accelerators import judged
from ._catalogs import Catalog, open_catalog, shipped_catalog
from .entries import CatalogProject, CatalogVariant, filled, target

if TYPE_CHECKING:
    from pep_variants.selection import Ranking


def unfit_builds(
    versions: Mapping[str, Version],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    machine: str = "",
) -> Iterator[str]:
    """Yield a line for each build that does not run on the accelerator that is here.

    Args:
        versions: of what is taken, by normalized name.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: of the user, which name a catalogue; the shipped one counts where none is on.
        machine: platform tag of the target, such as ``linux_x86_64``; may be empty.

    Raises:
        CatalogError: the catalogue cannot be read.
    """
    catalog = _catalog(preferences) if preferences.use_variants else None
    if catalog is None:
        return
    known = frozenset(catalog.names())
    for name, version in sorted(versions.items()):
        entry = _entry(name, known, catalog)
        line = "" if entry is None else _unfit(entry, name, version, platform, preferences, machine)
        if line:
            yield line


def other_build(
    name: str,
    version: Version,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    machine: str = "",
) -> str:
    """Return what to require where *version* of *name* does not run; empty if nothing is known.

    Args:
        name: normalized name of a build.
        version: of it.
        platform, preferences, machine: as of `unfit_builds`.

    Raises:
        CatalogError: the catalogue cannot be read.
    """
    catalog = _catalog(preferences)
    entry = None if catalog is None else _entry(name, frozenset(catalog.names()), catalog)
    return _instead(entry, name, version, platform, preferences, machine) if entry else ""


def _entry(name: str, known: frozenset[str], catalog: Catalog) -> CatalogProject | None:
    """Return the entry that has a build called *name*, which begins with that of its project."""
    parts = name.split("-")
    for count in range(len(parts) - 1, 0, -1):
        project = "-".join(parts[:count])
        entry = catalog.project(project) if project in known else None
        if entry is not None and name in entry.targets:
            return entry
    return None


def _catalog(preferences: Preferences) -> Catalog | None:
    """Return the catalogue of *preferences*, the shipped one if there is none."""
    name = preferences.catalog
    if name in (None, user_preferences.DEFAULT_CATALOG):
        return shipped_catalog()
    return (
        open_catalog(Path(name).expanduser())
        if name and user_preferences.is_catalog_path(name)
        else None
    )


def _unfit(
    entry: CatalogProject,
    name: str,
    version: Version,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    machine: str,
) -> str:
    """Return the line about one build; empty where it runs, and without an accelerator."""
    variants, ranking = _ranked(entry, version, platform, preferences, machine)
    taken = [
        (str(number), item)
        for number, item in enumerate(variants)
        if target(item) == name and item.admits(version)
    ]
    here = platform(Metadata(tuple(machines.ACCELERATORS))).namespaces
    devices = [
        machines.BUILTIN_NAMESPACES[namespace].vendor.device
        for namespace in machines.ACCELERATORS
        if namespace in here and here[namespace].features
    ]
    if not taken or not devices or any(number in ranking.labels for number, _ in taken):
        return ""
    why = wheel_selection.why_not(ranking, taken[0][0])[0]
    does = _instead(entry, name, version, platform, preferences, machine)
    return f"{name} {version} does not run on the {devices[0]} that is here ({why}); " + (
        f"{does} does" if does else f"no build of {entry.name} does"
    )


def _ranked(
    entry: CatalogProject,
    version: Version | None,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    machine: str,
) -> tuple[list[CatalogVariant], Ranking]:
    """Return the builds of *entry* for *machine*, and their ranking by position in the list.

    They are judged as of *version*; for None without what single versions are known to lack.
    """
    builds = (item for item in entry.variants if item.is_redirect and item.properties)
    variants = [item for item in builds if item.is_for([machine] if machine else [])]
    judged_builds = {str(number): (item, version) for number, item in enumerate(variants)}
    return variants, judged(entry, judged_builds, platform, preferences)


def _instead(
    entry: CatalogProject,
    name: str,
    version: Version,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    machine: str,
) -> str:
    """Return what to require: other versions of the name, or another name; empty for nothing."""
    variants, ranking = _ranked(entry, None, platform, preferences, machine)
    fitting = [variants[int(label)] for label in ranking.labels]
    for item in fitting:
        if target(item) == name:
            others = f"!={version}" if item.admits(version) else ""
            return f"{name}{item.versions & SpecifierSet(others)}"
    for item in fitting:
        if item.admits(version):
            return filled(item.requires[0], {"version": str(version)})
    return next((target(item) for item in fitting), "")

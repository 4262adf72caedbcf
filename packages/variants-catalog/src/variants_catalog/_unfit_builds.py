"""Builds under a publisher's own name that do not run on the accelerator that is here.

``onnxruntime-gpu`` and ``cupy-cuda13x`` are wheels without variants: an installer takes the newest,
whatever driver there is. What they need stands in the entry of their project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import machines
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences

from ._catalogs import Catalog, open_catalog, shipped_catalog
from .entries import CatalogProject, CatalogVariant, PublishedFile, filled, target

if TYPE_CHECKING:
    from packaging.version import Version


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
    builds = (item for item in entry.variants if item.requires and item.properties)
    variants = [item for item in builds if item.is_for([machine] if machine else [])]
    files = [
        PublishedFile(
            "",
            "",
            version,
            str(number),
            item.properties_of({}, version),
            faults=item.faults(version),
        )
        for number, item in enumerate(variants)
    ]
    metadata = entry.metadata(files)
    ranking = wheel_selection.rank(metadata, platform(metadata), preferences)
    fitting = [variants[int(label)] for label in ranking.labels]
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
    if not taken or not devices or any(item in fitting for _, item in taken):
        return ""
    why = wheel_selection.why_not(ranking, taken[0][0])[0]
    does = _instead(name, version, fitting)
    return f"{name} {version} does not run on the {devices[0]} that is here ({why}); " + (
        f"{does} does" if does else f"no build of {entry.name} does"
    )


def _instead(name: str, version: Version, fitting: list[CatalogVariant]) -> str:
    """Return what to require: other versions of the name, or another name; empty for nothing."""
    for item in fitting:
        if target(item) == name:
            return f"{name}{item.versions}"
    for item in fitting:
        if item.admits(version):
            return filled(item.requires[0], {"version": str(version)})
    return next((target(item) for item in fitting), "")

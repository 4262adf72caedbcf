"""Accelerators as labels of the catalogue name them: ``cpu``, ``cuda12.6``, ``rocm7.2``, ``xpu``.

A build whose code for one GPU is in other packages has its architecture too: ``rocm10.0_gfx1151``.

A label of a build is one of these in most entries, ``null`` for ``cpu``. What a project has for an
accelerator is the build of this name, else the one for the newest older CUDA or ROCm of the same
generation: libraries of a generation run together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import Ranking

from ._entry_checks import sample_versions
from .entries import CatalogProject, CatalogVariant, PublishedFile, filled
from .listings import Unavailable

CPU = "cpu"
_ACCELERATOR = re.compile(r"(cpu|xpu|tpu|cuda|rocm)([0-9]*)(?:\.([0-9]+))?(?:_(gfx[0-9a-f]+))?")


def is_accelerator(text: str) -> bool:
    """Return whether *text* is the name of an accelerator.

    >>> from variants_catalog.catalogs import is_accelerator
    >>> [is_accelerator(text) for text in ("cpu", "cuda12.6", "cuda12.6_torch2.9", "h100-zen4")]
    [True, True, False, False]
    """
    return _ACCELERATOR.fullmatch(text) is not None


def build_for(
    entry: CatalogProject,
    accelerator: str,
    wanted: SpecifierSet | None = None,
    machine: str = "",
) -> CatalogVariant | None:
    """Return the build that *entry* has for *accelerator*, None without one.

    Builds that depend on the version of another project are none of an accelerator alone.

    Args:
        entry: of the project.
        accelerator: its name, see `is_accelerator`.
        wanted: versions of the project that may be taken, any by default.
        machine: platform tag of the machine, such as ``linux_x86_64``; empty for any.

    >>> from variants_catalog.catalogs import build_for, shipped_catalog
    >>> build_for(shipped_catalog().project("cupy"), "cuda13.0").label
    'cuda13'
    >>> onnxruntime = shipped_catalog().project("onnxruntime")
    >>> build_for(onnxruntime, "cuda12.6", machine="linux_aarch64") is None
    True
    """
    wanted = SpecifierSet() if wanted is None else wanted
    pins = (Version(each.version.removesuffix(".*")) for each in wanted if each.operator == "==")
    versions = [
        version
        for version in chain(sample_versions(entry.variants), pins)
        if wanted.contains(version.public, prereleases=True)
    ]
    fitting = [
        (distance, item)
        for item in entry.variants
        if (distance := _distance(_name(item), accelerator)) is not None
        and item.is_for(filter(None, [machine]))
        and any(map(item.admits, versions))
    ]
    return min(fitting, key=lambda each: each[0])[1] if fitting else None


def build_versions(entry: CatalogProject, build: CatalogVariant, machine: str = "") -> SpecifierSet:
    """Return up to which version *entry* has a build of this label, and from which on any alike.

    Older ones for another label are no worse: drivers run what was built for older ones.

    Args:
        entry: of the project.
        build: one of its variants.
        machine: platform tag of the machine, such as ``linux_x86_64``; empty for any.

    >>> from variants_catalog.catalogs import build_for, build_versions, shipped_catalog
    >>> entry = shipped_catalog().project("onnxruntime")
    >>> str(build_versions(entry, build_for(entry, "cuda12.6")))
    '<1.27,>=1.21'
    """
    alike = [
        item
        for item in entry.variants
        if item.requires == build.requires and item.is_for(filter(None, [machine]))
    ]
    samples = sample_versions(entry.variants)
    admitted = [version for version in samples if any(item.admits(version) for item in alike)]
    labelled = [item for item in alike if item.label == build.label]
    last = max(version for version in samples if any(item.admits(version) for item in labelled))
    after = samples[samples.index(last) + 1 :][:1]
    bounds = [f"<{after[0].base_version}"] if after else []
    if admitted[0] != samples[0]:
        bounds.append(f">={admitted[0].base_version}")
    return SpecifierSet(",".join(bounds))


def accelerator_of(
    entry: CatalogProject,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
    wanted: SpecifierSet | None = None,
    machine: str = "",
) -> str:
    """Return the accelerator of which *entry* has the best build for a machine, `CPU` for none.

    It is that of the newest release with a build that fits.

    Args:
        entry: of the project.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: of the user.
        wanted: versions of the project that may be taken, any by default.
        machine: platform tag of the machine, such as ``linux_x86_64``; empty for any.
    """
    wanted = SpecifierSet() if wanted is None else wanted
    for version in reversed(sample_versions(entry.variants)):
        if wanted.contains(version.public, prereleases=True):
            builds = {
                _name(item): (item, version)
                for item in entry.variants
                if is_accelerator(_name(item))
                and item.properties
                and item.admits(version)
                and item.is_for(filter(None, [machine]))
            }
            if labels := judged(entry, builds, platform, preferences).labels:
                return labels[0]
    return CPU


def locked_build(
    entry: CatalogProject,
    requirement: Requirement,
    version: Version,
    place: str,
    machine: str = "",
) -> CatalogVariant | None:
    """Return the build of *entry* that a lock has, None if nothing tells.

    Args:
        entry: of the project.
        requirement: name and extras of what is locked, of the project or one of its `targets`.
        version: that is locked.
        place: URL of the index that it is from.
        machine: platform tag of the machine, such as ``linux_x86_64``; empty for any.
    """
    name, extras = canonicalize_name(requirement.name), set(requirement.extras)
    found: CatalogVariant | None = None
    for item in entry.variants:
        is_here = item.is_for(filter(None, [machine]))
        if not is_here or not item.admits(version) or item.placeholders(version) is None:
            continue
        asked = Requirement(filled(item.requires[0], {"version": "0"})) if item.requires else None
        if item.place is not None:
            is_other = asked is not None and asked.name == entry.name and not asked.extras <= extras
            if name == entry.name and item.place == place.rstrip("/") and not is_other:
                return item
            continue
        if asked is None:
            is_own = name == entry.name and not extras and not version.local
            found = found or (item if is_own else None)
        elif canonicalize_name(asked.name) == name and asked.extras <= extras:
            return item
    return found


def judged(
    entry: CatalogProject,
    builds: Mapping[str, tuple[CatalogVariant, Version | None]],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> Ranking:
    """Return how *builds* fit a machine; their keys are the labels.

    Each is judged as of its version, for None without what single versions are known to lack.
    """
    metadata = described(entry, builds)
    return wheel_selection.rank(metadata, platform(metadata), preferences)


def missed_here(
    entry: CatalogProject,
    items: Iterable[Unavailable],
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> list[Unavailable]:
    """Return of *items*, what cannot be had of *entry*, what a machine could take."""
    items = list(items)
    if not items:
        return []
    builds = {
        str(number): (replace(item, properties=_of_machines(item)), None)
        for number, item in enumerate(entry.variants)
    }
    fitting = judged(entry, builds, platform, preferences).labels
    labels = {entry.variants[int(number)].label for number in fitting}
    labels |= {item.label for item in entry.variants if not _of_machines(item)}
    labels |= {preferences.forced.get(entry.name) or wheel_labels.NULL_LABEL}
    return list(filter(None, (item.among(labels) for item in items)))


def described(
    entry: CatalogProject, builds: Mapping[str, tuple[CatalogVariant, Version | None]]
) -> Metadata:
    """Return the metadata of *builds*, each with its version; their keys are the labels."""
    return entry.metadata(list(_files(builds)))


def _of_machines(item: CatalogVariant) -> tuple[str, ...]:
    """Return the properties of a build but those about other projects."""
    return tuple(
        text
        for text in item.properties
        if text.partition(" ")[0] != variant_metadata.ABI_DEPENDENCY
    )


def _files(
    builds: Mapping[str, tuple[CatalogVariant, Version | None]],
) -> Iterator[PublishedFile]:
    for label, (item, version) in builds.items():
        known, faults = item.known_properties(version), item.faults(version) if version else {}
        yield PublishedFile("", "", version or Version("0"), label, known, faults=faults)


def _name(item: CatalogVariant) -> str:
    return CPU if item.label == wheel_labels.NULL_LABEL else item.label


def _distance(label: str, accelerator: str) -> int | None:
    """Return how far *label* is from *accelerator*, None if it is for another one."""
    build, wanted = _ACCELERATOR.fullmatch(label), _ACCELERATOR.fullmatch(accelerator)
    if build is None or wanted is None or build.group(1, 2) != wanted.group(1, 2):
        return None
    if build[4] not in (None, wanted[4]):
        return None
    if build[3] == wanted[3]:
        return 0
    if build[3] is None:
        return 1
    if wanted[3] is None:
        return 1000 - int(build[3])
    return 1 + int(wanted[3]) - int(build[3]) if int(build[3]) < int(wanted[3]) else None

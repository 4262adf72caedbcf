"""Entries of the catalogue against the pages that they name.

`variants_catalog._entry_checks` checks them by themselves. What an entry adds to a project is read
as installers read it; a check returns findings instead of raising, so that one run reports all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants.preferences import Sources
from variants_catalog import catalogs, listings
from variants_catalog.catalogs import FileCatalog, Finding
from variants_catalog.entries import CatalogProject, CatalogVariant, filled
from variants_catalog.listings import Unavailable

from ._candidate import Candidate
from ._distribution_metadata import fetch_core_metadata
from ._errors import PackageIndexError
from ._http.session import Session
from ._package_finder import PackageFinder, Project
from ._prefetch import Prefetcher

_THREADS = 8
_NONE = Version("0.dev0")
"""Older than any version."""

_Versions = Mapping[Version, Sequence[Candidate]]
"""Files of a variant by public version."""


def check_live(
    session: Session,
    sources: Sources,
    entries: Sequence[CatalogProject],
    progress: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Return the findings about *entries*; a source that fails does not end the check.

    Args:
        session: fetches the pages.
        sources: the user's indexes, which have the projects that entries name.
        entries: of a catalogue.
        progress: called with the name of each project.
    """
    prefetcher = Prefetcher(_THREADS)
    finder = PackageFinder(
        session, sources, prefetcher, FileCatalog("", {}, {entry.name: entry for entry in entries})
    )
    found: list[Finding] = []
    lost: list[Unavailable] = []
    try:
        for entry in entries:
            finder.start(entry.name)
        for entry in entries:
            if progress is not None:
                progress(entry.name)
            try:
                project = finder.project(entry.name)
                found += _check(finder, entry, project)
            except PackageIndexError as problem:
                remedy = "try again later"
                found.append(
                    catalogs.error("source-unusable", entry.source, "", str(problem), remedy)
                )
            else:
                lost += project.unavailable
    finally:
        prefetcher.close()
    remedy = "correct the URL, or remove the variant; a host that is down may answer later"
    found += (
        catalogs.error("source-unusable", each.host, "", str(each), remedy)
        for each in listings.by_host(lost)
    )
    return found


def _check(finder: PackageFinder, entry: CatalogProject, project: Project) -> Iterator[Finding]:
    yield from _names(finder, entry, project)
    lost = {label for each in project.unavailable for label in each.labels}
    held = {
        number: taken(variant, project)
        for number, variant in enumerate(entry.variants)
        if variant.label not in lost
    }
    newest = _newest(version for versions in held.values() for version in versions)
    latest = _newest(project.versions)
    if latest > newest != _NONE:
        message = f"{entry.name} has version {latest}, the newest with a variant is {newest}"
        remedy = "extend versions, add a variant, or wait for its release"
        yield catalogs.warning("version-new", entry.source, "", message, remedy)
    for number, versions in held.items():
        variant = entry.variants[number]
        place = f"variant {variant.number}"
        if not versions:
            where = variant.place or ", ".join(variant.requires) or "the project"
            message = f"{where} has no wheel for {variant.label} that would be taken"
            remedy = "correct local and versions, or remove the variant"
            yield catalogs.error("variant-missing", entry.source, place, message, remedy)
            continue
        yield from _properties(entry, place, versions)
        own = _newest(versions)
        if own == _NONE:
            continue
        if newest not in versions and variant.admits(newest):
            yield catalogs.warning(
                "version-missing",
                entry.source,
                place,
                f"{variant.label} has {own}, other variants have {newest}: machines that it fits "
                "get another variant of the newer version",
                "limit versions if the publisher gave it up, else wait for its release",
            )
        if variant.requires:
            yield from _extras(finder, entry, variant, place, own, versions[own][0])


def taken(variant: CatalogVariant, project: Project) -> _Versions:
    """Return the files that installers take as *variant*."""
    label = re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(variant.label)))
    found: dict[Version, list[Candidate]] = {}
    for version, files in project.versions.items():
        for item in files if variant.admits(version) else ():
            if item.catalog is not None:
                known = item.catalog.published
                is_taken = label.fullmatch(known.label) is not None and variant.is_for(known.kinds)
            else:  # the project's own wheels are the null variant
                plain = (
                    item.filename.endswith(".whl")
                    and wheel_labels.split_label(item.filename)[1] is None
                )
                is_taken = plain and variant.label == wheel_labels.NULL_LABEL
            if is_taken:
                found.setdefault(version, []).append(item)
    return found


def _names(finder: PackageFinder, entry: CatalogProject, project: Project) -> Iterator[Finding]:
    """Yield what is wrong with the projects that an entry is about."""
    asked = (item for item in entry.variants if item.is_redirect)
    required = (_requirement(text).name for item in asked for text in item.requires)
    for name in sorted(set(map(canonicalize_name, required)) - {entry.name}):
        if not finder.project(name).versions:
            message = f"{name} is not on {', '.join(finder.places) or 'any index'}"
            remedy = "correct the name, or remove the variant"
            yield catalogs.error("project-missing", entry.source, "", message, remedy)
    own = (item for files in project.versions.values() for item in files if item.catalog is None)
    if entry.targets and not any(own):
        yield catalogs.warning(
            "name-unregistered",
            entry.source,
            "project.name",
            f"{entry.name} is not registered on the index: another publisher can register it, and "
            "upload a newer version",
            "use a name that the publisher has registered",
        )
    is_lost = any(not each.labels for each in project.unavailable)
    if entry.variants_index is not None and not is_lost and len(project.first) < 2:
        message = f"{entry.variants_index} has no variant wheels"
        place = "project.variants-index"
        yield catalogs.error(
            "variant-missing", entry.source, place, message, "remove variants-index"
        )


def _properties(entry: CatalogProject, place: str, versions: _Versions) -> Iterator[Finding]:
    """Yield the properties that a placeholder makes, and that never fit."""
    unknown: dict[str, str] = {}
    files = (item.catalog for items in versions.values() for item in items)
    for published in (file.published for file in files if file is not None):
        for namespace, features in published.properties.items():
            known = entry.static.get(namespace)
            for feature, values in features.items() if known is not None else ():
                for value in set(values) - set((known or {}).get(feature, ())):
                    unknown[f"{namespace} :: {feature} :: {value}"] = published.label
    for text, label in sorted(unknown.items()):
        yield catalogs.error(
            "unknown-property",
            entry.source,
            f"{place}.properties",
            f"{text!r} of {label} is not in project.static-properties: it never fits",
            "list it there, in order of preference",
        )


def _extras(
    finder: PackageFinder,
    entry: CatalogProject,
    variant: CatalogVariant,
    place: str,
    version: Version,
    build: Candidate,
) -> Iterator[Finding]:
    """Yield the extras that a variant requires, and that its project does not have."""
    requirement = _requirement(variant.requires[0])
    if not requirement.extras:
        return
    name = canonicalize_name(requirement.name)
    try:
        file = build.file if build.catalog is None else build.catalog.original
        candidate = Candidate(name, version, file.url, file)
        core = fetch_core_metadata(finder.session, candidate)
    except PackageIndexError as problem:
        remedy = "try again later: the extras could not be compared"
        yield catalogs.warning("metadata-missing", entry.source, place, str(problem), remedy)
        return
    for extra in sorted(set(map(canonicalize_name, requirement.extras)) - core.extras):
        message = f"{name} {version} has no extra {extra!r}"
        remedy = f"use one that it has: {', '.join(sorted(core.extras)) or 'none'}"
        yield catalogs.error("extra-missing", entry.source, place, message, remedy)


def _requirement(template: str) -> Requirement:
    return Requirement(filled(template, {"version": "0"}))


def _newest(versions: Iterable[Version]) -> Version:
    """Return the newest final release among *versions*, `_NONE` without any."""
    return max((each for each in versions if not each.is_prerelease), default=_NONE)

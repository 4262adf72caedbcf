"""Checks of a catalogue against its sources: what is missing there, and what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.catalog.model import filled, target
from pep_variants.model.filename import read_version
from pep_variants.model.label import NULL_LABEL
from variants_index.candidate import Candidate
from variants_index.errors import PackageIndexError
from variants_index.metadata_source import fetch_core_metadata

from ..console import counted
from .catalog_sources import UNREACHABLE
from .finding import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pep_variants.catalog.model import CatalogProject, CatalogVariant, PublishedFile
    from variants_index.pages import PageFile

    from .catalog_sources import CatalogSources, Listing

    Found = Mapping[int, Mapping[Version, PageFile]]
    """By number of the variant, a wheel of each public version."""


def check_live(
    entries: Sequence[CatalogProject],
    sources: CatalogSources,
    progress: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Check *entries* against their sources; one that fails does not end the check.

    Args:
        entries: of a catalogue.
        sources: fetches the pages.
        progress: called with the name of each project.
    """
    for entry in entries:
        _start(entry, sources)
    findings: list[Finding] = []
    for entry in entries:
        if progress is not None:
            progress(entry.name)
        findings += _Live(entry, sources).check()
    for host, (reason, urls) in sorted(sources.unreachable.items()):
        findings.append(
            error(
                UNREACHABLE,
                host,
                "",
                f"{reason}: {counted(len(urls), 'page')} could not be checked",
                "try again later; --only URL leaves other hosts out",
            )
        )
    return findings


def _start(entry: CatalogProject, sources: CatalogSources) -> None:
    for place in entry.places:
        sources.start_page(entry.page(place), entry.name)
    for name in (*entry.targets, entry.name):
        sources.start_project(name)


class _Live:
    """One look at the sources of one entry."""

    def __init__(self, entry: CatalogProject, sources: CatalogSources) -> None:
        self._entry = entry
        self._sources = sources
        self._name = entry.source
        self._unknown: dict[str, tuple[int, str]] = {}

    def check(self) -> list[Finding]:
        findings: list[Finding] = []
        found: dict[int, dict[Version, PageFile]] = {}
        for listing, numbers in self._listings():
            if listing.unknown:
                continue
            failure = listing.finding(self._name, _place(numbers[0]))
            if failure is not None:
                findings.append(failure)
                continue
            taken = {number: self._versions(number, listing.files) for number in numbers}
            found |= taken
            findings += self._check_source(listing, taken)
        for text, (number, label) in sorted(self._unknown.items()):
            findings.append(
                error(
                    "unknown-property",
                    self._name,
                    f"{_place(number)}.properties",
                    f"{text!r} of {label} is not in project.static-properties: it never fits",
                    "list it there, in order of preference",
                )
            )
        findings += self._check_newest(found)
        for number, versions in found.items():
            findings += self._check_requirements(number, versions)
        return [*findings, *self._check_names(), *self._check_variants_index()]

    def _variant(self, number: int) -> CatalogVariant:
        return self._entry.variants[number - 1]

    def _listings(self) -> Iterator[tuple[Listing, list[int]]]:
        """Yield what each source has, and the numbers of the variants that it is for."""
        places: dict[str, list[int]] = {}
        projects: dict[str, list[int]] = {}
        for number, variant in enumerate(self._entry.variants, 1):
            if variant.place is not None:
                places.setdefault(self._entry.page(variant.place), []).append(number)
            elif variant.requires:
                projects.setdefault(target(variant), []).append(number)
            else:  # the project's own wheels
                projects.setdefault(self._entry.name, []).append(number)
        for url, numbers in places.items():
            yield self._sources.page(url, self._entry.name), numbers
        for name, numbers in projects.items():
            yield self._sources.project(name), numbers

    def _versions(self, number: int, files: Iterable[PageFile]) -> dict[Version, PageFile]:
        """Return the versions that a variant has, the first of *files* of each."""
        variant = self._variant(number)
        if variant.place is None and not variant.requires and variant.label == NULL_LABEL:
            named = ((_version(file.filename), file) for file in files)
            return {version: file for version, file in named if version and variant.admits(version)}
        entry = replace(self._entry, variants=(variant,))
        found: dict[Version, PageFile] = {}
        for file in files:
            if variant.place is not None:
                published = entry.files(variant.place, file.filename)
            elif entry.is_own(variant):
                published = entry.own_files(file.filename)
            else:
                published = entry.redirects(file.filename)
            for item in published:
                found.setdefault(item.version, file)
                self._note_unknown(number, item)
        return found

    def _note_unknown(self, number: int, item: PublishedFile) -> None:
        """Note values of placeholders that `static-properties` does not list."""
        for namespace, listed in self._entry.static.items():
            for feature, values in item.properties.get(namespace, {}).items():
                for value in set(values) - set(listed.get(feature, ())):
                    text = f"{namespace} :: {feature} :: {value}"
                    self._unknown.setdefault(text, (number, item.label))

    def _check_source(
        self, listing: Listing, taken: Mapping[int, Mapping[Version, PageFile]]
    ) -> Iterator[Finding]:
        for number, versions in taken.items():
            if not versions:
                others = f", only {listing.others} others" if not listing.files else ""
                yield error(
                    "variant-missing",
                    self._name,
                    _place(number),
                    f"{listing.url} has no wheel for {self._variant(number).label}{others}",
                    "correct local and versions, or remove the variant",
                )
        newest = max(_finals(_version(file.filename) for file in listing.files), default=None)
        known = max(_finals(version for held in taken.values() for version in held), default=None)
        if newest is not None and known is not None and newest > known:
            yield warning(
                "version-new",
                self._name,
                _place(min(taken)),
                f"{listing.url} has version {newest}, which no variant is about; the newest that "
                f"one is about is {known}",
                "extend versions, or add a variant",
            )
        without = sum(not file.hashes for file in listing.files)
        if without:
            yield warning(
                "hash-missing",
                self._name,
                _place(min(taken)),
                f"{listing.url} has no hash for {without} of {len(listing.files)} wheels: "
                "installers cannot verify them",
                "ask the publisher for hashes",
            )

    def _check_newest(self, found: Found) -> Iterator[Finding]:
        """Find variants that the newest version lacks although they are about it."""
        newest = max(_finals(version for held in found.values() for version in held), default=None)
        for number, versions in found.items():
            latest = max(_finals(versions), default=None)
            if latest is None or newest is None or not self._variant(number).admits(newest):
                continue
            if newest not in versions:
                yield warning(
                    "version-missing",
                    self._name,
                    _place(number),
                    f"{self._variant(number).label} has {latest}, other variants have {newest}: "
                    "machines that it fits get another variant of the newer version",
                    "limit versions if the publisher gave it up, else wait for its release",
                )

    def _check_requirements(
        self, number: int, versions: Mapping[Version, PageFile]
    ) -> Iterator[Finding]:
        variant = self._variant(number)
        latest = max(_finals(versions), default=None)
        if latest is None:
            return
        for text in variant.requires:
            requirement = Requirement(filled(text, {"version": str(latest)}))
            name = canonicalize_name(requirement.name)
            file = versions[latest]
            if text is not variant.requires[0]:
                listing = self._sources.project(name)
                failure = listing.finding(self._name, _place(number))
                if failure is not None:
                    yield failure
                    continue
                matching = (item for item in listing.files if _version(item.filename) == latest)
                file = next(matching, file)
            yield from self._check_extras(number, requirement, latest, file)

    def _check_extras(
        self, number: int, requirement: Requirement, version: Version, file: PageFile
    ) -> Iterator[Finding]:
        if not requirement.extras:
            return
        name = canonicalize_name(requirement.name)
        candidate = Candidate(name, version, file.filename, file.url, file=file)
        try:
            core = fetch_core_metadata(self._sources.session, candidate)
        except PackageIndexError as problem:
            yield warning(
                "metadata-missing",
                self._name,
                _place(number),
                str(problem),
                "try again later: the extras could not be compared",
            )
            return
        for extra in sorted(map(canonicalize_name, requirement.extras)):
            if extra not in core.extras:
                yield error(
                    "extra-missing",
                    self._name,
                    _place(number),
                    f"{name} {version} has no extra {extra!r}",
                    f"use one that it has: {', '.join(sorted(core.extras)) or 'none'}",
                )

    def _check_names(self) -> Iterator[Finding]:
        if self._entry.targets and not self._sources.has_name(self._entry.name):
            yield warning(
                "name-unregistered",
                self._name,
                "project.name",
                f"{self._entry.name} is not registered on the index: another publisher can "
                "register it, and upload a newer version",
                "use a name that the publisher has registered",
            )

    def _check_variants_index(self) -> Iterator[Finding]:
        if self._entry.variants_index is None:
            return
        url = f"{self._entry.variants_index.rstrip('/')}/{self._entry.name}/"
        listing = self._sources.page(url, self._entry.name)
        failure = listing.finding(self._name, "project.variants-index")
        if failure is not None:
            yield failure
        elif not listing.others and not listing.unknown:
            yield error(
                "variant-missing",
                self._name,
                "project.variants-index",
                f"{listing.url} has no variant wheels",
                "remove variants-index",
            )


def _place(number: int) -> str:
    return f"variant {number}"


def _version(filename: str) -> Version | None:
    """Return the public version of the wheel *filename*, None if it is malformed."""
    parts = filename.split("-")
    version = read_version(parts[1]) if len(parts) > 1 else None
    return None if version is None else Version(version.public)


def _finals(versions: Iterable[Version | None]) -> Iterator[Version]:
    for version in versions:
        if version is not None and not version.is_prerelease:
            yield version

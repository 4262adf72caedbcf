"""Entries of the catalogue against the pages that they name.

`variants_catalog.entry_checks` checks them by themselves.

A check returns findings instead of raising, so that one run reports all of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import split_label
from pep_variants.internal import Sources, read_version, redacted
from variants_catalog.internal import (
    CatalogProject,
    Finding,
    error,
    filled,
    pages_of,
    target,
    warning,
)

from .candidate import Candidate
from .distribution_metadata import fetch_core_metadata
from .errors import AccessDenied, InvalidPage, NotFound, PackageIndexError, Unreachable
from .http.session import Session
from .package_finder import PackageFinder
from .pages import PageFile
from .prefetch import Prefetcher

_THREADS = 8


class _Listing(NamedTuple):
    """What a source has of a project.

    Attributes:
        url: of the page, without credentials.
        files: non-variant wheels.
        others: number of other files, such as source distributions and variant wheels.
    """

    url: str
    files: tuple[PageFile, ...]
    others: int


class _Unusable(Exception):
    """A source without files: code, message and remedy; nothing if its host is down."""

    def finding(self, entry: CatalogProject, place: str) -> Iterator[Finding]:
        """Yield what is to be said of it, unless that is said once for the host."""
        if self.args:
            code, message, remedy = self.args
            yield error(code, entry.source, place, message, remedy)


class LiveCheck:
    """Checks entries against the pages that they name, each of which is fetched once."""

    def __init__(self, session: Session, sources: Sources) -> None:
        """Prepare the check.

        Args:
            session: fetches the pages.
            sources: the user's indexes, which have the projects that entries name.
        """
        self._session = session
        self._links = set(sources.links)
        self._prefetcher = Prefetcher(_THREADS)
        self._finder = PackageFinder(session, sources, self._prefetcher)
        self._unreachable: dict[str, tuple[str, set[str]]] = {}

    def check(
        self, entries: Sequence[CatalogProject], progress: Callable[[str], None] | None = None
    ) -> list[Finding]:
        """Return the findings about *entries*; a source that fails does not end the check.

        Args:
            entries: of a catalogue.
            progress: called with the name of each project.
        """
        for entry in entries:
            for url in (page.url for page in pages_of(entry)):
                self._prefetcher.start((url, entry.name), partial(self._page, url, entry.name))
            for name in (*entry.targets, entry.name):
                self._finder.start(name)
        found: list[Finding] = []
        try:
            for entry in entries:
                if progress is not None:
                    progress(entry.name)
                found += self._check(entry)
        finally:
            self._prefetcher.close()
        for host, (reason, urls) in sorted(self._unreachable.items()):
            message = f"{reason}: {len(urls)} page{'s'[: len(urls) > 1]} could not be checked"
            found.append(error("source-unreachable", host, "", message, "try again later"))
        return found

    def _check(self, entry: CatalogProject) -> Iterator[Finding]:
        places: dict[tuple[bool, str], list[int]] = {}
        for number, variant in enumerate(entry.variants, 1):
            if variant.place is not None:
                key = True, entry.page(variant.place)
            else:
                key = False, target(variant) if variant.requires else entry.name
            places.setdefault(key, []).append(number)
        held: dict[int, _Versions] = {}
        for (is_page, where), numbers in places.items():
            place = f"variant {numbers[0]}"
            try:
                listing = self._listing(where, entry.name) if is_page else self._project(where)
            except _Unusable as problem:
                yield from problem.finding(entry, place)
                continue
            for number in numbers:
                held[number] = {}
                yield from self._take(entry, number, listing, held[number])
            yield from _source(entry, place, listing, [held[number] for number in numbers])
        newest = max(_finals(version for versions in held.values() for version in versions))
        for number, versions in held.items():
            variant, latest = entry.variants[number - 1], max(_finals(versions))
            if latest == _NONE:
                continue
            if newest not in versions and variant.admits(newest):
                yield warning(
                    "version-missing",
                    entry.source,
                    f"variant {number}",
                    f"{variant.label} has {latest}, other variants have {newest}: machines that "
                    "it fits get another variant of the newer version",
                    "limit versions if the publisher gave it up, else wait for its release",
                )
            yield from self._requirements(entry, number, latest, versions[latest])
        yield from self._names(entry)

    def _take(
        self,
        entry: CatalogProject,
        number: int,
        listing: _Listing,
        versions: _Versions,
    ) -> Iterator[Finding]:
        """Put into *versions* those that a variant has, with the wheels of each."""
        variant = entry.variants[number - 1]
        alone = replace(entry, variants=(variant,))
        unknown: dict[str, str] = {}
        for file in listing.files:
            if variant.place is not None:
                published = alone.files(variant.place, file.filename)
            elif entry.is_own(variant):
                published = alone.own_files(file.filename)
            elif variant.requires:
                published = alone.renamed_files(file.filename)
            else:
                version = _version(file.filename)
                if version is not None and variant.admits(version):
                    versions.setdefault(version, file)
                continue
            for item in published:
                versions.setdefault(item.version, file)
                for namespace, features in item.properties.items():
                    known = entry.static.get(namespace)
                    for feature, values in features.items() if known is not None else ():
                        for value in set(values) - set((known or {}).get(feature, ())):
                            unknown[f"{namespace} :: {feature} :: {value}"] = item.label
        for text, label in sorted(unknown.items()):
            yield error(
                "unknown-property",
                entry.source,
                f"variant {number}.properties",
                f"{text!r} of {label} is not in project.static-properties: it never fits",
                "list it there, in order of preference",
            )
        if not versions:
            others = f", only {listing.others} others" if not listing.files else ""
            yield error(
                "variant-missing",
                entry.source,
                f"variant {number}",
                f"{listing.url} has no wheel for {variant.label}{others}",
                "correct local and versions, or remove the variant",
            )

    def _requirements(
        self, entry: CatalogProject, number: int, version: Version, first: PageFile
    ) -> Iterator[Finding]:
        """Yield requirements of a variant that name no project, or an extra that there is not."""
        place = f"variant {number}"
        for position, text in enumerate(entry.variants[number - 1].requires):
            requirement = Requirement(filled(text, {"version": str(version)}))
            name, file = canonicalize_name(requirement.name), first
            if position:
                try:
                    files = self._project(name).files
                except _Unusable as unusable:
                    yield from unusable.finding(entry, place)
                    continue
                file = next((each for each in files if _version(each.filename) == version), first)
            if not requirement.extras:
                continue
            candidate = Candidate(name, version, file.filename, file.url, file=file)
            try:
                core = fetch_core_metadata(self._session, candidate)
            except PackageIndexError as problem:
                remedy = "try again later: the extras could not be compared"
                yield warning("metadata-missing", entry.source, place, str(problem), remedy)
                continue
            for extra in sorted(set(map(canonicalize_name, requirement.extras)) - core.extras):
                message = f"{name} {version} has no extra {extra!r}"
                remedy = f"use one that it has: {', '.join(sorted(core.extras)) or 'none'}"
                yield error("extra-missing", entry.source, place, message, remedy)

    def _names(self, entry: CatalogProject) -> Iterator[Finding]:
        """Yield what is wrong with the project's own name, and with its index of variants."""
        if entry.targets:
            with contextlib.suppress(PackageIndexError):  # it is not known to be free
                if not self._finder.project(entry.name).places:
                    yield warning(
                        "name-unregistered",
                        entry.source,
                        "project.name",
                        f"{entry.name} is not registered on the index: another publisher can "
                        "register it, and upload a newer version",
                        "use a name that the publisher has registered",
                    )
        if entry.variants_index is None:
            return
        place = "project.variants-index"
        try:
            listing = self._listing(pages_of(entry)[-1].url, entry.name)
        except _Unusable as problem:
            yield from problem.finding(entry, place)
        else:
            if not listing.others:
                message = f"{listing.url} has no variant wheels"
                yield error(
                    "variant-missing", entry.source, place, message, "remove variants-index"
                )

    def _listing(self, url: str, name: str) -> _Listing:
        """Return what the page *url* has of the project *name*; raises _Unusable."""
        return self._prefetcher.result((url, name), partial(self._page, url, name))

    def _project(self, name: str) -> _Listing:
        """Return what the user's indexes have of the project *name*; raises _Unusable."""
        places = [
            place if place in self._links else f"{place}{name}/" for place in self._finder.places
        ]
        try:
            found = self._finder.project(name)
        except PackageIndexError as problem:
            raise self._unusable(places[-1] if places else name, problem) from None
        files = [item.file for group in found.versions.values() for item in group]
        if not files:
            message = f"{name} is not on {', '.join(places) or 'any index'}"
            raise _Unusable("project-missing", message, "correct the name, or remove the variant")
        return _listed(found.places[0], files)

    def _page(self, url: str, name: str) -> _Listing:
        self._session.add_index(url)
        try:
            page = self._session.fetch_page(url, name)
        except PackageIndexError as problem:
            raise self._unusable(redacted(url), problem) from None
        if page.files:
            return _listed(redacted(url), page.files)
        message = f"{redacted(url)} lists no files; a page that asks to log in looks like that"
        remedy = "look at it in a browser; correct the URL, or remove the variant"
        raise _Unusable("source-empty", message, remedy)

    def _unusable(self, url: str, problem: PackageIndexError) -> _Unusable:
        """Return what is wrong with a source; if its host is down, that is kept for the end."""
        message = str(problem)
        if isinstance(problem, Unreachable):
            reason = message.removeprefix(f"{url}: ")
            self._unreachable.setdefault(urlsplit(url).netloc, (reason, set()))[1].add(url)
            return _Unusable()
        code, remedy = _FAILURES.get(type(problem), _FAILURES[PackageIndexError])
        return _Unusable(code, message, remedy)


_FAILURES: dict[type[PackageIndexError], tuple[str, str]] = {
    NotFound: ("source-missing", "correct the URL, or remove the variant"),
    AccessDenied: ("source-login", "name a source that everyone can read"),
    InvalidPage: ("source-invalid", "name a page of the simple API, or of links"),
    PackageIndexError: ("source-unusable", "name a source that installers can read"),
}
_NONE = Version("0.dev0")
"""Older than any version."""


_Versions = dict[Version, PageFile]
"""A file of a variant by public version."""


def _source(
    entry: CatalogProject,
    place: str,
    listing: _Listing,
    held: Sequence[Mapping[Version, object]],
) -> Iterator[Finding]:
    """Yield what a source has, but no variant is about."""
    newest = max(_finals(_version(file.filename) for file in listing.files))
    known = max(_finals(version for versions in held for version in versions))
    if newest > known != _NONE:
        message = f"{listing.url} has version {newest}, which no variant is about; the newest that "
        message += f"one is about is {known}"
        remedy = "extend versions, or add a variant"
        yield warning("version-new", entry.source, place, message, remedy)


def _listed(url: str, files: Sequence[PageFile]) -> _Listing:
    wheels = tuple(
        file
        for file in files
        if file.filename.endswith(".whl") and split_label(file.filename)[1] is None
    )
    return _Listing(url, wheels, len(files) - len(wheels))


def _version(filename: str) -> Version | None:
    """Return the public version of the wheel *filename*, None if it is malformed."""
    parts = filename.split("-")
    version = read_version(parts[1]) if len(parts) > 1 else None
    return None if version is None else Version(version.public)


def _finals(versions: Iterable[Version | None]) -> Iterator[Version]:
    """Yield the final releases among *versions*, and at least `_NONE`."""
    yield _NONE
    yield from (each for each in versions if each is not None and not each.is_prerelease)

"""Checks of a catalogue of existing builds: of its entries, and of the pages that they name.

A check returns findings instead of raising, so that one run reports all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.detect.registry import KNOWN
from pep_variants.errors import CatalogError, redacted
from pep_variants.model.filename import read_version
from pep_variants.model.label import split_label
from pep_variants.model.property import ABI_DEPENDENCY, Property
from pep_variants.sources import Sources
from variants_catalog.model import (
    PLACEHOLDER,
    CatalogProject,
    CatalogVariant,
    filled,
    target,
)
from variants_catalog.places import pages_of
from variants_catalog.store import Catalog, open_catalog

from .candidate import Candidate
from .errors import AccessDenied, InvalidPage, NotFound, PackageIndexError, Unreachable
from .finder import PackageFinder
from .http.session import Session
from .metadata_source import fetch_core_metadata
from .pages import PageFile
from .prefetch import Prefetcher

_LONGEST = 6
"""Parts of a release number, more than real ones have."""

_THREADS = 8


class CatalogFinding(NamedTuple):
    """An error, or a warning about a probable mistake.

    Attributes:
        severity: ``error`` for what makes variants unusable, else ``warning``.
        code: stable name of the kind of finding, see docs/reference/findings.md.
        file: the file of the entry.
        place: where in the file, empty for the whole of it.
        message: what is wrong.
        remedy: what to do about it.
    """

    severity: Literal["error", "warning"]
    code: str
    file: str
    place: str
    message: str
    remedy: str


_error: Final = partial(CatalogFinding, "error")
_warning: Final = partial(CatalogFinding, "warning")


class CheckedEntries(NamedTuple):
    """Entries that were checked, without their sources.

    Attributes:
        number: of the entries.
        entries: those that can be read.
        findings: what is wrong.
    """

    number: int
    entries: list[CatalogProject]
    findings: list[CatalogFinding]


def check_file(path: Path) -> CheckedEntries:
    """Check the entry, or the entries, in a file or directory."""
    try:
        catalog = open_catalog(path)
        names = list(catalog.names())
    except CatalogError as problem:
        return CheckedEntries(1, [], [_invalid(problem)])
    checked = check_entries(catalog, names)
    if path.suffix == ".toml" and path.stem not in names:
        message = f"is {names[0]!r}: a directory of entries would not have it under this name"
        remedy = f"rename the file to {names[0]}.toml"
        checked.findings.append(
            _error("catalog-filename", str(path), "project.name", message, remedy)
        )
    return checked


def check_entries(catalog: Catalog, names: Sequence[str]) -> CheckedEntries:
    """Check the entries *names* of *catalog*, and whether they fit those that they refer to."""
    checked = CheckedEntries(len(names), [], [])
    for name in names:
        try:
            entry = catalog.project(name)
        except CatalogError as problem:
            checked.findings.append(_invalid(problem))
            continue
        if entry is not None:
            checked.entries.append(entry)
            for check in (_properties(entry), _versions(entry), _references(entry, catalog)):
                checked.findings.extend(check)
    return checked


def _invalid(problem: CatalogError) -> CatalogFinding:
    remedy = "correct it: CONTRIBUTING.md of variants-catalog has the meaning of every key"
    return _error("invalid-catalog", problem.source, problem.path, problem.problem, remedy)


def _properties(entry: CatalogProject) -> Iterator[CatalogFinding]:
    providers = {row.namespace: row for row in KNOWN}
    for number, variant in enumerate(entry.variants, 1):
        place = f"variant {number}.properties"
        for text in variant.properties:
            item = Property.parse(PLACEHOLDER.sub("1.0", text))
            values = entry.static.get(item.namespace)
            if values is None and item.namespace in providers:
                values = providers[item.namespace].factory().known()
            if item.namespace == ABI_DEPENDENCY:
                continue
            if values is None:
                yield _error(
                    "unknown-namespace",
                    entry.source,
                    place,
                    f"{text!r}: no built-in provider has the namespace {item.namespace!r}",
                    f"list its values in project.static-properties.{item.namespace}, or leave it "
                    "out: the variant would never fit",
                )
            elif item.value not in values.get(item.feature, ()) and not PLACEHOLDER.search(text):
                message = f"{text!r} is a value that no machine can have"
                remedy = "correct it: variants detect --json has the features, and values of this "
                remedy += "machine"
                yield _error("unknown-property", entry.source, place, message, remedy)


def _versions(entry: CatalogProject) -> Iterator[CatalogFinding]:
    """Yield variants that are about no version, or about files that another one is about."""
    numbered = list(enumerate(entry.variants, 1))
    for number, variant in numbered:
        if not any(map(variant.admits, sample_versions([variant]))):
            place = f"variant {number}.versions"
            message = f"no version is in {str(variant.versions)!r}"
            yield _error("no-version", entry.source, place, message, "correct the specifier")
    for (first, one), (second, other) in itertools.combinations(numbered, 2):
        same_files = (
            one.local is None or other.local is None or bool(set(one.local) & set(other.local))
        )
        if one.label == other.label:
            what = f"has the label {one.label!r} of variant {first}"
            remedy = "give the two disjoint versions, or different labels"
        elif one.place is not None and one.place == other.place and same_files:
            what = f"is about the same files as variant {first}, which counts"
            remedy = "give the two different local versions, or disjoint versions"
        else:
            continue
        samples = sample_versions([one, other])
        both = next((each for each in samples if one.admits(each) and other.admits(each)), None)
        if both is not None:
            message = f"{what}, for version {both} for example"
            yield _error("overlap", entry.source, f"variant {second}", message, remedy)


def sample_versions(variants: Iterable[CatalogVariant]) -> list[Version]:
    """Return versions at, below and above each version that *variants* name, ascending.

    What several specifiers admit together, they admit for one of these.
    """
    texts = {"0", "999999"}
    for variant in variants:
        for clause in variant.versions:
            version = read_version(clause.version.removesuffix(".*"))
            if version is None:
                continue
            release = version.release
            text = ".".join(map(str, release))
            zeros = "0." * (_LONGEST - len(release))
            texts |= {str(version), f"{text}.dev0", f"{text}.{zeros}1"}
            texts.add(f"{text}.post{(version.post or 0) + 1}")
            for number, part in enumerate(release):
                above = ".".join(map(str, (*release[:number], part + 1)))
                texts |= {above, f"{above}.dev0"}
                if part:
                    texts.add(".".join(map(str, (*release[:number], part - 1, 999999))))
    return sorted(filter(None, map(read_version, texts)))


def _references(entry: CatalogProject, catalog: Catalog) -> Iterator[CatalogFinding]:
    names = set(catalog.names())
    for number, variant in enumerate(entry.variants, 1):
        if not variant.requires or target(variant) == entry.name:
            continue
        chain = _loop([entry.name, target(variant)], catalog, names)
        if chain:
            message = f"leads back to {entry.name}: {' -> '.join(chain)}"
            place, remedy = f"variant {number}.requires", "name a project that has the files"
            yield _error("redirect-loop", entry.source, place, message, remedy)
    for other in entry.coherent:
        if len(names) > 1 and other not in names:
            message = f"{other} has no entry, so its builds cannot be compared"
            place, remedy = "project.coherent", "add an entry, or leave it out"
            yield _warning("coherent-missing", entry.source, place, message, remedy)


def _loop(chain: list[str], catalog: Catalog, names: set[str]) -> list[str]:
    """Return *chain* continued to the project that it begins with; nothing if it never is."""
    try:
        entry = catalog.project(chain[-1]) if chain[-1] in names else None
    except CatalogError:
        return []
    for following in entry.targets if entry is not None else ():
        if following == chain[0]:
            return [*chain, following]
        if following not in chain and (found := _loop([*chain, following], catalog, names)):
            return found
    return []


class _Listing(NamedTuple):
    """What a source has of a project.

    Attributes:
        url: of the page, without credentials.
        files: non-variant wheels.
        others: number of other files, such as source distributions and variant wheels.
        failure: code, message and remedy if there is no page; None if there is one.
    """

    url: str
    files: tuple[PageFile, ...] = ()
    others: int = 0
    failure: tuple[str, str, str] | None = None


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
    ) -> list[CatalogFinding]:
        """Return the findings about *entries*; a source that fails does not end the check.

        Args:
            entries: of a catalogue.
            progress: called with the name of each project.
        """
        for entry in entries:
            for url in map(entry.page, entry.places):
                self._prefetcher.start((url, entry.name), partial(self._page, url, entry.name))
            for name in (*entry.targets, entry.name):
                self._finder.start(name)
        found: list[CatalogFinding] = []
        try:
            for entry in entries:
                if progress is not None:
                    progress(entry.name)
                found += self._check(entry)
        finally:
            self._prefetcher.close()
        for host, (reason, urls) in sorted(self._unreachable.items()):
            message = f"{reason}: {len(urls)} page{'s'[: len(urls) > 1]} could not be checked"
            found.append(_error("source-unreachable", host, "", message, "try again later"))
        return found

    def _check(self, entry: CatalogProject) -> Iterator[CatalogFinding]:
        places: dict[tuple[bool, str], list[int]] = {}
        for number, variant in enumerate(entry.variants, 1):
            if variant.place is not None:
                key = True, entry.page(variant.place)
            else:
                key = False, target(variant) if variant.requires else entry.name
            places.setdefault(key, []).append(number)
        held: dict[int, dict[Version, PageFile]] = {}
        for (is_page, where), numbers in places.items():
            listing = self._listing(where, entry.name) if is_page else self._project(where)
            if listing is None:
                continue
            place = f"variant {numbers[0]}"
            if listing.failure is not None:
                code, message, remedy = listing.failure
                yield _error(code, entry.source, place, message, remedy)
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
                yield _warning(
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
        versions: dict[Version, PageFile],
    ) -> Iterator[CatalogFinding]:
        """Put into *versions* those that a variant has, with the first wheel of each."""
        variant = entry.variants[number - 1]
        alone = replace(entry, variants=(variant,))
        unknown: dict[str, str] = {}
        for file in listing.files:
            if variant.place is not None:
                published = alone.files(variant.place, file.filename)
            elif entry.is_own(variant):
                published = alone.own_files(file.filename)
            elif variant.requires:
                published = alone.redirects(file.filename)
            else:
                version = _version(file.filename)
                if version is not None and variant.admits(version):
                    versions[version] = file
                continue
            for item in published:
                versions.setdefault(item.version, file)
                for namespace, features in item.properties.items():
                    known = entry.static.get(namespace)
                    for feature, values in features.items() if known is not None else ():
                        for value in set(values) - set((known or {}).get(feature, ())):
                            unknown[f"{namespace} :: {feature} :: {value}"] = item.label
        for text, label in sorted(unknown.items()):
            yield _error(
                "unknown-property",
                entry.source,
                f"variant {number}.properties",
                f"{text!r} of {label} is not in project.static-properties: it never fits",
                "list it there, in order of preference",
            )
        if not versions:
            others = f", only {listing.others} others" if not listing.files else ""
            yield _error(
                "variant-missing",
                entry.source,
                f"variant {number}",
                f"{listing.url} has no wheel for {variant.label}{others}",
                "correct local and versions, or remove the variant",
            )

    def _requirements(
        self, entry: CatalogProject, number: int, version: Version, first: PageFile
    ) -> Iterator[CatalogFinding]:
        """Yield requirements of a variant that name no project, or an extra that there is not."""
        place = f"variant {number}"
        for position, text in enumerate(entry.variants[number - 1].requires):
            requirement = Requirement(filled(text, {"version": str(version)}))
            name, file = canonicalize_name(requirement.name), first
            if position:
                listing = self._project(name)
                if listing is not None and listing.failure is not None:
                    code, message, remedy = listing.failure
                    yield _error(code, entry.source, place, message, remedy)
                    continue
                files = listing.files if listing is not None else ()
                file = next((each for each in files if _version(each.filename) == version), first)
            if not requirement.extras:
                continue
            candidate = Candidate(name, version, file.filename, file.url, file=file)
            try:
                extras = fetch_core_metadata(self._session, candidate).extras
            except PackageIndexError as problem:
                remedy = "try again later: the extras could not be compared"
                yield _warning("metadata-missing", entry.source, place, str(problem), remedy)
                continue
            for extra in sorted(set(map(canonicalize_name, requirement.extras)) - set(extras)):
                message = f"{name} {version} has no extra {extra!r}"
                remedy = f"use one that it has: {', '.join(sorted(extras)) or 'none'}"
                yield _error("extra-missing", entry.source, place, message, remedy)

    def _names(self, entry: CatalogProject) -> Iterator[CatalogFinding]:
        if entry.targets and not self._has_name(entry.name):
            yield _warning(
                "name-unregistered",
                entry.source,
                "project.name",
                f"{entry.name} is not registered on the index: another publisher can register it, "
                "and upload a newer version",
                "use a name that the publisher has registered",
            )
        if entry.variants_index is None:
            return
        listing = self._listing(pages_of(entry)[-1].url, entry.name)
        if listing is None:
            return
        failure = listing.failure
        if failure is None and not listing.others:
            message = f"{listing.url} has no variant wheels"
            failure = ("variant-missing", message, "remove variants-index")
        if failure is not None:
            code, message, remedy = failure
            yield _error(code, entry.source, "project.variants-index", message, remedy)

    def _has_name(self, name: str) -> bool:
        """Return whether the user's indexes know the project *name*, with or without files."""
        try:
            return bool(self._finder.project(name).places)
        except PackageIndexError:
            return True  # not known to be free

    def _listing(self, url: str, name: str) -> _Listing | None:
        """Return what the page *url* has of the project *name*; None if its host is down."""
        return self._prefetcher.result((url, name), partial(self._page, url, name))

    def _project(self, name: str) -> _Listing | None:
        """Return what the user's indexes have of the project *name*; None if one is down."""
        places = [
            place if place in self._links else f"{place}{name}/" for place in self._finder.places
        ]
        url = places[-1] if places else name  # that on the main index
        try:
            found = self._finder.project(name)
        except PackageIndexError as problem:
            return self._failed(url, problem)
        files = [item.file for group in found.versions.values() for item in group]
        if not files:
            message = f"{name} is not on {', '.join(places) or 'any index'}"
            failure = "project-missing", message, "correct the name, or remove the variant"
            return _Listing(url, failure=failure)
        return _listed(found.places[0], files)

    def _page(self, url: str, name: str) -> _Listing | None:
        self._session.add_index(url)
        try:
            page = self._session.fetch_page(url, name)
        except PackageIndexError as problem:
            return self._failed(redacted(url), problem)
        if page.files:
            return _listed(redacted(url), page.files)
        message = f"{redacted(url)} lists no files; a page that asks to log in looks like that"
        remedy = "look at it in a browser; correct the URL, or remove the variant"
        return _Listing(redacted(url), failure=("source-empty", message, remedy))

    def _failed(self, url: str, problem: PackageIndexError) -> _Listing | None:
        """Return a listing that says what is wrong; None if the host, which is noted, is down."""
        message = str(problem)
        if isinstance(problem, Unreachable):
            reason = message.removeprefix(f"{url}: ")
            self._unreachable.setdefault(urlsplit(url).netloc, (reason, set()))[1].add(url)
            return None
        for kind, code, remedy in _FAILURES:
            if isinstance(problem, kind):
                return _Listing(url, failure=(code, message, remedy))
        remedy = "name a source that installers can read"
        return _Listing(url, failure=("source-unusable", message, remedy))


_FAILURES = (
    (NotFound, "source-missing", "correct the URL, or remove the variant"),
    (AccessDenied, "source-login", "name a source that everyone can read"),
    (InvalidPage, "source-invalid", "name a page of the simple API, or of links"),
)
_NONE = Version("0.dev0")
"""Older than any version."""


def _source(
    entry: CatalogProject,
    place: str,
    listing: _Listing,
    held: Sequence[Mapping[Version, PageFile]],
) -> Iterator[CatalogFinding]:
    """Yield what a source has, but no variant is about."""
    newest = max(_finals(_version(file.filename) for file in listing.files))
    known = max(_finals(version for versions in held for version in versions))
    if newest > known != _NONE:
        message = f"{listing.url} has version {newest}, which no variant is about; the newest that "
        message += f"one is about is {known}"
        remedy = "extend versions, or add a variant"
        yield _warning("version-new", entry.source, place, message, remedy)
    without = sum(not file.hashes for file in listing.files)
    if without:
        message = f"{listing.url} has no hash for {without} of {len(listing.files)} wheels: "
        message += "installers cannot verify them"
        yield _warning("hash-missing", entry.source, place, message, "ask the publisher for hashes")


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

"""Pages of an entry: which to ask for, what the answers mean, and which files are in them.

`PlaceReader` is a state machine without I/O: a client fetches its `pages` and what the user's
indexes have of the project and its `CatalogProject.targets`, in any order and with any HTTP
client, and hands in what it got. Files are opaque here but for their names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import wheel_files
from pep_variants.errors import some, without_userinfo

from .entries import CatalogProject, CatalogVariant, PublishedFile, moved, platform_kind, target

__all__ = [
    "FUTURE", "Found", "Listed", "PlacePage", "PlaceReader", "Unavailable", "by_host", "pages_of",
]  # fmt: skip

F = TypeVar("F")

_EMPTY = "lists no wheels"


@dataclass(frozen=True)
class Listed(Generic[F]):
    """A file on a page.

    Attributes:
        filename: as the page has it.
        file: what the client knows it by.
        sha256: hexadecimal, None if the page has none.
        position: of the user's index that lists it, in the order in which the client asks them.
        yanked: reason, empty if none was given; None for a file that is not yanked (PEP 592).
    """

    filename: str
    file: F
    sha256: str | None = None
    position: int = 0
    yanked: str | None = None


class PlacePage(NamedTuple):
    """A page that an entry names.

    Attributes:
        url: of the page.
        place: see `CatalogProject.places`; empty for the page of an index of variants.
        is_links: whether it is a find-links page, which lists several projects.
        published: URL that its publisher has it at, which differs at a mirror.
        mirrors: as of `CatalogProject`.
    """

    url: str
    place: str = ""
    is_links: bool = False
    published: str = ""
    mirrors: tuple[tuple[str, str], ...] = ()

    @property
    def host(self) -> str:
        """Scheme and host."""
        parts = urlsplit(without_userinfo(self.url))
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def is_mirror(self) -> bool:
        """Whether it is at a mirror."""
        return self.published not in ("", self.url)

    def file_at(self, url: str) -> str:
        """Return where the file is that the page links to at *url*.

        A mirror may keep the publisher's pages as they are: links with its host, or below its
        path, are to files of the mirror then. Other links are the mirror's own.
        """
        if not self.is_mirror:
            return url
        here, theirs, link = (urlsplit(each) for each in (self.url, self.published, url))
        if (link.scheme, link.netloc) == (here.scheme, here.netloc.rpartition("@")[2]):
            folder = here.path.rstrip("/").rpartition("/")[0]
            is_theirs = link.path.split("/")[1:2] == theirs.path.split("/")[1:2]
            if link.path.startswith(f"{folder}/") or not is_theirs:
                return url
            link = link._replace(scheme=theirs.scheme, netloc=theirs.netloc)
        return without_userinfo(moved(link.geturl(), self.mirrors) or url)


@dataclass(frozen=True)
class Found(Generic[F]):
    """A file that an entry adds to those of its project.

    Attributes:
        listed: the file.
        published: what it is; None for a file of an index of variants, and for a source
            distribution.
        url: of the page that lists it; empty for one of the user's indexes.
        yanked: as of `Listed`; also of a file whose version is yanked on the user's indexes.
    """

    listed: Listed[F]
    published: PublishedFile | None
    url: str = ""
    yanked: str | None = None


@dataclass(frozen=True)
class Unavailable:
    """Builds that cannot be had for now.

    Attributes:
        project: normalized name; of several, after `by_host`, one after the other.
        host: scheme and host of their pages; empty for pages of the user's indexes.
        reason: why the pages cannot be read.
        labels: of the builds; empty for the wheels of an index of variants.
        pages: number of the pages.
        versions: for each label, the specifiers of its versions, with ``|`` between them.
        is_mirror: whether the host is a mirror of the user's.
        may_pass: whether the pages may be read later.
    """

    project: str
    host: str
    reason: str
    labels: tuple[str, ...] = ()
    pages: int = 1
    versions: tuple[str, ...] = ()
    is_mirror: bool = False
    may_pass: bool = False

    def __str__(self) -> str:
        shown = some(self.labels, 3)
        builds = f"build{'s'[: len(self.labels) != 1]} {shown}" if shown else "variant wheels"
        left = f"choosing {self.project} without its {builds}"
        if not self.host:
            return f"Cannot read {self.reason}; {left}"
        host = self.host.removeprefix("https://")
        is_empty = self.reason == _EMPTY
        problem = f"{host} {_EMPTY}" if is_empty else f"Cannot reach {host}: {self.reason}"
        advice = f" (for a mirror: --variant-catalog-mirror {self.host}=URL)"
        return f"{problem}; {left}{'' if self.is_mirror else advice}"

    def among(self, labels: Container[str]) -> Unavailable | None:
        """Return it with the builds of *labels* alone, None without any of them."""
        if not self.labels:
            return self
        about = [
            (label, self.versions[number] if self.versions else "")
            for number, label in enumerate(self.labels)
            if label in labels
        ]
        return replace(self, **_builds(about)) if about else None

    def about(self, versions: Iterable[Version]) -> Unavailable | None:
        """Return it with the labels of *versions* alone, None without any of them."""
        if len(self.versions) < len(self.labels) or not self.labels:
            return self
        asked = list(map(str, versions))  # a client may have a class of its own
        about = [
            (label, text)
            for label, text in zip(self.labels, self.versions, strict=True)
            if any(any(SpecifierSet(each).filter(asked, True)) for each in text.split("|"))
        ]
        return replace(self, **_builds(about)) if about else None


FUTURE = Version("9999")
"""Stands for versions that no page lists yet, or that pages list which cannot be read."""


def by_host(
    items: Iterable[Unavailable], asked: Mapping[str, Iterable[Version]] = MappingProxyType({})
) -> tuple[Unavailable, ...]:
    """Return *items* of any projects with one for each host and reason, to be said once.

    Args:
        items: for one project each.
        asked: by project, the versions that count; all of a project that is missing.
    """
    groups: dict[tuple[str, str], list[Unavailable]] = {}
    for item in items:
        about = item.about(asked[item.project]) if item.project in asked else item
        if about is not None:
            groups.setdefault((about.host, about.reason), []).append(about)
    return tuple(
        replace(
            group[0],
            project=", ".join(dict.fromkeys(item.project for item in group)),
            pages=sum(item.pages for item in group),
            **_builds(
                (label, item.versions[number] if item.versions else "")
                for item in group
                for number, label in enumerate(item.labels)
            ),
        )
        for group in groups.values()
    )


def _lost(variants: Iterable[CatalogVariant]) -> dict[str, Any]:
    return _builds((item.label, str(item.versions)) for item in variants)


def _builds(found: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return `Unavailable.labels` and `Unavailable.versions`, each label once."""
    texts: dict[str, dict[str, None]] = {}
    for label, text in found:
        texts.setdefault(label, {})[text] = None
    return {"labels": tuple(texts), "versions": tuple("|".join(each) for each in texts.values())}


def pages_of(entry: CatalogProject) -> tuple[PlacePage, ...]:
    """Return the pages that *entry* names, in its order.

    >>> from variants_catalog.catalogs import shipped_catalog
    >>> from variants_catalog.listings import pages_of
    >>> "https://download.pytorch.org/whl/cu128/torch/" in {
    ...     page.url for page in pages_of(shipped_catalog().project("torch"))
    ... }
    True
    """
    links = {item.links for item in entry.variants}
    pages = [(entry.page(place), place, place in links) for place in entry.places]
    if entry.variants_index is not None:
        pages.append((f"{entry.variants_index.rstrip('/')}/{entry.name}/", "", False))
    back = [(other, start) for start, other in entry.mirrors]
    return tuple(
        PlacePage(*page, published=moved(page[0], back) or page[0], mirrors=entry.mirrors)
        for page in pages
    )


def own_place(entry: CatalogProject, urls: Iterable[str]) -> str | None:
    """Return which place of *entry* is among the user's own indexes *urls*, None for none.

    The user has chosen that build then.
    """
    own = set(map(_address, urls))
    for page in pages_of(entry):
        if page.place and {_address(page.place), _address(page.url)} & own:
            return page.place
    return None


class _OwnVersions:
    """The versions that the user's indexes have of a project, under its own name.

    They say which versions there are and where they come from. A build of another name stands for
    one of them if its index has the version itself, and no other one has it without the build.
    """

    def __init__(self, entry: CatalogProject, own: Iterable[Listed[Any]]) -> None:
        """Set up.

        Args:
            entry: of the project.
            own: its files on the user's indexes.
        """
        self._positions: dict[Version, set[int]] = {}
        for item in own:
            version = _file_version(item.filename)
            if version is not None:
                self._positions.setdefault(version, set()).add(item.position)
        self._places = set().union(*self._positions.values())
        known = entry.placeholder
        placeholders = [] if known is None else [*known.filter(self._positions, prereleases=True)]
        self.releases = self._positions.keys() - set(placeholders)
        self._is_marked = known is not None
        self._has_release = bool(self.releases) or known is None

    def may_be(self, version: Version, position: int, builds: Set[int]) -> bool:
        """Return whether a build of another name stands for *version* of the project.

        Args:
            version: public version of the build.
            position: of the index that has it.
            builds: positions of all indexes that have this version of the build.
        """
        own = self._positions.get(version)
        if own is not None:
            return position in own and own <= builds
        return not self._has_release and position <= min(self._places, default=position)

    def may_add(self, version: Version) -> bool:
        """Return whether a place adds *version* of a project that has no other place.

        A project that an index has is never mixed with the publisher's, if placeholders are known.
        """
        return version not in self._positions and not (self._is_marked and self.releases)

    def has_newest_elsewhere(self, built: Iterable[Version]) -> bool:
        """Return whether an index has the newest version, and no version with builds.

        Args:
            built: versions that have builds.
        """
        finals = [version for version in self.releases if not version.is_prerelease]
        newest = max(finals or self.releases, default=None)
        there = set().union(*(self._positions.get(version, ()) for version in built))
        return newest is not None and len(self._places) > 1 and not self._positions[newest] <= there


@dataclass
class PlaceReader(Generic[F]):
    """Reads the places of one entry.

    Attributes:
        entry: of the project.
        unavailable: what cannot be had, one item for each host and reason.
        builds: names of the user's own files that are variants, and so not for everyone, whether
            or not `files` has them as such. Set by that.
        puts_build_first: as of `CatalogProject.before_version`; not where the newest version is of
            an index that has nothing to do with the builds. Set by `files`.
    """

    entry: CatalogProject
    builds: frozenset[str] = frozenset()
    puts_build_first: bool = False
    _listed: dict[PlacePage, Sequence[Listed[F]]] = field(default_factory=dict)
    _failed: dict[PlacePage, str] = field(default_factory=dict)
    _failed_targets: dict[str, str] = field(default_factory=dict)
    _passing: set[PlacePage | str] = field(default_factory=set)
    _missing: set[PlacePage] = field(default_factory=set)
    _others_failed: bool = False

    @property
    def pages(self) -> tuple[PlacePage, ...]:
        """The pages to ask for; `answer` or `fail` takes each."""
        return pages_of(self.entry)

    def answer(self, page: PlacePage, files: Iterable[Listed[F]]) -> None:
        """Take the files that *page* lists."""
        listed = list(files)
        if any(item.filename.endswith(".whl") or self._is_source(item) for item in listed):
            self._listed[page] = listed
        else:  # a page to log in at, for example
            self._failed[page] = _EMPTY

    def fail(
        self, page: PlacePage, reason: str, *, missing: bool = False, may_pass: bool = False
    ) -> None:
        """Take why *page* cannot be read, in words that are the same for all pages of a host.

        One that is *missing* at a host that has others is no failure: few mirrors have all builds.
        """
        self._failed[page] = reason
        self._passing.update([page] if may_pass else ())
        if missing and page.is_mirror:
            self._missing.add(page)

    def fail_target(self, name: str, reason: str, *, may_pass: bool = False) -> None:
        """Take why the user's indexes do not tell what they have of the target *name*."""
        self._failed_targets[name] = reason
        self._passing.update([name] if may_pass else ())

    def has_placeholders_alone(self, own: Iterable[Listed[Any]]) -> bool:
        """Return whether *own*, the files on an index, are placeholders at most.

        Then all places of the user's count: what `files` takes as others, or `fail_others`.
        """
        return self.entry.placeholder is not None and not _OwnVersions(self.entry, own).releases

    def fail_others(self, reason: str, *, may_pass: bool = False) -> None:
        """Take why another index does not tell what it has: it may have what builds stand for."""
        self._others_failed = True
        for name in self.entry.targets:
            self.fail_target(name, reason, may_pass=may_pass)

    @property
    def unavailable(self) -> tuple[Unavailable, ...]:
        """Builds that cannot be had, one item for each host and reason."""
        groups: dict[tuple[str, str], list[PlacePage]] = {}
        there = {page.host for page in self._listed}
        for page in self.pages:
            reason = self._failed.get(page)
            if reason is not None and not (page in self._missing and page.host in there):
                groups.setdefault((page.host, reason), []).append(page)
        unavailable = []
        for (host, reason), pages in groups.items():
            places = {page.place for page in pages}
            lost = _lost(item for item in self.entry.variants if item.place in places)
            lost["may_pass"] = not self._passing.isdisjoint(pages)
            is_mirror = pages[0].is_mirror
            known = (self.entry.name, host, reason)
            unavailable.append(Unavailable(*known, pages=len(pages), is_mirror=is_mirror, **lost))
        for name, reason in self._failed_targets.items():
            builds = (item for item in self.entry.variants if item.is_redirect)
            lost = _lost(item for item in builds if target(item) == name)
            lost["may_pass"] = name in self._passing
            unavailable.append(Unavailable(self.entry.name, "", reason, **lost))
        return tuple(unavailable)

    def files(
        self,
        own: Iterable[Listed[F]],
        targets: Mapping[str, Iterable[Listed[F]]],
        others: Iterable[Listed[F]] = (),
    ) -> list[Found[F]]:
        """Return the files that the entry adds, once all pages are answered.

        A version of which the user's indexes have variant wheels gets none. Of another one the
        variant wheels of an index of variants count, or else the files that the entry describes;
        they are yanked if all files of that version are that the user's indexes have.

        Args:
            own: the project's files on the user's indexes.
            targets: those of its `CatalogProject.targets`, by normalized name.
            others: the project's files on indexes that the client would not ask, and in other
                places of the user's. They add nothing, and tell what is theirs.
        """
        own = list(own)
        versions = _OwnVersions(self.entry, [*own, *others])
        real = set(filter(None, (_variant_version(item.filename) for item in own)))
        added = [*self._variant_wheels(real), *self._sources(versions)]
        real |= {
            version
            for item in added
            if (version := _variant_version(item.listed.filename)) is not None
        }
        hashes = {item.filename: item.sha256 for item in own if item.sha256 is not None}
        yanked = _yanked(own)
        releases: dict[Version, dict[str, Found[F]]] = {}
        at_places: set[tuple[object, ...]] = set()
        builds: set[str] = set()
        for item in self._described(own, targets, versions):
            known = item.published
            assert known is not None
            if not item.url and known.version not in real and self.entry.is_build(known):
                builds.add(known.published)
            if item.url:
                at_places.update(_uses(known))
            elif not known.is_rewritten and at_places.issuperset(_uses(known)):
                continue  # the same build of the project's own index
            # Wheels for Macs for example, which stay as the user's index lists them.
            is_own = known.label == wheel_labels.NULL_LABEL and not known.is_rewritten
            same = is_own and hashes.get(known.published) == item.listed.sha256 is not None
            if known.version in real or same:
                continue
            if self.entry.is_elsewhere and not self._adds(known.version, versions):
                continue
            files = releases.setdefault(known.version, {})
            before = files.get(known.filename)
            if before is None or _is_newer(item, before):
                reason = yanked.get(known.version)
                files[known.filename] = replace(item, yanked=reason) if reason is not None else item
        self.builds = frozenset(builds)
        self.puts_build_first = self.entry.before_version and not versions.has_newest_elsewhere(
            releases
        )
        return [*added, *(item for files in releases.values() for item in files.values())]

    def _variant_wheels(self, real: set[Version]) -> Iterator[Found[F]]:
        """Yield what an index of variants has of versions that are not in *real*."""
        page = next((page for page in self._listed if not page.place), None)
        listed = self._listed[page] if page is not None else ()
        theirs = {_variant_version(item.filename) for item in listed} - real - {None}
        for item in listed:
            described = wheel_files.parse_metadata_filename(item.filename)
            if described is None:
                wanted = _variant_version(item.filename) in theirs
            else:
                wanted = described[0] == self.entry.name and described[1] in theirs
            if wanted and page is not None:
                yield Found(item, None, page.url, item.yanked)

    def _is_source(self, item: Listed[F]) -> bool:
        """Return whether *item* is a source distribution of a project that has no other place."""
        if not self.entry.is_elsewhere or item.filename.endswith(".whl"):
            return False
        name = item.filename.rpartition("-")[0]
        return canonicalize_name(name) == self.entry.name and bool(_file_version(item.filename))

    def _adds(self, version: Version, versions: _OwnVersions) -> bool:
        """Return whether a place adds *version* of a project that has no other place."""
        return not self._others_failed and versions.may_add(version)

    def _sources(self, versions: _OwnVersions) -> Iterator[Found[F]]:
        """Yield the source distributions of a project that has no other place."""
        for page, listed in self._listed.items():
            for item in filter(self._is_source, listed):
                version = _file_version(item.filename)
                if version is not None and self._adds(version, versions):
                    yield Found(item, None, page.url, item.yanked)

    def _described(
        self,
        own: Sequence[Listed[F]],
        targets: Mapping[str, Iterable[Listed[F]]],
        versions: _OwnVersions,
    ) -> Iterator[Found[F]]:
        """Yield what files are to the entry, in the order in which they count."""
        for page in self.pages:
            for item in self._listed.get(page, ()) if page.place else ():
                for known in self.entry.files(page.place, item.filename):
                    yield Found(item, known, page.url, item.yanked)
        if self.entry.uses_own_files:
            for item in own:
                for known in self.entry.own_files(item.filename):
                    yield Found(item, known, yanked=item.yanked)
        for name in self.entry.targets:
            renamed = [
                (item, known)
                for item in (targets.get(name, ()) if name not in self._failed_targets else ())
                for known in self.entry.renamed_files(item.filename)
            ]
            positions: dict[Version, set[int]] = {}
            for item, known in renamed:
                positions.setdefault(known.version, set()).add(item.position)
            for item, known in renamed:
                if versions.may_be(known.version, item.position, positions[known.version]):
                    yield Found(item, known, yanked=item.yanked)


def _uses(file: PublishedFile) -> Iterator[tuple[object, ...]]:
    """Yield version, label, Python, ABI and kind of platform of what *file* is for."""
    _, python, abi, platforms, _ = file.filename.rsplit("-", 4)
    for platform in platforms.split("."):
        yield file.version, file.label, python, abi, platform_kind(platform)


def _is_newer(item: Found[F], before: Found[F]) -> bool:
    """Return whether *item* replaces another file for the same use.

    Of 2.9.0 and 2.9.0+cpu in one place any installer takes the latter. Of several places the
    first one counts.
    """
    if item.url != before.url or item.published is None or before.published is None:
        return False
    new, old = (
        wheel_files.read_version(each.published_version)
        for each in (item.published, before.published)
    )
    return new is not None and old is not None and new > old


def _yanked(own: Iterable[Listed[F]]) -> dict[Version, str]:
    """Return the reasons of the versions of which all files are yanked."""
    reasons: dict[Version, str | None] = {}
    for item in own:
        version = _file_version(item.filename)
        if version is not None and reasons.get(version, "") is not None:
            reasons[version] = item.yanked
    return {version: reason for version, reason in reasons.items() if reason is not None}


def _variant_version(filename: str) -> Version | None:
    """Return the version of a variant wheel, None for any other file."""
    if not filename.endswith(".whl") or wheel_labels.split_label(filename)[1] is None:
        return None
    return wheel_files.read_version(filename.split("-", 2)[1].replace("_", "-"))


def _file_version(filename: str) -> Version | None:
    """Return the public version of a wheel or source distribution, None for any other file."""
    if filename.endswith(".whl"):
        parts = filename.split("-", 2)
        version = wheel_files.read_version(parts[1].replace("_", "-")) if len(parts) > 2 else None
    else:
        try:
            version = parse_sdist_filename(filename)[1]
        except InvalidSdistFilename:
            return None
    return None if version is None else Version(version.public)


def _address(url: str) -> str:
    """Return *url* without credentials and slash at the end, to be compared."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/").lower()

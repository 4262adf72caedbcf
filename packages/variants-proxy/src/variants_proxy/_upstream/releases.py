"""The files of a page: by version, and those that the catalogue adds to it.

Files of the catalogue are published wheels under the names of variant wheels, see
`variants_index.CatalogFile`. `CatalogPages` adds them to the page of an upstream, so whatever
chooses among variant wheels chooses among them as well. There are three kinds of them:

- *published*: the publisher's file, which pages list with its own name, URL and hash;
- *rewritten*: one that gets dependencies of the catalogue, or the name of the project, before it is
  installed, see `variants_catalog._installed_builds`;
- variant wheels of the index that the catalogue names for a project.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import wheel_files
from pep_variants.metadata import Metadata, Properties
from variants_catalog.entries import CatalogProject
from variants_catalog.listings import Unavailable
from variants_index import finder as package_finder
from variants_index.finder import CatalogFile
from variants_index.pages import Page, PageFile


@dataclass(frozen=True)
class PageRelease:
    """The wheels of one version.

    Attributes:
        version: of the wheels.
        wheels: in the order of the page, with and without label.
        document: the version's variant metadata file, None if the page has none.
    """

    version: Version
    wheels: tuple[PageFile, ...]
    document: PageFile | None

    @property
    def is_lasting(self) -> bool:
        """Whether the variant metadata can never change."""
        files = self.wheels if self.document is None else (self.document,)
        return all(file.hashes for file in files)

    @cached_property
    def has_variants(self) -> bool:
        """Whether one of the wheels has a label."""
        return any(wheel_labels.split_label(file.filename)[1] is not None for file in self.wheels)


def versions_of(page: Page) -> tuple[PageRelease, ...]:
    """Return the versions of *page* that have wheels, newest first."""
    versions = package_finder.by_version(page.files, page.project).get(page.project, {})
    return tuple(
        PageRelease(version, wheels, versions[version].metadata)
        for version in sorted(versions, reverse=True)
        if (wheels := tuple(file for file in versions[version].files if _is_wheel(file.filename)))
    )


def releases(page: Page, also: Collection[Version] = ()) -> tuple[PageRelease, ...]:
    """Return the versions of *page* that have variants, and those of *also*, newest first."""
    return tuple(each for each in versions_of(page) if each.has_variants or each.version in also)


def plain_releases(
    versions: Iterable[PageRelease], found: Sequence[PageRelease] = ()
) -> tuple[PageRelease, ...]:
    """Return those of *versions* that are not in *found*, only their wheels without label."""
    decided = {release.version for release in found}
    return tuple(
        PageRelease(each.version, plain, None)
        for each in versions
        if each.version not in decided
        and (
            plain := tuple(
                file for file in each.wheels if wheel_labels.split_label(file.filename)[1] is None
            )
        )
    )


def wheel_version(filename: str) -> Version | None:
    """Return the version in a wheel's filename, None for other files."""
    return wheel_files.read_version(filename.split("-", 2)[1]) if _is_wheel(filename) else None


def _is_wheel(filename: str) -> bool:
    return filename.endswith(".whl") and filename.count("-") >= 4


def release_with(file: PageFile, page: Page) -> PageRelease | None:
    """Return the version with variants that has *file*, None if there is none."""
    version = wheel_version(file.filename)
    if version is None:
        return None
    same = tuple(
        item
        for item in page.files
        if wheel_version(item.filename) == version
        or item.filename.endswith(wheel_labels.METADATA_SUFFIX)
    )
    return next((item for item in releases(Page(page.project, same)) if file in item.wheels), None)


@dataclass(frozen=True)
class FetchedPage:
    """A project page as it was fetched, with what the catalogue adds to it.

    Attributes:
        page: the upstream's page, or one made for a directory.
        digest: hash of its contents.
        private: whether it was fetched with credentials: shared caches must not store it.
        stale: whether the last validation failed.
        newest: newest version of a page without variants, one without wheels if it has none; None
            for a page with variants.
        entry: of the catalogue on the project, None without one that is used.
        problem: why the catalogue cannot be read, empty if it was.
        unavailable: builds of it that cannot be had for now.
        excluded: whether builds are left out because of hashes that are given.
        puts_build_first: as of `PlaceReader`.
    """

    page: Page
    digest: str
    private: bool
    stale: bool = False
    newest: PageRelease | None = None
    entry: CatalogProject | None = None
    problem: str = ""
    unavailable: tuple[Unavailable, ...] = ()
    excluded: bool = False
    puts_build_first: bool = False

    @property
    def is_described(self) -> bool:
        """Whether the catalogue has an entry of the project that is used, or cannot be read."""
        return self.entry is not None or bool(self.problem)


def published(file: PageFile) -> CatalogFile | None:
    """Return *file* if it is the publisher's, which clients get under its own name."""
    if isinstance(file, CatalogFile):
        return None if file.published.is_rewritten else file
    return None


def exact_version(file: PageFile) -> Version | None:
    """Return the version of a wheel as its publisher has it, with the local part."""
    own = published(file)
    return wheel_version(named_as(file, file.filename) if own is None else own.original.filename)


def named_as(file: PageFile, name: str) -> str:
    """Return *name*, a filename of *file* without local version, with that of its METADATA.

    They differ for a build of another index that gets dependencies of the catalogue.
    """
    if not isinstance(file, CatalogFile) or not file.published.is_rewritten:
        return name
    project, _, tail = name.split("-", 2)
    return name if file.published.origin else f"{project}-{file.published_version}-{tail}"


def published_as(file: PageFile) -> str:
    """Return the requirement of *file* under its publisher's name, empty if that is the project's.

    For example ``cupy-cuda12x==14.2.0``.
    """
    if not isinstance(file, CatalogFile) or not file.published.origin:
        return ""
    return f"{file.name}=={file.published.published_version}"


def is_rewritten(file: PageFile) -> bool:
    """Return whether the wheel *file* is changed before it is installed."""
    return isinstance(file, CatalogFile) and file.published.is_rewritten


def differs_by_platform(wheels: Iterable[PageFile]) -> bool:
    """Return whether the catalogue has other properties of a label for other platforms."""
    found: dict[str, Properties] = {}
    return any(
        found.setdefault(file.published.label, file.published.properties)
        != file.published.properties
        for file in wheels
        if isinstance(file, CatalogFile)
    )


def known_variants(wheels: Iterable[PageFile]) -> Metadata | None:
    """Return the variant metadata of a version whose variants the catalogue describes.

    Of *wheels* of one platform it is theirs, see `variants_of`.
    """
    return package_finder.variants_of(file for file in wheels if isinstance(file, CatalogFile))

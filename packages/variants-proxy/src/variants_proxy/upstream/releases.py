"""The files of a page: by version, and those that the catalogue adds to it.

Files of the catalogue are published wheels under the names of variant wheels. `CatalogPages` adds
them to the page of an upstream, so whatever chooses among variant wheels chooses among them as
well. There are three kinds of them:

- *published*: the publisher's file, which pages list with its own name, URL and hash;
- *rewritten*: one that gets dependencies of the catalogue, or the name of the project, before it is
  installed, see `variants_catalog.installed_builds`;
- variant wheels of the index that the catalogue names for a project.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from pep_variants import split_label
from pep_variants.internal import METADATA_SUFFIX, read_version
from variants_index import Page, PageFile
from variants_index.internal import by_version

from ..settings import Upstream

if TYPE_CHECKING:
    from pep_variants import Metadata
    from variants_catalog.internal import CatalogProject, PublishedFile, Unavailable


@dataclass(frozen=True)
class Release:
    """The wheels of one version.

    Attributes:
        version: of the wheels.
        wheels: in the order of the page, with and without label.
        document: the version's variant metadata file, None if the page has none.
    """

    version: Version
    wheels: tuple[PageFile, ...]
    document: PageFile | None

    @cached_property
    def has_variants(self) -> bool:
        """Whether one of the wheels has a label."""
        return any(split_label(file.filename)[1] is not None for file in self.wheels)


def versions_of(page: Page) -> tuple[Release, ...]:
    """Return the versions of *page* that have wheels, newest first."""
    found = by_version(page.files, page.project).get(page.project, {})
    return tuple(
        Release(version, wheels, found[version].metadata)
        for version in sorted(found, reverse=True)
        if (wheels := tuple(file for file in found[version].files if _is_wheel(file.filename)))
    )


def releases(page: Page, also: Collection[Version] = ()) -> tuple[Release, ...]:
    """Return the versions of *page* that have variants, and those of *also*, newest first."""
    return tuple(each for each in versions_of(page) if each.has_variants or each.version in also)


def plain_releases(page: Page, found: Sequence[Release] = ()) -> tuple[Release, ...]:
    """Return the versions that are not in *found*, newest first, only wheels without label."""
    known = {release.version for release in found}
    return tuple(
        Release(each.version, plain, None)
        for each in versions_of(page)
        if each.version not in known
        and (plain := tuple(file for file in each.wheels if split_label(file.filename)[1] is None))
    )


def wheel_version(filename: str) -> Version | None:
    """Return the version in a wheel's filename, None for other files."""
    return read_version(filename.split("-", 2)[1]) if _is_wheel(filename) else None


def _is_wheel(filename: str) -> bool:
    return filename.endswith(".whl") and filename.count("-") >= 4


def release_with(file: PageFile, page: Page) -> Release | None:
    """Return the version with variants that has *file*, None if there is none."""
    version = wheel_version(file.filename)
    if version is None:
        return None
    same = tuple(
        item
        for item in page.files
        if wheel_version(item.filename) == version or item.filename.endswith(METADATA_SUFFIX)
    )
    return next((item for item in releases(Page(page.project, same)) if file in item.wheels), None)


@dataclass(frozen=True)
class FetchedPage:
    """A project page as it was fetched.

    Attributes:
        page: the upstream's page, or one made for a directory.
        digest: hash of its contents.
        private: whether it was fetched with credentials: shared caches must not store it.
        stale: whether the last validation failed.
        newest: newest version of a page without variants, one without wheels if it has none; None
            for a page with variants.
    """

    page: Page
    digest: str
    private: bool
    stale: bool = False
    newest: Release | None = None


@dataclass(kw_only=True)
class CatalogFile(PageFile):
    """A file that the catalogue adds to a page, or that it knows by another name.

    Attributes:
        upstream: that the file is fetched from; it is not the page's.
        original: as the page that lists it has it.
        known: what the catalogue says of it; None for a file of an index of variants.
        entry: of the project.
        metadata: variant metadata of its version, one object for equal ones; None for a file of an
            index of variants.
    """

    upstream: Final[Upstream] = field(compare=False)
    original: Final[PageFile] = field(compare=False)
    entry: Final[CatalogProject] = field(compare=False, repr=False)
    known: Final[PublishedFile | None] = field(default=None, compare=False)
    metadata: Final[Metadata | None] = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str | None:
        """Variant label that the catalogue gives it."""
        return None if self.known is None else self.known.label


@dataclass(frozen=True)
class CatalogPage(FetchedPage):
    """The page of an upstream with what the catalogue adds to it.

    Attributes:
        entry: of the project.
        problem: why the catalogue cannot be read, empty if it was.
        unavailable: builds that cannot be had for now.
        excluded: whether builds are left out because of hashes that are given.
    """

    entry: CatalogProject | None = None
    problem: str = ""
    unavailable: tuple[Unavailable, ...] = ()
    excluded: bool = False


def listed_as(
    file: PageFile,
    name: str,
    upstream: Upstream,
    entry: CatalogProject,
    known: PublishedFile | None = None,
    metadata: Metadata | None = None,
) -> CatalogFile:
    """Return *file* of *upstream* under the name *name*; see `CatalogFile` for the others."""
    listed = {item.name: getattr(file, item.name) for item in fields(PageFile)}
    listed["filename"] = name
    return CatalogFile(
        **listed, upstream=upstream, original=file, entry=entry, known=known, metadata=metadata
    )


def published(file: PageFile) -> CatalogFile | None:
    """Return *file* if it is the publisher's, which clients get under its own name."""
    if isinstance(file, CatalogFile) and file.known is not None:
        return None if file.known.is_rewritten else file
    return None


def exact_version(file: PageFile) -> Version | None:
    """Return the version of a wheel as its publisher has it, with the local part."""
    own = published(file)
    return wheel_version(file.filename if own is None else own.original.filename)


def published_as(file: PageFile) -> str:
    """Return what installs *file* under its publisher's own name, empty if that is the project's.

    For example ``cupy-cuda12x==14.2.0``.
    """
    if not isinstance(file, CatalogFile) or file.known is None or not file.known.origin:
        return ""
    from variants_catalog.internal import Origin

    return Origin.of_file(file.known, file.url, {}).requirement


def is_rewritten(file: PageFile) -> bool:
    """Return whether the wheel *file* is changed before it is installed."""
    return isinstance(file, CatalogFile) and file.known is not None and file.known.is_rewritten


def installed(file: PageFile, metadata: bytes) -> bytes:
    """Return *metadata*, that of *file*, as it is installed, variant markers aside.

    Raises:
        InvalidWheel: *metadata* is not valid, or of another project.
    """
    if isinstance(file, CatalogFile) and file.known is not None:
        from variants_catalog.internal import installed_metadata

        return installed_metadata(metadata, file.entry, file.known)
    return metadata


def added(file: PageFile) -> dict[str, bytes]:
    """Return what *file* gets in its dist-info folder, by name; nothing if it is not rewritten."""
    if isinstance(file, CatalogFile) and file.known is not None:
        from variants_catalog.internal import added_files

        return added_files(file.entry, file.known, file.url, file.hashes)
    return {}


def origin(upstream: Upstream, file: PageFile) -> Upstream:
    """Return the upstream that *file*, on a page of *upstream*, is fetched from."""
    return file.upstream if isinstance(file, CatalogFile) else upstream


def release_origin(upstream: Upstream, wheels: Iterable[PageFile]) -> Upstream:
    """Return the upstream of the variants among *wheels*, those of one version."""
    found = (file.upstream for file in wheels if isinstance(file, CatalogFile))
    return next(found, upstream)


def known_variants(wheels: Iterable[PageFile]) -> Metadata | None:
    """Return the variant metadata of a version whose variants the catalogue describes."""
    found = (file.metadata for file in wheels if isinstance(file, CatalogFile))
    return next((item for item in found if item is not None), None)

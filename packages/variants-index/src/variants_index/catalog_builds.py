"""The files that the catalogue of existing builds adds to those of a project.

`variants_catalog.listings` decides what they are; here its pages are fetched, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import IO, Final

from packaging.version import Version

from pep_variants import Metadata
from pep_variants.internal import (
    Rewrite,
    WheelContents,
    open_wheel,
    read_version,
    redacted,
    without_userinfo,
)
from variants_catalog.internal import (
    CatalogProject,
    Found,
    Listed,
    PlacePage,
    PlaceReader,
    PublishedFile,
    added_files,
    installed_metadata,
    pages_of,
    rewritten,
)

from .errors import NotFound, PackageIndexError
from .http.session import Session
from .pages import Page, PageFile
from .prefetch import Prefetcher

_PLACE_SECONDS = 30
"""For one page, with all retries. There are others to take variants from."""


@dataclass(kw_only=True)
class PlacedFile(PageFile):
    """A file that the catalogue adds to a page from another place; never changed.

    Attributes:
        place: URL of the page that lists it, without credentials; or a client's name for what does.
        entry: of the project.
    """

    place: Final[str] = field(compare=False)
    entry: Final[CatalogProject] = field(compare=False, repr=False)


@dataclass(kw_only=True)
class CatalogFile(PlacedFile):
    """A published file as a variant wheel, under its labelled name.

    Attributes:
        original: as the page has it.
        published: what it counts as.
        variants: variant metadata of its version, one object for equal ones.
    """

    original: Final[PageFile] = field(compare=False, repr=False)
    published: Final[PublishedFile] = field(compare=False)
    variants: Final[Metadata] = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """Normalized name that the publisher gave it."""
        return self.published.origin or self.entry.name

    @cached_property
    def published_version(self) -> Version:
        """Version as published, with its local part."""
        found = read_version(self.published.published_version)
        return self.published.version if found is None else found

    @property
    def version(self) -> Version:
        """Version as installed: of a build of another name, the public one."""
        return self.published.version if self.published.origin else self.published_version

    def installed_metadata(self, metadata: bytes) -> bytes:
        """Return METADATA as it is installed, from the publisher's; raises InvalidWheel."""
        return installed_metadata(metadata, self.entry, self.published)

    @property
    def added(self) -> dict[str, bytes]:
        """What it gets in its dist-info folder, by name; nothing if it is not rewritten."""
        return added_files(self.entry, self.published, self.url, self.hashes)

    def write(self, original: IO[bytes], target: IO[bytes]) -> None:
        """Write the wheel as it is installed.

        Args:
            original: the published wheel, whose hashes are checked.
            target: is written to.

        Raises:
            InvalidWheel: *original* is damaged, or of another project or version.
        """
        name = self.original.filename
        with open_wheel(original, redacted(self.url), filename=name) as contents:
            self.rewritten(contents, original).write(original, target)

    def rewritten(
        self, contents: WheelContents, stream: IO[bytes], metadata: bytes | None = None
    ) -> Rewrite:
        """Return the wheel as it is installed, see `installed_builds.rewritten`."""
        return rewritten(contents, stream, self.entry, self.published, self.added, metadata)


At = tuple[PageFile, str]
"""A listed file and its place, see `PlacedFile`."""


def catalog_files(entry: CatalogProject, found: Sequence[Found[At]]) -> list[PlacedFile]:
    """Return the files of *found* as those of the project of *entry*."""
    described: dict[Version, list[PublishedFile]] = {}
    for item in found:
        if item.published is not None:
            described.setdefault(item.published.version, []).append(item.published)
    variants: dict[Version, Metadata] = {}
    for version, published in described.items():
        metadata = entry.metadata(sorted(published, key=lambda file: file.filename))
        variants[version] = next((each for each in variants.values() if each == metadata), metadata)
    return [_placed(entry, item, variants) for item in found]


def _placed(
    entry: CatalogProject, found: Found[At], variants: Mapping[Version, Metadata]
) -> PlacedFile:
    (file, place), published = found.listed.file, found.published
    listed = {each.name: getattr(file, each.name) for each in fields(PageFile)}
    if published is None:
        return PlacedFile(**listed, place=place, entry=entry)
    return CatalogFile(
        **{**listed, "filename": published.filename, "yanked": found.yanked},
        place=place,
        entry=entry,
        original=file if file.yanked == found.yanked else replace(file, yanked=found.yanked),
        published=published,
        variants=variants[published.version],
    )


class CatalogPages:
    """Fetches the pages that entries name."""

    def __init__(self, session: Session, prefetcher: Prefetcher) -> None:
        """Set up.

        Args:
            session: fetches the pages.
            prefetcher: fetches them ahead of time, and keeps them.
        """
        self._session = session
        self._prefetcher = prefetcher

    def start(self, entry: CatalogProject) -> None:
        """Begin to fetch all pages that *entry* names."""
        for page in pages_of(entry):
            self._prefetcher.start(("catalog", page.url), partial(self._fetch, entry, page))

    def read(self, entry: CatalogProject) -> PlaceReader[At]:
        """Return what the places of *entry* have."""
        reader: PlaceReader[At] = PlaceReader(entry)
        for page in reader.pages:
            try:
                found = self._prefetcher.result(
                    ("catalog", page.url), partial(self._fetch, entry, page)
                )
            except PackageIndexError as error:
                reader.fail(page, error.problem_at(page.url), missing=isinstance(error, NotFound))
            else:
                place = without_userinfo(page.url)
                files = (replace(file, url=page.file_at(file.url)) for file in found.files)
                reader.answer(page, (listed(file, place) for file in files))
        return reader

    def _fetch(self, entry: CatalogProject, page: PlacePage) -> Page:
        if entry.source.startswith(("http://", "https://")):
            self._session.addresses.allow_links(entry.source, (page.url,))
        else:
            self._session.add_index(page.url)
        return self._session.fetch_page(page.url, entry.name, seconds=_PLACE_SECONDS)


def listed(file: PageFile, place: str, position: int = 0) -> Listed[At]:
    """Return *file* of the page *place* for `PlaceReader`."""
    digest = file.hashes.get("sha256")
    return Listed(file.filename, (file, place), digest, position, file.yanked)

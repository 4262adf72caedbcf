"""The files that the catalogue of existing builds adds to those of a project.

`variants_catalog.listings` decides what they are; here its pages are fetched, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import IO

from packaging.version import Version

from pep_variants import write_metadata
from pep_variants.internal import open_wheel, read_version, redacted, without_userinfo
from variants_catalog.internal import (
    CatalogProject,
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
from .version_metadata import ReleaseMetadata

_PLACE_SECONDS = 30
"""For one page, with all retries. There are others to take variants from."""


@dataclass(frozen=True)
class CatalogFile:
    """What makes a published file a variant.

    Attributes:
        entry: of the project.
        published: what the file counts as.
        place: URL of the page that lists it, without credentials.
    """

    entry: CatalogProject = field(repr=False)
    published: PublishedFile
    place: str

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

    def write(
        self, original: IO[bytes], target: IO[bytes], url: str, hashes: Mapping[str, str]
    ) -> None:
        """Write the wheel as it is installed.

        Args:
            original: the published wheel, whose hashes are checked.
            target: is written to.
            url: of the published wheel.
            hashes: of the published wheel.

        Raises:
            InvalidWheel: *original* is damaged, or of another project or version.
        """
        entry, published = self.entry, self.published
        added = added_files(entry, published, url, hashes)
        name = published.published
        with open_wheel(original, redacted(url), filename=name) as contents:
            rewritten(contents, original, entry, published, added).write(original, target)


PlacedFile = tuple[PageFile, str]
"""A file, and the URL of the page that lists it, without credentials."""


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

    def read(self, entry: CatalogProject) -> PlaceReader[PlacedFile]:
        """Return what the places of *entry* have."""
        reader: PlaceReader[PlacedFile] = PlaceReader(entry)
        for page in reader.pages:
            try:
                found = self._prefetcher.result(
                    ("catalog", page.url), partial(self._fetch, entry, page)
                )
            except PackageIndexError as error:
                text = str(error).removeprefix(f"{redacted(page.url)}: ")
                reader.fail(page, text, missing=isinstance(error, NotFound))
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


def listed(file: PageFile, place: str, position: int = 0) -> Listed[PlacedFile]:
    """Return *file* of the page *place* for `PlaceReader`."""
    digest = file.hashes.get("sha256")
    return Listed(file.filename, (file, place), digest, position, file.yanked)


def catalog_metadata(files: Sequence[CatalogFile]) -> ReleaseMetadata:
    """Return the variant metadata of the version that has *files*, at least one."""
    entry = files[0].entry
    ordered = sorted((item.published for item in files), key=lambda item: item.filename)
    metadata = entry.metadata(ordered)
    return ReleaseMetadata(metadata, {"": write_metadata(metadata).encode()})

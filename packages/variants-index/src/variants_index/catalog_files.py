"""The files that the catalogue of existing builds adds to those of a project.

Pages of all places are fetched side by side. A place that fails costs its variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from packaging.version import Version

from pep_variants.errors import redacted, without_userinfo
from pep_variants.formats.writer import write_metadata
from pep_variants.model.filename import read_version
from variants_catalog.model import CatalogProject, PublishedFile
from variants_catalog.redirect import redirect_metadata, redirect_wheel

from .errors import PackageIndexError
from .http.session import Session
from .pages import Page, PageFile
from .prefetch import Prefetcher
from .release_metadata import ReleaseMetadata

_PLACE_SECONDS = 30
"""For one page, with all retries. There are others to take variants from."""


@dataclass(frozen=True)
class CatalogFile:
    """What makes a published file a variant.

    Attributes:
        entry: of the project.
        published: what the file counts as.
        place: URL of the page that lists it, without credentials; for a redirect, the page of
            the project that it requires.
    """

    entry: CatalogProject = field(repr=False)
    published: PublishedFile
    place: str

    @cached_property
    def version(self) -> Version:
        """Version as published, with its local part."""
        found = read_version(self.published.published.split("-", 2)[1])
        return self.published.version if found is None else found

    def metadata(self) -> bytes:
        """Return METADATA of a redirect."""
        return redirect_metadata(self.entry, self.published)

    def wheel(self) -> bytes:
        """Return the wheel of a redirect."""
        return redirect_wheel(self.entry, self.published)


Listed = Iterable[tuple[PageFile, str]]
"""Files, and the URL of the page that lists each."""


class CatalogPages:
    """Fetches the pages that entries name, and tells what their files are."""

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
        for url in _pages(entry):
            self._prefetcher.start(("catalog", url), partial(self._page, entry, url))

    def published(
        self, entry: CatalogProject, warnings: list[str]
    ) -> Iterator[tuple[CatalogFile, PageFile]]:
        """Yield the files of all places of *entry*; those that fail are in *warnings*."""
        failed: dict[str, list[str]] = {}
        for place in entry.places:
            url = entry.page(place)
            page = self._read(entry, url)
            if isinstance(page, str):
                failed.setdefault(page, []).append(place)
                continue
            found: dict[str, tuple[CatalogFile, PageFile]] = {}
            for file in page.files:
                for published in entry.files(place, file.filename):
                    item = CatalogFile(entry, published, without_userinfo(url)), file
                    known = found.get(published.filename)
                    # Of 2.9.0 and 2.9.0+cpu in one place, as any installer would.
                    if known is None or item[0].version > known[0].version:
                        found[published.filename] = item
            yield from found.values()
        # A host that is down has many places, of which one line is enough.
        warnings += (_failure(entry, places, reason) for reason, places in failed.items())

    def real_variants(self, entry: CatalogProject, warnings: list[str]) -> Page | None:
        """Return the project's page on the index of its variant wheels, None without one."""
        if entry.variants_index is None:
            return None
        url = variants_page(entry)
        page = self._read(entry, url)
        if isinstance(page, Page):
            return page
        place = without_userinfo(url)
        warnings.append(f"{entry.name}: its variant wheels from {place} cannot be had: {page}")
        return None

    def _read(self, entry: CatalogProject, url: str) -> Page | str:
        """Return the page at *url*, or why there is none."""
        try:
            page = self._prefetcher.result(("catalog", url), partial(self._page, entry, url))
        except PackageIndexError as error:
            return str(error).removeprefix(f"{redacted(url)}: ")
        listed = any(file.filename.endswith(".whl") for file in page.files)
        return page if listed else "lists no wheels"

    def _page(self, entry: CatalogProject, url: str) -> Page:
        if entry.source.startswith(("http://", "https://")):
            self._session.addresses.allow_links(entry.source, (url,))
        else:
            self._session.add_index(url)
        return self._session.fetch_page(url, entry.name, seconds=_PLACE_SECONDS)


def extras(entry: CatalogProject, files: Listed) -> Iterator[tuple[CatalogFile, PageFile]]:
    """Yield what the project's own *files* are with each of its extras."""
    for file, place in files:
        for published in entry.own_files(file.filename):
            yield CatalogFile(entry, published, place), file


def redirects(entry: CatalogProject, files: Listed) -> Iterator[tuple[CatalogFile, PageFile]]:
    """Yield what stands for the *files* of a project of another name."""
    for file, place in files:
        for published in entry.redirects(file.filename):
            own = PageFile(
                published.filename, "", requires_python=file.requires_python, yanked=file.yanked
            )
            yield CatalogFile(entry, published, place), own


def catalog_metadata(files: Sequence[CatalogFile]) -> ReleaseMetadata:
    """Return the variant metadata of the version that has *files*, at least one."""
    entry = files[0].entry
    ordered = sorted((item.published for item in files), key=lambda item: item.filename)
    metadata = entry.metadata(ordered)
    return ReleaseMetadata(metadata, {"": write_metadata(metadata).encode()})


def variants_page(entry: CatalogProject) -> str:
    """Return the URL of the project's page on the index of its variant wheels."""
    return f"{(entry.variants_index or '').rstrip('/')}/{entry.name}/"


def by_release(
    items: Iterable[tuple[CatalogFile, PageFile]],
) -> Mapping[Version, Sequence[tuple[CatalogFile, PageFile]]]:
    """Return *items* by public version, each labelled name once."""
    found: dict[Version, dict[str, tuple[CatalogFile, PageFile]]] = {}
    for item in items:
        published = item[0].published
        found.setdefault(published.version, {}).setdefault(published.filename, item)
    return {version: tuple(files.values()) for version, files in found.items()}


def _pages(entry: CatalogProject) -> Iterator[str]:
    yield from map(entry.page, entry.places)
    if entry.variants_index is not None:
        yield variants_page(entry)


def _failure(entry: CatalogProject, places: Sequence[str], reason: str) -> str:
    labels = dict.fromkeys(item.label for item in entry.variants if item.place in places)
    url = without_userinfo(entry.page(places[0]))
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    named = f"variant{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
    return f"{entry.name}: {named} from {url}{more} cannot be had: {reason}"

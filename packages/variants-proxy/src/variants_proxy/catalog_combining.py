"""The page of a project with the files that the catalogue knows: a pure function of pages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from packaging.version import Version

from pep_variants.model.filename import parse_metadata_filename
from pep_variants.model.label import NULL_LABEL, split_label
from pep_variants.model.metadata import Metadata
from variants_catalog.model import CatalogProject, PublishedFile
from variants_index.pages import Page, PageFile

from .catalog_files import listed_as
from .releases import wheel_version
from .settings import Upstream


@dataclass(frozen=True)
class Source:
    """A page with files of a project.

    Attributes:
        upstream: of the page.
        page: the page.
        place: of the entry (`CatalogProject.places`); empty for another kind of page.
    """

    upstream: Upstream
    page: Page
    place: str = ""


@dataclass(frozen=True)
class Sources:
    """The pages that the catalogue names for a project.

    Attributes:
        places: pages of other indexes that have its builds.
        targets: of projects whose versions stand for this one's.
        variants: its page on an index of variants, None without.
    """

    places: Sequence[Source] = ()
    targets: Sequence[Source] = ()
    variants: Source | None = None


_Item: TypeAlias = "tuple[PublishedFile, Source, PageFile]"
"""What a file is to the catalogue, and the page that lists it."""


def combined(entry: CatalogProject, own: Source, sources: Sources) -> Page:
    """Return the page *own* with the files of *sources* after its own.

    A version of which *own* has variant wheels stays as it is. Of another one the variant wheels of
    an index of variants count, or else the files that the catalogue describes.
    """
    real = _variants(own.page)
    added: list[PageFile] = []
    if sources.variants is not None:
        theirs = _variants(sources.variants.page) - real
        added += _real_files(entry, sources.variants, theirs)
        real |= theirs
    hashes = {file.filename: file.hashes.get("sha256") for file in own.page.files}
    found: dict[Version, dict[str, _Item]] = {}
    for known, source, file in _described(entry, own, sources):
        if known.version not in real and not _is_own(known, file, hashes):
            items = found.setdefault(known.version, {})
            before = items.get(known.filename)
            if before is None or _is_newer(known, source, before):
                items[known.filename] = known, source, file
    equal: list[Metadata] = []
    for items in found.values():
        metadata = entry.metadata(known for known, _, _ in items.values())
        if metadata in equal:
            metadata = equal[equal.index(metadata)]
        else:
            equal.append(metadata)
        added += [
            listed_as(file, known.filename, source.upstream, entry, known, metadata)
            for known, source, file in items.values()
        ]
    # The versions that a page lists (PEP 700) would have to be those that a client is shown.
    versions = None if added else own.page.versions
    return replace(own.page, files=(*own.page.files, *added), versions=versions)


def _is_newer(known: PublishedFile, source: Source, before: _Item) -> bool:
    """Return whether a file of one place is newer than another one for the same use.

    Of 2.9.0 and 2.9.0+cpu any installer takes the latter. Of several places the first one counts.
    """
    other, place, _ = before
    if place is not source:
        return False
    new, old = wheel_version(known.published), wheel_version(other.published)
    return new is not None and old is not None and new > old


def _is_own(known: PublishedFile, file: PageFile, hashes: Mapping[str, str | None]) -> bool:
    """Return whether the user's index has the same wheel, which then stays as it lists it.

    Wheels for Macs for example: locks name one place of them, whatever machine makes them.
    """
    digest = file.hashes.get("sha256")
    same = digest is not None and hashes.get(file.filename) == digest
    return same and known.label == NULL_LABEL


def has_files(page: Page) -> bool:
    """Return whether *page* lists a wheel of its project; a page to log in at lists none."""
    return any(wheel_version(file.filename) is not None for file in page.files)


def _variants(page: Page) -> set[Version]:
    """Return the versions of which *page* has variant wheels."""
    found = (
        wheel_version(file.filename)
        for file in page.files
        if split_label(file.filename)[1] is not None
    )
    return {version for version in found if version is not None}


def _real_files(
    entry: CatalogProject, source: Source, versions: Collection[Version]
) -> Iterator[PageFile]:
    """Yield the variant wheels of *versions* on an index of variants, and their metadata files."""
    for file in source.page.files:
        described = parse_metadata_filename(file.filename)
        if described is not None:
            wanted = described[0] == entry.name and described[1] in versions
        else:
            is_variant = split_label(file.filename)[1] is not None
            wanted = is_variant and wheel_version(file.filename) in versions
        if wanted:
            yield listed_as(file, file.filename, source.upstream, entry)


def _described(entry: CatalogProject, own: Source, sources: Sources) -> Iterator[_Item]:
    """Yield what files are to the catalogue, in the order in which they count."""
    for source in sources.places:
        for file in source.page.files:
            for known in entry.files(source.place, file.filename):
                yield known, source, file
    if entry.uses_own_files:
        for file in own.page.files:
            for known in entry.own_files(file.filename):
                yield known, own, file
    for source in sources.targets:
        for file in source.page.files:
            for known in entry.redirects(file.filename):
                yield known, source, file

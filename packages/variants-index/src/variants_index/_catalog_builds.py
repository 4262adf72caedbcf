"""The files that the catalogue of existing builds adds to those of a project.

`variants_catalog.listings` decides which files they are. Callers fetch its pages and pass them in.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import IO, Any, Final

from packaging.version import Version

from pep_variants import wheel_files
from pep_variants.errors import redacted
from pep_variants.metadata import Metadata
from pep_variants.wheel_files import Rewrite, WheelContents
from variants_catalog import installed_builds
from variants_catalog.entries import CatalogProject, PublishedFile
from variants_catalog.listings import Found, Listed

from .pages import PageFile


@dataclass
class OwnBuild(PageFile):
    """A wheel of the project's own that is one of its variants, and so not for everyone.

    It stays on the page: for locks, and for whoever asks for it.
    """


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
        variants: variant metadata of its version, one object for equal ones; `variants_of` tells
            what counts where a label has other properties on other platforms.
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
        version = wheel_files.read_version(self.published.published_version)
        return self.published.version if version is None else version

    @property
    def version(self) -> Version:
        """Version as installed: of a build of another name, the public one."""
        return self.published.version if self.published.origin else self.published_version

    def installed_metadata(self, metadata: bytes) -> bytes:
        """Return METADATA as it is installed, from the publisher's; raises InvalidWheel."""
        return installed_builds.installed_metadata(metadata, self.entry, self.published)

    @property
    def added(self) -> dict[str, bytes]:
        """Files that its dist-info folder gets, by name; none if it is not rewritten."""
        return installed_builds.added_files(self.entry, self.published, self.url, self.hashes)

    def write(self, original: IO[bytes], target: IO[bytes]) -> None:
        """Write the wheel as it is installed.

        Args:
            original: the published wheel, whose hashes are checked.
            target: is written to.

        Raises:
            InvalidWheel: *original* is damaged, or of another project or version.
        """
        name = self.original.filename
        with wheel_files.open_wheel(original, redacted(self.url), filename=name) as contents:
            self.rewritten(contents, original).write(original, target)

    def rewritten(
        self, contents: WheelContents, stream: IO[bytes], metadata: bytes | None = None
    ) -> Rewrite:
        """Return the wheel as it is installed, see `installed_builds.rewritten`."""
        return installed_builds.rewritten(
            contents, stream, self.entry, self.published, self.added, metadata
        )


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


def variants_of(files: Iterable[CatalogFile]) -> Metadata | None:
    """Return the variant metadata that counts for *files* of one version, None without any.

    A label has the properties that it has for these, on the platform that they are for. Those of
    labels that only others have are there as well.
    """
    metadata: Metadata | None = None
    for file in files:
        metadata = metadata or file.variants
        published = file.published
        if metadata.variants.get(published.label) != published.properties:
            own = {**metadata.variants, published.label: published.properties}
            metadata = replace(metadata, variants=own)
    return metadata


def with_builds(files: Iterable[PageFile], builds: Container[str]) -> Iterator[PageFile]:
    """Yield *files* of a page, those named in *builds* (`PlaceReader.builds`) as `OwnBuild`."""
    for file in files:
        yield OwnBuild(**_values(file)) if file.filename in builds else file


def _values(file: PageFile) -> dict[str, Any]:
    return {each.name: getattr(file, each.name) for each in fields(PageFile)}


def _placed(
    entry: CatalogProject, found: Found[At], variants: Mapping[Version, Metadata]
) -> PlacedFile:
    (file, place), published = found.listed.file, found.published
    listed = _values(file)
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


def listed(
    files: Iterable[PageFile], place: str, position: int = 0, at: Callable[[str], str] = str
) -> Iterator[Listed[At]]:
    """Yield *files* of the page *place* for `PlaceReader`.

    Args:
        files: of the page.
        place: see `PlacedFile`.
        position: see `Listed`.
        at: tells where a file is that is listed at a URL.
    """
    for file in files:
        url, digest = at(file.url), file.hashes.get("sha256")
        item = file if url == file.url else replace(file, url=url)
        yield Listed(file.filename, (item, place), digest, position, file.yanked)

"""The versions on an upstream's page: their wheels, and the file with their variant metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.version import Version

from pep_variants import split_label
from pep_variants.internal import METADATA_SUFFIX, parse_metadata_filename, read_version
from variants_index import Page, PageFile

_PARTS = 5
"""Minimum number of parts of a wheel's filename."""


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


@dataclass(frozen=True)
class Listing:
    """The files of a page by version, sorted out once.

    Attributes:
        wheels: by the spelling of the version in filenames.
        labelled: spellings of versions with variants.
        documents: variant metadata files of the project by version; the first one of each.
    """

    wheels: Mapping[str, Sequence[PageFile]]
    labelled: Collection[str]
    documents: Mapping[Version, PageFile]

    @classmethod
    def of(cls, page: Page) -> Listing:
        """Return the listing of *page*."""
        wheels: dict[str, list[PageFile]] = {}
        labelled: set[str] = set()
        documents: dict[Version, PageFile] = {}
        for file in page.files:
            filename = file.filename
            if filename.endswith(".whl"):
                parts = filename.split("-")
                if len(parts) >= _PARTS:
                    text = parts[1]
                    if text in wheels:
                        wheels[text].append(file)
                    else:
                        wheels[text] = [file]
                    if text not in labelled and split_label(filename)[1] is not None:
                        labelled.add(text)
            elif filename.endswith(METADATA_SUFFIX):
                known = parse_metadata_filename(filename)
                if known is not None and known[0] == page.project:
                    documents.setdefault(known[1], file)  # the first one is used, as in pip
        return cls(wheels, labelled, documents)

    def releases(self, also: Collection[Version] = ()) -> tuple[Release, ...]:
        """Return the versions that have variants, and those of *also*, newest first."""
        if not self.labelled and not also:
            return ()
        versions = {text: read_version(text) for text in self.wheels}
        wanted = ({versions[text] for text in self.labelled} | set(also)) - {None}
        wheels: dict[Version, list[PageFile]] = {}
        for text, files in self.wheels.items():
            version = versions[text]
            if version is not None and version in wanted:
                wheels.setdefault(version, []).extend(files)
        return tuple(
            Release(version, tuple(wheels[version]), self.documents.get(version))
            for version in sorted(wheels, reverse=True)
        )

    def plain_releases(self, found: Sequence[Release]) -> tuple[Release, ...]:
        """Return the versions that are not in *found*, newest first, only wheels without label."""
        known = {release.version for release in found}
        wheels: dict[Version, list[PageFile]] = {}
        for text, files in self.wheels.items():
            version = read_version(text)
            if version is None or version in known:
                continue
            plain = files
            if text in self.labelled:
                plain = [file for file in files if split_label(file.filename)[1] is None]
            if plain:
                wheels.setdefault(version, []).extend(plain)
        return tuple(
            Release(version, tuple(wheels[version]), None)
            for version in sorted(wheels, reverse=True)
        )


def releases(page: Page, also: Collection[Version] = ()) -> tuple[Release, ...]:
    """Return the versions of *page* that have variants, and those of *also*, newest first."""
    return Listing.of(page).releases(also)


def wheel_version(filename: str) -> Version | None:
    """Return the version in a wheel's filename, None for other files."""
    if filename.endswith(".whl") and filename.count("-") >= 4:
        return read_version(filename.split("-", 2)[1])
    return None


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

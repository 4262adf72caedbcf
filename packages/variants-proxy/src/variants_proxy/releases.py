"""The versions on an upstream's page: their wheels, and the file with their variant metadata."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.version import Version

from pep_variants.model.filename import parse_metadata_filename, read_version
from pep_variants.model.label import METADATA_SUFFIX, split_label
from variants_index.pages import Page, PageFile


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


def releases(page: Page, also: Collection[Version] = ()) -> tuple[Release, ...]:
    """Return the versions of *page* that have variants, and those of *also*, newest first."""
    by_text: dict[str, list[PageFile]] = {}  # by the spelling of the version
    labelled: set[str] = set()
    for file in page.files:
        filename = file.filename
        if filename.endswith(".whl") and filename.count("-") >= 4:
            text = filename.split("-", 2)[1]
            by_text.setdefault(text, []).append(file)
            if text not in labelled and split_label(filename)[1] is not None:
                labelled.add(text)
    if not labelled and not also:
        return ()
    versions = {text: read_version(text) for text in by_text}
    wanted = ({versions[text] for text in labelled} | set(also)) - {None}
    wheels: dict[Version, list[PageFile]] = {}
    for text, files in by_text.items():
        version = versions[text]
        if version is not None and version in wanted:
            wheels.setdefault(version, []).extend(files)
    documents: dict[Version, PageFile] = {}
    for file in page.files:
        if file.filename.endswith(METADATA_SUFFIX):
            known = parse_metadata_filename(file.filename)
            if known is not None and known[0] == page.project:
                documents.setdefault(known[1], file)  # the first one is used, as in pip
    return tuple(
        Release(version, tuple(wheels[version]), documents.get(version))
        for version in sorted(wheels, reverse=True)
    )


def plain_releases(page: Page, found: Sequence[Release]) -> tuple[Release, ...]:
    """Return the versions of *page* that are not in *found*, newest first, only plain wheels."""
    known = {release.version for release in found}
    versions: dict[str, Version | None] = {}  # by the spelling of the version
    wheels: dict[Version, list[PageFile]] = {}
    for file in page.files:
        filename = file.filename
        if not filename.endswith(".whl"):
            continue
        _, _, rest = filename.partition("-")
        text, _, _ = rest.partition("-")
        if text not in versions:
            version = read_version(text)
            versions[text] = None if version in known else version
        version = versions[text]
        if version is not None and filename.count("-") >= 4 and split_label(filename)[1] is None:
            wheels.setdefault(version, []).append(file)
    return tuple(
        Release(version, tuple(wheels[version]), None) for version in sorted(wheels, reverse=True)
    )


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

"""The files of a project's page by version, with the variant metadata of each version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from packaging.utils import BuildTag, InvalidSdistFilename, parse_sdist_filename
from packaging.version import Version

from pep_variants.choose.abi import supporting
from pep_variants.choose.comparison import order_if_supported
from pep_variants.choose.ranking import rank
from pep_variants.errors import InvalidWheelFilename, MetadataError
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename, parse_metadata_filename
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform
from variants_index.pages import Page, PageFile


@dataclass(frozen=True)
class ReleaseFile:
    """One wheel or source distribution.

    Attributes:
        file: what the page says of it.
        label: as the metadata spells it, None for a non-variant file.
        tags: the last three parts of the plain wheel filename, ``py3-none-any``; empty for what
            is no wheel.
        build: build tag of a wheel, ``()`` without one.
    """

    file: PageFile
    label: str | None
    tags: str = ""
    build: BuildTag = ()


class Row(NamedTuple):
    """Files of a version that are alike.

    Attributes:
        kind: ``variant``; ``wheels`` for wheels without a label, ``source`` for source
            distributions, ``other`` for files of no version.
        label: of the variant, None for the others.
        files: in the order of the page.
    """

    kind: str
    label: str | None
    files: tuple[ReleaseFile, ...]


@dataclass(frozen=True)
class Release:
    """One version of a project.

    Attributes:
        version: None for files that are of no version: neither wheels nor source distributions.
        files: in the order of the page.
        document: the file with the index-level metadata, None if the page lists none.
        metadata: what it says, None without it or if it cannot be used.
        problem: why the variant wheels cannot be used, empty if they can or there are none.
    """

    version: Version | None
    files: tuple[ReleaseFile, ...]
    document: PageFile | None = None
    metadata: Metadata | None = None
    problem: str = ""

    @property
    def has_variants(self) -> bool:
        """Whether there is a choice to make among variants."""
        return self.metadata is not None and any(file.label is not None for file in self.files)

    @property
    def is_yanked(self) -> bool:
        """Whether all its files are."""
        return bool(self.files) and all(item.file.yanked is not None for item in self.files)

    @property
    def is_late(self) -> bool:
        """Whether installers take it only if it is asked for: a pre-release, or yanked."""
        return self.version is not None and (self.version.is_prerelease or self.is_yanked)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels that have files, best first on a machine that supports all of them.

        Labels that the metadata does not have come last.
        """
        present = {file.label: None for file in self.files if file.label is not None}
        if self.metadata is None:
            return tuple(sorted(present))
        known = [label for label in present if label in self.metadata.variants]
        platform = supporting(Platform(), self.metadata)
        ordered = order_if_supported(rank(self.metadata, platform), known)
        return (*ordered, *sorted(present.keys() - set(ordered)))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The files as the page has them: variants, other wheels, other files."""
        found: dict[str | None, list[ReleaseFile]] = {}
        for item in self.files:
            found.setdefault(item.label, []).append(item)
        rows = [Row("variant", label, tuple(found[label])) for label in self.labels]
        plain = found.get(None, [])
        other = "source" if self.version is not None else "other"
        for kind, files in (
            ("wheels", [item for item in plain if item.tags]),
            (other, [item for item in plain if not item.tags]),
        ):
            if files:
                rows.append(Row(kind, None, tuple(files)))
        return tuple(rows)


def releases_of(page: Page, documents: Mapping[str, bytes]) -> tuple[Release, ...]:
    """Return the releases on *page*, the newest first; files of no version come last.

    Args:
        page: the page, of one project.
        documents: the ``*-variants.json`` files of the project by filename.
    """
    found: dict[Version | None, list[ReleaseFile]] = {}
    listed: dict[Version, PageFile] = {}
    for file in page.files:
        named = parse_metadata_filename(file.filename)
        if named is not None:
            listed[named[1]] = file
        else:
            version, item = _parsed(file)
            found.setdefault(version, []).append(item)
    versions = sorted({*filter(None, found), *listed}, reverse=True)
    releases = [
        _release(version, found.get(version, []), listed.get(version), documents)
        for version in versions
    ]
    if None in found:
        releases.append(Release(None, tuple(found[None])))
    return tuple(releases)


def _release(
    version: Version,
    files: list[ReleaseFile],
    document: PageFile | None,
    documents: Mapping[str, bytes],
) -> Release:
    metadata, problem = None, ""
    labels = {file.label for file in files if file.label is not None}
    if document is not None and document.filename in documents:
        try:
            metadata = read_metadata(documents[document.filename], document.filename)
        except MetadataError as error:
            problem = str(error)
    elif labels:
        problem = "the index does not say what these variants need"
    if metadata is not None:
        known = metadata
        files = [
            ReleaseFile(file.file, known.label_of(file.label), file.tags, file.build)
            if file.label is not None
            else file
            for file in files
        ]
    return Release(version, tuple(files), document, metadata, problem)


def _parsed(file: PageFile) -> tuple[Version | None, ReleaseFile]:
    name = file.filename
    try:
        if not name.endswith(".whl"):
            return parse_sdist_filename(name)[1], ReleaseFile(file, None)
        wheel = parse_filename(name)
    except (InvalidWheelFilename, InvalidSdistFilename, ValueError):
        return None, ReleaseFile(file, None)
    plain = name.removesuffix(".whl")
    if wheel.label is not None:
        plain = plain.rpartition("-")[0]
    tags = "-".join(plain.rsplit("-", 3)[1:])
    return wheel.version, ReleaseFile(file, wheel.label, tags, wheel.build)

"""Candidates: the files of a version that a resolver or installer chooses among."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from packaging.version import Version

from pep_variants import labels as wheel_labels

from ._catalog_builds import CatalogFile, OwnBuild
from .pages import PageFile


@dataclass(frozen=True)
class CoreMetadata:
    """Core metadata of a distribution.

    Attributes:
        requires: ``Requires-Dist`` values as they are.
        extras: normalized ``Provides-Extra`` values.
        requires_python: version specifier, None if there is none.
    """

    requires: tuple[str, ...]
    extras: frozenset[str]
    requires_python: str | None


@dataclass(eq=False)
class Candidate:
    """A file of a project in one of its sources, or an extra of it; never changed, see `PageFile`.

    Attributes:
        project: normalized name.
        version: as installed: as published, or of a build of another name its public part.
        source: URL of the page or directory that lists it, without credentials, or of the file
            itself; of files of the catalogue, the entry.
        file: its entry on the page; of a published file that counts as a variant, a `CatalogFile`.
        metadata: the ``*-variants.json`` of its version, None if the source lists none.
        extra: normalized name of the extra, empty for the file itself.
        direct: whether the user named the file by URL.
    """

    project: Final[str]
    version: Final[Version]
    source: Final[str]
    file: Final[PageFile] = field(repr=False)
    metadata: Final[PageFile | None] = field(default=None, repr=False)
    extra: Final[str] = ""
    direct: Final[bool] = False

    @property
    def filename(self) -> str:
        """Name of the file; of files of the catalogue, the labelled one."""
        return self.file.filename

    @property
    def catalog(self) -> CatalogFile | None:
        """The published file that counts as a variant, None for one that is listed as such."""
        return self.file if isinstance(self.file, CatalogFile) else None

    @property
    def is_build(self) -> bool:
        """Whether the catalogue has this very file, which has no label, as a variant."""
        return isinstance(self.file, OwnBuild)

    # Needed many times in each round of a resolution.
    @cached_property
    def _key(self) -> tuple[str, str, str]:
        return self.filename, self.source, self.extra

    @cached_property
    def version_text(self) -> str:
        """The version as text, which is compared and hashed much faster."""
        return str(self.version)

    @property
    def release(self) -> Version:
        """The version that it is a file of: of files of the catalogue, the public version."""
        return self.version if self.catalog is None else self.catalog.published.version

    @property
    def published(self) -> str:
        """Name of the file that is fetched."""
        return self.filename if self.catalog is None else self.catalog.published.published

    @property
    def published_name(self) -> str:
        """Normalized name of the project that its publisher has it in."""
        return self.project if self.catalog is None else self.catalog.name

    @property
    def published_version(self) -> Version:
        """The version as published."""
        return self.version if self.catalog is None else self.catalog.published_version

    @property
    def published_as(self) -> str | None:
        """Requirement of the published file under its own name, None if that is the project's."""
        if self.published_name == self.project:
            return None
        return f"{self.published_name}=={self.published_version}"

    @property
    def rewritten(self) -> CatalogFile | None:
        """The file itself if it is rewritten before it is installed, None for all others."""
        catalog = self.catalog
        return catalog if catalog is not None and catalog.published.is_rewritten else None

    @property
    def installed_filename(self) -> str:
        """Name of the wheel that is installed: a rewritten one has no label, for any installer."""
        return (
            self.published if self.rewritten is None else wheel_labels.split_label(self.filename)[0]
        )

    @property
    def place(self) -> str:
        """URL of the page or directory that lists it, or of the file itself."""
        return self.source if self.catalog is None else self.catalog.place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def label(self) -> str | None:
        """The variant label, None for a non-variant file."""
        return wheel_labels.split_label(self.filename)[1] if self.is_wheel else None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel, not a source distribution."""
        return self.filename.endswith(".whl")

    @property
    def base(self) -> Candidate:
        """The file itself."""
        return self.with_extra("")

    def with_extra(self, extra: str) -> Candidate:
        """Return *extra* of this file; the file itself for an empty one."""
        return self if self.extra == extra else replace(self, extra=extra)

    def __str__(self) -> str:
        name = f"{self.project}[{self.extra}]" if self.extra else self.project
        label = f" (variant {self.label})" if self.label is not None else ""
        return f"{name} {self.version}{label}"

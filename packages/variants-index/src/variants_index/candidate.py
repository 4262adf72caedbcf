"""Candidates: the files of a version that a resolver or installer chooses among."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.version import Version

from pep_variants import split_label

from .pages import PageFile

if TYPE_CHECKING:
    from .catalog_builds import CatalogFile  # imported with a catalogue only: it takes a while


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


@dataclass(frozen=True)
class Candidate:
    """A file, or an extra of it.

    Attributes:
        project: normalized name.
        version: as installed: as published, or of a build of another name its public part.
        filename: of the file; of files of the catalogue, the labelled name.
        source: URL of the page or directory that lists it, or of the file itself; of files of the
            catalogue, the entry.
        extra: normalized name of the extra, empty for the file itself.
        file: its entry on the page.
        metadata: the ``*-variants.json`` of its version, None if the source lists none.
        direct: whether the user named the file by URL.
        catalog: what makes a published file a variant, None for files that are listed as such.
    """

    project: str
    version: Version
    filename: str
    source: str
    extra: str = ""
    file: PageFile = field(kw_only=True, compare=False, repr=False)
    metadata: PageFile | None = field(default=None, kw_only=True, compare=False, repr=False)
    direct: bool = field(default=False, kw_only=True, compare=False)
    catalog: CatalogFile | None = field(default=None, kw_only=True, compare=False, repr=False)

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
        """What installs the published file under its own name, None if that is the project's."""
        if self.published_name == self.project:
            return None
        return f"{self.published_name}=={self.published_version}"

    @property
    def rewritten(self) -> CatalogFile | None:
        """What makes the wheel that is installed of the one that is fetched, None if it is that."""
        found = self.catalog
        return found if found is not None and found.published.is_rewritten else None

    @property
    def installed_filename(self) -> str:
        """Name of the wheel that is installed: a rewritten one has no label, for any installer."""
        return self.published if self.rewritten is None else split_label(self.filename)[0]

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
        return split_label(self.filename)[1] if self.is_wheel else None

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

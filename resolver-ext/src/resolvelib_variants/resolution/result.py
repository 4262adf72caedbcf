"""What comes out of a resolution: plain data, the same for the same answer.

`to_tree` of each gives what JSON can hold; `docs/reference/json.md` documents it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Properties, properties_tree
from variants_index.candidate import Candidate
from variants_index.pages import PageFile
from variants_index.target import Target

if TYPE_CHECKING:
    from variants_catalog.places import Unavailable


@dataclass(frozen=True)
class Package:
    """One file that is to be installed, under the name of its project.

    Attributes:
        name: normalized project name.
        version: of the release.
        candidate: the file.
        extras: normalized names of the extras that are wanted, ascending.
        properties: of the variant; None for a non-variant file, empty for the null variant.
        why: why this file and no other variant, in a few words; empty where there was no choice.
        requires: what it depends on, variant markers reduced for this file, the rest as it is.
        requires_dist: the same before it was reduced; by variant label, empty for non-variant
            files, of every label in `alternatives`.
        depends: names of the packages of this resolution that it depends on, ascending.
        alternatives: with all variants kept, every file of the version that the target can use,
            by tag; otherwise this one alone.
        metadata: the variant metadata it was chosen by, None for a non-variant file.
        requested: whether the user asked for the project, rather than something else.
        editable: whether it is a directory that is to be installed in place.
    """

    name: str
    version: Version
    candidate: Candidate
    extras: tuple[str, ...] = ()
    properties: Properties | None = None
    why: str = ""
    requires: tuple[str, ...] = ()
    requires_dist: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    depends: tuple[str, ...] = ()
    alternatives: tuple[Candidate, ...] = ()
    metadata: Metadata | None = field(default=None, repr=False)
    requested: bool = False
    editable: bool = False

    @property
    def filename(self) -> str:
        """Name of the file that is fetched."""
        return self.candidate.published

    @property
    def label(self) -> str | None:
        """Variant label, None for a non-variant file."""
        return self.candidate.label

    @property
    def file(self) -> PageFile:
        """What the index says of the file."""
        return self.candidate.file

    def to_tree(self) -> dict[str, Any]:
        """Return it as JSON data."""
        file = self.file
        return {
            "name": self.name,
            "version": str(self.version),
            "extras": list(self.extras),
            "requested": self.requested,
            "published_as": self.candidate.published_as,
            "filename": None if self.candidate.is_directory else self.filename,
            "editable": self.editable,
            "url": file.url or None,
            "index": None if self.candidate.direct else self.candidate.place,
            "catalog": None if self.candidate.catalog is None else self.candidate.source,
            "hashes": dict(sorted(file.hashes.items())),
            "size": file.size,
            "yanked": file.yanked,
            "label": self.label,
            "properties": None
            if self.properties is None
            else properties_tree(self.properties, ascending=True),
            "why": self.why,
            "requires": list(self.requires),
        }


@dataclass(frozen=True)
class Resolution:
    """The answer for one target.

    Attributes:
        target: what it is for.
        packages: by name, ascending.
        warnings: what the user should know.
        requested: extras by name of what the user asked for; the project itself is the empty one.
        seen: variant metadata of all versions that were decided about.
        provided: which package stands for a project that is required and not installed itself.
        unavailable: builds of the catalogue that could not be had, one item for each host and
            reason; they are among the warnings.
    """

    target: Target
    packages: tuple[Package, ...]
    warnings: tuple[str, ...] = ()
    requested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    seen: tuple[Metadata, ...] = field(default=(), compare=False, repr=False)
    provided: Mapping[str, str] = field(default_factory=dict)
    unavailable: tuple[Unavailable, ...] = ()

    @property
    def by_name(self) -> Mapping[str, Package]:
        """The packages by normalized name."""
        return {package.name: package for package in self.packages}

    def to_tree(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "target": self.target.name,
            "python": self.target.python,
            "packages": [package.to_tree() for package in self.packages],
            "warnings": list(self.warnings),
        }

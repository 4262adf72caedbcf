"""What comes out of a resolution: plain data, the same for the same answer, and how it is made.

`to_tree` of each gives what JSON can hold; `docs/reference/json.md` documents it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants import markers
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.metadata import Metadata, Properties
from pep_variants.selection import File, VersionNote
from variants_index.finder import Candidate
from variants_index.pages import PageFile
from variants_index.target import Target

from ..provider import VariantProvider
from .index_provider import IndexProvider, SpecifierRequirement, split_identifier

if TYPE_CHECKING:
    pass


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
        requires_dist: the same before it was reduced.
        depends: names of the packages of this resolution that it depends on, ascending.
        metadata: the variant metadata it was chosen by, None for a non-variant file.
        requested: whether the user asked for the project, rather than something else.
    """

    name: str
    version: Version
    candidate: Candidate
    extras: tuple[str, ...] = ()
    properties: Properties | None = None
    why: str = ""
    requires: tuple[str, ...] = ()
    requires_dist: tuple[str, ...] = field(default=(), repr=False)
    depends: tuple[str, ...] = ()
    metadata: Metadata | None = field(default=None, repr=False)
    requested: bool = False

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
            "filename": self.filename,
            "url": file.url or None,
            "index": None if self.candidate.direct else self.candidate.place,
            "catalog": None if self.candidate.catalog is None else self.candidate.source,
            "hashes": dict(sorted(file.hashes.items())),
            "size": file.size,
            "yanked": file.yanked,
            "label": self.label,
            "properties": None
            if self.properties is None
            else variant_metadata.properties_tree(self.properties, ascending=True),
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
        unavailable: those of the warnings that say what cannot be had for now, or which builds of
            the catalogue.
        version_notes: by name of a package, which other version there is for the sake of an
            accelerator; their texts are among the warnings.
    """

    target: Target
    packages: tuple[Package, ...]
    warnings: tuple[str, ...] = ()
    requested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    seen: tuple[Metadata, ...] = field(default=(), compare=False, repr=False)
    provided: Mapping[str, str] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()
    version_notes: Mapping[str, VersionNote] = field(default_factory=dict)

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
            "version_notes": {name: note._asdict() for name, note in self.version_notes.items()},
        }


def packages_of(
    result: Any,  # noqa: ANN401 - of resolvelib
    roots: Sequence[Any],
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    provided: Mapping[str, str],
) -> tuple[Package, ...]:
    """Return the packages by name.

    Args:
        result: of resolvelib's resolver.
        roots: the requirements of the user, as resolvelib got them.
        plain: the provider without variants.
        provider: the provider with variants.
        provided: which package stands for a project that is not installed.
    """
    extras: dict[str, set[str]] = {}
    files: dict[str, Candidate] = {}
    for identifier, candidate in result.mapping.items():
        project, extra = split_identifier(identifier)
        if extra:
            extras.setdefault(project, set()).add(extra)
        elif project not in provided:
            files[project] = candidate
    needs = (need.project for need in roots if isinstance(need, SpecifierRequirement))
    requested = {provided.get(name, name) for name in needs}
    depends: dict[str, set[str]] = {}
    for start, end in result.graph.iter_edges():
        if start is not None:
            required = split_identifier(end)[0]
            needed = depends.setdefault(split_identifier(start)[0], set())
            needed.add(provided.get(required, required))
    return tuple(
        _package(
            files[name],
            plain,
            provider,
            extras=tuple(sorted(extras.get(name, ()))),
            depends=tuple(sorted(depends.get(name, set()) & files.keys() - {name})),
            requested=name in requested,
        )
        for name in sorted(files)
    )


def _package(
    candidate: Candidate,
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    **known: Any,  # noqa: ANN401 - attributes of the package
) -> Package:
    project, label = candidate.project, candidate.label
    selection = provider.ordering.selection(project, candidate)
    ranking = None if selection is None else selection.rankings.get(candidate.source)
    requires_dist = plain.core_metadata(candidate).requires
    context = provider.ordering.context(project, candidate)
    requires = (markers.reduce_requirement(text, context) for text in requires_dist)
    properties = metadata = None
    if ranking is not None and label is not None:
        metadata = ranking.metadata
        properties = metadata.properties_of(metadata.label_of(label))
    why = "asked for" if selection is None and provider.ordering.forces(project) else ""
    if selection is not None:
        wanted = (candidate.filename, candidate.source)
        own = (file for file in selection.files if (file.filename, file.source) == wanted)
        why = wheel_selection.why_this(selection, next(own, File(*wanted, candidate)), project)
        if candidate.published_as is not None:
            why = "; ".join(filter(None, (why, f"published as {candidate.published_name}")))
    return Package(
        project,
        candidate.version,
        candidate,
        properties=properties,
        why=why,
        requires=tuple(text for text in requires if text is not None),
        requires_dist=requires_dist,
        metadata=metadata,
        **known,
    )

"""Protocols of clients: candidates as files, listeners to decisions, what is installed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from pep_variants import labels as wheel_labels
from pep_variants.metadata import Metadata
from pep_variants.selection import Selection

__all__ = [
    "CandidateFiles", "Chosen", "CoherenceListener", "InstalledDistributions", "Listener",
    "MetadataHashes", "OwnBuilds", "ProviderFiles", "VersionOrder",
]  # fmt: skip

CT_contra = TypeVar("CT_contra", contravariant=True)
RT_co = TypeVar("RT_co", covariant=True)
KT_contra = TypeVar("KT_contra", contravariant=True)


class CandidateFiles(Protocol[CT_contra]):
    """How candidates name their file and where metadata beside it comes from.

    All but `metadata` are asked often and must be cheap.
    """

    def version(self, candidate: CT_contra) -> Hashable:
        """Return the version; candidates of one version come one after the other."""
        ...

    def filename(self, candidate: CT_contra) -> str | None:
        """Return the filename, None for what is no file (installed, editable)."""
        ...

    def source(self, candidate: CT_contra) -> str:
        """Return the index page or directory that lists the file; only asked when there is one."""
        ...

    def metadata(self, project: str, candidate: CT_contra) -> Metadata:
        """Return the variant metadata that lies beside the file of *candidate*.

        Called at most once per version and source. The hash the index gives for the metadata is
        verified by the implementation.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        ...


@runtime_checkable
class MetadataHashes(Protocol[CT_contra]):
    """Optional extension of `CandidateFiles`: which wheels have the same dependencies."""

    def metadata_hash(self, candidate: CT_contra) -> Hashable | None:
        """Return a value that files with equal METADATA share, None if that is not known."""
        ...


@runtime_checkable
class OwnBuilds(Protocol[CT_contra]):
    """Optional extension of `CandidateFiles`: which files without label are variants, too."""

    def is_build(self, candidate: CT_contra) -> bool:
        """Return whether the file is one of the variants, and not for everyone, see `select`."""
        ...


class Chosen(NamedTuple):
    """A file that is chosen, or is about to be.

    Attributes:
        project: normalized project name.
        label: its label; ``null`` for a non-variant file, too.
        metadata: variant metadata of its version, None if that is not known.

    >>> from resolvelib_variants.interfaces import Chosen
    >>> str(Chosen("torch", "cu128", None))
    'torch (cu128)'
    """

    project: str
    label: str
    metadata: Metadata | None

    @classmethod
    def of(cls, project: str, label: str | None, metadata: Metadata | None) -> Chosen:
        """Make one of the label in a filename."""
        if label is None:
            return cls(project, wheel_labels.NULL_LABEL, metadata)
        return cls(project, metadata.label_of(label) if metadata else label, metadata)

    def takes_part(self, namespace: str) -> bool:
        """Return whether it has a say about *namespace*, as far as is known."""
        return self.metadata is None or namespace in self.metadata.namespaces

    def agreement(self, other: Chosen, namespace: str) -> int:
        """Return how well the two agree: 2 in their properties, 1 in their label, 0 not at all."""
        own, others = (_listed(item, namespace) for item in (self, other))
        if own is not None and own == others:
            return 2
        return int(self.label == other.label)

    def __str__(self) -> str:
        return f"{self.project} ({self.label})"


def _listed(chosen: Chosen, namespace: str) -> dict[str, frozenset[str]] | None:
    if chosen.metadata is None:
        return None
    properties = chosen.metadata.properties_of(chosen.label) or {}
    features = properties.get(namespace, {})
    return {feature: frozenset(values) for feature, values in features.items()}


class Listener(Protocol):
    """Receives the decisions; showing them to the user is up to the client."""

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of the selection of one version with variants.

        Once per version, and again if files of it turn up that were not offered before.
        """
        ...

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Receive an internal error, for which the variants of the version are ignored."""
        ...


@runtime_checkable
class CoherenceListener(Protocol):
    """Optional extension of `Listener`: where coherence could not be had."""

    def disagreed(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        """Take note that no file of a version agrees with *other*, as the user wished it to.

        An empty namespace stands for the label, see `Together`.
        Once for each of them. The resolution may still come to another version.
        """
        ...


class ProviderFiles(CandidateFiles[CT_contra], Protocol[RT_co, CT_contra, KT_contra]):
    """The wrapped provider's objects, as the wrapper has to know them."""

    def has_variants(self, identifier: KT_contra) -> bool:
        """Return whether any candidate of *identifier* may be a variant wheel.

        Must be cheap; asked after each `find_matches` of the wrapped provider, which has seen
        the index by then. When in doubt True: that costs little, see `VariantOrdering.arrange`.
        """
        ...

    def project(self, identifier: KT_contra) -> str:
        """Return the normalized project name of *identifier*, without extras."""
        ...

    def dependencies(
        self, candidate: CT_contra, reduce: Callable[[str], str | None]
    ) -> Iterable[RT_co] | None:
        """Return the requirements of *candidate*, None to have the wrapped provider asked.

        Args:
            candidate: a candidate, variant or not: the metadata of both may use variant markers.
            reduce: takes a ``Requires-Dist`` value and returns it with a plain marker or none, or
                None if it does not apply to this candidate. It raises `InvalidMarker` for variant
                terms that make no sense: treat it as any other requirement that cannot be parsed.
        """
        ...


class InstalledDistributions(Protocol):
    """The distributions that are installed before a resolution. Asked only where it matters.

    Projects are given by their normalized names.
    """

    def version(self, project: str) -> object | None:
        """Return the installed version of a project that the resolution would rather keep.

        None for one that is not installed, or is upgraded where it can be.
        """
        ...

    def present(self, project: str) -> object | None:
        """Return the installed version of a project, None without one.

        It stays if the resolution has nothing to do with the project.
        """
        ...

    def variants(self) -> Iterable[tuple[str, Metadata]]:
        """Yield normalized project name and ``variant.json`` of every installed variant."""
        ...


@dataclass(frozen=True)
class VersionOrder:
    """Facts of a client that the preference ``before_version`` depends on.

    Attributes:
        by_default: whether the newest version of a project with a build for the accelerator goes
            first where the user says nothing of it.
        floor: the version of a project below which nothing is put first, None without one: what
            is installed, if the user does not name the project.
    """

    by_default: Callable[[str], bool] = lambda _: False
    floor: Callable[[str], object | None] = lambda _: None


Together = Callable[[str, str], bool]
"""Whether two projects, by their normalized names, should have the same label; of one project and
itself, whether it should have that of any other."""


@runtime_checkable
class ExpectedLabels(Protocol):
    """Optional extension of `Together`: the labels that unresolved projects will need."""

    def expected_labels(self, project: str) -> Iterable[Collection[str]]:
        """Yield the labels, but null, of each project that *project* belongs to."""
        ...

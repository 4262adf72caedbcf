"""The releases in a directory, read and hashed, and the order of their uploads.

An index with an upload API shows every file as soon as it has it. Installers that read it meanwhile
should not find the version, or find the file that they will choose in the end. So variant wheels
are first, which are ignored without index-level metadata, and of these those that machines prefer,
as the index may have the metadata already; then that metadata; then the fallbacks: the null variant
before the non-variant wheel before the source distribution.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import machines, wheel_files
from pep_variants import selection as wheel_selection

from .._console import some
from .._indexing.update import write_merged
from .._indexing.wheelhouse import (
    VariantFile,
    is_distribution,
    read_core_metadata,
    read_distribution,
)
from .errors import Conflict, PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from variants_index.pages import Page, PageFile

    from .._indexing.wheelhouse import Distribution

ATTESTATION_SUFFIX = ".attestation"


class UploadKind(Enum):
    """What is uploaded together; values are descriptions, the order is that of the uploads."""

    VARIANTS = "variant wheels"
    METADATA = "index-level metadata"
    NULL = "null variants"
    WHEELS = "non-variant wheels"
    SOURCES = "source distributions"


@dataclass(frozen=True)
class PublishedDistribution:
    """One distribution to publish.

    Attributes:
        distribution: the file, as it was read and hashed.
        attestations: paths of its attestation objects (PEP 740).
    """

    distribution: Distribution
    attestations: tuple[Path, ...] = ()

    @property
    def filename(self) -> str:
        """Its name on the target."""
        return self.distribution.path.name


@dataclass(frozen=True)
class Release:
    """What is published of one version of a project.

    Attributes:
        project: normalized name.
        version: its version.
        files: the distributions, by filename.
        document: the ``*-variants.json`` of these files alone; None without variant wheels, and
            where the target gets none.
    """

    project: NormalizedName
    version: Version
    files: tuple[PublishedDistribution, ...]
    document: bytes | None

    @property
    def document_name(self) -> str:
        """The filename of its ``*-variants.json``."""
        return wheel_files.metadata_filename(self.project, self.version)


def _kind_of(item: Distribution) -> UploadKind:
    if not item.is_wheel:
        return UploadKind.SOURCES
    if item.label is None:
        return UploadKind.WHEELS
    return (
        UploadKind.NULL
        if item.label in (wheel_labels.NULL_LABEL, wheel_labels.ZERO_LABEL)
        else UploadKind.VARIANTS
    )


def parts_of(
    releases: Sequence[Release], *, commits_last: bool
) -> list[tuple[UploadKind, list[PublishedDistribution]]]:
    """Return the steps of publishing *releases*: what is uploaded, in order.

    `UploadKind.METADATA` stands for the commit, which has no files.

    Args:
        releases: what is published.
        commits_last: nothing is visible before the commit, so it is the last step.
    """
    groups: dict[UploadKind, list[PublishedDistribution]] = {kind: [] for kind in UploadKind}
    for release in releases:
        for file in release.files if commits_last else _best_first(release):
            groups[_kind_of(file.distribution)].append(file)
    has_commit = commits_last or any(release.document is not None for release in releases)
    parts = [
        (kind, files)
        for kind, files in groups.items()
        if files or (kind is UploadKind.METADATA and has_commit)
    ]
    return sorted(parts, key=lambda part: part[0] is UploadKind.METADATA) if commits_last else parts


def by_project(releases: Iterable[Release]) -> dict[NormalizedName, list[Release]]:
    """Return *releases* grouped by project."""
    found: dict[NormalizedName, list[Release]] = {}
    for release in releases:
        found.setdefault(release.project, []).append(release)
    return found


def entry_of(page: Page | None, filename: str) -> PageFile | None:
    """Return the entry of *filename* on *page*, None without one."""
    files = page.files if page is not None else ()
    return next((file for file in files if file.filename == filename), None)


def best_first(document: bytes) -> tuple[str, ...]:
    """Return the labels of *document* so that each known machine's best comes before its others.

    Where two machines contradict each other, labels descend instead.

    Args:
        document: a ``*-variants.json``.
    """
    metadata = VariantFile(document, wheel_labels.METADATA_SUFFIX).metadata
    labels = sorted(metadata.variants, reverse=True)
    better: dict[str, set[str]] = {label: set() for label in labels}
    for name in machines.BY_NAME:
        ranked = wheel_selection.rank(
            metadata, wheel_selection.supporting(machines.load_machine(name), metadata)
        ).labels
        for first, second in pairwise(ranked):
            better[second].add(first)
    try:
        return tuple(TopologicalSorter(better).static_order())
    except CycleError:
        return tuple(labels)


def same_contents(file: PublishedDistribution, hashes: Mapping[str, str]) -> bool | None:
    """Return whether *hashes* are those of *file*, None if they have no SHA-256.

    Args:
        file: a local file.
        hashes: hexadecimal digests by algorithm, as a target gives them.
    """
    if "sha256" in hashes:
        return hashes["sha256"].lower() == file.distribution.sha256
    return None


def conflict(place: str, differences: Sequence[tuple[PublishedDistribution, PageFile]]) -> Conflict:
    """Return the error of a target that has files with other contents."""
    shown = []
    for file, listed in differences:
        hashes = (f"{name} {digest}" for name, digest in sorted(listed.hashes.items()))
        there = ", ".join(hashes) or "no hash"
        shown.append(f"{file.filename} ({there} there, sha256 {file.distribution.sha256} here)")
    return Conflict(
        f"{place} has other contents under {'this name' if len(shown) == 1 else 'these names'}: "
        f"{some(shown)}: a published file cannot change: publish the new one as another version, "
        "or with a build tag"
    )


def read_releases(
    directory: Path, *, metadata: bool = True, attestations: bool = True
) -> list[Release]:
    """Return the releases in *directory* and below, ascending.

    The directory was validated: wheels and metadata fit each other.

    Args:
        directory: with distributions, and at will with attestations.
        metadata: publish index-level metadata, which is merged from the wheels.
        attestations: publish the attestations that are there.

    Raises:
        PublishError: two files of one name differ, attestations of another file, or PKG-INFO that
            disagrees with the filename.
        VariantError: a file is not usable.
        OSError: it cannot be read.
    """
    found = (path for path in sorted(directory.rglob("*")) if is_distribution(path.name))
    wanted = [path for path in found if path.is_file()]
    files: dict[str, PublishedDistribution] = {}
    for item in map(read_distribution, wanted):
        if not item.is_wheel:
            _check_name(item)
        file = PublishedDistribution(item, _attestations(item) if attestations else ())
        other = files.setdefault(item.path.name, file).distribution
        if other.sha256 != item.sha256:
            raise PublishError(
                f"{other.path} and {item.path} have one name and different contents (sha256 "
                f"{other.sha256} and {item.sha256}): remove one of them"
            )
    groups: dict[tuple[NormalizedName, Version], list[PublishedDistribution]] = {}
    for _, file in sorted(files.items()):
        item = file.distribution
        groups.setdefault((item.project, item.version), []).append(file)
    return [
        Release(*key, tuple(group), _document(group) if metadata else None)
        for key, group in sorted(groups.items())
    ]


def _best_first(release: Release) -> list[PublishedDistribution]:
    """Return the files of *release*, of variant wheels first those that machines prefer."""
    document = release.document or _document(release.files)
    labels = best_first(document) if document is not None else ()
    ranks = {label: number for number, label in enumerate(labels)}

    def rank_of(file: PublishedDistribution) -> tuple[int, str]:
        variant = file.distribution.variant
        described = variant.metadata.variants if variant is not None else ()
        return min((ranks.get(label, 0) for label in described), default=0), file.filename

    return sorted(release.files, key=rank_of)


def _check_name(sdist: Distribution) -> None:
    fields = wheel_files.read_fields(read_core_metadata(sdist))
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    if (canonicalize_name(name), wheel_files.read_version(version)) != (
        sdist.project,
        sdist.version,
    ):
        raise PublishError(
            f"{sdist.path}: PKG-INFO says {name[:100] or 'no name'} {version[:100] or 'no version'}"
            f", the filename {sdist.project} {sdist.version}: build it again, do not rename it"
        )


def _attestations(item: Distribution) -> tuple[Path, ...]:
    """Return the attestation files beside *item*, each of which is of its contents."""
    path = item.path
    names = (f"{path.name}{ATTESTATION_SUFFIX}", f"{path.name}.*{ATTESTATION_SUFFIX}")
    found = tuple(file for name in names for file in sorted(path.parent.glob(name)))
    for file in found:
        try:
            envelope = json.loads(file.read_bytes())["envelope"]
            (subject,) = json.loads(base64.b64decode(envelope["statement"]))["subject"]
            name, digest = str(subject["name"]), subject["digest"]["sha256"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PublishError(f"{file}: is not an attestation of one file (PEP 740)") from None
        if digest != item.sha256:
            plain = wheel_labels.split_label(path.name)[0]
            kind = "the plain wheel " if name == plain != path.name else ""
            raise PublishError(
                f"{file}: is of {kind}{name[:200]} with the SHA-256 {str(digest)[:64]}, and "
                f"{path.name} has {item.sha256}: attest this file itself"
            )
    return found


def _document(files: Iterable[PublishedDistribution]) -> bytes | None:
    """Return the metadata of a release, merged from its wheels."""
    variants = [file.distribution.variant for file in files]
    found = [variant for variant in variants if variant is not None]
    return write_merged(found) if found else None

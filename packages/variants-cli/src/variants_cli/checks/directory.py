"""Checks of a directory: wheels of one version against each other and against the index's file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import InconsistentMetadata
from pep_variants.formats.merging import merge
from pep_variants.model.filename import metadata_filename, parse_metadata_filename
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL
from pep_variants.model.metadata import Metadata

from .dependencies import check_markers
from .document import check_index_metadata
from .finding import Finding, error, warning
from .index_pages import Digests, check_page, find_pages, path_of
from .wheel_file import CheckedWheel, check_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    Release = tuple[NormalizedName, Version]


def check_directory(directory: Path) -> tuple[int, list[Finding]]:
    """Check everything in *directory* and below.

    Returns:
        The number of checked files, and the findings: first those of single files, then
        contradictions between files.
    """
    wheels = [check_wheel(path) for path in _files(directory, ".whl")]
    findings = [finding for wheel in wheels for finding in wheel.findings]
    indexed: dict[Release, list[tuple[Path, Metadata | None]]] = {}
    paths = _files(directory, METADATA_SUFFIX)
    for path in paths:
        metadata, found = check_index_metadata(path)
        findings += found
        release = parse_metadata_filename(path.name)
        if release is not None:
            indexed.setdefault(release, []).append((path, metadata))

    releases: dict[Release, list[CheckedWheel]] = {}
    for wheel in wheels:
        if wheel.filename is not None and wheel.filename.label is not None:
            release = (wheel.filename.name, wheel.filename.version)
            releases.setdefault(release, []).append(wheel)
    for release, its_wheels in sorted(releases.items()):
        findings += check_each_other(its_wheels)
        if release not in indexed:
            name = metadata_filename(*release)
            findings.append(
                warning(
                    "index-metadata-missing",
                    str(directory),
                    "",
                    f"no {name} for the variant wheels of {release[0]} {release[1]}",
                    f"write it before publishing: variants index {directory}",
                )
            )
    for release, documents in sorted(indexed.items()):
        for path, index in documents:
            if index is not None:
                group = releases.get(release, [])
                labels = {
                    wheel.filename.label
                    for wheel in group
                    if wheel.filename is not None and wheel.filename.label is not None
                }
                remedy = f"write it again: variants index {path.parent}"
                findings += check_index(str(path), index, group, labels, remedy=remedy)
    findings += _check_markers(wheels, indexed)
    findings += _check_sidecars(wheels)
    pages = find_pages(directory)
    findings += _check_pages(directory, pages, [*(wheel.path for wheel in wheels), *paths])
    return len(wheels) + len(paths) + len(pages), findings


def _check_markers(
    wheels: Sequence[CheckedWheel],
    indexed: Mapping[Release, Sequence[tuple[Path, Metadata | None]]],
) -> Iterator[Finding]:
    """Yield each requirement of a version that no variant of it has, once."""
    releases: dict[Release, list[CheckedWheel]] = {}
    for wheel in wheels:
        if wheel.filename is not None:
            releases.setdefault((wheel.filename.name, wheel.filename.version), []).append(wheel)
    for release, group in sorted(releases.items()):
        merged = next((index for _, index in indexed.get(release, ()) if index is not None), None)
        for wheel in group:
            if merged is None or wheel.metadata is not None:
                with suppress(InconsistentMetadata):
                    merged = (
                        wheel.metadata
                        if merged is None or wheel.metadata is None
                        else merge(_without_providers(merged), _without_providers(wheel.metadata))
                    )
        labels = {wheel.filename.label for wheel in group if wheel.filename is not None}
        labels |= set(merged.variants if merged is not None else ())
        yield from check_release_markers(group, merged or Metadata(), labels)


def check_release_markers(
    wheels: Sequence[CheckedWheel], metadata: Metadata, labels: Collection[str | None]
) -> Iterator[Finding]:
    """Yield each requirement of *wheels* whose marker holds for no variant of the version, once.

    Args:
        wheels: of one version.
        metadata: of all its variants.
        labels: of its wheels, None for a non-variant wheel.
    """
    seen: set[str] = set()
    for wheel in wheels:
        new = [item for item in wheel.requirements if item not in seen]
        seen.update(new)
        yield from check_markers(new, metadata, labels, str(wheel.path))


def _check_sidecars(wheels: Sequence[CheckedWheel]) -> Iterator[Finding]:
    for wheel in wheels:
        path = wheel.path.with_name(f"{wheel.path.name}.metadata")
        if wheel.core_metadata is None or not path.is_file():
            continue
        if path.read_bytes() != wheel.core_metadata:
            yield error(
                "core-metadata-mismatch",
                str(path),
                "",
                f"differs from METADATA in {wheel.path.name}: resolvers see other dependencies "
                "than are installed",
                f"write it again: variants index --fresh {wheel.path.parent}",
            )


def _check_pages(
    directory: Path, pages: Sequence[Path], files: Sequence[Path]
) -> Iterator[Finding]:
    remedy = f"write the pages again: variants index --fresh {directory}"
    digests = Digests()
    listed: dict[str, set[Path]] = {}
    unreadable = set()
    for path in pages:
        page, findings = check_page(path, remedy, digests)
        yield from findings
        if page is None:
            unreadable.add((path.name, path.parent.name))
        else:
            here = listed.setdefault(path.name, set())
            here.update(place.resolve() for file in page.files if (place := path_of(file)))
    for name, places in sorted(listed.items()):
        # Pages of files that are elsewhere say nothing about those here.
        for file in files if places else ():
            project = canonicalize_name(file.name.partition("-")[0])
            if file.resolve() not in places and (name, project) not in unreadable:
                yield error(
                    "not-listed",
                    str(file),
                    "",
                    f"no {name} lists it, so installers do not find it",
                    remedy,
                )


def _files(directory: Path, suffix: str) -> list[Path]:
    return sorted(path for path in directory.rglob(f"*{suffix}") if path.is_file())


def check_each_other(wheels: Sequence[CheckedWheel]) -> Iterator[Finding]:
    """Yield one finding per wheel that contradicts one before it."""
    agreed: list[Metadata] = []
    merged: Metadata | None = None
    for wheel in wheels:
        if wheel.metadata is None:
            continue
        try:
            merged = merge(merged, wheel.metadata) if merged else wheel.metadata
            agreed.append(wheel.metadata)
            continue
        except InconsistentMetadata:
            pass
        for other in agreed:
            try:
                merge(other, wheel.metadata)
            except InconsistentMetadata as problem:
                remedy = "make all wheels of a version from one description"
                yield _contradiction("inconsistent-wheels", str(wheel.path), problem, remedy)
                break


def check_index(
    place: str,
    index: Metadata,
    wheels: Sequence[CheckedWheel],
    labels: Collection[str],
    *,
    remedy: str,
) -> Iterator[Finding]:
    """Yield where the ``*-variants.json`` at *place* contradicts the wheels of its version.

    Args:
        place: path or URL.
        index: what it says.
        wheels: those that were looked into.
        labels: of all wheels that there are.
        remedy: for contradictions.
    """
    names = {wheel.filename.label: wheel.path.name for wheel in wheels if wheel.filename}
    for label in sorted(labels):
        if index.label_of(label) not in {*index.variants, NULL_LABEL}:
            yield error(
                "label-not-indexed",
                place,
                "variants",
                f"does not list label {label!r} of {names.get(label, 'a wheel')}: "
                "installers treat it as incompatible",
                remedy,
            )
    for wheel in wheels:
        if wheel.filename is None or wheel.filename.label is None or wheel.metadata is None:
            continue
        if not wheel.metadata.lists_only(wheel.filename.label):
            continue
        first, second = index, wheel.metadata
        if index.schema != wheel.metadata.schema:
            # Other generations say the same of providers in other words.
            first, second = _without_providers(index), _without_providers(wheel.metadata)
        try:
            merge(first, second)
        except InconsistentMetadata as problem:
            yield _contradiction("index-mismatch", place, problem, remedy)
    for label in sorted(index.variants.keys() - set(map(index.label_of, labels))):
        yield warning(
            "label-without-wheel",
            place,
            f"variants.{label}",
            "no wheel here has this label",
            "add the wheel, or leave out the label if it is not published elsewhere",
        )


def _without_providers(metadata: Metadata) -> Metadata:
    return replace(metadata, providers={}, feature_priorities={}, property_priorities={})


def _contradiction(code: str, place: str, problem: InconsistentMetadata, remedy: str) -> Finding:
    message = str(problem).removeprefix(f"{problem.path} ")
    return error(code, place, problem.path, message, remedy)

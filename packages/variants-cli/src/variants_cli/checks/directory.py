"""Checks of a directory: wheels of one version against each other and against the index's file."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import InconsistentMetadata, VariantError
from pep_variants.formats.merging import merge
from pep_variants.model.filename import metadata_filename, parse_metadata_filename
from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, ZERO_LABEL
from pep_variants.model.metadata import Metadata

from ..processes import ENOUGH, mapped
from ..progress import tracked
from .dependencies import check_markers
from .document import check_index_metadata
from .finding import Finding, error, warning
from .index_pages import (
    Digests,
    FileDigest,
    check_listed,
    digest_of,
    find_pages,
    read_listed,
)
from .wheel_file import CheckedWheel, check_wheel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    Release = tuple[NormalizedName, Version]

_MUCH = 5_000_000
"""Bytes of pages that are worth starting processes for, of however few pages."""


def check_directory(
    directory: Path, *, jobs: int | None = None, leave_out: Collection[Path] = ()
) -> tuple[int, list[Finding]]:
    """Check everything in *directory* and below.

    Args:
        directory: of wheels, metadata and pages.
        jobs: number of processes, None for one per core.
        leave_out: wheels and metadata that are not checked.

    Returns:
        The number of checked files, and the findings: first those of single files, then
        contradictions between files.

    Raises:
        OSError: a file cannot be read.
    """
    pages = find_pages(directory)
    found_wheels = [path for path in _files(directory, ".whl") if path not in leave_out]
    wheels, digests = _check_wheels(found_wheels, listed=bool(pages), jobs=jobs)
    findings = [finding for wheel in wheels for finding in wheel.findings]
    indexed: dict[Release, list[tuple[Path, Metadata | None]]] = {}
    paths = [path for path in _files(directory, METADATA_SUFFIX) if path not in leave_out]
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
    findings += check_fallbacks(str(directory), _labels(wheels))
    findings += _check_markers(wheels, indexed)
    findings += _check_pages(
        directory,
        pages,
        [*(wheel.path for wheel in wheels), *paths],
        digests=digests,
        releases=releases.keys(),
        jobs=jobs,
    )
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
        seen: set[bytes | None] = set()
        for wheel in group:
            if wheel.variant_digest in seen:
                continue
            seen.add(wheel.variant_digest)
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


def _check_wheels(
    paths: Sequence[Path], *, listed: bool, jobs: int | None
) -> tuple[list[CheckedWheel], Digests]:
    """Return the wheels at *paths*, and what pages have to say of them.

    Args:
        paths: of wheels.
        listed: there are pages, which give the hashes of wheels.
        jobs: number of processes, None for one per core.
    """
    digests = Digests()
    wheels = []
    requirements: dict[tuple[str, ...], tuple[str, ...]] = {}
    results = mapped(partial(_check_one, listed=listed), paths, len(paths), jobs=jobs)
    for wheel, known in tracked(results, len(paths), "checking wheels"):
        if isinstance(known, str):
            raise VariantError(known)
        # Thousands of wheels have the same few.
        wheel.requirements = requirements.setdefault(wheel.requirements, wheel.requirements)
        for path, state in known.items():
            digests.add(path, state)
        wheels.append(wheel)
    return wheels, digests


def _check_one(path: Path, *, listed: bool) -> tuple[CheckedWheel, dict[str, FileDigest] | str]:
    """Return a wheel without what only takes memory, and digests of it and its METADATA file."""
    wheel = CheckedWheel(path)
    known: dict[str, FileDigest] = {}
    try:
        with path.open("rb") as stream:
            wheel = check_wheel(path, stream)
            if listed:
                known[os.fspath(path)] = digest_of(stream)
        beside = path.with_name(f"{path.name}.metadata")
        try:
            data: bytes | None = beside.read_bytes()
        except FileNotFoundError:
            data = None
        if data is not None:
            known[os.fspath(beside)] = FileDigest(len(data), hashlib.sha256(data).hexdigest())
            if wheel.core_metadata not in (None, data):
                wheel.findings.append(_other_core_metadata(path, beside))
    except OSError as problem:
        return wheel, f"{problem.filename or path}: {problem.strerror or problem}"
    wheel.core_metadata = None
    if wheel.filename is not None:
        wheel.filename = replace(wheel.filename, tags=frozenset())
    return wheel, known


def _other_core_metadata(wheel: Path, beside: Path) -> Finding:
    return error(
        "core-metadata-mismatch",
        str(beside),
        "",
        f"differs from METADATA in {wheel.name}: resolvers see other dependencies than are "
        "installed",
        f"write it again: variants index --fresh {wheel.parent}",
    )


def _labels(wheels: Sequence[CheckedWheel]) -> dict[Release, set[str | None]]:
    labels: dict[Release, set[str | None]] = {}
    for wheel in wheels:
        if wheel.filename is not None:
            release = (wheel.filename.name, wheel.filename.version)
            labels.setdefault(release, set()).add(wheel.filename.label)
    return labels


def check_fallbacks(
    place: str, releases: Mapping[Release, Collection[str | None]]
) -> Iterator[Finding]:
    """Yield a warning for each version that has variants, and nothing for other machines.

    Args:
        place: path or URL.
        releases: labels of the wheels of each version, None for a non-variant wheel.
    """
    for (project, version), labels in sorted(releases.items(), key=itemgetter(0)):
        if not {None, NULL_LABEL, ZERO_LABEL} & set(labels):
            yield warning(
                "no-fallback",
                place,
                f"{project} {version}",
                "all its wheels are variants: machines that fit none of them, and installers that "
                "do not know variants, get no wheel",
                f"add a null variant (variants make --label {NULL_LABEL}) or a non-variant wheel, "
                "if it is not published elsewhere",
            )


def _check_pages(
    directory: Path,
    pages: Sequence[Path],
    files: Sequence[Path],
    *,
    digests: Digests,
    releases: Collection[Release],
    jobs: int | None,
) -> Iterator[Finding]:
    """Yield contradictions between *pages* and files.

    Args:
        directory: with everything.
        pages: of projects.
        files: wheels and metadata documents, which have to be listed.
        digests: of files that were read.
        releases: versions with variant wheels.
        jobs: number of processes, None for one per core.
    """
    remedy = f"write the pages again: variants index --fresh {directory}"
    listed: dict[str, set[str]] = {}
    unreadable = set()
    much = sum(path.stat().st_size for path in pages) > _MUCH
    results = mapped(
        read_listed, pages, len(pages), jobs=jobs, enough=2 if much else ENOUGH, chunk=1
    )
    shown = tracked(results, len(pages), "checking pages")
    for path, entries in zip(pages, shown, strict=True):
        if isinstance(entries, str):
            yield error("invalid-page", str(path), "", entries, remedy)
            unreadable.add((path.name, path.parent.name))
        else:
            yield from check_listed(str(path), entries, remedy, digests)
            listed.setdefault(path.name, set()).update(file.path for file in entries)
    for name, places in sorted(listed.items()):
        # Pages of files that are elsewhere say nothing about those here.
        missing = [file for file in files if os.path.abspath(file) not in places] if places else []  # noqa: PTH100
        if missing:  # or their paths have links in them
            resolved = set(map(os.path.realpath, places))
            missing = [file for file in missing if os.path.realpath(file) not in resolved]
        for file in missing:
            project = canonicalize_name(file.name.partition("-")[0])
            if (name, project) in unreadable:
                continue
            release = parse_metadata_filename(file.name)
            yield error(
                "not-listed",
                str(file),
                "",
                f"no {name} lists it, so installers do not find it",
                remedy
                if release is None or release in releases
                else "delete it, or add the wheels of its variants: no wheel here has one",
            )


def _files(directory: Path, suffix: str) -> list[Path]:
    return sorted(path for path in directory.rglob(f"*{suffix}") if path.is_file())


def check_each_other(wheels: Sequence[CheckedWheel]) -> Iterator[Finding]:
    """Yield one finding per wheel that contradicts one before it."""
    agreed: dict[bytes | None, Metadata] = {}
    merged: Metadata | None = None
    for wheel in wheels:
        if wheel.metadata is None or wheel.variant_digest in agreed:
            continue
        try:
            merged = merge(merged, wheel.metadata) if merged else wheel.metadata
            agreed[wheel.variant_digest] = wheel.metadata
            continue
        except InconsistentMetadata:
            pass
        for other in agreed.values():
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
    agreed: set[bytes | None] = set()
    for wheel in wheels:
        if wheel.filename is None or wheel.filename.label is None or wheel.metadata is None:
            continue
        if not wheel.metadata.lists_only(wheel.filename.label) or wheel.variant_digest in agreed:
            continue
        first, second = index, wheel.metadata
        if index.schema != wheel.metadata.schema:
            # Other generations say the same of providers in other words.
            first, second = _without_providers(index), _without_providers(wheel.metadata)
        try:
            merge(first, second)
            agreed.add(wheel.variant_digest)
        except InconsistentMetadata as problem:
            yield _contradiction("index-mismatch", place, problem, remedy)
    for label in sorted(index.variants.keys() - set(map(index.label_of, labels))):
        yield warning(
            "label-without-wheel",
            place,
            f"variants.{label}",
            "no wheel here has this label",
            f"add the wheel, if it is not published elsewhere, or {remedy}",
        )


def _without_providers(metadata: Metadata) -> Metadata:
    return replace(metadata, providers={}, feature_priorities={}, property_priorities={})


def _contradiction(code: str, place: str, problem: InconsistentMetadata, remedy: str) -> Finding:
    message = str(problem).removeprefix(f"{problem.path} ")
    return error(code, place, problem.path, message, remedy)

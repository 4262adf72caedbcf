"""Checks of wheels, and of the files of one version against each other.

In a wheel: filename, metadata, dependencies and RECORD. In a version: wheels and
``*-variants.json``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import limits, machines, markers, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import (
    InconsistentMetadata,
    InvalidMarker,
    InvalidWheel,
    InvalidWheelFilename,
    shortened,
)
from pep_variants.markers import VariantContext
from pep_variants.wheel_files import WheelContents
from variants_catalog.catalogs import Finding

from .._console import some
from .._indexing.wheelhouse import label_problem
from .document import check_document
from .finding import Report

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from packaging.tags import Tag
    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.metadata import Metadata, Properties

    Release = tuple[NormalizedName, Version]

_SHOWN = 12
"""GPUs that a finding names."""


@dataclass
class CheckedWheel:
    """A wheel and what was found in it.

    Attributes:
        path: of the file.
        release: project and version, None if its name is not a wheel filename.
        label: variant label of its filename, None without one.
        metadata: its variant metadata, None if missing or not readable.
        requirements: its dependencies with variant markers.
        core_metadata: its METADATA, None if missing.
        variant_digest: SHA-256 of its ``variant.json``: wheels with the same one say the same of
            variants. None if missing.
        findings: what is wrong.
    """

    path: Path
    release: Release | None = None
    label: str | None = None
    metadata: Metadata | None = None
    requirements: tuple[str, ...] = ()
    core_metadata: bytes | None = None
    variant_digest: bytes | None = None
    findings: list[Finding] = field(default_factory=list)


@dataclass
class ReleaseFiles:
    """The files of one version.

    Attributes:
        wheels: those that were looked into.
        documents: its readable ``*-variants.json``.
        labels: of all its wheels, None for a non-variant wheel.
    """

    wheels: list[CheckedWheel] = field(default_factory=list)
    documents: list[Metadata] = field(default_factory=list)
    labels: set[str | None] = field(default_factory=set)


def check_wheel(
    path: Path, stream: IO[bytes] | None = None, url: str | None = None
) -> CheckedWheel:
    """Check the wheel *path*.

    Of one on an index, only the files of dist-info are read.

    Args:
        path: where it is; for one on an index, its filename.
        stream: its bytes, if it is open or on an index; stays open.
        url: where it is on an index.

    Raises:
        OSError: it cannot be read.
    """
    file = url or str(path)
    report = Report(file)
    checked = CheckedWheel(path, findings=report.findings)
    parsed = None
    try:
        parsed = wheel_files.parse_filename(path.name)
        checked.release, checked.label = (parsed.name, parsed.version), parsed.label
    except InvalidWheelFilename as problem:
        report.add("invalid-filename", "", str(problem))
    try:
        name = "" if url else path.name
        with wheel_files.open_wheel(
            path if stream is None else stream, file, filename=name
        ) as contents:
            data = contents.read(wheel_labels.VARIANT_FILE)
            if data is not None:
                prefix = f"{contents.dist_info}/{wheel_labels.VARIANT_FILE}: "
                checked.variant_digest = hashlib.sha256(data).digest()
                checked.metadata, findings = check_document(data, file, prefix)
                report.findings += findings
            checked.core_metadata = contents.read(wheel_files.METADATA_FILE)
            _check_core_metadata(
                report, checked, f"{contents.dist_info}/{wheel_files.METADATA_FILE}"
            )
            _check_label(report, checked, has_metadata=data is not None)
            _check_record(report, contents, data)
        if stream is None and checked.metadata is not None:
            _check_gpu_code(report, path, checked.metadata, parsed.tags if parsed else ())
    except InvalidWheel as problem:
        report.add("invalid-wheel", "", problem.problem)
    return checked


def _check_gpu_code(report: Report, path: Path, metadata: Metadata, tags: Collection[Tag]) -> None:
    """Report where the code of a wheel is for other GPUs than its properties say."""
    for label, properties in metadata.variants.items():
        if properties.keys().isdisjoint(machines.ACCELERATORS):
            continue
        code = wheel_files.combined(wheel_files.wheel_code(path, report.file).values())
        lacking, unnamed = code.compared(properties, tags)
        place = f"{wheel_labels.VARIANT_FILE}: variants.{label}"
        for each, gpus in lacking.items():
            message = f"'{each}' admits GPUs without code in the wheel: {some(gpus, _SHOWN)}"
            report.add("gpu-code-missing", place, message)
        if unnamed:
            message = (
                f"no property admits GPUs that have code in the wheel: {some(unnamed, _SHOWN)}"
            )
            report.add("gpu-code-unnamed", place, message)


def _check_core_metadata(report: Report, checked: CheckedWheel, place: str) -> None:
    if checked.core_metadata is None:
        report.add("metadata-file-missing", place, "the wheel has no METADATA")
        return
    fields = wheel_files.read_fields(checked.core_metadata)
    requirements = fields.get("requires-dist", [])
    wheel_files.check_requirements(requirements)
    checked.requirements = tuple(text for text in requirements if markers.variant_terms(text))
    for requirement in requirements:
        try:
            plain = markers.reduce_requirement(requirement, markers.NON_VARIANT, publishing=True)
            if plain is not None:
                Requirement(plain)
        except (InvalidMarker, InvalidRequirement) as problem:
            text = f"Requires-Dist: {shortened(requirement, 200)}: {str(problem).splitlines()[0]}"
            report.add("invalid-dependency", place, text)
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    expected = checked.release
    if (
        expected is not None
        and (canonicalize_name(name), wheel_files.read_version(version)) != expected
    ):
        message = f"says {shortened(name)} {shortened(version)}, the filename "
        report.add("identity-mismatch", place, f"{message}{expected[0]} {expected[1]}")


def _check_label(report: Report, checked: CheckedWheel, *, has_metadata: bool) -> None:
    if checked.release is None or (has_metadata and checked.metadata is None):
        return
    problem = label_problem(checked.label, checked.metadata)
    if problem is None:
        return
    if has_metadata and checked.label is not None:
        report.add("label-mismatch", f"{wheel_labels.VARIANT_FILE}: variants", problem)
    else:
        report.add("label-missing" if has_metadata else "metadata-missing", "", problem)


def _check_record(report: Report, contents: WheelContents, variant: bytes | None) -> None:
    place = f"{contents.dist_info}/{wheel_files.RECORD_FILE}"
    data = contents.read(wheel_files.RECORD_FILE, limits.RECORD_BYTES)
    if data is None:
        report.add("record-missing", place, "the wheel has no RECORD")
        return
    try:
        rows = {row.path: row for row in wheel_files.read_record(data, report.file) if row.path}
    except InvalidWheel as problem:
        report.add("record-invalid", place, problem.problem)
        return
    unlisted = {f"{contents.dist_info}/{name}" for name in wheel_files.SIGNATURE_FILES}
    names = {name for name in contents.archive.namelist() if not name.endswith("/")}
    if missing := sorted(names - rows.keys() - unlisted):
        report.add("record-incomplete", place, f"does not list {some(missing, 3)}")
    if gone := sorted(rows.keys() - names):
        message = f"lists {some(gone, 3)}, which the wheel does not contain"
        report.add("record-incomplete", place, message)
    row = rows.get(f"{contents.dist_info}/{wheel_labels.VARIANT_FILE}")
    if variant is None or row is None:
        return
    is_sha256 = not row.digest or row.digest.startswith("sha256=")
    found = wheel_files.digest_of(variant) if is_sha256 else row.digest
    if (row.digest, row.size) != (found, str(len(variant))):
        message = f"says {row.digest or 'no hash'} and size {row.size!r} of "
        message += f"{wheel_labels.VARIANT_FILE}, which "
        report.add("record-mismatch", place, f"{message}is {found} and has {len(variant)} bytes")


def _check_markers(
    report: Report,
    wheels: Iterable[CheckedWheel],
    variants: dict[str, Properties],
    labels: Iterable[str | None],
) -> None:
    """Report each requirement whose marker holds for no variant of the version, once.

    Args:
        report: gets the findings.
        wheels: of one version.
        variants: properties of its variants by label.
        labels: of all its wheels, None for a non-variant wheel.
    """
    contexts = [
        markers.NON_VARIANT if label is None else VariantContext(label, variants.get(label, {}))
        for label in sorted({*labels, *variants}, key=str)
    ]
    seen: set[str] = set()
    for wheel in wheels:
        new = [text for text in wheel.requirements if text not in seen]
        seen.update(new)
        for requirement in new:
            # On a machine that supports some of the properties only, "not in" may hold, too.
            if (
                "variant_properties" in markers.variant_terms(requirement)
                and "not in" in requirement
            ):
                continue
            try:
                holds = any(
                    markers.reduce_requirement(requirement, context, publishing=True) is not None
                    for context in contexts
                )
            except InvalidMarker:
                continue  # reported elsewhere
            if not holds:
                text = f"Requires-Dist: {shortened(requirement, 200)}"
                message = f"{text}: its marker holds for no variant"
                report.add("marker-never-true", "METADATA", message, file=str(wheel.path))


def check_releases(report: Report, releases: Mapping[Release, ReleaseFiles]) -> None:
    """Report contradictions between the files of each of *releases*."""
    for release, files in sorted(releases.items(), key=lambda item: item[0]):
        wheels, labels = files.wheels, files.labels
        variants: dict[str, Properties] = {}
        _check_each_other(report, wheels)
        if not files.documents and labels - {None}:
            name = wheel_files.metadata_filename(*release)
            message = f"no {name} for the variant wheels of {release[0]} "
            message += f"{release[1]}: installers that do not read wheels ignore them"
            report.add("index-metadata-missing", "", message)
        for metadata in files.documents:
            _check_index(report, metadata, wheels, labels)
            variants.update(metadata.variants)
        for wheel in wheels:
            variants.update(wheel.metadata.variants if wheel.metadata is not None else {})
        if labels and not {None, wheel_labels.NULL_LABEL, wheel_labels.ZERO_LABEL} & labels:
            message = "all its wheels are variants: machines that fit none of them, and "
            message += "installers that do not know variants, get no wheel"
            report.add("no-fallback", f"{release[0]} {release[1]}", message)
        _check_markers(report, wheels, variants, labels)


def _check_each_other(report: Report, wheels: Sequence[CheckedWheel]) -> None:
    """Report each wheel that contradicts one before it, once."""
    agreed: dict[bytes | None, Metadata] = {}
    merged: Metadata | None = None
    for wheel in wheels:
        if wheel.metadata is None or wheel.variant_digest in agreed:
            continue
        try:
            merged = variant_metadata.merge(merged, wheel.metadata) if merged else wheel.metadata
            agreed[wheel.variant_digest] = wheel.metadata
            continue
        except InconsistentMetadata:
            pass
        for other in agreed.values():
            try:
                variant_metadata.merge(other, wheel.metadata)
            except InconsistentMetadata as problem:
                _contradiction(report, "inconsistent-wheels", str(wheel.path), problem)
                break


def _check_index(
    report: Report, index: Metadata, wheels: Sequence[CheckedWheel], labels: set[str | None]
) -> None:
    """Report where the ``*-variants.json`` *index* contradicts the wheels of its version."""
    names = {wheel.label: wheel.path.name for wheel in wheels}
    variant_labels = {label for label in labels if label is not None}
    for label in sorted(variant_labels):
        if index.label_of(label) not in {*index.variants, wheel_labels.NULL_LABEL}:
            message = f"does not list label {label!r} of {names.get(label, 'a wheel')}: "
            message += "installers treat it as incompatible"
            report.add("label-not-indexed", "variants", message, file=index.source)
    agreed: set[bytes | None] = set()
    for wheel in wheels:
        if wheel.label is None or wheel.metadata is None or wheel.variant_digest in agreed:
            continue
        if not wheel.metadata.lists_only(wheel.label):
            continue  # reported elsewhere
        first, second = index, wheel.metadata
        if index.schema != wheel.metadata.schema:
            # Other generations say the same of providers in other words.
            first, second = _without_providers(index), _without_providers(wheel.metadata)
        try:
            variant_metadata.merge(first, second)
            agreed.add(wheel.variant_digest)
        except InconsistentMetadata as problem:
            _contradiction(report, "index-mismatch", index.source, problem)
    for label in sorted(index.variants.keys() - set(map(index.label_of, variant_labels))):
        message = "no wheel here has this label"
        report.add("label-without-wheel", f"variants.{label}", message, file=index.source)


def _without_providers(metadata: Metadata) -> Metadata:
    return replace(metadata, providers={}, feature_priorities={}, property_priorities={})


def _contradiction(report: Report, code: str, file: str, problem: InconsistentMetadata) -> None:
    report.add(code, problem.path, problem.difference, file=file)

"""Checks of the files of a version: wheels and ``*-variants.json`` against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pep_variants.errors import InconsistentMetadata
from pep_variants.formats.merging import merge
from pep_variants.model.filename import metadata_filename
from pep_variants.model.label import NULL_LABEL, ZERO_LABEL

from .wheel import check_markers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from pep_variants.model.metadata import Metadata
    from pep_variants.model.property import Properties

    from .finding import Report
    from .wheel import CheckedWheel

    Release = tuple[NormalizedName, Version]


def check_releases(
    report: Report,
    wheels: Sequence[CheckedWheel],
    documents: Mapping[Release, Sequence[tuple[str, Metadata]]],
    listed: Mapping[Release, set[str | None]],
) -> None:
    """Report contradictions between the files of each version.

    Args:
        report: of the directory or page; gets the findings.
        wheels: those that were looked into.
        documents: the readable ``*-variants.json`` of each version, with path or URL.
        listed: labels of all wheels of each version, None for a non-variant wheel.
    """
    groups: dict[Release, list[CheckedWheel]] = {}
    for wheel in wheels:
        if wheel.release is not None:
            groups.setdefault(wheel.release, []).append(wheel)
    for release in sorted({*listed, *documents}):
        group, labels = groups.get(release, []), listed.get(release, set())
        held = documents.get(release, ())
        variants: dict[str, Properties] = {}
        _check_each_other(report, group)
        if not held and labels - {None}:
            message = f"no {metadata_filename(*release)} for the variant wheels of {release[0]} "
            message += f"{release[1]}: installers that do not read wheels ignore them"
            report.add("index-metadata-missing", "", message)
        for file, metadata in held:
            _check_index(report, file, metadata, group, labels)
            variants.update(metadata.variants)
        for wheel in group:
            variants.update(wheel.metadata.variants if wheel.metadata is not None else {})
        if labels and not {None, NULL_LABEL, ZERO_LABEL} & labels:
            message = "all its wheels are variants: machines that fit none of them, and "
            message += "installers that do not know variants, get no wheel"
            report.add("no-fallback", f"{release[0]} {release[1]}", message)
        check_markers(report, group, variants, labels)


def _check_each_other(report: Report, wheels: Sequence[CheckedWheel]) -> None:
    """Report each wheel that contradicts one before it, once."""
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
                _contradiction(report, "inconsistent-wheels", str(wheel.path), problem)
                break


def _check_index(
    report: Report,
    file: str,
    index: Metadata,
    wheels: Sequence[CheckedWheel],
    labels: set[str | None],
) -> None:
    """Report where the ``*-variants.json`` *file* contradicts the wheels of its version."""
    names = {wheel.label: wheel.path.name for wheel in wheels}
    variant_labels = {label for label in labels if label is not None}
    for label in sorted(variant_labels):
        if index.label_of(label) not in {*index.variants, NULL_LABEL}:
            message = f"does not list label {label!r} of {names.get(label, 'a wheel')}: "
            message += "installers treat it as incompatible"
            report.add("label-not-indexed", "variants", message, file=file)
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
            merge(first, second)
            agreed.add(wheel.variant_digest)
        except InconsistentMetadata as problem:
            _contradiction(report, "index-mismatch", file, problem)
    for label in sorted(index.variants.keys() - set(map(index.label_of, variant_labels))):
        message = "no wheel here has this label"
        report.add("label-without-wheel", f"variants.{label}", message, file=file)


def _without_providers(metadata: Metadata) -> Metadata:
    return replace(metadata, providers={}, feature_priorities={}, property_priorities={})


def _contradiction(report: Report, code: str, file: str, problem: InconsistentMetadata) -> None:
    report.add(code, problem.path, str(problem).removeprefix(f"{problem.path} "), file=file)

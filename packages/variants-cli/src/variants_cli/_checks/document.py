"""Checks of one document: ``*-variants.json``, ``variant.json`` or pyproject.toml."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import limits, machines, safe_files, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.errors import MetadataError, UnsupportedSchema, VariantError, redacted, shortened
from pep_variants.machines import KnownProvider
from pep_variants.metadata import Generation

from .finding import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pep_variants.metadata import Features, Metadata
    from variants_catalog.catalogs import Finding


def check_index_metadata(path: Path) -> tuple[Metadata | None, list[Finding]]:
    """Check a ``*-variants.json``; return it if it is readable, and what was found."""
    metadata, findings = check_document(_read(path), str(path))
    if path.name.endswith(wheel_labels.METADATA_SUFFIX):
        findings += check_name(path.name, str(path))
    return metadata, findings


def check_name(filename: str, file: str) -> list[Finding]:
    """Check the name of a ``*-variants.json``, which is at *file*, a path or URL."""
    report = Report(file)
    parsed = wheel_files.parse_metadata_filename(filename)
    expected = (
        wheel_files.metadata_filename(*parsed) if parsed else "{name}-{version}-variants.json"
    )
    if filename != expected:
        message = "installers do not look for metadata under this name"
        report.add("index-filename", "", message, expected=expected)
    return report.findings


def check_pyproject(path: Path) -> list[Finding]:
    """Check the ``[variant]`` table of a pyproject.toml.

    Raises:
        VariantError: it is a build matrix, which has the same table.
    """
    report = Report(str(path))
    data = _read(path)
    try:
        metadata = variant_metadata.read_pyproject(data, str(path))
    except MetadataError as problem:
        _unreadable(report, problem)
        return report.findings
    if {"axes", "extends"} & safe_files.read_toml(data.decode()).keys():
        raise VariantError(
            f"{path}: is no pyproject.toml: variants matrix FILE checks a build matrix"
        )
    report.prefix = "variant."
    _check_metadata(report, metadata)
    return report.findings


def check_document(
    data: bytes, file: str, prefix: str = ""
) -> tuple[Metadata | None, list[Finding]]:
    """Check metadata as JSON; return it if it is readable, and what was found.

    Args:
        data: the document.
        file: the file it is or is in.
        prefix: put before every place, for a document inside a wheel.
    """
    report = Report(file, prefix)
    try:
        metadata = variant_metadata.read_metadata(data, redacted(file))
    except MetadataError as problem:
        _unreadable(report, problem)
        return None, report.findings
    tree = json.loads(data, object_pairs_hook=partial(_object, report))
    generation = None
    if metadata.schema is None:
        report.add("schema-missing", "$schema", "no $schema")
    else:
        generation = variant_metadata.GENERATIONS.get(
            variant_metadata.schema_version(metadata.schema) or (-1, -1, -1)
        )
        if generation is None:
            text = shortened(metadata.schema, 120)
            report.add("schema-unknown", "$schema", f"{text} is not a known format version")
    _check_metadata(report, metadata)
    _check_values(report, metadata, tree)
    if generation is not None:
        _check_keys(report, tree, generation)
        for namespace in metadata.namespaces if generation.providers else ():
            if namespace not in metadata.providers and namespace != variant_metadata.ABI_DEPENDENCY:
                message = f"no provider for namespace {namespace!r}: its variants are not "
                message += "supported on any machine"
                report.add("provider-missing", "providers", message, namespace=namespace)
    return metadata, report.findings


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(limits.DOCUMENT_BYTES + 1)  # one more than allowed shows that it is more


def _object(report: Report, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; report keys that it has twice, of which readers take the last."""
    tree = dict(pairs)
    if len(tree) != len(pairs):
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                message = f"key {shortened(key)} occurs {count} times in one object"
                report.add("duplicate-key", "", message)
    return tree


def _unreadable(report: Report, problem: MetadataError) -> None:
    unsupported = isinstance(problem, UnsupportedSchema)
    code = "unsupported-schema" if unsupported else "invalid-metadata"
    report.add(code, problem.path, problem.problem)


def _check_metadata(report: Report, metadata: Metadata) -> None:
    """Check what a document and a pyproject.toml have in common."""
    if not metadata.namespaces:
        report.add("namespaces-missing", "default-priorities.namespace", "is empty")
    for namespace, provider in metadata.providers.items():
        place = f"providers.{namespace}"
        for requirement in (*provider.requires, *provider.build_requires):
            try:
                Requirement(requirement)
            except InvalidRequirement as problem:
                message = f"{shortened(requirement)}: {str(problem).splitlines()[0]}"
                report.add("invalid-requirement", f"{place}.requires", message)
        try:
            if provider.enable_if is not None:
                Marker(provider.enable_if)
        except InvalidMarker as problem:
            message = f"{shortened(provider.enable_if)}: {str(problem).splitlines()[0]}"
            report.add("invalid-marker", f"{place}.enable-if", message)
    # The reserved namespace (PEP 817, "ABI dependency"), which only variants may use.
    for place, names in (
        ("default-priorities.namespace", metadata.namespaces),
        (f"providers.{variant_metadata.ABI_DEPENDENCY}", metadata.providers),
    ):
        if variant_metadata.ABI_DEPENDENCY in names:
            message = (
                f"{variant_metadata.ABI_DEPENDENCY} is reserved: it has no priority and no provider"
            )
            report.add("abi-dependency-listed", place, message)
    for label, properties in metadata.variants.items():
        for feature, values in properties.get(variant_metadata.ABI_DEPENDENCY, {}).items():
            place = f"variants.{label}.{variant_metadata.ABI_DEPENDENCY}.{feature}"
            wrong = ", ".join(value for value in values if not wheel_selection.is_release(value))
            if wrong:
                message = f"{wrong}: not a release of one to three numbers"
                report.add("abi-dependency-value", place, message)
            normalized = canonicalize_name(feature).replace("-", "_")
            if feature != normalized:
                message = f"{feature} is not a normalized project name"
                report.add("abi-dependency-name", place, message, normalized=normalized)


def _check_values(report: Report, metadata: Metadata, tree: dict[str, Any]) -> None:
    """Check that a machine can have the properties of each variant, and how they are written."""
    offered = _offered(metadata)
    judged: set[tuple[str, str, tuple[str, ...]]] = set()
    equal: dict[str, str] = {}
    for label, properties in sorted(metadata.variants.items()):
        key = json.dumps(properties, sort_keys=True)
        first = equal.setdefault(key, label)
        if first != label:
            message = f"has the properties of {first!r}: if both have a compatible wheel, it is "
            report.add("same-properties", f"variants.{label}", f"{message}never chosen")
        for namespace, features in properties.items():
            for feature, values in features.items():
                known = offered.get(namespace, {}).get(feature, ())
                if namespace not in offered or (namespace, feature, values) in judged:
                    continue
                judged.add((namespace, feature, values))
                if not set(values) & set(known):
                    provider = metadata.providers.get(namespace)
                    static = provider is not None and provider.static is not None
                    found = f"{', '.join(known[:6])}{', …' * (len(known) > 6)}" or "nothing"
                    message = f"{', '.join(values)} is not supported on any machine: "
                    message += "static-properties list " if static else "the known values are "
                    code = "never-compatible" if static else "unknown-value"
                    place = f"variants.{label}.{namespace}.{feature}"
                    report.add(code, place, message + found)
    for label, properties in tree.get("variants", {}).items():
        for namespace, features in properties.items():
            for feature, values in features.items():
                # Only the first generation has strings in place of lists.
                if isinstance(values, list) and values != sorted(set(values)):
                    place = f"variants.{label}.{namespace}.{feature}"
                    message = f"{shortened(values)} is not sorted or lists a value twice"
                    report.add("values-unsorted", place, message)


def _offered(metadata: Metadata) -> dict[str, Features]:
    """Return all values that there can be by namespace, for namespaces where that is known."""
    offered: dict[str, Features] = {}
    for namespace in metadata.namespaces:
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.static:
            offered[namespace] = provider.static
        elif namespace != variant_metadata.ABI_DEPENDENCY:
            if provider is not None:
                # Without markers: this is not about the machine that it is checked on.
                requires = tuple(text.partition(";")[0] for text in provider.requires)
                known = machines.find_known(namespace, replace(provider, requires=requires), dict)
            else:
                known = None if metadata.providers else machines.BUILTIN_NAMESPACES.get(namespace)
            if known is not None:
                offered[namespace] = _known_values(known)
    return offered


@cache
def _known_values(provider: KnownProvider) -> Features:
    return provider.factory().known()


def _check_keys(report: Report, tree: dict[str, Any], generation: Generation) -> None:
    """Check that the generation has all keys of the document."""
    version = ".".join(map(str, generation.version))

    def check(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
        for key in table:
            if key not in known:
                shown = f"{place}{key if key.isprintable() else '?'}"
                message = f"format {version} has no such key: it is ignored"
                report.add("unknown-key", shown, message, known=", ".join(sorted(known)))

    check(tree, generation.keys, "")
    check(tree.get("default-priorities", {}), generation.priority_keys, "default-priorities.")
    for namespace, table in tree.get("providers", {}).items() if generation.providers else ():
        check(table, generation.provider_keys, f"providers.{namespace}.")

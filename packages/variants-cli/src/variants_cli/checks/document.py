"""Checks of one document: ``*-variants.json``, ``variant.json`` or pyproject.toml."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.errors import MetadataError, UnsupportedSchema, redacted, shortened
from pep_variants.formats.reader import read_metadata, read_pyproject
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import metadata_filename, parse_metadata_filename
from pep_variants.model.generation import GENERATIONS, Generation, schema_version
from pep_variants.model.label import METADATA_SUFFIX
from pep_variants.model.property import ABI_DEPENDENCY

from .finding import Finding, error, warning
from .variants import check_abi_dependencies, check_variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pep_variants.model.metadata import Metadata

_SMALL = 64 * 1024
"""Bytes of a document that is worth remembering."""

_WRITE_CURRENT = "write format 0.1.1, or 0.2.0 if there are providers"


def check_index_metadata(path: Path) -> tuple[Metadata | None, list[Finding]]:
    """Check a ``*-variants.json``; return it if it is readable, and what was found."""
    metadata, findings = check_document(_read(path), str(path))
    if path.name.endswith(METADATA_SUFFIX):
        findings += _check_name(path)
    return metadata, findings


def check_pyproject(path: Path) -> list[Finding]:
    """Check the ``[variant]`` table of a pyproject.toml."""
    file = str(path)
    try:
        metadata = read_pyproject(_read(path), file)
    except MetadataError as problem:
        return [_unreadable(problem, file, "")]
    return [
        *_check_namespaces(metadata, file, "variant."),
        *_check_markers(metadata, file, ""),
        *check_abi_dependencies(metadata, file, "variant."),
    ]


def check_document(
    data: bytes, file: str, prefix: str = ""
) -> tuple[Metadata | None, list[Finding]]:
    """Check metadata as JSON; return it if it is readable, and what was found.

    Args:
        data: the document.
        file: the file it is or is in.
        prefix: put before every place, for a document inside a wheel.
    """
    if len(data) > _SMALL:
        metadata, findings = _check(data)
    else:
        metadata, findings = _check_once(data)
    if metadata is not None:
        metadata = replace(metadata, source=redacted(file))
    return metadata, [
        replace(
            finding,
            file=file,
            place=f"{prefix}{finding.place}" if finding.place else prefix.rstrip(". "),
        )
        for finding in findings
    ]


# Thousands of wheels, of several Pythons and versions, have the same few documents.
@lru_cache(maxsize=500)
def _check_once(data: bytes) -> tuple[Metadata | None, list[Finding]]:
    return _check(data)


def _check(data: bytes) -> tuple[Metadata | None, list[Finding]]:
    """Return the document, and findings without the name of the file."""
    file = prefix = ""
    try:
        metadata = read_metadata(data, file)
    except MetadataError as problem:
        return None, [_unreadable(problem, file, prefix)]
    findings: list[Finding] = []
    tree = json.loads(data, object_pairs_hook=_KeyCounter(findings, file, prefix))
    generation = None
    if metadata.schema is not None:
        version = schema_version(metadata.schema)
        generation = GENERATIONS.get(version) if version is not None else None
    findings += [
        *_check_schema(metadata, generation, file, prefix),
        *_check_namespaces(metadata, file, prefix),
        *_check_markers(metadata, file, prefix),
        *check_abi_dependencies(metadata, file, prefix),
        *check_variants(metadata, tree, file, prefix),
    ]
    if generation is not None:
        findings += _check_keys(tree, generation, file, prefix)
        if generation.providers:
            findings += _check_providers(metadata, file, prefix)
    return metadata, findings


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(DOCUMENT_BYTES + 1)  # one more than allowed shows that it is more


class _KeyCounter:
    """Finds keys that are in one JSON object twice, of which readers take the last."""

    def __init__(self, findings: list[Finding], file: str, prefix: str) -> None:
        self._findings = findings
        self._file = file
        self._prefix = prefix

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        tree = dict(pairs)
        if len(tree) != len(pairs):
            for key, count in Counter(key for key, _ in pairs).items():
                if count > 1:
                    self._findings.append(
                        error(
                            "duplicate-key",
                            self._file,
                            self._prefix.rstrip(". "),
                            f"key {shortened(key)} occurs {count} times in one object",
                            "keep one of them: readers disagree on which one they use",
                        )
                    )
        return tree


def _unreadable(problem: MetadataError, file: str, prefix: str) -> Finding:
    place = f"{prefix}{problem.path}".rstrip(". ")
    if isinstance(problem, UnsupportedSchema):
        return error("unsupported-schema", file, place, problem.problem, _WRITE_CURRENT)
    return error(
        "invalid-metadata",
        file,
        place,
        problem.problem,
        "correct it: installers ignore the variants of this version",
    )


def _check_name(path: Path) -> Iterator[Finding]:
    parsed = parse_metadata_filename(path.name)
    expected = metadata_filename(*parsed) if parsed else "{name}-{version}-variants.json"
    if path.name != expected:
        yield error(
            "index-filename",
            str(path),
            "",
            "installers do not look for metadata under this name",
            f"rename it to {expected}",
        )


def _check_schema(
    metadata: Metadata, generation: Generation | None, file: str, prefix: str
) -> Iterator[Finding]:
    if metadata.schema is None:
        yield warning("schema-missing", file, f"{prefix}$schema", "no $schema", _WRITE_CURRENT)
    elif generation is None:
        yield warning(
            "schema-unknown",
            file,
            f"{prefix}$schema",
            f"{shortened(metadata.schema, 120)} is not a known format version",
            _WRITE_CURRENT,
        )


def _check_namespaces(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    if not metadata.namespaces:
        yield error(
            "namespaces-missing",
            file,
            f"{prefix}default-priorities.namespace",
            "is empty",
            "list every namespace that variants of this project use, most important first",
        )


def _check_providers(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    for namespace in metadata.namespaces:
        if namespace not in metadata.providers and namespace != ABI_DEPENDENCY:
            yield error(
                "provider-missing",
                file,
                f"{prefix}providers",
                f"no provider for namespace {namespace!r}: "
                "its variants are not supported on any machine",
                f"add providers.{namespace} with requires, builtin or static-properties",
            )


def _check_markers(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    for namespace, provider in metadata.providers.items():
        place = f"{prefix}providers.{namespace}"
        for requirement in (*provider.requires, *provider.build_requires):
            try:
                Requirement(requirement)
            except InvalidRequirement as problem:
                yield error(
                    "invalid-requirement",
                    file,
                    f"{place}.requires",
                    f"{shortened(requirement)}: {_first_line(problem)}",
                    "write a requirement such as 'acme-provider>=1,<2'",
                )
        if provider.enable_if is not None:
            try:
                Marker(provider.enable_if)
            except InvalidMarker as problem:
                yield error(
                    "invalid-marker",
                    file,
                    f"{place}.enable-if",
                    f"{shortened(provider.enable_if)}: {_first_line(problem)}",
                    """write a marker such as "platform_system == 'Linux'\"""",
                )


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def _check_keys(
    tree: dict[str, Any], generation: Generation, file: str, prefix: str
) -> Iterator[Finding]:
    def unknown(table: Mapping[str, Any], known: set[str], place: str) -> Iterator[Finding]:
        for key in table:
            if key not in known:
                version = ".".join(map(str, generation.version))
                yield warning(
                    "unknown-key",
                    file,
                    f"{prefix}{place}{key if key.isprintable() else '?'}",
                    f"format {version} has no such key: it is ignored",
                    f"remove it, or correct its name; there are {', '.join(sorted(known))}",
                )

    top = {"$schema", "default-priorities", "variants"}
    priorities = {"namespace"}
    if generation.priorities:
        priorities |= {"feature", "property"}
    if generation.providers:
        top.add("providers")
    if generation.install_time:
        top.add("static-properties")
    yield from unknown(tree, top, "")
    yield from unknown(tree.get("default-priorities", {}), priorities, "default-priorities.")
    if not generation.providers:
        return
    provider = {"requires", "plugin-api", "optional"}
    if generation.own_static:
        provider |= {"builtin", "static-properties", "feature-order"}
    if generation.enable_if:
        provider.add("enable-if")
    if generation.plugin_use:
        provider.add("plugin-use")
    if generation.install_time:
        provider.add("install-time")
    for namespace, table in tree.get("providers", {}).items():
        yield from unknown(table, provider, f"providers.{namespace}.")

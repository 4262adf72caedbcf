"""Checks of one document: ``*-variants.json``, ``variant.json`` or pyproject.toml."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement

from pep_variants.errors import MetadataError, UnsupportedSchema, shortened
from pep_variants.filename import metadata_filename, parse_metadata_filename
from pep_variants.generation import GENERATIONS, Generation, schema_version
from pep_variants.label import METADATA_SUFFIX
from pep_variants.property import ABI_DEPENDENCY
from pep_variants.providers.known import BUILTIN_NAMESPACES, KnownProvider, find_known
from pep_variants.reader import MAX_METADATA_BYTES, read_metadata, read_pyproject

from .finding import Finding, error, warning
from .reachability import Offer, unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pep_variants.metadata import Metadata

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
    return [*_check_namespaces(metadata, file, "variant."), *_check_markers(metadata, file, "")]


def check_document(
    data: bytes, file: str, prefix: str = ""
) -> tuple[Metadata | None, list[Finding]]:
    """Check metadata as JSON; return it if it is readable, and what was found.

    Args:
        data: the document.
        file: the file it is or is in.
        prefix: put before every place, for a document inside a wheel.
    """
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
        *_check_values(metadata, file, prefix),
        *_check_raw_values(tree, file, prefix),
        *_check_equal_variants(metadata, file, prefix),
        *_check_reachable(metadata, file, prefix),
    ]
    if generation is not None:
        findings += _check_keys(tree, generation, file, prefix)
        if generation.providers:
            findings += _check_providers(metadata, file, prefix)
    return metadata, findings


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MAX_METADATA_BYTES + 1)  # one more than allowed shows that it is more


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
                            f"key {shortened(key)} is in one object {count} times",
                            "keep one of them: readers disagree on which one counts",
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
        "correct it: until then installers ignore the variants of this version",
    )


def _check_name(path: Path) -> Iterator[Finding]:
    parsed = parse_metadata_filename(path.name)
    expected = metadata_filename(*parsed) if parsed else "{name}-{version}-variants.json"
    if path.name != expected:
        yield error(
            "index-filename",
            str(path),
            "",
            "installers do not find metadata under this name",
            f"rename it to {expected}",
        )


def _check_schema(
    metadata: Metadata, generation: Generation | None, file: str, prefix: str
) -> Iterator[Finding]:
    if metadata.schema is None:
        yield warning(
            "schema-missing", file, f"{prefix}$schema", "there is no $schema", _WRITE_CURRENT
        )
    elif generation is None:
        yield warning(
            "schema-unknown",
            file,
            f"{prefix}$schema",
            f"{shortened(metadata.schema, 120)} is no known format version",
            _WRITE_CURRENT,
        )


def _check_namespaces(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    if not metadata.namespaces:
        yield error(
            "namespaces-missing",
            file,
            f"{prefix}default-priorities.namespace",
            "lists no namespaces",
            "list every namespace that variants of this project use, most important first",
        )


def _check_providers(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    for namespace in metadata.namespaces:
        if namespace not in metadata.providers:
            yield error(
                "provider-missing",
                file,
                f"{prefix}providers",
                f"nothing says what knows namespace {namespace!r}: "
                "its variants would be supported nowhere",
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


def _check_values(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    """Check that there is a system every variant could fit."""
    offered = _offered(metadata)
    judged: set[tuple[str, str, tuple[str, ...]]] = set()
    for label, properties in metadata.variants.items():
        for namespace, features in properties.items():
            if namespace not in offered or namespace == ABI_DEPENDENCY:
                continue
            for feature, values in features.items():
                known = offered[namespace].get(feature, ())
                if (namespace, feature, values) in judged or set(values) & set(known):
                    continue
                judged.add((namespace, feature, values))
                found = f"{', '.join(known[:6])}{', …' * (len(known) > 6)}" or "nothing"
                provider = metadata.providers.get(namespace)
                static = provider is not None and provider.static is not None
                judge = error if static else warning
                yield judge(
                    "never-compatible" if static else "unknown-value",
                    file,
                    f"{prefix}variants.{label}.{namespace}.{feature}",
                    f"{', '.join(values)} would be supported nowhere: "
                    + ("static-properties list " if static else "the known values are ")
                    + found,
                    "correct the value" + (", or add it to static-properties" if static else ""),
                )


def _offered(metadata: Metadata) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return all values that there can be by namespace, for namespaces where that is known."""
    offered: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for namespace in metadata.namespaces:
        provider = metadata.providers.get(namespace)
        if provider is not None and provider.static:
            offered[namespace] = provider.static
        elif (stand_in := _known_provider(namespace, metadata)) is not None:
            offered[namespace] = stand_in.factory().known()
    return offered


def _known_provider(namespace: str, metadata: Metadata) -> KnownProvider | None:
    provider = metadata.providers.get(namespace)
    if provider is None:
        return None if metadata.providers else BUILTIN_NAMESPACES.get(namespace)
    # Without markers: this is not about the machine that it is checked on.
    requires = tuple(text.partition(";")[0] for text in provider.requires)
    return find_known(namespace, replace(provider, requires=requires), {})


def _check_raw_values(tree: dict[str, Any], file: str, prefix: str) -> Iterator[Finding]:
    """Check what reading evens out: the order of values, and values listed twice."""
    for label, properties in tree.get("variants", {}).items():
        for namespace, features in properties.items():
            for feature, values in features.items():
                if values != sorted(set(values)):
                    yield warning(
                        "values-unsorted",
                        file,
                        f"{prefix}variants.{label}.{namespace}.{feature}",
                        f"{shortened(values)} is not sorted or lists a value twice",
                        "sort the values, each once",
                    )


def _check_equal_variants(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    labels: dict[str, str] = {}
    for label, properties in sorted(metadata.variants.items()):
        key = json.dumps(properties, sort_keys=True)
        first = labels.setdefault(key, label)
        if first != label:
            yield warning(
                "same-properties",
                file,
                f"{prefix}variants.{label}",
                f"has the properties of {first!r}: where both have a fitting wheel, "
                "it is never taken",
                "give different builds different properties, or equal builds one label",
            )


def _check_reachable(metadata: Metadata, file: str, prefix: str) -> Iterator[Finding]:
    offers = {}
    for namespace, features in _offered(metadata).items():
        provider = metadata.providers.get(namespace)
        certain = (
            provider is not None
            and provider.static
            and not provider.optional
            and provider.enable_if is None
        )
        offers[namespace] = Offer(tuple(features), features if certain else None)
    for label, other in unreachable(metadata, offers):
        # Nobody lists null, but everybody has it.
        if label in metadata.variants:
            yield warning(
                "unreachable",
                file,
                f"{prefix}variants.{label}",
                f"is never chosen: wherever it fits, {other!r} fits and comes first",
                "leave it out, or give it a property that sets it apart",
            )


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
    provider |= {"builtin", "static-properties", "feature-order"} if generation.exclusive else {
        "enable-if"
    }  # fmt: skip
    if generation.plugin_use:
        provider.add("plugin-use")
    if generation.install_time:
        provider.add("install-time")
    for namespace, table in tree.get("providers", {}).items():
        yield from unknown(table, provider, f"providers.{namespace}.")

"""The table ``[packages.variants-json]`` of lock files (PEP 825, "Integration with pylock.toml").

It is the variant metadata of a version as its index has it, in the same generation of the format,
converted from JSON. Unlike a file on an index, the table must conform to the schema that it names,
and installers must check that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import MetadataError, shortened
from ..formats.reader import metadata_from_tree
from ..model.generation import V0_0_2, V0_0_3, V0_1_0, V0_1_1, Generation, schema_version
from ..model.label import NULL_LABEL, ZERO_LABEL

if TYPE_CHECKING:
    from ..model.metadata import Metadata


class _Schema(NamedTuple):
    """The keys that the JSON schema of a generation allows and requires.

    Attributes:
        top: top-level keys, None if others are allowed.
        required: top-level keys that are required.
        priorities: keys of ``default-priorities``; ``namespace`` is required.
        provider: keys of each provider, None if others are allowed.
    """

    top: frozenset[str] | None
    required: tuple[str, ...]
    priorities: frozenset[str]
    provider: frozenset[str] | None = None


_WITHOUT_PROVIDERS = ("$schema", "default-priorities", "variants")
_WITH_PROVIDERS = ("default-priorities", "providers", "variants")


def _schema(generation: Generation) -> _Schema:
    priorities = {"feature", "namespace", "property"} if generation.priorities else {"namespace"}
    if not generation.providers:
        keys = frozenset(_WITHOUT_PROVIDERS)
        return _Schema(keys, _WITHOUT_PROVIDERS, frozenset(priorities))
    provider = {"enable-if", "optional", "plugin-api", "requires"}
    if generation.plugin_use:
        provider.add("plugin-use")
    if generation.install_time:
        provider.add("install-time")
    return _Schema(None, _WITH_PROVIDERS, frozenset(priorities), frozenset(provider))


_SCHEMAS = {item.version: _schema(item) for item in (V0_0_2, V0_0_3, V0_1_0, V0_1_1)}
"""The published schemas. The format of providers after these ignores unknown keys."""


def read_table(table: object, source: str) -> Metadata:
    """Read the table and check it against the schema that it names.

    Args:
        table: as parsed from TOML.
        source: file and package, for messages.

    Raises:
        MetadataError: it breaks the format, lacks a key that its schema requires, has one that it
            does not allow, or lists a value twice.
    """
    metadata = metadata_from_tree(table, source)
    schema = _schema_of(table)
    if schema is None or not isinstance(table, Mapping):
        return metadata
    for key in schema.required:
        if key not in table:
            raise MetadataError(source, key, "is missing: the schema requires it")
    priorities = table["default-priorities"]
    if "namespace" not in priorities:
        path = "default-priorities.namespace"
        raise MetadataError(source, path, "is missing: the schema requires it")
    _check_keys(table, schema.top, "", source)
    _check_keys(priorities, schema.priorities, "default-priorities.", source)
    for namespace, provider in table.get("providers", {}).items():
        _check_keys(provider, schema.provider, f"providers.{namespace}.", source)
    for label, properties in table["variants"].items():
        for namespace, features in properties.items():
            for feature, values in features.items():
                if len(set(values)) != len(values):
                    path = f"variants.{label}.{namespace}.{feature}"
                    raise MetadataError(source, path, f"lists a value twice: {shortened(values)}")
    return metadata


def write_table(documents: Iterable[Mapping[str, Any]], labels: Collection[str]) -> dict[str, Any]:
    """Return the table of a package whose wheels have *labels*.

    ``$schema`` and the properties of these labels are kept as they are. Other labels, keys that the
    schema does not allow, and JSON's null, which TOML lacks, are left out.

    Args:
        documents: the version's ``*-variants.json``; or, without such a file, the ``variant.json``
            of its wheels, which must not contradict each other (see `formats.merging`).
        labels: as in the filenames.
    """
    document = reduce(_union, documents)
    schema = _schema_of(document)
    table = {
        key: _converted(value)
        for key, value in document.items()
        if value is not None and (schema is None or schema.top is None or key in schema.top)
    }
    if schema is not None:
        table["default-priorities"] = _kept(table.get("default-priorities", {}), schema.priorities)
        if schema.provider is not None:
            table["providers"] = {
                namespace: _kept(provider, schema.provider)
                for namespace, provider in table.get("providers", {}).items()
            }
    null = {NULL_LABEL, ZERO_LABEL}
    known = null | set(labels) if null & set(labels) else set(labels)
    table["variants"] = {
        label: _sets(properties)
        for label, properties in sorted(table.get("variants", {}).items())
        if label in known
    }
    return table


def _schema_of(table: object) -> _Schema | None:
    """Return the schema that *table* names; None without one, or if it is not published."""
    schema = table.get("$schema") if isinstance(table, Mapping) else None
    version = schema_version(schema) if isinstance(schema, str) else None
    return None if version is None else _SCHEMAS.get(version)


def _check_keys(
    table: Mapping[str, Any], allowed: frozenset[str] | None, path: str, source: str
) -> None:
    for key in table:
        if allowed is not None and key not in allowed:
            shown = shortened(key, 40)[1:-1]
            raise MetadataError(source, f"{path}{shown}", "the schema has no such key")


def _kept(table: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key in allowed}


def _converted(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _converted(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_converted(item) for item in value if item is not None]
    return value


def _sets(value: Any) -> Any:  # noqa: ANN401
    """Return the properties of a variant without duplicate values."""
    if isinstance(value, Mapping):
        return {key: _sets(item) for key, item in value.items()}
    return list(dict.fromkeys(value)) if isinstance(value, list) else value


def _union(first: Any, second: Any) -> Any:  # noqa: ANN401
    """Return the union of two documents that do not contradict each other.

    Of two namespace lists one starts with the other: the longer one is kept.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        both = {key: _union(first[key], second[key]) for key in first if key in second}
        return {**first, **second, **both}
    if isinstance(first, list) and isinstance(second, list):
        return max(first, second, key=len)
    return first if second is None else second

"""Reading variant metadata of every generation into `Metadata`.

The data is untrusted: everything is checked here, once, the limits of `limits` before any work is
spent on it, and every problem is a `MetadataError` that names the file, the place in it and the
value. Nothing else in the project interprets these files.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from .. import limits
from .._gc_pause import paused
from .._model.generation import BY_SHAPE, Generation, UnknownSchema, generation_of, schema_version
from .._model.metadata import Metadata, ProviderInfo
from .._model.property import NAME, VALUE, Features, Properties
from ..errors import MetadataError, UnsupportedSchema, cut, printable, redacted, shortened
from ..labels import LABEL, NULL_LABEL, ZERO_LABEL
from .tree import PropertyTree, Tree, in_order

_PLUGIN_API = re.compile(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?", re.ASCII)


_logger = logging.getLogger(__name__)

_LARGE = 100_000


def read_metadata(data: bytes | str, source: str) -> Metadata:
    """Read ``variant.json`` or ``*-variants.json``.

    Args:
        data: the file, UTF-8.
        source: its path or URL, for messages.

    Raises:
        MetadataError: not JSON, wrong types, invalid names, or contradictions.
        UnsupportedSchema: its major format version is not known.

    >>> import json
    >>> from pep_variants.metadata import read_metadata
    >>> schema = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
    >>> tree = {
    ...     "$schema": schema,
    ...     "default-priorities": {"namespace": ["x86_64"]},
    ...     "variants": {"v3": {"x86_64": {"level": ["v3"]}}, "null": {}},
    ... }
    >>> metadata = read_metadata(json.dumps(tree), "numpy-2.4.0-variants.json")
    >>> sorted(metadata.variants)
    ['null', 'v3']
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if len(data) > limits.DOCUMENT_BYTES:
        raise _too_large(source, limits.DOCUMENT_BYTES)
    # A value takes a byte at least.
    if len(data) > limits.DOCUMENT_VALUES < limits.json_values(data):
        raise MetadataError(
            source, "", f"more than {limits.DOCUMENT_VALUES} JSON values, the most that is read"
        )
    with paused(len(data) > _LARGE):
        try:
            # Text, because `json` would guess UTF-16 and UTF-32 as well.
            tree = json.loads(data.decode("utf-8-sig", "surrogatepass"))
        except RecursionError:
            raise MetadataError(source, "", "nested too deeply") from None
        except UnicodeDecodeError as error:
            raise MetadataError(source, "", f"not UTF-8: {error.reason}") from None
        except ValueError as error:  # json.JSONDecodeError, huge integers
            raise MetadataError(source, "", f"not valid JSON: {error}") from None
        return _Reader(source).read(tree)


def read_pyproject(data: bytes | str, source: str) -> Metadata:
    """Read the ``[variant]`` table of a ``pyproject.toml``.

    It may have ``variants``, from which a build picks one by its label.

    A file without that table gives empty metadata.

    Raises:
        MetadataError: as in `read_metadata`.
    """
    if len(data) > limits.PYPROJECT_BYTES:
        raise _too_large(source, limits.PYPROJECT_BYTES)
    tree = Tree(partial(MetadataError, source)).load_toml(data)
    return _Reader(source, prefix="variant", source_tree=True).read(tree.get("variant", {}))


def metadata_from_tree(tree: object, source: str) -> Metadata:
    """Read metadata that is already parsed, e.g. ``[packages.variants-json]`` of a lock file.

    Raises:
        MetadataError: as in `read_metadata`.
    """
    try:
        tree = _copied(tree)
    except RecursionError:
        raise MetadataError(source, "", "nested too deeply") from None
    return _Reader(source).read(tree)


def _too_large(source: str, limit: int) -> MetadataError:
    size = limits.size_in_words(limit)
    return MetadataError(source, "", f"larger than {size}, the most that is read")


class _Reader:
    """One reading of one file; holds what every check needs to name the place of a problem."""

    def __init__(self, source: str, prefix: str = "", *, source_tree: bool = False) -> None:
        self._source = source
        self._prefix = prefix
        self._source_tree = source_tree
        self._tree = PropertyTree(self._error)
        self._requirements = self._characters = 0  # of all providers

    def read(self, document: object) -> Metadata:
        """Read *document*, a parsed tree of which nothing is shared; it is changed in place."""
        tree = self._tree.mapping(document, "")
        schema = self._tree.string(tree, "$schema")
        if schema is not None:
            self._tree.check_length(schema, "$schema", limits.SCHEMA_LENGTH)
        generation = self._generation(schema)
        priorities = self._tree.table(tree, "default-priorities")
        namespaces = self._tree.names(
            priorities.get("namespace", []),
            "default-priorities.namespace",
            NAME,
            most=limits.NAMESPACES,
        )
        feature_priorities: dict[str, tuple[str, ...]] = {}
        property_priorities: dict[str, Features] = {}
        if generation.priorities:
            feature_priorities, property_priorities = self._priorities(priorities, generation)
        providers: dict[str, ProviderInfo] = {}
        if generation.providers:
            providers = self._providers(tree, generation, feature_priorities, property_priorities)
        variants = self._variants(
            self._tree.table(tree, "variants"),
            frozenset(namespaces),
            generation,
        )
        return Metadata(
            namespaces=namespaces,
            variants=variants,
            providers=providers,
            feature_priorities=feature_priorities,
            property_priorities=property_priorities,
            schema=schema,
            source=redacted(self._source),
        )

    def _generation(self, schema: str | None) -> Generation:
        try:
            generation = generation_of(schema)
        except UnknownSchema as error:
            raise UnsupportedSchema(self._source, "$schema", str(error)) from None
        if generation is BY_SHAPE:
            if schema is not None or not self._source_tree:
                named = "no $schema" if schema is None else f"unknown $schema {shortened(schema)}"
                _logger.debug(
                    "%s: %s, format version inferred from its keys", redacted(self._source), named
                )
        elif (
            schema and schema != generation.schema and schema_version(schema) != generation.version
        ):
            _logger.debug(
                "%s: unknown $schema %s, read as format version %s",
                redacted(self._source),
                shortened(schema, 120),
                ".".join(map(str, generation.version)),
            )
        return generation

    def _priorities(
        self, table: Mapping[str, Any], generation: Generation
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, Features]]:
        """Return ``feature`` and ``property`` of ``default-priorities``."""
        features, properties = table.get("feature", {}), table.get("property", {})
        if generation.texts:
            features = self._nested(features, "default-priorities.feature", 2)
            properties = self._nested(properties, "default-priorities.property", 3)
        return (
            self._tree.features(features, "default-priorities.feature", NAME),
            self._tree.properties(properties, "default-priorities.property"),
        )

    def _nested(self, value: object, path: str, parts: int) -> object:
        """Return a list of ``ns :: feature`` or ``ns :: feature :: value`` as nested tables.

        What is not a list comes back unchanged.
        """
        if not isinstance(value, list):
            return value
        self._tree.check_count(value, path, limits.FEATURES, "entries")
        nested: dict[str, Any] = {}
        for item in value:
            names = item.split("::") if isinstance(item, str) else ()
            if len(names) != parts:
                form = " :: ".join(("namespace", "feature", "value")[:parts])
                raise self._error(path, f"expected {form!r}, found {shortened(item)}")
            *above, last, name = map(str.strip, names)
            table = nested
            for key in above:
                table = table.setdefault(key, {})
            table.setdefault(last, []).append(name)
        return nested

    def _variants(
        self,
        table: dict[str, Any],
        namespaces: frozenset[str],
        generation: Generation,
    ) -> dict[str, Properties]:
        # The tree is ours alone, so it is completed in place.
        self._tree.check_count(table, "variants", limits.LABELS, "variants")
        for label in table:
            self._tree.name(label, "variants", LABEL, "variant label")
        # What variants list alike in a namespace is one mapping, checked and ranked once.
        shared: dict[tuple[str, str], Features] = {}
        for label, properties in table.items():
            if type(properties) is not dict:
                raise self._tree.expected("an object", properties, f"variants.{label}")
            for namespace, features in properties.items():
                if features == {}:  # no property, so that no priority is needed either
                    self._tree.name(namespace, f"variants.{label}", NAME, "namespace")
                    continue
                key = namespace, _text(features)
                if key not in shared or not key[1]:
                    values = _in_lists(features) if generation.texts else features
                    shared[key] = self._tree.variant_features(values, label, namespace, namespaces)
                properties[namespace] = shared[key]
            if not all(properties.values()):
                table[label] = {name: found for name, found in properties.items() if found}
        for label in [label for label, properties in table.items() if not properties]:
            null = label == NULL_LABEL or (label == ZERO_LABEL and generation.zeros)
            if not null:
                raise self._error(
                    f"variants.{label}",
                    f"has no properties: only the variant {NULL_LABEL!r} has none",
                )
        if table.get(NULL_LABEL):
            raise self._error(
                f"variants.{NULL_LABEL}",
                f"the null variant has no properties, found {shortened(table[NULL_LABEL])}",
            )
        if generation.zeros and table.get(ZERO_LABEL) == {}:
            return {NULL_LABEL if key == ZERO_LABEL else key: table[key] for key in table}
        return table

    def _providers(
        self,
        document: Mapping[str, Any],
        generation: Generation,
        feature_priorities: Mapping[str, tuple[str, ...]],
        property_priorities: Mapping[str, Features],
    ) -> dict[str, ProviderInfo]:
        """Return the providers by namespace (PEP 817, "Providers")."""
        tree = self._tree
        static: Mapping[str, Features] = {}
        if generation.install_time:
            static = tree.properties(document.get("static-properties", {}), "static-properties")
        table = tree.table(document, "providers")
        tree.check_count(table, "providers", limits.NAMESPACES, "namespaces")
        providers = {}
        for namespace, raw in table.items():
            path = f"providers.{namespace}"
            tree.name(namespace, "providers", NAME, "namespace")
            tree.mapping(raw, path)
            own_static = None
            if generation.own_static and "static-properties" in raw:
                own_static = self._own_static(raw, path)
            elif generation.install_time and not tree.boolean(raw, "install-time", path, True):
                own_static = static.get(namespace, {})
            elif generation.plugin_use and self._plugin_use(raw, path) != "all":
                own_static = in_order(
                    property_priorities.get(namespace, {}), feature_priorities.get(namespace, ())
                )
            plugin_api = self._string(raw, "plugin-api", path)
            if plugin_api is not None and not _PLUGIN_API.fullmatch(plugin_api):
                raise tree.error(
                    f"{path}.plugin-api",
                    f"{shortened(plugin_api)} is not 'module' or 'module:object.path'",
                )
            if generation.exclusive:
                self._check_exclusive(raw, path)
            providers[namespace] = ProviderInfo(
                requires=self._requires(raw, "requires", path),
                build_requires=self._requires(raw, "build-requires", path),
                plugin_api=plugin_api and re.sub(r"\s", "", plugin_api),
                builtin=self._builtin(raw, path) if "builtin" in raw else None,
                static=own_static,
                enable_if=self._enable_if(raw, path) if generation.enable_if else None,
                optional=tree.boolean(raw, "optional", path, False),
            )
        return providers

    def _enable_if(self, raw: Mapping[str, Any], path: str) -> str | None:
        marker = self._string(raw, "enable-if", path, limits.MARKER_LENGTH) or None
        self._count(len(marker or ""), f"{path}.enable-if")
        return marker

    def _own_static(self, raw: Mapping[str, Any], path: str) -> Features:
        features = self._tree.features(raw["static-properties"], f"{path}.static-properties", VALUE)
        order = self._tree.names(raw.get("feature-order", []), f"{path}.feature-order", NAME)
        if (order or len(features) > 1) and set(order) != set(features):
            raise self._tree.error(
                f"{path}.feature-order",
                f"must list the features of static-properties ({', '.join(sorted(features))}), "
                f"found {shortened(order)}",
            )
        return in_order(features, order)

    def _check_exclusive(self, raw: Mapping[str, Any], path: str) -> None:
        kinds = ["requires", "builtin", "static-properties"]
        if self._source_tree:
            kinds.append("build-requires")
        elif "build-requires" in raw:
            raise self._tree.error(f"{path}.build-requires", "is allowed in pyproject.toml only")
        given = [kind for kind in kinds if kind in raw]
        if len(given) != 1:
            raise self._tree.error(
                path,
                f"needs exactly one of {', '.join(kinds)}; found {', '.join(given) or 'none'}",
            )
        if "plugin-api" in raw and given[0] not in ("requires", "build-requires"):
            raise self._tree.error(f"{path}.plugin-api", f"cannot be combined with {given[0]}")
        if raw.get("static-properties") == {}:
            raise self._tree.error(f"{path}.static-properties", "needs at least one feature")
        if "feature-order" in raw and given[0] != "static-properties":
            raise self._tree.error(f"{path}.feature-order", f"cannot be combined with {given[0]}")

    def _builtin(self, raw: Mapping[str, Any], path: str) -> str:
        name = raw["builtin"]
        if not isinstance(name, str) or not name:
            raise self._tree.expected("a name", name, f"{path}.builtin")
        return name

    def _plugin_use(self, raw: Mapping[str, Any], path: str) -> str:
        use = raw.get("plugin-use", "all")
        if use not in ("all", "build", "none"):
            raise self._tree.expected("all, build or none", use, f"{path}.plugin-use")
        return str(use)

    def _requires(self, raw: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
        value, place = raw.get(key, []), f"{path}.{key}"
        items = self._tree.string_list(value, place, "a list of requirements")
        if not all(item.isprintable() and item.strip() for item in items):
            raise self._tree.expected("a list of requirements", value, place)
        self._requirements += len(items)
        if self._requirements > limits.PROVIDER_REQUIREMENTS:
            raise self._tree.error(
                place,
                f"more than {limits.PROVIDER_REQUIREMENTS} requirements of all providers together",
            )
        for item in items:
            self._tree.check_length(item, place, limits.REQUIREMENT_LENGTH)
        self._count(sum(map(len, items)), place)
        return items

    def _count(self, characters: int, path: str) -> None:
        """Count what `packaging` parses."""
        self._characters += characters
        if self._characters > limits.PROVIDER_REQUIREMENT_CHARACTERS:
            raise self._tree.error(
                path,
                f"more than {limits.PROVIDER_REQUIREMENT_CHARACTERS} characters in requirements and"
                " markers of all providers together",
            )

    def _string(
        self, raw: Mapping[str, Any], key: str, path: str, most: int = limits.REQUIREMENT_LENGTH
    ) -> str | None:
        value = self._tree.string(raw, key, path)
        if value is not None:
            self._tree.check_length(value, f"{path}.{key}", most)
        return value

    def _error(self, path: str, problem: str) -> MetadataError:
        place = ".".join(part for part in (self._prefix, path) if part)
        # It has labels of untrusted files in it.
        return MetadataError(self._source, cut(printable(place), 160), problem)


def _in_lists(features: object) -> object:
    """Return *features* with every value that is a text as a list of that one value."""
    if not isinstance(features, dict):
        return features
    return {name: [value] if type(value) is str else value for name, value in features.items()}


def _text(features: object) -> str:
    """Return a text that only equal *features* have; empty where there is none."""
    try:
        return repr(features)
    except (ValueError, RecursionError):  # integers of thousands of digits, deep nesting
        return ""


def _copied(value: Any) -> Any:  # noqa: ANN401
    """Return *value* with no table or list in two places, which `copy.deepcopy` would keep."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value

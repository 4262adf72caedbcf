"""Reading variant metadata of every generation into `Metadata`.

Data comes from indexes and wheels of strangers: everything is checked here, once, and every
problem is a `MetadataError` that names the file, the place in it and the value. Nothing else in
the project interprets these files.
"""

from __future__ import annotations

import json
import logging
import marshal
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from . import toml
from .collection import paused
from .errors import MetadataError, UnsupportedSchema, redacted, shortened
from .generation import (
    BY_SHAPE,
    GENERATIONS,
    SUPPORTED_MAJOR,
    Generation,
    schema_version,
    spells_null_in_zeros,
)
from .label import LABEL, NULL_LABEL, ZERO_LABEL
from .metadata import Metadata, ProviderInfo
from .property import ABI_DEPENDENCY, NAME, VALUE, Features, Properties

logger = logging.getLogger(__name__)

MAX_METADATA_BYTES = 32 * 1024 * 1024
"""Larger files are refused unread: ten thousand variants need about two megabytes."""

_LARGE = 100_000
_PLUGIN_API = re.compile(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?", re.ASCII)


def read_metadata(data: bytes | str, source: str) -> Metadata:
    """Read ``variant.json`` or ``*-variants.json``.

    Args:
        data: the file, UTF-8.
        source: its path or URL, for messages.

    Raises:
        MetadataError: it is no JSON, has wrong types or bad names, or contradicts itself.
        UnsupportedSchema: its major format version is not known.
    """
    if len(data) > MAX_METADATA_BYTES:
        limit = MAX_METADATA_BYTES // 2**20
        raise MetadataError(source, "", f"larger than {limit} MiB, the most that is read")
    with paused(len(data) > _LARGE):
        try:
            tree = json.loads(data)
        except RecursionError:
            raise MetadataError(source, "", "nested too deeply") from None
        except ValueError as error:  # json.JSONDecodeError, UnicodeDecodeError, huge integers
            raise MetadataError(source, "", f"not valid JSON: {error}") from None
        return _Reader(source).read(tree)


def read_pyproject(data: bytes | str, source: str) -> Metadata:
    """Read the ``[variant]`` table of a ``pyproject.toml``; it has no ``variants``.

    A file without that table gives empty metadata.

    Raises:
        MetadataError: as in `read_metadata`.
    """
    try:
        tree = toml.loads(data if isinstance(data, str) else data.decode())
    except (ValueError, RecursionError) as error:
        raise MetadataError(source, "", f"not valid TOML: {error}") from None
    table = tree.get("variant", {})
    if isinstance(table, dict) and "variants" in table:
        raise MetadataError(source, "variant.variants", "does not belong into pyproject.toml")
    return _Reader(source, prefix="variant", source_tree=True).read(table)


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


class _Reader:
    """One reading of one file; holds what every check needs to name the place of a problem."""

    def __init__(self, source: str, prefix: str = "", *, source_tree: bool = False) -> None:
        self._source = source
        self._prefix = prefix
        self._source_tree = source_tree
        self._seen: set[str] = set()

    def read(self, tree: object) -> Metadata:
        if not isinstance(tree, dict):
            raise self._error("", f"expected an object, found {shortened(tree)}")
        schema = tree.get("$schema")
        if schema is not None and not isinstance(schema, str):
            raise self._error("$schema", f"expected a string, found {shortened(schema)}")
        generation = self._generation(schema)
        priorities = self._table(tree, "default-priorities", "default-priorities")
        namespaces = self._names(
            priorities.get("namespace", []), "default-priorities.namespace", NAME
        )
        feature_priorities: dict[str, tuple[str, ...]] = {}
        property_priorities: dict[str, Features] = {}
        if generation.priorities:
            feature_priorities = self._features(
                priorities.get("feature", {}), "default-priorities.feature", NAME
            )
            property_priorities = self._properties(
                priorities.get("property", {}), "default-priorities.property"
            )
        providers: dict[str, ProviderInfo] = {}
        if generation.providers:
            static = {}
            if generation.install_time:
                static = self._properties(tree.get("static-properties", {}), "static-properties")
            providers = self._providers(
                self._table(tree, "providers", "providers"),
                generation,
                static,
                feature_priorities,
                property_priorities,
            )
        variants = self._variants(
            self._table(tree, "variants", "variants"),
            frozenset(namespaces),
            zeros=spells_null_in_zeros(schema),
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
        if schema is None:
            if self._source_tree:
                return BY_SHAPE
            logger.debug("%s: no $schema, read by its shape", redacted(self._source))
            return BY_SHAPE
        version = schema_version(schema)
        if version is not None and version[0] != SUPPORTED_MAJOR:
            raise UnsupportedSchema(
                self._source,
                "$schema",
                f"format version {'.'.join(map(str, version))} ({shortened(schema, 120)}) is not "
                f"supported, only versions {SUPPORTED_MAJOR}.x are: a newer release may read it",
            )
        generation = None if version is None else GENERATIONS.get(version)
        if generation is None:
            logger.debug(
                "%s: unknown $schema %s, read by its shape",
                redacted(self._source),
                shortened(schema, 120),
            )
            return BY_SHAPE
        return generation

    def _variants(
        self, table: dict[str, Any], namespaces: frozenset[str], *, zeros: bool
    ) -> dict[str, Properties]:
        # The hot loop for files with thousands of labels. What one namespace lists is checked
        # once in whichever variant, and shared by all that list the same: `ranking` then judges
        # it once, too. The tree is ours alone, so it is completed in place.
        if table and not _all_match(LABEL, table):
            label = next(label for label in table if not LABEL.fullmatch(label))
            raise self._error(
                "variants",
                f"{shortened(label)} is no variant label: it must match {LABEL.pattern}",
            )
        dumps = marshal.dumps
        checked: dict[str, dict[bytes, Features]] = {name: {} for name in namespaces}
        bare = []
        for label, properties in table.items():
            if type(properties) is not dict:
                raise self._expected_object(f"variants.{label}", properties)
            if not properties:
                bare.append(label)
            for namespace, features in properties.items():
                try:
                    # The fastest way to something that can be looked up: bytes that are equal
                    # for equal data, types and order included.
                    properties[namespace] = checked[namespace][dumps(features, 0)]
                    continue
                except KeyError:
                    key = dumps(features, 0)
                except ValueError:  # nested very deeply, or nothing of JSON
                    key = b""
                shared = self._variant_features(label, namespace, features, namespaces)
                properties[namespace] = shared
                if not shared:
                    bare.append(label)
                elif key:
                    checked.setdefault(namespace, {})[key] = shared
        for label in bare:
            table[label] = {name: value for name, value in table[label].items() if value}
            if not table[label] and label != NULL_LABEL and not (zeros and label == ZERO_LABEL):
                raise self._error(
                    f"variants.{label}",
                    f"has no properties: only the variant {NULL_LABEL!r} has none",
                )
        if table.get(NULL_LABEL):
            raise self._error(
                f"variants.{NULL_LABEL}",
                f"the null variant has no properties, found {shortened(table[NULL_LABEL])}",
            )
        if zeros and table.get(ZERO_LABEL) == {}:
            return {NULL_LABEL if key == ZERO_LABEL else key: table[key] for key in table}
        return table

    def _providers(
        self,
        table: Mapping[str, Any],
        generation: Generation,
        static: Mapping[str, Features],
        feature_priorities: Mapping[str, tuple[str, ...]],
        property_priorities: Mapping[str, Features],
    ) -> dict[str, ProviderInfo]:
        providers = {}
        for namespace, raw in table.items():
            path = f"providers.{namespace}"
            self._name(namespace, "providers", NAME, "namespace")
            if type(raw) is not dict:
                raise self._expected_object(path, raw)
            own_static = None
            if "static-properties" in raw and (generation.exclusive or generation is BY_SHAPE):
                own_static = self._own_static(raw, path)
            elif generation.install_time and not self._boolean(raw, "install-time", path, True):
                own_static = static.get(namespace, {})
            elif generation.plugin_use and self._plugin_use(raw, path) != "all":
                own_static = _in_order(
                    property_priorities.get(namespace, {}), feature_priorities.get(namespace, ())
                )
            plugin_api = self._string(raw, "plugin-api", path)
            if plugin_api is not None and not _PLUGIN_API.fullmatch(plugin_api):
                raise self._error(
                    f"{path}.plugin-api",
                    f"{shortened(plugin_api)} is no 'module' or 'module:object.path'",
                )
            if generation.exclusive:
                self._check_exclusive(raw, path)
            providers[namespace] = ProviderInfo(
                requires=self._strings(raw, "requires", path),
                build_requires=self._strings(raw, "build-requires", path),
                plugin_api=plugin_api and re.sub(r"\s", "", plugin_api),
                builtin=self._builtin(raw, path) if "builtin" in raw else None,
                static=own_static,
                enable_if=self._string(raw, "enable-if", path) or None,
                optional=self._boolean(raw, "optional", path, False),
            )
        return providers

    def _own_static(self, raw: Mapping[str, Any], path: str) -> Features:
        features = self._features(raw["static-properties"], f"{path}.static-properties", VALUE)
        order = self._names(raw.get("feature-order", []), f"{path}.feature-order", NAME)
        if (order or len(features) > 1) and set(order) != set(features):
            raise self._error(
                f"{path}.feature-order",
                f"must list the features of static-properties ({', '.join(sorted(features))}), "
                f"found {shortened(order)}",
            )
        return _in_order(features, order)

    def _check_exclusive(self, raw: Mapping[str, Any], path: str) -> None:
        kinds = ["requires", "builtin", "static-properties"]
        if self._source_tree:
            kinds.append("build-requires")
        elif "build-requires" in raw:
            raise self._error(f"{path}.build-requires", "belongs into pyproject.toml only")
        given = [kind for kind in kinds if kind in raw]
        if len(given) != 1:
            raise self._error(
                path,
                f"needs exactly one of {', '.join(kinds)}; found {', '.join(given) or 'none'}",
            )
        if "plugin-api" in raw and given[0] not in ("requires", "build-requires"):
            raise self._error(f"{path}.plugin-api", f"makes no sense with {given[0]}")
        if raw.get("static-properties") == {}:
            raise self._error(f"{path}.static-properties", "needs at least one feature")
        if "feature-order" in raw and given[0] != "static-properties":
            raise self._error(f"{path}.feature-order", f"makes no sense with {given[0]}")

    def _builtin(self, raw: Mapping[str, Any], path: str) -> str:
        name = raw["builtin"]
        if not isinstance(name, str) or not name:
            raise self._error(f"{path}.builtin", f"expected a name, found {shortened(name)}")
        return name

    def _plugin_use(self, raw: Mapping[str, Any], path: str) -> str:
        use = raw.get("plugin-use", "all")
        if use not in ("all", "build", "none"):
            raise self._error(
                f"{path}.plugin-use", f"expected all, build or none, found {shortened(use)}"
            )
        return str(use)

    # Checks of single values. Each takes the path of the value for the message.

    def _table(self, tree: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
        value = tree.get(key, {})
        if not isinstance(value, dict):
            raise self._expected_object(path, value)
        return value

    def _properties(self, value: object, path: str) -> dict[str, Features]:
        if not isinstance(value, dict):
            raise self._expected_object(path, value)
        return {
            self._name(namespace, path, NAME, "namespace"): self._features(
                features, f"{path}.{namespace}", VALUE
            )
            for namespace, features in value.items()
        }

    def _features(
        self, value: object, path: str, pattern: re.Pattern[str]
    ) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise self._expected_object(path, value)
        return {
            self._name(name, path, NAME, "name"): self._names(items, f"{path}.{name}", pattern)
            for name, items in value.items()
        }

    def _names(
        self, value: object, path: str, pattern: re.Pattern[str], *, unique: bool = True
    ) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self._error(path, f"expected a list of strings, found {shortened(value)}")
        for item in value:
            self._name(item, path, pattern, "valid entry")
        if unique and len(set(value)) != len(value):
            twice = next(item for item in value if value.count(item) > 1)
            raise self._error(path, f"{shortened(twice)} is listed twice")
        return tuple(value)

    def _name(self, value: object, path: str, pattern: re.Pattern[str], kind: str) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self._error(
                path, f"{shortened(value)} is no {kind}: it must match {pattern.pattern}"
            )
        return value

    def _strings(self, raw: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
        value = raw.get(key, [])
        if not isinstance(value, list) or not all(
            isinstance(item, str) and item.isprintable() and item.strip() for item in value
        ):
            raise self._error(
                f"{path}.{key}", f"expected a list of requirements, found {shortened(value)}"
            )
        return tuple(value)

    def _string(self, raw: Mapping[str, Any], key: str, path: str) -> str | None:
        value = raw.get(key)
        if value is not None and not isinstance(value, str):
            raise self._error(f"{path}.{key}", f"expected a string, found {shortened(value)}")
        return value

    def _boolean(self, raw: Mapping[str, Any], key: str, path: str, default: bool) -> bool:
        value = raw.get(key, default)
        if not isinstance(value, bool):
            raise self._error(f"{path}.{key}", f"expected a boolean, found {shortened(value)}")
        return value

    def _variant_features(
        self, label: str, namespace: str, features: object, namespaces: frozenset[str]
    ) -> Features:
        if namespace not in namespaces and namespace != ABI_DEPENDENCY:
            self._name(namespace, f"variants.{label}", NAME, "namespace")
            raise self._error(
                f"variants.{label}.{namespace}", "is not listed in default-priorities.namespace"
            )
        if not isinstance(features, dict):
            raise self._expected_object(f"variants.{label}.{namespace}", features)
        checked = {}
        for feature, values in features.items():
            if (
                type(values) is not list
                or not _all_match(VALUE, values)
                or feature not in self._seen
            ):
                path = f"variants.{label}.{namespace}"
                self._name(feature, path, NAME, "feature")
                if not self._names(values, f"{path}.{feature}", VALUE, unique=False):
                    raise self._error(f"{path}.{feature}", "needs at least one value")
                self._seen.add(feature)
            checked[feature] = tuple(sorted(set(values))) if len(values) > 1 else (values[0],)
        return checked

    def _expected_object(self, path: str, value: object) -> MetadataError:
        return self._error(path, f"expected an object, found {shortened(value)}")

    def _error(self, path: str, problem: str) -> MetadataError:
        place = ".".join(part for part in (self._prefix, path) if part)
        return MetadataError(self._source, shortened_path(place), problem)


def _all_match(pattern: re.Pattern[str], items: Collection[str]) -> bool:
    """Return whether *items* are strings, one or more, that all match *pattern*.

    That is one class of characters, repeated: what is joined from strings matches if they do.
    """
    try:
        return "" not in items and pattern.fullmatch("".join(items)) is not None
    except TypeError:
        return False


def _in_order(features: Features, first: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return *features* with those named in *first* in front, the others after in their order."""
    named = [feature for feature in first if feature in features]
    return {
        feature: features[feature]
        for feature in (*named, *(feature for feature in features if feature not in named))
    }


def _copied(value: Any) -> Any:  # noqa: ANN401
    """Return *value* with no table or list in two places, which `copy.deepcopy` would keep."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def shortened_path(path: str) -> str:
    """Return *path* printable on one line: labels of strangers end up in it."""
    path = "".join(char if char.isprintable() else "?" for char in path)
    return path if len(path) <= 160 else f"{path[:159]}…"

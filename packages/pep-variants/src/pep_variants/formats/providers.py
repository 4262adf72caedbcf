"""Reading the providers of variant metadata (PEP 817, "Providers")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .. import limits
from ..errors import shortened
from ..model.generation import Generation
from ..model.metadata import ProviderInfo
from ..model.property import NAME, VALUE, Features
from ..patterns import pattern
from .properties import PropertyTree, in_order

_PLUGIN_API = pattern(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?", re.ASCII)


class ProviderReader:
    """Reads the ``providers`` of one document."""

    def __init__(self, tree: PropertyTree, generation: Generation, *, source_tree: bool) -> None:
        """Set up for one document.

        Args:
            tree: the document.
            generation: of its format.
            source_tree: it is a ``pyproject.toml``, not metadata of an index or wheel.
        """
        self._tree = tree
        self._generation = generation
        self._source_tree = source_tree
        self._requirements = self._characters = 0  # of all providers

    def read(
        self,
        table: Mapping[str, Any],
        static: Mapping[str, Features],
        feature_priorities: Mapping[str, tuple[str, ...]],
        property_priorities: Mapping[str, Features],
    ) -> dict[str, ProviderInfo]:
        """Return the providers by namespace.

        Args:
            table: the providers.
            static: ``static-properties`` of the whole document.
            feature_priorities, property_priorities: of ``default-priorities``.
        """
        tree, generation = self._tree, self._generation
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

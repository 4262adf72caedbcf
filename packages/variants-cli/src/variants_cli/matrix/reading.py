"""Reading matrix files (see MATRIX.md for the format)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pep_variants.errors import InvalidLabel, InvalidProperty, shortened
from pep_variants.formats import toml
from pep_variants.formats.reader import metadata_from_tree
from pep_variants.model.label import check_label
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Property

from .backends import BACKENDS
from .model import Condition, Matrix, MatrixError, Override, Settings, Value, Where
from .repairing import PLACEHOLDERS, SYSTEMS

_KEYS = ("extends", "label", "variant", "axes", "exclude", "override", "build")
_SETTINGS = ("properties", "environment", "config-settings", "ci")
_VALUE = ("label", "title", "requires", "host", *_SETTINGS)
_OVERRIDE = ("where", "label", *_SETTINGS)
_BUILD = ("source", "backend", "repair")
_VARIANT = ("$schema", "default-priorities", "providers", "static-properties")

_AXIS = re.compile(r"[a-z][a-z0-9_-]*")
_PART = re.compile(r"[0-9a-z_.]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIFIER = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)")


def read_matrix(path: Path) -> Matrix:
    """Read the matrix file *path* and those that it extends.

    Raises:
        MatrixError: it is not valid TOML, has unknown keys or wrong values, or is inconsistent.
        MetadataError: its ``variant`` table breaks the format.
        OSError: it, or what it extends, cannot be read.
    """
    return _Reader(str(path)).read(_load(path, ()), path)


def _load(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the tree of *path*, put over the trees of what it extends."""
    source = str(path)
    resolved = path.resolve()
    if resolved in seen:
        raise MatrixError(source, "extends", "extends itself in a circle")
    try:
        tree = toml.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError
        raise MatrixError(source, "", f"not valid TOML: {error}") from None
    base = tree.pop("extends", None)
    if base is None:
        return tree
    if not isinstance(base, str) or not base:
        raise MatrixError(source, "extends", f"expected a path, found {shortened(base)}")
    try:
        return _over(_load(path.parent / base, (*seen, resolved)), tree)
    except FileNotFoundError:
        raise MatrixError(
            source, "extends", f"{path.parent / base} does not exist: name it relative to this file"
        ) from None


def _over(base: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """Return *tree* over *base*: tables are merged, lists of tables joined, the rest replaced."""
    merged = dict(base)
    for key, value in tree.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _over(old, value)
        elif isinstance(old, list) and key in ("exclude", "override") and isinstance(value, list):
            merged[key] = [*old, *value]
        else:
            merged[key] = value
    return merged


class _Reader:
    """One reading of one file; holds what every check needs to name the place of a problem."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._axes: dict[str, tuple[str, ...]] = {}

    def read(self, tree: dict[str, Any], path: Path) -> Matrix:
        self._check_keys(tree, "", _KEYS)
        tables = self._table(tree, "axes", "")
        if not tables:
            raise self._error(
                "axes", "there are none: add a table such as [axes.cpu.avx2] for each value"
            )
        for name in tables:
            if not _AXIS.fullmatch(name):
                raise self._error(
                    "axes",
                    f"{shortened(name)} is not a valid axis name: it must match {_AXIS.pattern}",
                )
            values = self._table(tables, name, "axes")
            if not values:
                raise self._error(f"axes.{name}", "has no values: add one, or leave the axis out")
            self._axes[name] = tuple(values)
        build = self._table(tree, "build", "")
        self._check_keys(build, "build", _BUILD)
        source = self._string(build, "source", "build", ".")
        backend = self._string(build, "backend", "build", "")
        if backend and backend not in BACKENDS:
            raise self._error(
                "build.backend",
                f"{shortened(backend)} is not among those that write variant metadata "
                f"({', '.join(sorted(BACKENDS))}): leave it out to have wheels wrapped",
            )
        return Matrix(
            source=self._source,
            project=self._project(tree),
            axes={
                axis: tuple(self._value(name, tables[axis], f"axes.{axis}", axis) for name in names)
                for axis, names in self._axes.items()
            },
            label=self._label(tree),
            exclude=tuple(
                self._where(table, f"exclude[{number}]", empty=False)
                for number, table in enumerate(self._tables(tree, "exclude"))
            ),
            override=tuple(
                self._override(table, f"override[{number}]")
                for number, table in enumerate(self._tables(tree, "override"))
            ),
            build_source=path.parent / source,
            backend=backend,
            repair=self._repair(build),
        )

    def _repair(self, build: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        path, repair = "build.repair", build.get("repair", {})
        if isinstance(repair, str):
            return dict.fromkeys(SYSTEMS, self._command(repair, path)) if repair.strip() else {}
        if not isinstance(repair, dict):
            raise self._error(
                path,
                f"expected a command, or a table of commands by system, found {shortened(repair)}",
            )
        self._check_keys(repair, path, SYSTEMS)
        return {
            system: self._command(self._string(repair, system, path, ""), f"{path}.{system}")
            for system in repair
        }

    def _command(self, text: str, path: str) -> tuple[str, ...]:
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise self._error(path, f"{shortened(text)} is not a valid command: {error}") from None
        for name in PLACEHOLDERS:
            if not any(name in word for word in words):
                raise self._error(
                    path, f"{shortened(text)} has no {name}: say where the command gets it"
                )
        return words

    def _project(self, tree: dict[str, Any]) -> Metadata:
        table = self._table(tree, "variant", "")
        if "variants" in table:
            raise self._error("variant.variants", "the axes say what variants there are")
        self._check_keys(table, "variant", _VARIANT)
        metadata = metadata_from_tree(table, f"{self._source}: variant")
        if not metadata.namespaces:
            raise self._error(
                "variant.default-priorities.namespace",
                "lists no namespaces: list those of the properties, the most important first",
            )
        return metadata

    def _label(self, tree: dict[str, Any]) -> tuple[str, ...]:
        label = tree.get("label", list(self._axes))
        if not isinstance(label, list) or not all(isinstance(item, str) for item in label):
            raise self._error("label", f"expected a list of axes, found {shortened(label)}")
        for axis in label:
            self._check_axis(axis, "label")
        return tuple(label)

    def _value(self, name: str, axis_table: dict[str, Any], path: str, axis: str) -> Value:
        table = self._table(axis_table, name, path)
        path = f"{path}.{name}"
        self._check_keys(table, path, _VALUE)
        label = self._string(table, "label", path, name)
        if not _PART.fullmatch(label):
            raise self._error(
                f"{path}.label",
                f"{shortened(label)} is not valid in a label: it must match {_PART.pattern}"
                + ("" if "label" in table else "; add the key to have another one than the name"),
            )
        requires = self._where(self._table(table, "requires", path), f"{path}.requires")
        if axis in requires:
            raise self._error(
                f"{path}.requires", f"names the axis {axis!r} itself: name other axes"
            )
        return Value(
            name=name,
            label=label,
            title=self._string(table, "title", path, ""),
            requires=requires,
            host=self._marker(table, path),
            settings=self._settings(table, path),
        )

    def _override(self, table: dict[str, Any], path: str) -> Override:
        self._check_keys(table, path, _OVERRIDE)
        label = self._string(table, "label", path, "") or None
        if label is not None:
            try:
                check_label(label)
            except InvalidLabel as error:
                raise self._error(f"{path}.label", str(error)) from None
        where = self._where(self._table(table, "where", path), f"{path}.where")
        return Override(where, label, self._settings(table, path))

    def _where(self, table: dict[str, Any], path: str, *, empty: bool = True) -> Where:
        if not table and not empty:
            raise self._error(path, "would exclude everything: name an axis and its values")
        where = {}
        for axis, value in table.items():
            self._check_axis(axis, path)
            where[axis] = self._condition(value, axis, f"{path}.{axis}")
        return where

    def _condition(self, value: object, axis: str, path: str) -> Condition:
        if isinstance(value, str) and _SPECIFIER.match(value):
            try:
                return Condition(versions=SpecifierSet(value))
            except InvalidSpecifier:
                raise self._error(
                    path, f"{shortened(value)} is not a version specifier such as '>=12.9,<14'"
                ) from None
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise self._error(
                path,
                f"expected a name, a list of names or versions such as '>=12.9', "
                f"found {shortened(value)}",
            )
        for name in names:
            if name not in self._axes[axis]:
                raise self._error(
                    path,
                    f"{shortened(name)} is not a value of axis {axis!r}; "
                    f"there are {', '.join(self._axes[axis])}",
                )
        return Condition(names=tuple(names))

    def _settings(self, table: dict[str, Any], path: str) -> Settings:
        environment: dict[str, str] = {}
        flags: dict[str, tuple[str, ...]] = {}
        for name, value in self._table(table, "environment", path).items():
            place = f"{path}.environment"
            if not _VARIABLE.fullmatch(name):
                raise self._error(place, f"{shortened(name)} is not a valid variable name")
            if isinstance(value, str):
                environment[name] = value
            else:
                flags[name] = self._strings(value, f"{place}.{name}", "a string to set, or a list")
        config_settings = {
            key: (value,)
            if isinstance(value, str)
            else self._strings(value, f"{path}.config-settings.{key}", "a string, or a list")
            for key, value in self._table(table, "config-settings", path).items()
        }
        ci = self._table(table, "ci", path)
        return Settings(
            self._properties(table, path),
            environment,
            flags,
            config_settings,
            {key: self._string(ci, key, f"{path}.ci", "") for key in ci},
        )

    def _properties(self, table: dict[str, Any], path: str) -> tuple[Property, ...]:
        path = f"{path}.properties"
        texts = self._strings(table.get("properties", []), path, "a list")
        try:
            return tuple(map(Property.parse, texts))
        except InvalidProperty as error:
            raise self._error(path, str(error)) from None

    def _marker(self, table: dict[str, Any], path: str) -> Marker | None:
        text = self._string(table, "host", path, "")
        if not text:
            return None
        try:
            return Marker(text)
        except InvalidMarker:
            raise self._error(
                f"{path}.host",
                f"{shortened(text)} is not a valid environment marker such as "
                "\"platform_machine == 'aarch64'\"",
            ) from None

    # Checks of single values. Each takes the path of the value, or of its table, for the message.

    def _check_axis(self, axis: str, path: str) -> None:
        if axis not in self._axes:
            raise self._error(
                path, f"{shortened(axis)} is not an axis; there are {', '.join(self._axes)}"
            )

    def _check_keys(self, table: dict[str, Any], path: str, known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                raise self._error(
                    path, f"unknown key {shortened(key)}; there are {', '.join(known)}"
                )

    def _table(self, tree: dict[str, Any], key: str, path: str) -> dict[str, Any]:
        value = tree.get(key, {})
        if not isinstance(value, dict):
            place = f"{path}.{key}" if path else key
            raise self._error(place, f"expected a table, found {shortened(value)}")
        return value

    def _tables(self, tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
        value = tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._error(key, f"expected tables such as [[{key}]], found {shortened(value)}")
        return value

    def _string(self, table: dict[str, Any], key: str, path: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self._error(f"{path}.{key}", f"expected a string, found {shortened(value)}")
        return value

    def _strings(self, value: object, path: str, expected: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(path, f"expected {expected} of strings, found {shortened(value)}")
        return tuple(value)

    def _error(self, path: str, problem: str) -> MatrixError:
        return MatrixError(self._source, path, problem)

"""Reading matrix files (see docs/reference/matrix.md for the format)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from packaging.markers import InvalidMarker, Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pep_variants.errors import InvalidLabel, InvalidProperty, shortened
from pep_variants.formats import toml
from pep_variants.formats.reader import metadata_from_tree
from pep_variants.model.label import check_label
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Property

from ..variant_config import is_variant_config
from .build_table import read_build
from .flags import LANGUAGES
from .known_variables import problem_of
from .model import Condition, Matrix, MatrixError, Override, Settings, Value, Where
from .repack_matrix import read_repack_matrix
from .table_checks import TableChecks
from .wheel_targets import read_platform, read_python

T = TypeVar("T")

_KEYS = (
    "extends", "project", "title", "details", "label", "variant", "axes", "exclude", "override",
    "build",
)  # fmt: skip
_SETTINGS = ("properties", "environment", "config-settings", "ci", "flags")
_VALUE = ("label", "title", "details", "requires", "host", *_SETTINGS, "python", "platform")
_OVERRIDE = ("where", "label", *_SETTINGS)
_VARIANT = ("$schema", "default-priorities", "providers", "static-properties")

_AXIS = re.compile(r"[a-z][a-z0-9_-]*")
_PART = re.compile(r"[0-9a-z_.]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIFIER = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)")


def read_matrix(path: Path) -> Matrix:
    """Read the matrix file *path* and those that it extends, or a ``variant_config.toml``.

    Raises:
        MatrixError: it is not valid TOML, has unknown keys or wrong values, or is inconsistent.
        MetadataError: its ``variant`` table breaks the format.
        OSError: it, or what it extends, cannot be read.
    """
    if is_variant_config(path):
        return read_repack_matrix(path)
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
    _resolve_matrices(tree, path.parent)
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


def _resolve_matrices(tree: dict[str, Any], folder: Path) -> None:
    """Make the matrix files in ``build.after`` relative to the file that names them."""
    build = tree.get("build")
    after = build.get("after") if isinstance(build, dict) else None
    for table in after.values() if isinstance(after, dict) else ():
        if isinstance(table, dict) and isinstance(table.get("matrix"), str) and table["matrix"]:
            table["matrix"] = str(folder.absolute() / table["matrix"])


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
        self._checks = TableChecks(source)
        self._axes: dict[str, tuple[str, ...]] = {}

    def read(self, tree: dict[str, Any], path: Path) -> Matrix:
        self._checks.check_keys(tree, "", _KEYS)
        tables = self._checks.table(tree, "axes", "")
        if not tables:
            raise self._checks.error(
                "axes", "there are none: add a table such as [axes.cpu.avx2] for each value"
            )
        for name in tables:
            if not _AXIS.fullmatch(name):
                raise self._checks.error(
                    "axes",
                    f"{shortened(name)} is not a valid axis name: it must match {_AXIS.pattern}",
                )
            values = self._checks.table(tables, name, "axes")
            if not values:
                raise self._checks.error(
                    f"axes.{name}", "has no values: add one, or leave the axis out"
                )
            self._axes[name] = tuple(values)
        axes = {
            axis: tuple(self._value(name, tables[axis], f"axes.{axis}", axis) for name in names)
            for axis, names in self._axes.items()
        }
        self._check_targets(axes)
        return Matrix(
            source=self._source,
            project=self._project(tree),
            axes=axes,
            label=self._label(tree),
            exclude=tuple(
                self._where(table, f"exclude[{number}]", empty=False)
                for number, table in enumerate(self._checks.tables(tree, "exclude"))
            ),
            override=tuple(
                self._override(table, f"override[{number}]")
                for number, table in enumerate(self._checks.tables(tree, "override"))
            ),
            build=read_build(self._checks.table(tree, "build", ""), path.parent, self._checks),
            title=self._checks.string(tree, "title", "", ""),
            details=self._details(tree, ""),
            name=self._checks.project(tree.get("project", ""), "project"),
        )

    def _project(self, tree: dict[str, Any]) -> Metadata:
        table = self._checks.table(tree, "variant", "")
        if "variants" in table:
            raise self._checks.error("variant.variants", "the axes say what variants there are")
        self._checks.check_keys(table, "variant", _VARIANT)
        metadata = metadata_from_tree(table, f"{self._source}: variant")
        if not metadata.namespaces:
            raise self._checks.error(
                "variant.default-priorities.namespace",
                "lists no namespaces: list those of the properties, the most important first",
            )
        return metadata

    def _label(self, tree: dict[str, Any]) -> tuple[str, ...]:
        label = tree.get("label", list(self._axes))
        if not isinstance(label, list) or not all(isinstance(item, str) for item in label):
            raise self._checks.error("label", f"expected a list of axes, found {shortened(label)}")
        for axis in label:
            self._check_axis(axis, "label")
        return tuple(label)

    def _value(self, name: str, axis_table: dict[str, Any], path: str, axis: str) -> Value:
        table = self._checks.table(axis_table, name, path)
        path = f"{path}.{name}"
        self._checks.check_keys(table, path, _VALUE)
        python = self._target(table, "python", path, read_python)
        platform = self._target(table, "platform", path, read_platform)
        is_target = python is not None or platform is not None
        if is_target and table.get("properties"):
            raise self._checks.error(
                f"{path}.properties",
                "a label has the same properties for every Python and platform: "
                "set them in another axis",
            )
        label = self._checks.string(table, "label", path, "" if is_target else name)
        if not _PART.fullmatch(label):
            raise self._checks.error(
                f"{path}.label",
                f"{shortened(label)} is not valid in a label: it must match {_PART.pattern}"
                + ("" if "label" in table else "; add the key to have another one than the name"),
            )
        requires = self._where(self._checks.table(table, "requires", path), f"{path}.requires")
        if axis in requires:
            raise self._checks.error(
                f"{path}.requires", f"names the axis {axis!r} itself: name other axes"
            )
        return Value(
            name=name,
            label=label,
            title=self._checks.string(table, "title", path, ""),
            requires=requires,
            host=self._marker(table, path),
            settings=self._settings(table, path),
            details=self._details(table, path),
            python=python,
            platform=platform,
        )

    def _details(self, table: dict[str, Any], path: str) -> dict[str, str]:
        details = self._checks.table(table, "details", path)
        place = f"{path}.details" if path else "details"
        return {heading: self._checks.string(details, heading, place, "") for heading in details}

    def _target(
        self, table: dict[str, Any], key: str, path: str, read: Callable[[str], T]
    ) -> T | None:
        text = self._checks.string(table, key, path, "")
        if key not in table:
            return None
        try:
            return read(text)
        except ValueError as error:
            raise self._checks.error(f"{path}.{key}", f"{shortened(text)} {error}") from None

    def _check_targets(self, axes: Mapping[str, tuple[Value, ...]]) -> None:
        """Check that one axis at most has Pythons, for all its values, and one platforms."""
        for key in ("python", "platform"):
            giving = []
            for axis, values in axes.items():
                missing = [value.name for value in values if getattr(value, key) is None]
                if len(missing) == len(values):
                    continue
                if missing:
                    raise self._checks.error(
                        f"axes.{axis}.{missing[0]}",
                        f"has no {key}, which other values of this axis have: add it",
                    )
                giving.append(axis)
            if len(giving) > 1:
                raise self._checks.error(
                    f"axes.{giving[1]}", f"axis {giving[0]!r} has the key {key!r}, too: keep one"
                )

    def _override(self, table: dict[str, Any], path: str) -> Override:
        self._checks.check_keys(table, path, _OVERRIDE)
        label = self._checks.string(table, "label", path, "") or None
        if label is not None:
            try:
                check_label(label)
            except InvalidLabel as error:
                raise self._checks.error(f"{path}.label", str(error)) from None
        where = self._where(self._checks.table(table, "where", path), f"{path}.where")
        return Override(where, label, self._settings(table, path))

    def _where(self, table: dict[str, Any], path: str, *, empty: bool = True) -> Where:
        if not table and not empty:
            raise self._checks.error(path, "would exclude everything: name an axis and its values")
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
                raise self._checks.error(
                    path, f"{shortened(value)} is not a version specifier such as '>=12.9,<14'"
                ) from None
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise self._checks.error(
                path,
                f"expected a name, a list of names or versions such as '>=12.9', "
                f"found {shortened(value)}",
            )
        for name in names:
            if name not in self._axes[axis]:
                raise self._checks.error(
                    path,
                    f"{shortened(name)} is not a value of axis {axis!r}; "
                    f"there are {', '.join(self._axes[axis])}",
                )
        return Condition(names=tuple(names))

    def _settings(self, table: dict[str, Any], path: str) -> Settings:
        environment: dict[str, str] = {}
        flags: dict[str, tuple[str, ...]] = {}
        for name, value in self._checks.table(table, "environment", path).items():
            place = f"{path}.environment"
            if not _VARIABLE.fullmatch(name):
                raise self._checks.error(place, f"{shortened(name)} is not a valid variable name")
            if isinstance(value, str):
                if problem := problem_of(name, value):
                    raise self._checks.error(f"{place}.{name}", problem)
                environment[name] = value
            elif words := self._checks.strings(
                value, f"{place}.{name}", "a string to set, or a list"
            ):  # an empty list, which takes the place of an extended file's, leaves it unset
                flags[name] = words
        config_settings = {
            key: (value,)
            if isinstance(value, str)
            else self._checks.strings(value, f"{path}.config-settings.{key}", "a string, or a list")
            for key, value in self._checks.table(table, "config-settings", path).items()
        }
        ci = self._checks.table(table, "ci", path)
        return Settings(
            self._properties(table, path),
            environment,
            flags,
            config_settings,
            {key: self._checks.string(ci, key, f"{path}.ci", "") for key in ci},
            self._compiler_flags(table, path),
        )

    def _compiler_flags(self, table: dict[str, Any], path: str) -> dict[str, tuple[str, ...]]:
        value, path = table.get("flags", {}), f"{path}.flags"
        if not isinstance(value, dict):
            words = self._checks.strings(value, path, "a list, or a table of lists by language")
            return dict.fromkeys(("c", "cxx"), words) if words else {}
        self._checks.check_keys(value, path, LANGUAGES)
        return {
            language: self._checks.strings(words, f"{path}.{language}", "a list")
            for language, words in value.items()
        }

    def _properties(self, table: dict[str, Any], path: str) -> tuple[Property, ...]:
        path = f"{path}.properties"
        texts = self._checks.strings(table.get("properties", []), path, "a list")
        try:
            return tuple(map(Property.parse, texts))
        except InvalidProperty as error:
            raise self._checks.error(path, str(error)) from None

    def _marker(self, table: dict[str, Any], path: str) -> Marker | None:
        text = self._checks.string(table, "host", path, "")
        if not text:
            return None
        try:
            return Marker(text)
        except InvalidMarker:
            raise self._checks.error(
                f"{path}.host",
                f"{shortened(text)} is not a valid environment marker such as "
                "\"platform_machine == 'aarch64'\"",
            ) from None

    def _check_axis(self, axis: str, path: str) -> None:
        if axis not in self._axes:
            raise self._checks.error(
                path, f"{shortened(axis)} is not an axis; there are {', '.join(self._axes)}"
            )

"""Reading matrix files (see docs/reference/matrix.md for the format)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import shortened
from pep_variants.metadata import Metadata, Property

from .._tables import Table, project_name, read_toml
from .backends import LANGUAGES, problem_of
from .model import After, Build, Matrix, Override, Value, VariantSettings, Where

ABI = ("none", "major", "minor", "patch")
"""Names for the number of components of a release that an ``abi_dependency`` has."""

_KEYS = (
    "extends", "project", "about", "label", "variant", "axes", "exclude", "override",
    "build",
)  # fmt: skip
_SETTINGS = ("properties", "environment", "config-settings", "ci", "flags")
_VALUE = ("label", "title", "about", "requires", "host", *_SETTINGS)
_VARIANT = ("$schema", "default-priorities", "providers", "static-properties")

_AXIS = re.compile(r"[a-z][a-z0-9_-]*")
_PART = re.compile(r"[0-9a-z_.]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIFIER = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)")
_NO_MARKER = "is not a valid environment marker such as \"platform_machine == 'aarch64'\""

Names = Mapping[str, tuple[str, ...]]
"""The names of the values of each axis."""

_SHIPPED = Path(__file__).parents[1] / "matrices"


def matrix_path(name: str, folder: Path = Path()) -> Path:
    """Return the path of a matrix file, whether it exists or not.

    Args:
        name: a path, or the name of a matrix that comes with the package, perhaps without
            ``.toml``. A file in *folder* comes first.
        folder: what a path is relative to.
    """
    own = folder / name
    if not own.exists():
        for shipped in (_SHIPPED / name, _SHIPPED / f"{name}.toml"):
            if Path(name).name == name and shipped.is_file():
                return shipped
    return own


def read_matrix(path: Path) -> Matrix:
    """Read the matrix file *path* and those that it extends.

    Raises:
        TableError: it is not valid TOML, has unknown keys or wrong values, or is inconsistent.
        MetadataError: its ``variant`` table breaks the format.
        OSError: it, or what it extends, cannot be read.
    """
    root = Table(str(path), "", _load(path, ()))
    root.check_keys(*_KEYS)
    tables = root.table("axes")
    tables.check(tables.tree, "there are none: add a table such as [axes.cpu.avx2] for each value")
    names: dict[str, tuple[str, ...]] = {}
    for axis in tables.tree:
        problem = f"{shortened(axis)} is not a valid axis name: it must match {_AXIS.pattern}"
        tables.check(_AXIS.fullmatch(axis), problem)
        names[axis] = tuple(tables.table(axis).tree)
        tables.check(names[axis], "has no values: add one, or leave the axis out", axis)
    count = sum(map(len, names.values()))
    problem = f"have {count} values, at most {limits.MATRIX_VALUES} are read"
    tables.check(count <= limits.MATRIX_VALUES, problem)
    axes = {
        axis: tuple(_value(tables.table(axis), name, axis, names) for name in values)
        for axis, values in names.items()
    }
    label = root.strings("label", default=names)
    for axis in label:
        _check_axis(axis, names, root, "label")
    exclude = root.tables("exclude")
    for table in exclude:
        table.check(table.tree, "would exclude everything: name an axis and its values")
    return Matrix(
        source=root.source,
        project=_metadata(root),
        axes=axes,
        label=label,
        exclude=tuple(_where(table, names) for table in exclude),
        override=tuple(_override(table, names) for table in root.tables("override")),
        # A matrix of the package is for a checkout, in which its command is typed.
        build=_build(root.table("build"), Path() if path.parent == _SHIPPED else path.parent),
        name=root.read("project", project_name, "is not a valid project name") or "",
        about=root.table("about").texts(),
    )


def _load(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the tree of *path*, put over the trees of what it extends."""
    file = read_toml(path)
    file.check(path.resolve() not in seen, "extends itself in a circle", "extends")
    build = file.table("build")
    for project in build.table("after").tree:
        # Relative to the file that names it, not to the one that extends that file.
        after = build.table("after").table(project)
        if matrix := after.string("matrix"):
            after.tree["matrix"] = str(matrix_path(matrix, path.parent.absolute()))
    if "extends" not in file.tree:
        return file.tree
    base = matrix_path(file.string("extends"), path.parent)
    problem = f"{base} does not exist: name it relative to this file, or one that comes with it"
    file.check(base.is_file(), problem, "extends")
    del file.tree["extends"]
    return _over(_load(base, (*seen, path.resolve())), file.tree)


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


def _metadata(root: Table) -> Metadata:
    table = root.table("variant")
    table.check("variants" not in table.tree, "the axes say what variants there are", "variants")
    table.check_keys(*_VARIANT)
    metadata = variant_metadata.metadata_from_tree(table.tree, f"{root.source}: variant")
    table.check(
        metadata.namespaces,
        "lists no namespaces: list those of the properties, the most important first",
        "default-priorities.namespace",
    )
    return metadata


# Axes and overrides.


def _value(values: Table, name: str, axis: str, names: Names) -> Value:
    table = values.table(name)
    table.check_keys(*_VALUE)
    label = table.string("label", name)
    table.check(
        _PART.fullmatch(label),
        f"{shortened(label)} is not valid in a label: it must match {_PART.pattern}"
        + ("" if "label" in table.tree else "; add the key to have another one than the name"),
        "label",
    )
    requires = _where(table.table("requires"), names)
    problem = f"names the axis {axis!r} itself: name other axes"
    table.check(axis not in requires, problem, "requires")
    return Value(
        name=name,
        label=label,
        title=table.string("title"),
        requires=requires,
        host=table.read("host", Marker, _NO_MARKER),
        settings=_settings(table),
        about=table.table("about").texts(),
    )


def _override(table: Table, names: Names) -> Override:
    table.check_keys("where", "label", *_SETTINGS)
    where = _where(table.table("where"), names)
    return Override(where, table.read("label", wheel_labels.check_label), _settings(table))


def _where(table: Table, names: Names) -> Where:
    return {axis: _condition(table, axis, names) for axis in table.tree}


def _condition(table: Table, axis: str, names: Names) -> tuple[str, ...]:
    _check_axis(axis, names, table)
    value = table.tree[axis]
    if isinstance(value, str) and _SPECIFIER.match(value):
        what = "is not a version specifier such as '>=12.9,<14'"
        (found,) = table.parsed(axis, SpecifierSet, [value], what)
        return tuple(found.filter(filter(wheel_files.read_version, names[axis]), prereleases=True))
    expected = "a name, versions such as '>=12.9', or a list"
    wanted = (value,) if isinstance(value, str) else table.strings(axis, expected)
    table.check(wanted, f"expected {expected}, found {shortened(value)}", axis)
    for name in wanted:
        problem = f"{shortened(name)} is not a value of axis {axis!r}; there are"
        table.check(name in names[axis], f"{problem} {', '.join(names[axis])}", axis)
    return wanted


def _check_axis(axis: str, names: Names, table: Table, key: str = "") -> None:
    problem = f"{shortened(axis)} is not an axis; there are {', '.join(names)}"
    table.check(axis in names, problem, key)


def _settings(table: Table) -> VariantSettings:
    environment: dict[str, str] = {}
    appended: dict[str, tuple[str, ...]] = {}
    variables = table.table("environment")
    for name, value in variables.tree.items():
        variables.check(
            _VARIABLE.fullmatch(name), f"{shortened(name)} is not a valid variable name"
        )
        if isinstance(value, str):
            problem = problem_of(name, value)
            variables.check(not problem, problem, name)
            environment[name] = value
        elif words := variables.strings(name, "a string to set, or a list"):
            # An empty list, which takes the place of an extended file's, leaves it unset.
            appended[name] = words
    config = table.table("config-settings")
    config_settings = {
        key: (value,) if isinstance(value, str) else config.strings(key, "a string, or a list")
        for key, value in config.tree.items()
    }
    if isinstance(table.tree.get("flags", {}), dict):
        languages = table.table("flags")
        languages.check_keys(*LANGUAGES)
        flags = {language: languages.strings(language) for language in languages.tree}
    else:
        words = table.strings("flags", "a list, or a table of lists by language")
        flags = dict.fromkeys(("c", "cxx"), words) if words else {}
    return VariantSettings(
        _properties(table), environment, appended, config_settings, table.table("ci").texts(), flags
    )


def _properties(table: Table) -> tuple[Property, ...]:
    texts = table.strings("properties")
    return tuple(table.parsed("properties", Property.parse, texts))


# The table [build].


def _build(table: Table, folder: Path) -> Build:
    table.check_keys("source", "after", "test")
    after = table.table("after")
    return Build(
        source=folder / table.string("source", "."),
        after=tuple(_after(after, name) for name in after.tree),
        test=tuple(table.read("test", shlex.split, "is not a command: {error}") or ()),
    )


def _after(tables: Table, name: str) -> After:
    (project,) = tables.parsed("", project_name, [name], "is not a valid project name")
    table = tables.table(name)
    table.check_keys("matrix", "axes", "abi")
    table.check(table.tree.get("matrix"), "is missing: name the project's matrix file", "matrix")
    abi = table.string("abi", "minor")
    table.check(abi in ABI, f"{shortened(abi)} is none of {', '.join(ABI)}", "abi")
    axes = table.strings("axes") if "axes" in table.tree else None
    return After(project, Path(table.string("matrix")), axes, ABI.index(abi))

"""Reading matrix files (see docs/reference/matrix.md for the format)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidName, canonicalize_name

from pep_variants.errors import InvalidProperty, VariantError, shortened
from pep_variants.formats import toml
from pep_variants.formats.reader import metadata_from_tree
from pep_variants.model.label import check_label
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Property

from .flags import LANGUAGES, problem_of
from .model import (
    After,
    Build,
    Condition,
    Matrix,
    MatrixError,
    Override,
    Settings,
    Test,
    Value,
    Where,
)
from .targets import read_platform, read_python

T = TypeVar("T")

ABI = {"none": 0, "major": 1, "minor": 2, "patch": 3}
"""Components of a release that an ``abi_dependency`` names."""
SYSTEMS = ("linux", "darwin", "win32")
"""Values of `sys.platform` for which a repair can be given."""
REPAIR = ("{wheel}", "{dest_dir}")
"""Required placeholders of a repair: the wheel to repair, and the folder for the repaired one."""

_KEYS = (
    "extends", "project", "title", "details", "label", "variant", "axes", "exclude", "override",
    "build",
)  # fmt: skip
_SETTINGS = ("properties", "environment", "config-settings", "ci", "flags")
_VALUE = ("label", "title", "details", "requires", "host", *_SETTINGS, "python", "platform")
_VARIANT = ("$schema", "default-priorities", "providers", "static-properties")

_AXIS = re.compile(r"[a-z][a-z0-9_-]*")
_PART = re.compile(r"[0-9a-z_.]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIFIER = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)")
_NO_MARKER = "is not a valid environment marker such as \"platform_machine == 'aarch64'\""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def read_matrix(path: Path) -> Matrix:
    """Read the matrix file *path* and those that it extends.

    Raises:
        MatrixError: it is not valid TOML, has unknown keys or wrong values, or is inconsistent.
        MetadataError: its ``variant`` table breaks the format.
        OSError: it, or what it extends, cannot be read.
    """
    root = _Table(str(path), "", _load(path, ()))
    root.check_keys(*_KEYS)
    tables = root.table("axes")
    if not tables.tree:
        raise tables.error("there are none: add a table such as [axes.cpu.avx2] for each value")
    names: dict[str, tuple[str, ...]] = {}
    for axis in tables.tree:
        if not _AXIS.fullmatch(axis):
            raise tables.error(
                f"{shortened(axis)} is not a valid axis name: it must match {_AXIS.pattern}"
            )
        names[axis] = tuple(tables.table(axis).tree)
        if not names[axis]:
            raise tables.error("has no values: add one, or leave the axis out", axis)
    axes = {
        axis: tuple(_value(tables.table(axis), name, axis, names) for name in values)
        for axis, values in names.items()
    }
    _check_targets(axes, tables)
    label = root.strings("label", default=names)
    for axis in label:
        _check_axis(axis, names, root, "label")
    return Matrix(
        source=root.source,
        project=_metadata(root),
        axes=axes,
        label=label,
        exclude=tuple(_where(table, names, empty=False) for table in root.tables("exclude")),
        override=tuple(_override(table, names) for table in root.tables("override")),
        build=_build(root.table("build"), path.parent),
        title=root.string("title"),
        details=root.table("details").texts(),
        name=_project(root, "project", root.tree.get("project")),
    )


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
    build = tree.get("build")
    after = build.get("after") if isinstance(build, dict) else None
    for table in after.values() if isinstance(after, dict) else ():
        # Relative to the file that names it, not to the one that extends that file.
        if isinstance(table, dict) and isinstance(table.get("matrix"), str) and table["matrix"]:
            table["matrix"] = str(path.parent.absolute() / table["matrix"])
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


class _Table:
    """A table of the file; every getter raises `MatrixError`, which names the key, if it is wrong.

    Attributes:
        source: the file.
        path: of the table in it, empty for the whole file.
        tree: its contents.
    """

    def __init__(self, source: str, path: str, tree: dict[str, Any]) -> None:
        self.source, self.path, self.tree = source, path, tree

    def error(self, problem: str, key: str = "") -> MatrixError:
        """Return the error for *problem* of the table, or of its *key*."""
        return MatrixError(self.source, ".".join(filter(None, (self.path, key))), problem)

    def check_keys(self, *known: str) -> None:
        """Refuse keys that are not *known*."""
        for key in self.tree:
            if key not in known:
                raise self.error(f"unknown key {shortened(key)}; there are {', '.join(known)}")

    def at(self, key: str, tree: dict[str, Any]) -> _Table:
        """Return *tree* as the table at *key*."""
        return _Table(self.source, ".".join(filter(None, (self.path, key))), tree)

    def table(self, key: str) -> _Table:
        """Return the table *key*, empty if it is missing."""
        value = self.tree.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"expected a table, found {shortened(value)}", key)
        return self.at(key, value)

    def tables(self, key: str) -> list[_Table]:
        """Return the list of tables *key*, empty if it is missing."""
        value = self.tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"expected tables such as [[{key}]], found {shortened(value)}", key)
        return [self.at(f"{key}[{number}]", item) for number, item in enumerate(value)]

    def string(self, key: str, default: str = "") -> str:
        """Return the string *key*, or *default* if it is missing."""
        value = self.tree.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"expected a string, found {shortened(value)}", key)
        return value

    def texts(self) -> dict[str, str]:
        """Return the contents, all of which have to be strings."""
        return {key: self.string(key) for key in self.tree}

    def strings(self, key: str, expected: str = "a list", default: Any = ()) -> tuple[str, ...]:  # noqa: ANN401
        """Return the list of strings *key*; *expected* says what else it may be."""
        value = self.tree.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"expected {expected} of strings, found {shortened(value)}", key)
        return tuple(value)

    def words(self, key: str, text: str) -> tuple[str, ...]:
        """Return the words of the command *text*."""
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            raise self.error(f"{shortened(text)} is not a valid command: {error}", key) from None

    def read(self, key: str, read: Callable[[str], T], what: str = "") -> T | None:
        """Return what *read* makes of the string *key*, None if it is missing.

        Args:
            key: the key.
            read: raises a ValueError or VariantError for a wrong string.
            what: what the string is not, for messages; by default what the error says.
        """
        if key not in self.tree:
            return None
        text = self.string(key)
        try:
            return read(text)
        except VariantError as error:  # which names the text
            raise self.error(str(error), key) from None
        except ValueError as error:
            raise self.error(f"{shortened(text)} {what or error}", key) from None


def _project(table: _Table, key: str, name: object) -> str:
    """Return the normalized project name *name*, empty for None or an empty one."""
    try:
        return str(canonicalize_name(name, validate=True)) if name else ""  # type: ignore[arg-type]
    except (InvalidName, TypeError):
        raise table.error(f"{shortened(name)} is not a valid project name", key) from None


def _metadata(root: _Table) -> Metadata:
    table = root.table("variant")
    if "variants" in table.tree:
        raise table.error("the axes say what variants there are", "variants")
    table.check_keys(*_VARIANT)
    metadata = metadata_from_tree(table.tree, f"{root.source}: variant")
    if not metadata.namespaces:
        raise table.error(
            "lists no namespaces: list those of the properties, the most important first",
            "default-priorities.namespace",
        )
    return metadata


# Axes and overrides.


def _value(values: _Table, name: str, axis: str, names: Mapping[str, tuple[str, ...]]) -> Value:
    table = values.table(name)
    table.check_keys(*_VALUE)
    python, platform = table.read("python", read_python), table.read("platform", read_platform)
    is_target = python is not None or platform is not None
    if is_target and table.tree.get("properties"):
        raise table.error(
            "a label has the same properties for every Python and platform: "
            "set them in another axis",
            "properties",
        )
    label = table.string("label", "" if is_target else name)
    if not _PART.fullmatch(label):
        raise table.error(
            f"{shortened(label)} is not valid in a label: it must match {_PART.pattern}"
            + ("" if "label" in table.tree else "; add the key to have another one than the name"),
            "label",
        )
    requires = _where(table.table("requires"), names)
    if axis in requires:
        raise table.error(f"names the axis {axis!r} itself: name other axes", "requires")
    return Value(
        name=name,
        label=label,
        title=table.string("title"),
        requires=requires,
        host=table.read("host", Marker, _NO_MARKER),
        settings=_settings(table),
        details=table.table("details").texts(),
        python=python,
        platform=platform,
    )


def _check_targets(axes: Mapping[str, tuple[Value, ...]], tables: _Table) -> None:
    """Check that one axis at most has Pythons, for all its values, and one platforms."""
    for key in ("python", "platform"):
        giving = []
        for axis, values in axes.items():
            missing = [value.name for value in values if getattr(value, key) is None]
            if len(missing) == len(values):
                continue
            if missing:
                raise tables.error(
                    f"has no {key}, which other values of this axis have: add it",
                    f"{axis}.{missing[0]}",
                )
            giving.append(axis)
        if len(giving) > 1:
            raise tables.error(f"axis {giving[0]!r} has the key {key!r}, too: keep one", giving[1])


def _override(table: _Table, names: Mapping[str, tuple[str, ...]]) -> Override:
    table.check_keys("where", "label", *_SETTINGS)
    label = table.read("label", check_label)
    return Override(_where(table.table("where"), names), label, _settings(table))


def _where(table: _Table, names: Mapping[str, tuple[str, ...]], *, empty: bool = True) -> Where:
    if not table.tree and not empty:
        raise table.error("would exclude everything: name an axis and its values")
    return {axis: _condition(table, axis, names) for axis in table.tree}


def _condition(table: _Table, axis: str, names: Mapping[str, tuple[str, ...]]) -> Condition:
    _check_axis(axis, names, table)
    value = table.tree[axis]
    if isinstance(value, str) and _SPECIFIER.match(value):
        try:
            return Condition(versions=SpecifierSet(value))
        except InvalidSpecifier:
            raise table.error(
                f"{shortened(value)} is not a version specifier such as '>=12.9,<14'", axis
            ) from None
    wanted = [value] if isinstance(value, str) else value
    if not isinstance(wanted, list) or not wanted or not all(isinstance(n, str) for n in wanted):
        raise table.error(
            "expected a name, a list of names or versions such as '>=12.9', "
            f"found {shortened(value)}",
            axis,
        )
    for name in wanted:
        if name not in names[axis]:
            raise table.error(
                f"{shortened(name)} is not a value of axis {axis!r}; "
                f"there are {', '.join(names[axis])}",
                axis,
            )
    return Condition(names=tuple(wanted))


def _check_axis(
    axis: str, names: Mapping[str, tuple[str, ...]], table: _Table, key: str = ""
) -> None:
    if axis not in names:
        raise table.error(f"{shortened(axis)} is not an axis; there are {', '.join(names)}", key)


def _settings(table: _Table) -> Settings:
    environment: dict[str, str] = {}
    appended: dict[str, tuple[str, ...]] = {}
    variables = table.table("environment")
    for name, value in variables.tree.items():
        if not _VARIABLE.fullmatch(name):
            raise variables.error(f"{shortened(name)} is not a valid variable name")
        if isinstance(value, str):
            if problem := problem_of(name, value):
                raise variables.error(problem, name)
            environment[name] = value
        elif words := variables.strings(name, "a string to set, or a list"):
            # An empty list, which takes the place of an extended file's, leaves it unset.
            appended[name] = words
    config = table.table("config-settings")
    try:
        properties = tuple(map(Property.parse, table.strings("properties")))
    except InvalidProperty as error:
        raise table.error(str(error), "properties") from None
    return Settings(
        properties,
        environment,
        appended,
        {
            key: (value,) if isinstance(value, str) else config.strings(key, "a string, or a list")
            for key, value in config.tree.items()
        },
        table.table("ci").texts(),
        _compiler_flags(table),
    )


def _compiler_flags(table: _Table) -> dict[str, tuple[str, ...]]:
    if not isinstance(table.tree.get("flags", {}), dict):
        words = table.strings("flags", "a list, or a table of lists by language")
        return dict.fromkeys(("c", "cxx"), words) if words else {}
    flags = table.table("flags")
    flags.check_keys(*LANGUAGES)
    return {language: flags.strings(language) for language in flags.tree}


# The table [build].


def _build(table: _Table, folder: Path) -> Build:
    table.check_keys("source", "repair", "test", "memory", "after")
    size = "is not a size such as '16GB' or '512MiB'"
    return Build(
        source=folder / table.string("source", "."),
        repair=_repair(table),
        after=_after(table, folder),
        tests=_tests(table),
        memory=table.read("memory", _size, size) or 0,
    )


def _size(text: str) -> int:
    """Return the bytes of a size such as ``16GB``, ``512 MiB`` or ``1.5g``."""
    match = _SIZE.fullmatch(text)
    if match is None or not float(match[1]):
        raise ValueError(text)
    unit = (1024 if match[3] else 1000) ** " kmgt".index(match[2].lower() or " ")
    return int(float(match[1]) * unit)


def _repair(build: _Table) -> dict[str, tuple[str, ...]]:
    """Return the words of the command by `sys.platform`."""
    given = build.tree.get("repair", {})
    if not isinstance(given, str | dict):
        raise build.error(
            f"expected a command, or a table of commands by system, found {shortened(given)}",
            "repair",
        )
    if isinstance(given, str):
        commands = {"": given} if given.strip() else {}
    else:
        build.table("repair").check_keys(*SYSTEMS)
        commands = build.table("repair").texts()
    found: dict[str, tuple[str, ...]] = {}
    for system, text in commands.items():
        key = f"repair.{system}".rstrip(".")
        words = build.words(key, text)
        for name in REPAIR:
            if not any(name in word for word in words):
                raise build.error(
                    f"{shortened(text)} has no {name}: say where the command gets it", key
                )
        found.update(dict.fromkeys([system] if system else SYSTEMS, words))
    return found


def _tests(build: _Table) -> tuple[Test, ...]:
    """Return ``build.test``: a command, a table, or a list of tables."""
    given = build.tree.get("test", [])
    found = []
    for test in given if isinstance(given, list) else [given]:
        tree = {"command": test} if isinstance(test, str) else test
        if not isinstance(tree, dict):
            raise build.error(f"expected a command or tables, found {shortened(test)}", "test")
        table = build.at("test", tree)
        table.check_keys("command", "requires", "only")
        words = table.words("command", table.string("command"))
        if not words:
            raise table.error("there is none: give the command to run", "command")
        requires = table.strings("requires")
        for text in requires:
            try:
                Requirement(text)
            except InvalidRequirement:
                raise table.error(
                    f"{shortened(text)} is not a valid requirement", "requires"
                ) from None
        found.append(Test(words, requires, table.strings("only")))
    return tuple(found)


def _after(build: _Table, folder: Path) -> tuple[After, ...]:
    """Return ``build.after``: a list of projects, or a table of tables."""
    if not isinstance(build.tree.get("after", []), dict):
        names = build.strings("after", "a table of projects, or a list")
        projects = [_project(build, "after", name or " ") for name in names]
        return tuple(map(After, dict.fromkeys(projects)))
    found = []
    for name in build.table("after").tree:
        project = _project(build, "after", name or " ")
        table = build.table("after").table(name)
        table.check_keys("matrix", "axes", "abi")
        abi = table.string("abi", "minor")
        if abi not in ABI:
            raise table.error(f"{shortened(abi)} is none of {', '.join(ABI)}", "abi")
        matrix = table.string("matrix")
        axes = table.strings("axes") if "axes" in table.tree else None
        found.append(After(project, folder / matrix if matrix else None, axes, ABI[abi]))
    return tuple(found)

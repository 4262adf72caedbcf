"""The private names of pip that the shim touches, and pips in which one of them is another.

`touched` reads the names from the shim's source. A name that only pip uses is renamed in pip, where
it is defined and wherever pip uses it, so that pip itself works as before (`rename_in_pip`). A name
that pip shares with the standard library, such as ``url``, cannot be: it is renamed where the shim
reads it, which comes to the same (`rename_in_shim`).
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from .environments import ROOT, Environment

SHIM = ROOT / "pip-patch" / "src" / "pep_variants_shim"
_RENAMED = "_renamed_by_a_test"
NOT_MUTATED = ("__init__.py", "__main__.py", "guard.py", "hook.py", "bootstrap.py")
"""Files of the shim that survive faults of the others; they touch nothing of pip but modules."""

ENTRY = """
catalog-version = "1"
[project]
name = "plain"
documentation = "https://example.org"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda12"
requires = ["always=={{version}}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
[[variant]]
label = "null"
index = "{place}"
"""
"""Entry of a catalogue whose null variant is at the place ``{place}``."""

_OWN = (
    "_entries _installed _open candidates entry file header installed origin page requires result "
    "seen start switch variants wheel"
)
OWN = frozenset(_OWN.split())
"""Attributes of the engine's and the shim's objects that pip has as names of local variables."""


@functools.cache
def touched() -> frozenset[str]:
    """Return the names that the shim may be using of pip's objects, and more.

    All attributes that it reads, names that it imports from pip, names given as text to functions
    that look them up, and the parameters of what it replaces.
    """
    return frozenset(
        name
        for path in _sources()
        for name in _names(ast.parse(path.read_text("utf-8")))
        if not name.startswith("__")  # Python's
        and name not in OWN
    )


def _sources() -> Iterator[Path]:
    return (path for path in sorted(SHIM.rglob("*.py")) if path.name not in NOT_MUTATED)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pip."):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call):
            function = node.func
            called = getattr(function, "id", getattr(function, "attr", ""))
            if called in ("replace", "require", "getattr", "setattr", "hasattr"):
                for item in node.args[1:]:
                    if isinstance(item, ast.Constant) and str(item.value).isidentifier():
                        yield str(item.value)
        elif isinstance(node, ast.FunctionDef) and any(map(_replaces, node.decorator_list)):
            yield from (item.arg for item in node.args.args[1:])


def _replaces(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "replace"


def defined(pip_wheel: Path) -> frozenset[str]:
    """Return the names of functions, classes, parameters and attributes of the pip in a wheel."""
    names: set[str] = set()
    with zipfile.ZipFile(pip_wheel) as archive:
        for file in archive.namelist():
            if _renamable(file):
                names.update(_definitions(ast.parse(archive.read(file))))
    return frozenset(names)


def _definitions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _renamable(path: str) -> bool:
    return path.endswith(".py") and path.startswith(("pip/_internal/", "pip/_vendor/resolvelib/"))


def linked(environment: Environment, path: Path) -> Environment:
    """Return a copy of *environment* at *path* that shares its files, none of which may be changed.

    pip itself changes none: it removes files and writes new ones.
    """

    def link(source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    shutil.copytree(environment.path, path, symlinks=True, copy_function=link)
    return Environment(path)


def rename_in_pip(environment: Environment, name: str) -> int:
    """Rename *name* in the pip of *environment*; return in how many files."""
    return _rewrite(_pip_files(environment), rf"\b{re.escape(name)}\b", name + _RENAMED)


def rename_in_shim(environment: Environment, name: str) -> int:
    """Rename attributes *name* that the shim reads or imports; return in how many files."""
    package = environment.site_packages / "pep_variants_shim"
    files = [package / path.relative_to(SHIM) for path in _sources()]
    number = _rewrite(
        files, rf"(from pip\.\S+ import (?:\w+, )*){re.escape(name)}\b", rf"\1{name}{_RENAMED}"
    )
    attribute = rf"(?<!self)\.{re.escape(name)}\b(?! = )"
    return number + _rewrite(files, attribute, f".{name}{_RENAMED}")


def move_module(environment: Environment, module: str) -> int:
    """Rename *module*, given below ``pip._internal``; return in how many files that shows."""
    parent, _, last = f"pip._internal.{module}".rpartition(".")
    folder = environment.site_packages.joinpath(*parent.split("."))
    before, after = folder / last, folder / f"{last}{_RENAMED}"
    before, after = (before, after) if before.is_dir() else (
        before.with_suffix(".py"), after.with_suffix(".py"))  # fmt: skip
    if not before.exists():
        return 0
    before.rename(after)
    files = _pip_files(environment)
    number = _rewrite(files, rf"{re.escape(parent)}\.{last}\b", f"{parent}.{last}{_RENAMED}")
    number += _rewrite(
        files,
        rf"from {re.escape(parent)} import {last}\b(?! as )",
        f"from {parent} import {last}{_RENAMED} as {last}",
    )
    number += _rewrite(
        files, rf"from {re.escape(parent)} import {last} as ",
        f"from {parent} import {last}{_RENAMED} as ",
    )  # fmt: skip
    beside = [path for path in folder.glob("*.py") if not path.is_symlink()]
    number += _rewrite(
        beside, rf"from \. import {last}\b(?! as )", f"from . import {last}{_RENAMED} as {last}"
    )
    return number + _rewrite(beside, rf"from \.{last} import", f"from .{last}{_RENAMED} import")


def add_parameters(environment: Environment, names: Iterable[str]) -> int:
    """Give all functions of pip with these *names* one more parameter; return how many files."""
    wanted = frozenset(names)
    number = 0
    for path in _pip_files(environment):
        text = path.read_text("utf-8")
        if not any(f"def {name}(" in text for name in wanted):
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in wanted and not node.args.kwarg:
                node.args.kwonlyargs.append(ast.arg(f"added{_RENAMED}"))
                node.args.kw_defaults.append(ast.Constant(None))
        number += _replace_file(path, text, ast.unparse(tree))
    return number


def _pip_files(environment: Environment) -> list[Path]:
    root = environment.site_packages
    folders = (root / "pip" / "_internal", root / "pip" / "_vendor" / "resolvelib")
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def _rewrite(files: Iterable[Path], pattern: str, replacement: str) -> int:
    number = 0
    for path in files:
        if path.exists():
            text = path.read_text("utf-8")
            number += _replace_file(path, text, re.sub(pattern, replacement, text))
    return number


def _replace_file(path: Path, before: str, after: str) -> bool:
    if after != before:
        path.unlink()  # it is shared
        path.write_text(after, "utf-8")
    return after != before

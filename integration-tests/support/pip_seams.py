"""The names of pip that the shim touches, and environments in which one of them is another.

A name is renamed where the shim reads it, so that pip itself works as before: to the shim it is
gone all the same.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from .environments import ROOT, Environment

SHIM = ROOT / "pip-patch" / "src" / "pep_variants_shim"
_RENAMED = "_renamed_by_a_test"
NOT_MUTATED = ("__init__.py", "__main__.py", "_guard.py", "_hook.py", "_bootstrap.py")
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

Use = tuple[str, Callable[[str], None]]
"""A name, and what renames it at one place."""


@functools.cache
def touched() -> frozenset[str]:
    """Return the names that the shim may be using of pip's objects, and more.

    All attributes, names that it imports from pip, names given as text to functions
    that look them up, and the parameters of what it replaces.
    """
    trees = (ast.parse(path.read_text("utf-8")) for path in _sources(SHIM))
    names = {name for tree in trees for name, _ in _uses(tree)}
    return frozenset(name for name in names if not name.startswith("__"))  # Python's


def _sources(package: Path) -> Iterator[Path]:
    for path in sorted(SHIM.rglob("*.py")):
        if path.name not in NOT_MUTATED:
            yield package / path.relative_to(SHIM)


def _uses(tree: ast.AST) -> Iterator[Use]:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    own = {id(node) for item in classes for node in ast.walk(item) if _is_of_self(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if id(node) not in own:
                yield node.attr, partial(setattr, node, "attr")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pip."):
            for alias in node.names:
                yield alias.name, partial(_rename_import, alias)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in ("replace", "require", "getattr", "setattr", "hasattr"):
                for item in node.args[1:]:
                    if isinstance(item, ast.Constant) and str(item.value).isidentifier():
                        yield str(item.value), partial(setattr, item, "value")
        elif isinstance(node, ast.FunctionDef) and any(map(_replaces, node.decorator_list)):
            for argument in node.args.args[1:]:
                yield argument.arg, partial(_rename_parameter, node, argument)


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


def _replaces(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "replace"


def _rename_import(alias: ast.alias, name: str) -> None:
    alias.asname = alias.asname or alias.name
    alias.name = name


def _rename_parameter(function: ast.FunctionDef, argument: ast.arg, name: str) -> None:
    function.body[:0] = ast.parse(f"{argument.arg} = {name}").body
    argument.arg = name


def defined(pip: Path) -> frozenset[str]:
    """Return the names of functions, classes, parameters and attributes of the package *pip*."""
    trees = (ast.parse(path.read_bytes()) for path in _pip_files(pip))
    return frozenset(
        name for tree in trees for node in ast.walk(tree) if (name := _definition(node))
    )


def _definition(node: ast.AST) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def linked(environment: Environment, path: Path) -> Environment:
    """Return a copy of *environment* at *path* that shares its files, none of which may be changed.

    pip itself changes none: it removes files and writes new ones.
    """

    def link(source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    shutil.copytree(environment.path, path, symlinks=True, copy_function=link)
    return Environment(path)


def rename_in_shim(environment: Environment, name: str) -> int:
    """Rename what the shim reads as *name*; return in how many files."""
    number = 0
    for path in _sources(environment.site_packages / "pep_variants_shim"):
        text = path.read_text("utf-8")
        if name in text:
            tree = ast.parse(text)
            renames = [rename for used, rename in _uses(tree) if used == name]
            for rename in renames:
                rename(name + _RENAMED)
            number += replace_file(path, text, ast.unparse(tree) if renames else text)
    return number


def rename_module_in_shim(environment: Environment, module: str) -> int:
    """Rename *module*, given below ``pip._internal``, in the shim; return in how many files."""
    path = environment.site_packages.joinpath("pip", "_internal", *module.split("."))
    if not (path.is_dir() or path.with_suffix(".py").exists()):
        return 0
    name = rf"(pip\._internal\.|\"){re.escape(module)}\b"
    package = environment.site_packages / "pep_variants_shim"
    files = [file for file in package.rglob("*.py") if "_vendor" not in file.parts]
    texts = {file: file.read_text("utf-8") for file in files}
    return sum(
        replace_file(file, text, re.sub(name, rf"\g<0>{_RENAMED}", text))
        for file, text in texts.items()
    )


def fail_in_shim(environment: Environment, file: str, name: str) -> bool:
    """Have functions *name* in a *file* of the shim raise an error."""
    path = environment.site_packages / "pep_variants_shim" / file
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            body = node.body[1:] if ast.get_docstring(node) else node.body
            # Where a function handles faults itself, within that.
            inner = body[0].body if isinstance(body[0], (ast.Try, ast.With)) else node.body
            inner.insert(0, ast.parse("raise RuntimeError('injected')").body[0])
    return replace_file(path, text, ast.unparse(tree))


def add_parameters(environment: Environment, names: Iterable[str]) -> int:
    """Give all functions of pip with these *names* one more parameter; return how many files."""
    wanted = frozenset(names)
    number = 0
    for path in _pip_files(environment.site_packages / "pip"):
        text = path.read_text("utf-8")
        if not any(f"def {name}(" in text for name in wanted):
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in wanted and not node.args.kwarg:
                node.args.kwonlyargs.append(ast.arg(f"added{_RENAMED}"))
                node.args.kw_defaults.append(ast.Constant(None))
        number += replace_file(path, text, ast.unparse(tree))
    return number


def _pip_files(pip: Path) -> list[Path]:
    folders = (pip / "_internal", pip / "_vendor" / "resolvelib")
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def replace_file(path: Path, before: str, after: str) -> bool:
    """Write *after* to the file at *path* if it is not *before*; return whether it is not."""
    if after != before:
        path.unlink()  # it is shared
        path.write_text(after, "utf-8")
    return after != before

"""Checks the doors between distributions, for `make lint`: a module's name says who may enter.

A module whose path has no leading underscore is public: it has ``__all__``, and a page of the
reference. Other distributions, the conformance runners and the examples of documents import from
public modules alone, and only what stands in their ``__all__``: classes and errors by name, most
functions and constants through their module (``limits.PAGE_BYTES``).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("packages/*/src", "resolver-ext/src", "pip-patch/src")
MOST_PUBLIC = {"pep_variants": 12, "variants_proxy": 7}
"""The most public modules of a package; six where it is not named. One of the proxy's needs a
library that is optional."""
_DOCUMENTS = ("docs/**/*.md", "*.md", "*/README.md", "packages/*/README.md")
_EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Module:
    """A module of this project: its path, its code."""

    path: Path
    code: str

    @cached_property
    def tree(self) -> ast.Module:
        """What the code says; who only asks for names does not wait for it."""
        return ast.parse(self.code)

    @property
    def exports(self) -> set[str] | None:
        """The names in ``__all__``; None without one."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return set(ast.literal_eval(node.value))
        return None


Package = Mapping[str, Module]
"""The modules of a package by dotted name."""


def packages(root: Path) -> dict[str, Package]:
    """Return the import packages of all distributions, by name."""
    return {
        init.parent.name: modules(init.parent)
        for pattern in SOURCES
        for init in sorted(root.glob(f"{pattern}/*/__init__.py"))
    }


def modules(folder: Path) -> Package:
    """Return the modules of the package in *folder*."""
    package = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        package[name] = Module(path, path.read_text("utf-8"))
    return package


def is_public(module: str) -> bool:
    """Return whether others may import from *module*, a dotted name."""
    return not any(part.startswith("_") for part in module.split("."))


def public_modules(package: Package) -> list[str]:
    """Return the public modules of *package*, without those below another."""
    return [name for name in package if name.count(".") == 1 and is_public(name)]


def problems(root: Path) -> Iterator[str]:
    """Yield what is wrong below *root*, one line each."""
    known = packages(root)
    for name, package in known.items():
        yield from _own_problems(name, package)
        for module in package.values():
            yield from _import_problems(module, known, root, name)
    for path in sorted(root.glob("conformance/**/*.py")):
        module = Module(path, path.read_text("utf-8"))
        yield from _import_problems(module, known, root)
    for pattern in _DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            for code in _EXAMPLE.findall(path.read_text("utf-8")):
                yield from _import_problems(Module(path, code), known, root)


def _own_problems(name: str, package: Package) -> Iterator[str]:
    """Yield what is wrong with the modules of the package *name* themselves."""
    public = public_modules(package)
    if len(public) > (most := MOST_PUBLIC.get(name, 6)):
        yield f"{name}: {len(public)} public modules, at most {most}: {', '.join(public)}"
    for dotted, module in package.items():
        body = module.tree.body
        has_code = any(not isinstance(node, ast.Expr) for node in body)
        if dotted in public and has_code and module.exports is None:
            yield f"{dotted}: public, and has no __all__"
        if dotted.endswith(".internal"):
            yield f"{dotted}: begin the name of a private module with an underscore"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield f"{dotted}:{node.lineno}: import names, not a star"
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if getattr(target, "id", "") == "TYPE_CHECKING":
                yield f"{dotted}:{node.lineno}: import TYPE_CHECKING from typing"
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
                yield f"{dotted}:{node.lineno}: a module with __getattr__ hides its names"


def _import_problems(
    module: Module, known: Mapping[str, Package], root: Path, own: str = ""
) -> Iterator[str]:
    """Yield each import of *module* that enters a package other than *own* by a wrong door."""
    path = module.path.relative_to(root).as_posix()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            pairs = [(str(node.module), alias) for alias in node.names]
        elif isinstance(node, ast.Import):
            pairs = [(alias.name, ast.alias("")) for alias in node.names]
        else:
            continue
        for source, alias in pairs:
            top = source.partition(".")[0]
            if top not in known or top == own:
                continue
            target = f"{source}.{alias.name}"
            if target not in known[top]:
                target, names = source, {alias.name} - {""}
            else:
                names = _attributes(module.tree, alias.asname or alias.name)
            if not is_public(target):
                yield f"{path}:{node.lineno}: {target} is private to {top}"
            elif target in known[top] and (exports := known[top][target].exports) is not None:
                for missing in sorted(names - exports):
                    yield f"{path}:{node.lineno}: {missing} is not in __all__ of {target}"


def _attributes(tree: ast.Module, name: str) -> set[str]:
    """Return the attributes of *name* that are read in *tree*."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name
    }


def main() -> int:
    """Print the problems; return the exit code."""
    wrong = list(problems(ROOT))
    print("\n".join(wrong) or "doors: every import enters by a public module")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

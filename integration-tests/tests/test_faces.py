"""What one distribution imports from another exists: type checkers do not see the lazy tables."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted(ROOT.glob("packages/*/src/*")), *sorted(ROOT.glob("resolver-ext/src/*"))]
PACKAGES = {path.name for path in SOURCES if (path / "__init__.py").exists()}


def names_from_others(package: Path) -> set[tuple[str, str]]:
    """Module and name of every import from the face or ``internal`` of another package."""
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                top = node.module.split(".")[0]
                if top in PACKAGES and top != package.name:
                    found |= {(node.module, alias.name) for alias in node.names}
    return found


@pytest.mark.parametrize("package", SOURCES, ids=lambda path: path.name)
def test_names_from_others_exist(package):
    for module, name in sorted(names_from_others(package)):
        assert hasattr(import_module(module), name), f"{module} has no name {name}"

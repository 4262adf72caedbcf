"""What one distribution imports from another exists, and is public."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import doors

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
        face = import_module(module)
        if not hasattr(face, name):
            import_module(f"{module}.{name}")
        assert hasattr(face, name), f"{module} has no name {name}"


def test_every_import_enters_by_a_public_module():
    assert list(doors.problems(ROOT)) == []


WRONG = {
    "private module": ("from engine._inner import x", "engine._inner is private to engine"),
    "private module by name": ("from engine import _inner", "engine._inner is private to engine"),
    "plain import": ("import engine._inner", "engine._inner is private to engine"),
    "private name": ("from engine.face import hidden", "hidden is not in __all__ of engine.face"),
    "attribute": (
        "from engine import face\nface.hidden",
        "hidden is not in __all__ of engine.face",
    ),
    "in a function": ("def f():\n    from engine._inner import x", "engine._inner is private"),
    "star": ("from .other import *", "import names, not a star"),
    "false constant": ("TYPE_CHECKING = False", "import TYPE_CHECKING from typing"),
    "lazy names": ("def __getattr__(name): ...", "a module with __getattr__ hides its names"),
}


@pytest.fixture
def project(tmp_path):
    engine = tmp_path / "packages/engine/src/engine"
    client = tmp_path / "packages/client/src/client"
    for folder in (engine, client, tmp_path / "docs", tmp_path / "conformance"):
        folder.mkdir(parents=True)
    (engine / "__init__.py").write_text('"""An engine."""\n')
    (engine / "_inner.py").write_text("x = 1\n")
    (engine / "face.py").write_text('from ._inner import x\n\n__all__ = ["x"]\nhidden = 2\n')
    (client / "__init__.py").write_text("from engine import face\n\nprint(face.x)\n")
    return tmp_path


@pytest.mark.parametrize("code", [code for code, _ in WRONG.values()], ids=WRONG)
def test_wrong_doors(project, code):
    assert list(doors.problems(project)) == []
    (project / "packages/client/src/client/_module.py").write_text(f"{code}\n")
    (problem,) = doors.problems(project)
    assert next(text for each, text in WRONG.values() if each == code) in problem


def test_documents_and_conformance_use_public_modules(project):
    code = "from engine._inner import x\n"
    (project / "conformance" / "runner.py").write_text(code)
    (project / "docs" / "page.md").write_text(f"```python\n{code}```\n")
    assert len(list(doors.problems(project))) == 2


def test_public_modules_have_names_and_are_few(project):
    folder = project / "packages/engine/src/engine"
    for number in range(6):
        (folder / f"face{number}.py").write_text("y = 1\n")
    problems = list(doors.problems(project))
    assert len(problems) == 7
    assert "7 public modules, at most 6" in problems[0]
    assert all("has no __all__" in problem for problem in problems[1:])

"""The package as others see it: public names, and the examples of documents."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pep_variants
from pep_variants import limits

ROOT = Path(__file__).parents[3]
LIBRARIES = (
    "pep_variants", "resolvelib_variants", "variants_catalog", "variants_index",
    "variants_plugins", "variants_proxy",
)  # fmt: skip


def test_examples_import_public_names_only():
    """What a document imports is on the face of its package, and can be imported."""
    pages = set()
    for page in [
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("packages/*/README.md"),
    ]:
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and node.module.startswith(LIBRARIES):
                    package = import_module(node.module)
                    for name in (alias.name for alias in node.names):
                        assert name in package.__all__, f"{page}: {name} is not public"
                        assert getattr(package, name) is not None
                    pages.add(page.name)
    assert pages >= {"use-the-engine.md", "write-an-installer.md"}


@pytest.mark.parametrize("package", LIBRARIES)
def test_every_public_name_can_be_imported(package):
    folder = Path(import_module(package).__file__).parent
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    modules |= {path.parent.name for path in folder.glob("[a-z]*/__init__.py")}
    assert modules
    for module in sorted(modules):
        face = import_module(f"{package}.{module}")
        assert len(set(face.__all__)) == len(face.__all__)
        for name in face.__all__:
            assert getattr(face, name) is not None


def test_versions():
    version = (ROOT / "VERSION").read_text("utf-8").strip()
    for package in ("pep_variants", "resolvelib_variants", "variants_catalog", "variants_index"):
        assert import_module(package).__version__ == version


def test_a_bundled_copy(tmp_path):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "__init__.py").touch()
    shutil.copytree(Path(pep_variants.__file__).parent, bundle / "pep_variants")
    script = "import sys; sys.path.insert(0, '.'); import bundle.pep_variants.selection as engine; "
    script += "print(engine.rank.__module__, 'pep_variants' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["bundle.pep_variants._choose.ranking", "False"], done.stderr


# Documents.


@pytest.mark.parametrize(
    ("path", "examples"),
    [("docs/how-to/use-the-engine.md", 4), ("packages/pep-variants/README.md", 1)],
)
def test_examples(fixtures, tmp_path, monkeypatch, capsys, path, examples):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    # Its provider is for Linux and Windows alone.
    monkeypatch.setattr("platform.system", lambda: "Linux")
    shutil.copy(fixtures / "torch-2.8.0-variants.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / path).read_text("utf-8")
    names = {}
    printed = 0
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(compile(block, path, "exec"), names)
        else:
            assert capsys.readouterr().out == block
            printed += 1
    assert printed == examples


def test_limits():
    text = (ROOT / "docs/reference/limits.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", text, re.MULTILINE)
    assert len(rows) > 20
    assert {name: int(number) for name, number in rows} == {
        name: getattr(limits, name) for name, _ in rows
    }

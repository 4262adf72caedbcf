"""`docs/reference/stability.md` lists the public names of every package, and no others."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pep_variants

ROOT = Path(__file__).parents[3]
PACKAGES = {
    "pep_variants": "packages/pep-variants",
    "resolvelib_variants": "resolver-ext",
    "variants_catalog": "packages/variants-catalog",
    "variants_index": "packages/variants-index",
    "variants_plugins": "packages/variants-plugins",
    "variants_proxy": "packages/variants-proxy",
}


def public_names(package):
    """``__all__`` of a package, read without importing it."""
    path = ROOT / PACKAGES[package] / "src" / package / "__init__.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


@pytest.mark.parametrize("package", PACKAGES)
def test_page(package):
    page = (ROOT / "docs" / "reference" / "stability.md").read_text("utf-8")
    section = page.split(f"\n## `{package}`\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \|", section, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(set(listed)) == len(listed)
    assert set(listed) == public_names(package)


def test_every_name_can_be_imported():
    assert set(pep_variants.__all__) <= set(dir(pep_variants))
    for name in pep_variants.__all__:
        assert getattr(pep_variants, name) is not None
    assert pep_variants.__version__ == (ROOT / "VERSION").read_text("utf-8").strip()


def test_version_of_a_bundled_copy(tmp_path):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "__init__.py").write_text('VERSION = "1.2"\n')
    shutil.copytree(Path(pep_variants.__file__).parent, bundle / "pep_variants")
    script = "import sys; sys.path.insert(0, '.'); import bundle.pep_variants as engine; "
    script += "print(engine.__version__, engine.rank.__module__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["1.2", "bundle.pep_variants.choose.ranking"], done.stderr


def test_other_names():
    assert not hasattr(pep_variants, "nonsense")


def test_star_import():
    script = "from pep_variants import *; print(rank.__name__, __version__)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("rank ")

"""The public names of the packages, which documents use and nothing else."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pep_variants

ROOT = Path(__file__).parents[3]
PACKAGES = {
    "pep_variants": "packages/pep-variants",
    "resolvelib_variants": "resolver-ext",
    "resolvelib_variants.resolution": "resolver-ext",
    "variants_catalog": "packages/variants-catalog",
    "variants_index": "packages/variants-index",
    "variants_plugins": "packages/variants-plugins",
    "variants_proxy": "packages/variants-proxy",
}


def public_names(package):
    """``__all__`` of a package, read without importing it."""
    if package not in PACKAGES:  # a module
        return set()
    path = ROOT / PACKAGES[package] / "src" / package.replace(".", "/") / "__init__.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def imports_of_examples():
    """Module and name of what examples import of our packages, and the page of each."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/README.md")]
    for page in sorted([*pages, ROOT / "resolver-ext" / "README.md"]):
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            for node in ast.walk(ast.parse(code)):
                module = node.module if isinstance(node, ast.ImportFrom) else None
                if module is not None and module.partition(".")[0] in PACKAGES:
                    for alias in node.names:
                        yield module, alias.name, page.relative_to(ROOT).as_posix()


def test_examples_import_public_names_only():
    """What a document imports is on the face of its package, and can be imported."""
    found = list(imports_of_examples())
    assert [item for item in found if item[1] not in public_names(item[0])] == []
    for module, name, _ in found:
        assert getattr(import_module(module), name) is not None
    assert public_names("pep_variants") >= {
        "Detector", "ReleaseReader", "load_preferences", "metadata_filename", "reduce_requirement",
        "select", "split_label",
    }  # fmt: skip
    installer = {name for _, name, page in found if page == "docs/how-to/write-an-installer.md"}
    assert installer >= {"VariantProvider", "Detector", "load_preferences", "split_label"}


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

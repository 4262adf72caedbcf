"""``python -m pep_variants_shim.trial``: try what the patches use of pip on a toy resolution.

Its projects have variants for a GPU with a dependency of their own, and others that are built
against a release that another project excludes. The pip of this environment resolves them from a
temporary folder, as a command of its own; nothing is installed, and no request is sent. Prints
nothing, or in one line what is not as it should be; the exit status is 1 then.

With ``--newer`` a pip is tried only if it is newer than those that the patches were tested with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pip

from . import BUILT_IN
from ._hook import NEWEST, release

__all__ = ["main"]

_GPU = {"gpu": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}, "null": {}}
_BUILT = {f"b{number}": {"abi_dependency": {"toy_lib": [number]}} for number in "12"}
_MARKED = ("toy-gpu; 'nvidia' in variant_namespaces",)
_PROJECTS: tuple[tuple[str, str, tuple[str, ...], Mapping[str, Any]], ...] = (
    ("toy-app", "1", _MARKED, _GPU),
    ("toy-ext", "1", ("toy-lib",), _BUILT),
    ("toy-late", "1", ("toy-lib==1",), {}),
    ("toy-lib", "1", (), {}),
    ("toy-lib", "2", (), {}),
    ("toy-gpu", "1", (), {}),
)
"""Name, version, requirements and variants."""

_EXPECTED = "toy-app-1-gpu toy-ext-1-b1 toy-gpu-1 toy-late-1 toy-lib-1"


def main() -> int:
    """Run the trial; return the exit code."""
    if "--newer" in sys.argv and release(pip.__version__) <= release(NEWEST):
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for name, version, requires, variants in _PROJECTS:
            _write_project(Path(folder), name, version, requires, variants)
        problem = _problem(Path(folder))
    if problem:
        print(f"pip {pip.__version__} does not work with variants: {problem}")
    return bool(problem)


def _write_project(
    folder: Path, name: str, version: str, requires: tuple[str, ...], variants: Mapping[str, Any]
) -> None:
    start = f"{name.replace('-', '_')}-{version}"
    info = f"{start}.dist-info"
    fields = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    fields += [f"Requires-Dist: {requirement}" for requirement in requires]
    wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if variants:
        (folder / f"{start}-variants.json").write_text(_metadata(variants), "utf-8")
    for label in variants or [""]:
        path = folder / ("-".join(filter(None, (f"{start}-py3-none-any", label))) + ".whl")
        files = {"METADATA": "\n".join([*fields, ""]), "WHEEL": wheel, "RECORD": ""}
        if label:
            files["variant.json"] = _metadata({label: variants[label]})
        with zipfile.ZipFile(path, "w") as archive:
            for file, text in files.items():
                archive.writestr(f"{info}/{file}", text)


def _metadata(variants: Mapping[str, Any]) -> str:
    providers = {
        "nvidia": {
            "requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"],
            "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
        }
    }
    tree = {
        "$schema": "https://variants-schema.wheelnext.dev/v0.0.3.json",
        "default-priorities": {"namespace": ["nvidia"]},
        "providers": providers,
        "variants": variants,
    }
    return json.dumps(tree)


def _problem(folder: Path) -> str:
    """Return what is wrong with the result that pip has in *folder*, empty if it is right."""
    prefixes = ("PIP_", "VARIANTS_", "NV_VARIANT_")
    environ = {name: text for name, text in os.environ.items() if not name.startswith(prefixes)}
    words = ("install", "--isolated", "--dry-run", "--ignore-installed", "--quiet", "--no-index")
    module = "pip" if BUILT_IN else str(__package__)
    command = [sys.executable, "-m", module, *words, "--disable-pip-version-check"]
    command += ["--find-links", str(folder), "--report", str(folder / "report.json")]
    command += ["--variant-platform", "cuda=12.8,sm=9.0", "toy-app", "toy-ext", "toy-late"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        return " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    tree = json.loads((folder / "report.json").read_text("utf-8"))
    found = sorted(map(_shown, tree["install"]))
    return "" if " ".join(found) == _EXPECTED else f"{' '.join(found)} in place of {_EXPECTED}"


def _shown(item: Mapping[str, Any]) -> str:
    own = item["metadata"]
    parts = (own["name"], own["version"], item.get("variant_label", ""))
    return "-".join(filter(None, parts))


if __name__ == "__main__":
    sys.exit(main())

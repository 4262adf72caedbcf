"""Projects with a small build backend of their own, for builds with a real frontend."""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BACKEND = '''
"""A build backend that records its options in the wheel and reuses an object file."""

import base64, hashlib, json, os, pathlib, sys, tarfile, time, zipfile

NAME = "{name}-{version}"


def digest(text):
    value = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def build_sdist(folder, config_settings=None):
    with tarfile.open(os.path.join(folder, NAME + ".tar.gz"), "w:gz") as archive:
        for path in ("pyproject.toml", "backend.py", "source.txt"):
            archive.add(path, NAME + "/" + path)
    return NAME + ".tar.gz"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    told = {{name: os.environ.get(name) for name in ("CFLAGS", "LEVEL", "CUDA")}}
    told["settings"] = config_settings or {{}}
    if {requires}:
        told["base"] = __import__({requires}[0]).TOLD
    exec(pathlib.Path("source.txt").read_text())
    object = pathlib.Path("object")
    if not object.exists():
        object.write_text("TOLD = " + repr(told))
    label = told["settings"].get("variant-label")
    filename = NAME + "-py3-none-any%s.whl" % ("-" + label if label else "")
    info = NAME + ".dist-info/"
    files = {{
        "{name}.py": object.read_text(),
        info + "METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
        + "".join("Requires-Dist: " + line + "\\n" for line in {dependencies}),
        info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    if label:
        files[info + "variant.json"] = os.environ["OWN_JSON"]
    files[info + "RECORD"] = "".join(
        "%s,sha256=%s,%d\\n" % (n, digest(t), len(t)) for n, t in files.items()
    ) + info + "RECORD,,\\n"
    with zipfile.ZipFile(os.path.join(folder, filename), "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return filename
'''
PYPROJECT = """
[build-system]
requires = {requires}
build-backend = "backend"
backend-path = ["."]
[project]
name = "{name}"
version = "{version}"
"""


def write_project(
    folder: Path,
    matrix: str,
    version: str = "1.0",
    requires: Sequence[str] = (),
    dependencies: Sequence[str] = (),
) -> Path:
    """Write a project of the name of *folder* with a matrix file; return the path of that."""
    words = {
        "name": folder.name,
        "version": version,
        "requires": json.dumps(list(requires)),
        "dependencies": list(dependencies),
    }
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND.format(**words))
    (folder / "pyproject.toml").write_text(PYPROJECT.format(**words))
    (folder / "source.txt").write_text("")
    (folder / "matrix.toml").write_text(matrix)
    return folder / "matrix.toml"


def wheel_of(folder: Path, project: str, label: str) -> Path:
    """Return the one wheel of a variant in *folder*."""
    (path,) = folder.glob(f"{project}-*-{label}.whl")
    return path


def told(folder: Path, project: str, label: str) -> dict[str, Any]:
    """Return what the backend was told when it built this wheel."""
    with zipfile.ZipFile(wheel_of(folder, project, label)) as archive:
        text = archive.read(f"{project}.py").decode()
    found: dict[str, Any] = ast.literal_eval(text.removeprefix("TOLD = "))
    return found

"""A C extension for several Pythons: built with each that is on this machine, run by each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from support.environments import clean_environ
from support.isolation import registries

PYTHONS = [f"3.{minor}" for minor in range(9, 15)]


def runs(version: str) -> bool:
    """Whether there is a program for it that is a Python: pyenv has others of that name."""
    program = shutil.which(f"python{version}")
    if program is None:
        return False
    return subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0


OTHERS = [version for version in PYTHONS if version != f"3.{sys.version_info[1]}" and runs(version)]
PROJECT = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"
[project]
name = "tiny"
version = "1.0"
""",
    "setup.py": """
from setuptools import Extension, setup
setup(ext_modules=[Extension("tiny", ["tiny.c"])])
""",
    "tiny.c": """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiny", 0, -1, 0};
PyMODINIT_FUNC PyInit_tiny(void) { return PyModule_Create(&module); }
""",
    "matrix.toml": """
[variant]
default-priorities.namespace = ["x86_64"]
[axes.cpu.baseline]
label = "null"
""",
}

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the extension is built on Linux"),
    pytest.mark.skipif(not OTHERS, reason="there is no other Python here"),
    pytest.mark.skipif(
        shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) is None,
        reason="there is no C compiler here",
    ),
]


def test_each_python_gets_its_wheel(tmp_path: Path) -> None:
    version = OTHERS[-1]
    source = tmp_path / "source"
    source.mkdir()
    for name, text in PROJECT.items():
        (source / name).write_text(text)
    with (source / "matrix.toml").open("a") as stream:
        for number in (version, f"3.{sys.version_info[1]}"):
            stream.write(f'[axes.python."{number}"]\npython = "{number}"\n')
    command = [sys.executable, "-c", "from variants_cli.main import main; main()", "matrix"]
    done = subprocess.run(
        [*command, str(source / "matrix.toml"), "--build", "-o", str(tmp_path / "dist")],
        env=clean_environ({**registries(), "PATH": os.environ["PATH"]}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Python.h" in done.stdout + done.stderr:
        pytest.skip("the headers of this Python are not here")
    assert done.returncode == 0, done.stderr
    tag = version.replace(".", "")
    (wheel,) = (tmp_path / "dist").glob(f"tiny-1.0-cp{tag}-cp{tag}-linux_*-null.whl")
    assert len(list((tmp_path / "dist").glob("*.whl"))) == 2
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(wheel, folder, "zip")
    found = subprocess.run(
        [f"python{version}", "-c", "import tiny; print(tiny.__file__)"],
        env=clean_environ({"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"cpython-{tag}" in found.stdout

"""What reaches the compiler: real backends build a project as null and with added flags.

The compilers are real, behind scripts that write their arguments down first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.environments import clean_environ
from support.isolation import outside, registries

COMPILERS = {"cc": "cc", "c++": "c++"}
FLAGS = {
    "c": ["-DFOR_C=1", "-fno-math-errno"],
    "cxx": ["-DFOR_CXX=1", "-fno-math-errno"],
    "link": ["-Wl,-z,now"],
}
C = "int answer(void) { return 42; }\n"

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the flags are for GCC on Linux"),
    pytest.mark.skipif(
        shutil.which("cc") is None or shutil.which("c++") is None,
        reason="there is no C or C++ compiler here",
    ),
]

SETUPTOOLS = {
    "pyproject.toml": "[build-system]\nrequires = ['{requires}']\n"
    "build-backend = 'setuptools.build_meta'\n[project]\nname = 'sample'\nversion = '1'\n",
    "setup.py": "from setuptools import Extension, setup\n"
    "setup(ext_modules=[Extension('sample', ['one.c']), Extension('other', ['two.cpp'])])\n",
}
SCIKIT_BUILD = {
    "pyproject.toml": "[build-system]\nrequires = ['scikit-build-core']\n"
    "build-backend = 'scikit_build_core.build'\n[project]\nname = 'sample'\nversion = '1'\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.15)\nproject(sample LANGUAGES C CXX)\n"
    "add_library(sample MODULE one.c)\nadd_library(other MODULE two.cpp)\n"
    "install(TARGETS sample other LIBRARY DESTINATION sample)\n",
}
MESON = {
    "pyproject.toml": "[build-system]\nrequires = ['meson-python', 'ninja']\n"
    "build-backend = 'mesonpy'\n[project]\nname = 'sample'\nversion = '1'\n",
    "meson.build": "project('sample', 'c', 'cpp', version: '1')\n"
    "py = import('python').find_installation()\n"
    "py.extension_module('sample', 'one.c', install: true)\n"
    "py.extension_module('other', 'two.cpp', install: true)\n",
}
PROJECTS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "setuptools": (SETUPTOOLS, {"requires": "setuptools"}),
    # The last one that adds CFLAGS to those of the interpreter.
    "setuptools-75.6": (SETUPTOOLS, {"requires": "setuptools==75.6.0"}),
    "scikit-build-core": (SCIKIT_BUILD, {}),
    "meson-python": (MESON, {}),
}


def record(folder: Path) -> dict[str, str]:
    """Put compilers that write their arguments down into *folder*; return the environment."""
    folder.mkdir()
    for name in COMPILERS:
        script = folder / name
        script.write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            "with open(os.environ['RECORD'], 'a') as stream:\n"
            f"    stream.write(json.dumps([{name!r}, *sys.argv[1:]]) + '\\n')\n"
            f"os.execv({shutil.which(name)!r}, [{name!r}, *sys.argv[1:]])\n"
        )
        script.chmod(0o755)
    return {"CC": str(folder / "cc"), "CXX": str(folder / "c++")}


def build(
    folder: Path, files: Mapping[str, str], matrix: str, environ: Mapping[str, str]
) -> dict[str, list[list[str]]]:
    """Build null and fast; return the arguments of the compilers by label."""
    project = folder / "project"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "matrix.toml").write_text(
        "[variant]\ndefault-priorities.namespace = ['x86_64']\n[axes.cpu.null]\n"
        f"[axes.cpu.fast]\nproperties = ['x86_64 :: level :: v1']\n{matrix}\n"
    )
    source = project
    if "meson.build" in files:  # Meson makes source distributions of Git repositories only
        source = folder / "sample-1.tar.gz"
        with tarfile.open(source, "w:gz") as tar:
            tar.add(project, "sample-1")
    recorded = {}
    for label in ("null", "fast"):
        place = folder / f"{label}.jsonl"
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from variants_cli.main import main; main()", "matrix"),
                *(str(project / "matrix.toml"), "--build", "--only", label),
                *("--source", str(source)),
                *("-o", str(folder / "dist")),
            ],
            env=clean_environ({**registries(), **environ, "RECORD": str(place)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        recorded[label] = [json.loads(line) for line in place.read_text().splitlines()]
    return recorded


def flags_of(recorded: list[list[str]], source: str) -> list[str]:
    """Return the flags that *source* was compiled with, without paths."""
    (line,) = [line for line in recorded if "-c" in line and line[-1].endswith(source)] or [
        line for line in recorded if "-c" in line and any(word.endswith(source) for word in line)
    ]
    return [word for word in line[1:] if word.startswith(("-D", "-O", "-f", "-m", "-W"))]


@pytest.mark.parametrize(
    "name",
    [
        "setuptools",
        "scikit-build-core",
        pytest.param("setuptools-75.6", marks=pytest.mark.nightly),
        pytest.param("meson-python", marks=pytest.mark.nightly),
    ],
)
def test_a_variant_compiles_like_null_and_with_its_flags(tmp_path, name):
    texts, fields = PROJECTS[name]
    files = {path: text.format(**fields) if "{" in text else text for path, text in texts.items()}
    files |= {"one.c": C, "two.cpp": f'extern "C" {{ {C} }}\n'}
    for source, module in (("one.c", "sample"), ("two.cpp", "other")):
        if name.startswith(("setuptools", "meson")):
            init = "PyMODINIT_FUNC PyInit_%s(void) { return 0; }\n" % module  # noqa: UP031
            files[source] = f"#include <Python.h>\n{init}"
    matrix = "".join(f"flags.{language} = {words}\n" for language, words in FLAGS.items())
    recorded = build(tmp_path, files, matrix, record(tmp_path / "programs"))
    for source, language in (("one.c", "c"), ("two.cpp", "cxx")):
        null, fast = flags_of(recorded["null"], source), flags_of(recorded["fast"], source)
        added = set(FLAGS[language])
        assert not added & set(null)
        assert set(fast) == {*null, *added}
        # The last level of optimization counts.
        levels = [[word for word in words if word.startswith("-O")] for words in (null, fast)]
        assert levels[0][-1:] == levels[1][-1:] != []
    linked = [line for line in recorded["fast"] if "-c" not in line and "-shared" in line]
    assert linked
    assert all(FLAGS["link"][0] in line for line in linked if "-o" in line)


def rust() -> Path | None:
    """Return the folder of rustc and cargo themselves, not of a program that chooses them."""
    environ = {**os.environ, **outside()}
    try:
        done = subprocess.run(
            ["rustc", "--print", "sysroot"], env=environ, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    folder = Path(done.stdout.strip()) / "bin"
    return folder if (folder / "cargo").exists() else None


@pytest.mark.nightly
def test_maturin(tmp_path):
    folder = rust()
    if folder is None:
        pytest.skip("there is no Rust here")
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(
        '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word" >> "$RECORD.rust"; done\n'
        'exec "$@"\n'
    )
    wrapper.chmod(0o755)
    files = {
        "pyproject.toml": "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n"
        "[project]\nname = 'sample'\nversion = '1'\n[tool.maturin]\nbindings = 'bin'\n",
        "Cargo.toml": "[package]\nname = 'sample'\nversion = '1.0.0'\nedition = '2021'\n",
        "Cargo.lock": 'version = 3\n[[package]]\nname = "sample"\nversion = "1.0.0"\n',
        "src/main.rs": "fn main() {}\n",
    }
    for label in ("null", "fast"):
        (tmp_path / f"{label}.jsonl").touch()
    build(
        tmp_path, files, 'flags.rust = ["-C", "target-cpu=x86-64"]',
        {
            "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
            "RUSTC_WRAPPER": str(wrapper),
            "CARGO_HOME": str(tmp_path / "cargo"),
        },
    )  # fmt: skip
    words = {
        label: (tmp_path / f"{label}.jsonl.rust").read_text().split() for label in ("null", "fast")
    }
    assert "target-cpu=x86-64" in words["fast"]
    assert "target-cpu=x86-64" not in words["null"]
    for label in words:
        assert "opt-level=3" in words[label]

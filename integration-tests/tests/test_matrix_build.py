"""Builds of C extensions that differ in flags: `variants matrix --build` with real backends, pip.

What reaches the compiler is written down by scripts in its place, which start the real one.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pep_variants.machines import Detector
from pep_variants.selection import rank
from support.documents import Page, Reader
from support.environments import ROOT, clean_environ, once
from support.isolation import registries
from support.loopback import served_folder
from support.tools import tool
from variants_cli._detection import read_metadata_file
from variants_cli._matrix.building import find_uv

PROJECT = ROOT / "integration-tests" / "projects" / "dotproduct"
NAME = "dotproduct-1.0-cp310-abi3"
LABELS = ["avx2", "avx512", "avx512vnni", "null"]
VARIANTS = [sys.executable, "-c", "from variants_cli.main import main; main()"]
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]

# Some builds have AVX2, and run here; some flags are added to those of this Python.
CPU = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""

pytestmark = [
    pytest.mark.skipif(
        platform.system() != "Linux" or platform.machine() != "x86_64",
        reason="the builds are for Linux on x86-64",
    ),
    pytest.mark.skipif(
        None in map(shutil.which, (COMPILER, "cc", "c++")),
        reason="there is no C or C++ compiler here",
    ),
    pytest.mark.skipif(
        not Path(sysconfig.get_path("include"), "Python.h").exists(),
        reason="Python's headers are not here",
    ),
]


def built(folder: Path, project: Path, *options: str, **environ: str) -> None:
    """Build the matrix of *project* into *folder*."""
    done = subprocess.run(
        [*VARIANTS, "matrix", project / "matrix.toml", "--build", "-o", folder, *options],
        env=clean_environ({**registries(), "CC": COMPILER, **environ}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def make(folder: Path) -> None:
    """Build from a copy of the project: setuptools writes into its tree."""
    source = folder.with_name("source")
    shutil.copytree(PROJECT, source)
    built(folder, source)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheels and index, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return once(folder / "dotproduct" / "dist", make)


def test_four_builds_that_differ(dist):
    wheels = sorted(dist.glob(f"{NAME}-*.whl"))
    assert [path.stem.rpartition("-")[2] for path in wheels] == LABELS
    kernels = set()
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            kernels.add(archive.read("dotproduct/_kernel.abi3.so"))
    assert len(kernels) == 4
    tree = json.loads((dist / "dotproduct-1.0-variants.json").read_text())
    assert tree["variants"]["avx512vnni"] == {"x86_64": {"avx512_vnni": ["on"], "level": ["v4"]}}


@pytest.mark.one
def test_pip_installs_what_fits(fresh, dist):
    """The best one by itself, another one when asked for; the kernel says which it is."""
    metadata = read_metadata_file(dist / "dotproduct-1.0-variants.json")
    best, *_, last = (*rank(metadata, Detector().platform(metadata)).labels, "null")
    assert last == "null"
    with served_folder(dist) as url:
        for label, options in ((best, ()), (last, ("--variant", "dotproduct=null"))):
            install = ("install", "--force-reinstall", "-i", f"{url}simple/", *options)
            done = fresh.pip(*install, "dotproduct")
            assert f"Successfully installed dotproduct-1.0-{label}\n" in done.out, done
            path = "baseline" if label == "null" else label
            assert fresh.run("-m", "dotproduct").out.startswith(f"{path} ")


@pytest.mark.nightly
def test_repaired_by_auditwheel(tmp_path, environments):
    """A library that the extension links comes along, and the tag says where the wheel runs."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    source = libraries / "own.c"
    source.write_text("int own(void) { return 1; }\n")
    library = libraries / "libown.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    variants = f"{sys.executable} -c 'from variants_cli.main import main; main()'"
    uv = find_uv()
    steps = (
        f'eval "$({variants} matrix matrix.toml --only $VARIANT --format shell)"\n'
        f"{uv} build --python {sys.executable} --out-dir plain/$VARIANT\n"
        "auditwheel repair -w repaired/$VARIANT plain/$VARIANT/*.whl\n"
        f"{variants} make --matrix matrix.toml -o dist repaired/$VARIANT/*.whl\n"
    )
    programs = Path(tool(environments, "auditwheel").python).parent
    environ = {
        "CC": COMPILER,
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "LDFLAGS": f"-L{libraries} -Wl,--no-as-needed -lown",
        "LD_LIBRARY_PATH": str(libraries),
        "VARIANT": "avx2",
    }
    done = subprocess.run(
        ["bash", "-ec", steps], cwd=project, env=clean_environ({**registries(), **environ}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = (project / "dist").glob(f"{NAME}-manylinux*-avx2.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "there")
    assert [file.name[:6] for file in (tmp_path / "there/dotproduct.libs").iterdir()] == ["libown"]
    if " avx2 " in CPU:
        there = clean_environ({"PYTHONPATH": str(tmp_path / "there")})
        command = [sys.executable, "-m", "dotproduct"]
        shown = subprocess.run(command, env=there, capture_output=True, text=True, check=True)
        assert shown.stdout.startswith("avx2 ")


@pytest.mark.nightly
@pytest.mark.skipif(
    "-O" not in (sysconfig.get_config_var("CFLAGS") or "") or " avx2 " not in CPU,
    reason="this Python was not compiled with optimization, or this CPU has no AVX2",
)
def test_guide(reader: Reader) -> None:
    """The console blocks of the page about build matrices."""
    reader.use_variants()
    reader.use_uv()
    reader.tool("python", f'exec {reader.environments.programs().python} "$@"')
    reader.environ |= {**registries(), "CC": "gcc"}
    reader.follow(Page(ROOT / "docs/how-to/matrix.md"))


MATRIX = r"""
[variant]
default-priorities.namespace = ["x86_64"]
[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment.CFLAGS = ["-mavx2", "-DNAME='x y'"]
flags.cxx = ["-mavx2"]
environment.LEVEL = '3 or $more `b` \ "c"'
config-settings = { setup-args = ["-Da=b c", "-Dd"] }
"""
# Reads the options as cibuildwheel itself does, and prints what a build would get.
READ = """
import json, os, shlex, sys
from cibuildwheel.options import CommandLineArguments, Options
arguments = CommandLineArguments.defaults()
arguments.package_dir = __import__("pathlib").Path(sys.argv[2])
options = Options(sys.argv[1], arguments, env=dict(os.environ), defaults=False)
build = options.build_options(None)
print(json.dumps({
    "environment": build.environment.as_dictionary({"CFLAGS": "-g", "PATH": sys.argv[3]}),
    "config_settings": shlex.split(build.config_settings),
}))
"""


def test_cibuildwheel_gives_the_build_what_the_matrix_says(environments, tmp_path):
    (tmp_path / "matrix.toml").write_text(MATRIX)
    command = (*VARIANTS, "matrix", "matrix.toml", "--format", "cibuildwheel")
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    settings = [shlex.split(line)[1].split("=", 1) for line in printed.stdout.splitlines()]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [tool(environments, "cibuildwheel").python, "-c", READ, "linux", str(PROJECT), path],
        env=clean_environ(dict(settings)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    own = sysconfig.get_config_var("CFLAGS")
    assert found["environment"]["CXXFLAGS"].split() == [*own.split(), "-mavx2"]
    assert found["environment"]["CFLAGS"] == "-g -mavx2 -DNAME='x y'"
    assert found["environment"]["LEVEL"] == '3 or $more `b` \\ "c"'
    assert found["config_settings"] == ["setup-args=-Da=b c", "setup-args=-Dd"]


# What reaches the compiler: as null is built, and with added flags.

FLAGS = {
    "c": ["-DFOR_C=1", "-fno-math-errno"],
    "cxx": ["-DFOR_CXX=1", "-fno-math-errno"],
    "link": ["-Wl,-z,now"],
}

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
BACKENDS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "setuptools": (SETUPTOOLS, {"requires": "setuptools"}),
    # The last one that adds CFLAGS to those of the interpreter.
    "setuptools-75.6": (SETUPTOOLS, {"requires": "setuptools==75.6.0"}),
    "scikit-build-core": (SCIKIT_BUILD, {}),
    "meson-python": (MESON, {}),
}


@pytest.mark.parametrize(
    "name",
    [
        "setuptools",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("setuptools-75.6", "scikit-build-core", "meson-python")
        ),
    ],
)
def test_a_variant_compiles_like_null_and_with_its_flags(tmp_path, name):
    """A real backend builds both, which takes some ten seconds."""
    project, environ = tmp_path / "project", {}
    project.mkdir()
    texts, fields = BACKENDS[name]
    for file, text in texts.items():
        (project / file).write_text(text.format(**fields) if fields else text)
    for source, module in (("one.c", "sample"), ("two.cpp", "other")):
        start = 'extern "C" int' if source == "two.cpp" else "int"
        text = f"{start} answer(void) {{ return 42; }}\n"
        if name.startswith(("setuptools", "meson")):
            text = f"#include <Python.h>\nPyMODINIT_FUNC PyInit_{module}(void) {{ return 0; }}\n"
        (project / source).write_text(text)
    (project / "matrix.toml").write_text(
        "[variant]\ndefault-priorities.namespace = ['x86_64']\n[axes.cpu.null]\n"
        "[axes.cpu.fast]\nproperties = ['x86_64 :: level :: v1']\n"
        + "".join(f"flags.{language} = {words}\n" for language, words in FLAGS.items())
    )
    for variable, compiler in (("CC", "cc"), ("CXX", "c++")):
        script = tmp_path / compiler
        script.write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            "with open(os.environ['RECORD'], 'a') as stream:\n"
            f"    stream.write(json.dumps([{compiler!r}, *sys.argv[1:]]) + '\\n')\n"
            f"os.execv({shutil.which(compiler)!r}, [{compiler!r}, *sys.argv[1:]])\n"
        )
        script.chmod(0o755)
        environ[variable] = str(script)
    source = project
    if name.startswith("meson"):  # makes source distributions of Git repositories only
        source = tmp_path / "sample-1.tar.gz"
        with tarfile.open(source, "w:gz") as tar:
            tar.add(project, "sample-1")
    recorded = {}
    for label in ("null", "fast"):
        lines = tmp_path / f"{label}.jsonl"
        options = ("--only", label, "--source", str(source))
        built(tmp_path / "dist", project, *options, **environ, RECORD=str(lines))
        recorded[label] = [json.loads(line) for line in lines.read_text().splitlines()]
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


def flags_of(recorded: list[list[str]], source: str) -> list[str]:
    """Return the flags that *source* was compiled with, without paths."""
    lines = [line for line in recorded if "-c" in line]
    (line,) = [line for line in lines if line[-1].endswith(source)] or [
        line for line in lines if any(word.endswith(source) for word in line)
    ]
    return [word for word in line[1:] if word.startswith(("-D", "-O", "-f", "-m", "-W"))]

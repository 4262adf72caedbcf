"""From a C extension to builds of it that differ in speed: `variants matrix --build`, then pip."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.environments import ROOT, clean_environ, once
from support.isolation import registries
from support.loopback import served_folder
from support.tools import tool
from variants_cli.matrix.building import find_uv

PROJECTS = ROOT / "integration-tests" / "projects"
NAME = "dotproduct-1.0-cp310-abi3"
# Label, what the kernel says of itself, and the flags of a CPU that can run it.
BUILDS = {
    "null": ("baseline", set()),
    "avx2": ("avx2", {"avx2", "fma", "bmi2"}),
    "avx512": ("avx512", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "avx512vnni": ("avx512vnni", {"avx512f", "avx512bw", "avx512vl", "avx512_vnni"}),
}
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]

pytestmark = [
    pytest.mark.skipif(
        platform.system() != "Linux" or platform.machine() != "x86_64",
        reason="the builds are for Linux on x86-64",
    ),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C compiler here"),
    pytest.mark.skipif(
        not Path(sysconfig.get_path("include"), "Python.h").exists(),
        reason="Python's headers are not here",
    ),
]


def matrix(
    folder: Path,
    *options: str,
    project: str | Path = "dotproduct",
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Build into *folder*, from a copy of the project: setuptools writes into its tree."""
    source = folder.with_name(f"{folder.name}-source")
    shutil.copytree(PROJECTS / project, source, dirs_exist_ok=True)
    command = [sys.executable, "-c", "from variants_cli.main import main; main()", "matrix"]
    return subprocess.run(
        [*command, str(source / "matrix.toml"), "--build", "-o", str(folder), *options],
        env=clean_environ({**registries(), "CC": COMPILER, **(environ or {})}),
        capture_output=True,
        text=True,
        check=False,
    )


def make(folder: Path) -> None:
    done = matrix(folder)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheels and index, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return once(folder / "dotproduct" / "dist", make)


@pytest.fixture(scope="module")
def index(dist: Path) -> Iterator[str]:
    """URL of the index, served as static files."""
    with served_folder(dist) as url:
        yield f"{url}simple/"


def wheel(dist: Path, label: str) -> Path:
    (found,) = dist.glob(f"{NAME}-*-{label}.whl")
    return found


def cpu_flags() -> set[str]:
    """What the processor says it has, whatever is detected from that."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return set(next(line for line in lines if line.startswith("flags")).split())


def test_four_builds_that_differ(dist):
    assert sorted(path.name for path in dist.glob("*.whl")) == sorted(
        wheel(dist, label).name for label in BUILDS
    )
    kernels = set()
    for label in BUILDS:
        with zipfile.ZipFile(wheel(dist, label)) as archive:
            kernels.add(archive.read("dotproduct/_kernel.abi3.so"))
    assert len(kernels) == 4
    tree = json.loads((dist / "dotproduct-1.0-variants.json").read_text())
    assert tree["variants"]["avx512vnni"] == {
        "x86_64": {"avx512_vnni": ["on"], "level": ["v4"]},
    }


def test_results_are_the_same(dist, tmp_path):
    """Every build that this machine can run, straight from its wheel."""
    results = set()
    for label, (path, needed) in BUILDS.items():
        if not needed <= cpu_flags():
            continue
        with zipfile.ZipFile(wheel(dist, label)) as archive:
            archive.extractall(tmp_path / label)
        done = subprocess.run(
            [sys.executable, "-m", "dotproduct"],
            env=clean_environ({"PYTHONPATH": str(tmp_path / label)}),
            capture_output=True,
            text=True,
            check=True,
        )
        found, result, _, _ = done.stdout.split()
        assert found == path
        results.add(result)
    assert len(results) == 1


@pytest.fixture(scope="module")
def fitting(dist: Path) -> list[str]:
    """The labels that fit this machine, best first."""
    ranked = subprocess.run(
        [
            *(sys.executable, "-c", "from variants_cli.main import main; main()"),
            *("rank", "--json", str(dist / "dotproduct-1.0-variants.json")),
        ],
        env=clean_environ(),
        capture_output=True,
        check=True,
    )
    labels = [variant["label"] for variant in json.loads(ranked.stdout)["ranked"]]
    assert labels[-1] == "null"
    return labels


@pytest.mark.one
def test_pip_installs_what_fits(fresh, index, fitting):
    """The best one by itself, another one when asked for."""
    for label in dict.fromkeys((fitting[0], fitting[-1])):
        options = [] if label == fitting[0] else ["--variant", f"dotproduct={label}"]
        done = fresh.pip("install", "--force-reinstall", "-i", index, *options, "dotproduct")
        assert f"Successfully installed dotproduct-1.0-{label}\n" in done.out, done
        assert fresh.run("-m", "dotproduct").out.startswith(f"{BUILDS[label][0]} ")


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
    shutil.copytree(PROJECTS / "dotproduct", project)
    variants = f"{sys.executable} -c 'from variants_cli.main import main; main()'"
    uv = find_uv()
    steps = (
        f'eval "$({variants} matrix matrix.toml --only $VARIANT --format shell)"\n'
        f"{uv} build --python {sys.executable} --out-dir plain/$VARIANT\n"
        "auditwheel repair -w repaired/$VARIANT plain/$VARIANT/*.whl\n"
        f"{variants} make --matrix matrix.toml -o dist repaired/$VARIANT/*.whl\n"
    )
    programs = Path(tool(environments, "auditwheel").python).parent
    for label in ("null", "avx2"):
        environ = {
            "CC": COMPILER,
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "LDFLAGS": f"-L{libraries} -Wl,--no-as-needed -lown",
            "LD_LIBRARY_PATH": str(libraries),
            "VARIANT": label,
        }
        done = subprocess.run(
            ["bash", "-ec", steps], cwd=project, env=clean_environ({**registries(), **environ}),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (path,) = (project / "dist").glob(f"{NAME}-manylinux*-{label}.whl")
        target = tmp_path / label
        with zipfile.ZipFile(path) as archive:
            archive.extractall(target)
        assert [file.name[:6] for file in (target / "dotproduct.libs").iterdir()] == ["libown"]
        if BUILDS[label][1] <= cpu_flags():
            shown = subprocess.run(
                [sys.executable, "-m", "dotproduct"],
                env=clean_environ({"PYTHONPATH": str(target)}),
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert shown.stdout.startswith(f"{BUILDS[label][0]} ")

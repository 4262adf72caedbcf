"""From wheels of eleven projects to one project with variants, that pip installs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.loopback import served_folder
from support.wheels import Wheel
from variants_cli.main import cli

TAGS = "py3-none-manylinux2014_x86_64"
# Project, label and what it needs; the dependency under the name that it has in that project.
BUILDS = [
    ("cupy-cuda101", "cuda10.1", "nvidia :: cuda_version_lower_bound :: 11.0", "cublas-cu10"),
    ("cupy-cuda102", "cuda10.2", "nvidia :: cuda_version_lower_bound :: 11.1", "cublas-cu10"),
    ("cupy-cuda110", "cuda11.0", "nvidia :: cuda_version_lower_bound :: 11.2", "cublas-cu11"),
    ("cupy-cuda111", "cuda11.1", "nvidia :: cuda_version_lower_bound :: 11.3", "cublas-cu11"),
    ("cupy-cuda11x", "cuda11", "nvidia :: cuda_version_lower_bound :: 11.8", "cublas-cu11"),
    ("cupy-cuda12x", "cuda12", "nvidia :: cuda_version_lower_bound :: 12.0", "cublas-cu12"),
    ("cupy-cuda13x", "cuda13", "nvidia :: cuda_version_lower_bound :: 13.0", "cublas"),
    ("cupy-rocm-5-0", "rocm5.0", "amd :: rocm_version :: 5.0", "rocblas"),
    ("cupy-rocm-6-3", "rocm6.3", "amd :: rocm_version :: 6.3", "rocblas"),
    ("cupy-rocm-6-4", "rocm6.4", "amd :: rocm_version :: 6.4", "rocblas"),
    ("cupy-cpu", "null", None, None),
]
EDITS = [
    *("--rename", "cupy", "--namespace", "nvidia", "--namespace", "amd"),
    *("--remove-dependency", "cublas*", "--remove-dependency", "rocblas"),
    *("--add-dependency", "cublas==12.9; variant_label == 'cuda12'"),
    *("--add-dependency", "cublas==13.0; variant_label == 'cuda13'"),
    "--add-dependency",
    "cublas<12; 'nvidia' in variant_namespaces and variant_label in 'cuda10.1 cuda11.0 cuda11'",
    *("--add-dependency", "rocblas; 'amd' in variant_namespaces"),
]
NVIDIA = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
ARCH = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"
ROCM = "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION"
GFX = "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH"

CASES = [
    ({NVIDIA: "12.8", ARCH: "9.0"}, ["cupy-14.0-cuda12", "cublas-12.9"]),
    ({NVIDIA: "11.2", ARCH: "7.0"}, ["cupy-14.0-cuda11.0", "cublas-11.8"]),
    ({ROCM: "6.4.1", GFX: "gfx1100"}, ["cupy-14.0-rocm6.4", "rocblas-1.0"]),
    ({ROCM: "7.0.0", GFX: "gfx1100"}, ["cupy-14.0-null"]),
]


def variants(*arguments: str | Path) -> str:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The index that is made of the wheels; its URL."""
    folder = tmp_path_factory.mktemp("repacked")
    dist = folder / "dist"
    for project, label, item, dependency in BUILDS:
        requires = ("fastrlock", f"{dependency}>=1") if dependency else ("fastrlock",)
        wheel = Wheel(
            project, "14.0", tag=TAGS, requires=requires, files={"cupy/__init__.py": project}
        )
        (folder / wheel.filename).write_bytes(wheel.build())
        properties = ("--property", item) if item else ()
        made = variants(
            *("make", folder / wheel.filename, "--label", label, *properties, *EDITS, "-o", dist)
        )
        assert len(made.splitlines()) == 1
    for name, version in (
        ("fastrlock", "0.8"),
        ("rocblas", "1.0"),
        *(("cublas", version) for version in ("11.8", "12.9", "13.0")),
    ):
        wheel = Wheel(name, version)
        (dist / wheel.filename).write_bytes(wheel.build())
    variants("index", dist)
    assert variants("validate", dist).endswith(": 0 errors, 0 warnings\n")

    with served_folder(dist) as url:
        yield f"{url}simple/"


@pytest.mark.one
@pytest.mark.parametrize(("machine", "expected"), CASES)
def test_eleven_projects_are_one(patched, index, machine, expected):
    done = patched.pip(
        "install", "--dry-run", "--index-url", index, "--only-binary", ":all:", "cupy", env=machine
    )
    (line,) = (line for line in done.out.splitlines() if line.startswith("Would install"))
    assert sorted(line.split()[2:]) == sorted([*expected, "fastrlock-0.8"]), done

"""Builds with a publisher's own name, on machines in words."""

import json

import pytest
from packaging.version import Version

from pep_variants.machines import Detector, load_machine
from pep_variants.preferences import Preferences
from variants_catalog import possible_builds
from variants_catalog._catalogs import shipped_catalog
from variants_catalog._unfit_builds import other_build, unfit_builds

OLDER, NEWER = "h100-zen4", "h100-sapphirerapids"
"""Drivers for CUDA 12.8 and 13.0."""
NEEDS_13 = "needs CUDA driver 13.0 or newer, this one supports up to 12.8"
NO_DRIVER = "needs CUDA driver 12.0 or newer{}; no NVIDIA driver in mi300x-rocm7.0"


def lines(machine, *, preferences=None, target="", **versions):
    detect = Detector.of(Preferences(platform_file=machine)).platform
    read = {name.replace("_", "-"): Version(version) for name, version in versions.items()}
    return [*unfit_builds(read, detect, preferences or Preferences(), target)]


@pytest.mark.parametrize(
    ("machine", "name", "version", "why", "does"),
    [
        (OLDER, "onnxruntime_gpu", "1.31.1", NEEDS_13, "onnxruntime-gpu<1.27,>=1.21 does"),
        (OLDER, "cupy_cuda13x", "14.2.0", NEEDS_13, "cupy-cuda12x[ctk]==14.2.0 does"),
        (OLDER, "cudf_cu13", "26.10.2", NEEDS_13, "cudf-cu12==26.10.2 does"),
        ("mi300x-rocm7.0", "cupy_cuda12x", "14.2.0",
         NO_DRIVER.format(" and built for compute capability 5.0, 5.2, 6.0, 6.1, … (13 values)"),
         "cupy-rocm-7-0==14.2.0 does"),
        ("mi300x-rocm7.0", "onnxruntime_gpu", "1.26.0",
         NO_DRIVER.format(" and built for compute capability 6.0, 7.0, 7.5, 8.0, … (9 values)"),
         "no build of onnxruntime does"),
    ],
)  # fmt: skip
def test_what_does_not_run_and_what_does(machine, name, version, why, does):
    device = "AMD GPU" if machine.startswith("mi") else "NVIDIA GPU"
    named = f"{name.replace('_', '-')} {version} does not run on the {device} that is here"
    for preferences in (Preferences(), Preferences(catalog="default")):
        found = lines(machine, preferences=preferences, **{name: version})
        assert found == [f"{named} ({why}); {does}"]


@pytest.mark.parametrize(
    ("machine", "name", "version"),
    [
        (NEWER, "onnxruntime_gpu", "1.31.1"),
        (OLDER, "onnxruntime_gpu", "1.26.0"),
        # Too old for the catalogue, for CPUs, of nothing in the catalogue.
        (OLDER, "onnxruntime_gpu", "1.2.0"),
        (OLDER, "xgboost_cpu", "3.4.1"),
        (OLDER, "torch_geometric", "2.6.1"),
        # Images are built on machines without an accelerator.
        ("cpu-zen4", "onnxruntime_gpu", "1.31.1"),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(machine, name, version):
    assert lines(machine, **{name: version}) == []


@pytest.mark.parametrize(
    ("capability", "target", "runs"),
    [
        ("8.0", "linux_aarch64", False),
        ("8.0", "manylinux_2_28_x86_64", True),
        ("12.1", "linux_aarch64", True),
        # Without the platform, one that any build runs on.
        ("8.0", "", True),
    ],
)
def test_what_runs_on_one_platform_alone(capability, target, runs):
    found = lines(f"cuda=13.0,sm={capability}", target=target, onnxruntime_gpu="1.31.1")
    assert (found == []) is runs


@pytest.mark.parametrize(
    ("machine", "does"),
    [
        ("cuda=12.8,sm=12.0", "onnxruntime-gpu!=1.23.0,<1.27,>=1.21"),
        ("cuda=13.0,sm=12.0", "onnxruntime-gpu>=1.27"),
        ("cuda=12.8,sm=5.0", "no build of onnxruntime"),
    ],
)
def test_a_fault_of_one_release(machine, does):
    (line,) = lines(machine, onnxruntime_gpu="1.23.0")
    assert line.endswith(f"; {does} does")
    detect = Detector(platform=load_machine(machine)).platform
    other = other_build("onnxruntime-gpu", Version("1.23.0"), detect, Preferences())
    assert other == ("" if does.startswith("no ") else does)
    assert other_build("own", Version("1"), detect, Preferences()) == ""


def test_the_catalogue_of_the_user(tmp_path):
    preferences = Preferences(catalog=str(tmp_path / "catalog.json"))
    (tmp_path / "catalog.json").write_text(json.dumps({"catalog-version": "1", "projects": {}}))
    assert lines(OLDER, preferences=preferences, onnxruntime_gpu="1.31.1") == []
    off = Preferences(use_variants=False)
    assert lines(OLDER, preferences=off, onnxruntime_gpu="1.31.1") == []


def test_the_builds_of_the_catalogue_begin_as_their_projects():
    catalog = shipped_catalog()
    targets = {name for each in catalog.names() for name in catalog.project(each).targets}
    assert possible_builds(targets) == targets
    assert possible_builds(["six", "typing-extensions", "torch", "-x"]) == frozenset()

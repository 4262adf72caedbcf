"""Builds that are missed without the catalogue, on machines in words."""

import os

import pytest
from packaging.version import Version

import variants_catalog
from pep_variants._model.property import Selector
from pep_variants.machines import Detector
from pep_variants.preferences import Preferences
from variants_catalog._catalogs import shipped_catalog
from variants_catalog.missed_builds import MissedBuild, Taken, line_of_day, missed_build

CATALOG = shipped_catalog()
LINUX, ARM, PURE, SDIST = ["manylinux_2_28_x86_64"], ["manylinux_2_28_aarch64"], ["any"], []
H100, OLDER, OLDEST = (f"cuda={cuda},sm=9.0,cpu=zen4" for cuda in ("13.0", "12.8", "11.4"))
V100, RTX5090, MI300X, ARC = (
    "cuda=13.0,sm=7.0,cpu=zen4",
    "cuda=13.0,sm=12.0,cpu=zen4",
    "rocm=7.0,gfx=gfx942,cpu=zen4",
    "arc-a770-alderlake",
)
NO_GPU = "cpu-zen4"
JAX = ['jax-cuda12-plugin<=0.10.2,>=0.10.2; extra == "cuda12"']
DRIVER = "does not run on the NVIDIA GPU that is here (needs CUDA driver 13.0 or newer"
IDLE, NO_WHEEL = "does not use the {} that is here", "has no wheel that uses the {} that is here"
NVIDIA, AMD = "NVIDIA GPU", "AMD GPU"


def missed(machine, name, version, tags, *, preferences=None, system="linux_x86_64", **more):
    entry = CATALOG.project(name)
    detect = Detector.of(Preferences(platform_file=machine)).platform
    taken = Taken(Version(version), tags, **more)
    return missed_build(entry, taken, system, detect, preferences or Preferences())


@pytest.mark.parametrize(
    ("machine", "name", "version", "tags", "lack", "label"),
    [
        # The wheel of the public index is a CUDA build, which the driver or the GPU does not run.
        (OLDER, "torch", "2.15.0", LINUX, DRIVER, "cuda12.6 of another release"),
        (OLDER, "torch", "2.14.0", LINUX, DRIVER, "cuda12.6"),
        (OLDEST, "torch", "2.15.0", LINUX, DRIVER, "cuda11.8 of another release"),
        (OLDER, "vllm", "0.29.0", LINUX, DRIVER, "cuda12.9 of another release"),
        (OLDER, "vllm", "0.26.0", LINUX, DRIVER, "cuda12.9"),
        (V100, "torch", "2.15.0", LINUX, "does not run on", "cuda12.6 of another release"),
        # The GPU stands idle.
        (MI300X, "torch", "2.15.0", LINUX, IDLE.format(AMD), "rocm7.2 of another release"),
        (ARC, "torch", "2.15.0", LINUX, IDLE.format("Intel GPU"), "xpu"),
        (H100, "torch", "2.14.0+cpu", LINUX, IDLE.format(NVIDIA), "cuda13.2"),
        (H100, "torch", "2.10.0", ARM, IDLE.format(NVIDIA), "cuda13.0"),
        (OLDER, "jax", "0.10.2", PURE, IDLE.format(NVIDIA), "cuda12"),
        (H100, "jax", "0.10.2", PURE, IDLE.format(NVIDIA), "cuda13"),
        (OLDER, "onnxruntime", "1.32.0", LINUX, IDLE.format(NVIDIA), "cuda12 of another release"),
        (OLDER, "cupy", "14.2.0", SDIST, NO_WHEEL.format(NVIDIA), "cuda12"),
        (MI300X, "cupy", "14.2.0", SDIST, NO_WHEEL.format(AMD), "rocm7.0"),
        (OLDER, "faiss", "1.5.3", SDIST, NO_WHEEL.format(NVIDIA), "cuda12"),
        # A known fault counts on the GPU that has it, and for the release that has it.
        (H100, "onnxruntime", "1.23.0", LINUX, IDLE.format(NVIDIA), "cuda12"),
        (RTX5090, "onnxruntime", "1.23.0", LINUX, IDLE.format(NVIDIA), "cuda13 of another release"),
        (RTX5090, "onnxruntime", "1.22.0", LINUX, IDLE.format(NVIDIA), "cuda12"),
        (RTX5090, "tensorflow", "2.21.0", LINUX, None, ""),
        # It is used, there is none, or there is no better build.
        (H100, "torch", "2.15.0", LINUX, None, ""),
        (OLDER, "torch", "2.10.0", LINUX, None, ""),
        (OLDER, "torch", "2.14.0+cu126", LINUX, None, ""),
        (NO_GPU, "torch", "2.15.0", LINUX, None, ""),
        (NO_GPU, "cupy", "14.2.0", SDIST, None, ""),
        (MI300X, "jax", "0.10.2", PURE, None, ""),
        (OLDEST, "jax", "0.10.2", PURE, None, ""),
        (OLDER, "xgboost", "3.4.0", LINUX, None, ""),
        # Nothing tells what it is.
        (OLDER, "torch", "2.15.0", ["linux_x86_64"], None, ""),
        (OLDER, "torch", "2.15.0+mine", LINUX, None, ""),
        (OLDER, "xformers", "0.0.34", LINUX, None, ""),
    ],
)
def test_missed(machine, name, version, tags, lack, label):
    found = missed(machine, name, version, tags)
    assert (found is None) is (lack is None), found
    if found is not None:
        assert found.lack.startswith(lack)
        assert found.text("X").endswith(f": X, takes a build that does ({label})")


def test_systems():
    machine = {"system": "win_amd64"}
    assert missed(H100, "torch", "2.15.0", ["win_amd64"], **machine).label == "cuda13.2"
    assert missed(H100, "jax", "0.10.2", PURE, **machine) is None  # its plugins are for Linux


def test_what_the_user_has_chosen():
    """An index with one of the builds, another name, an extra, a label, or no GPU."""
    index = "https://download.pytorch.org/whl/cpu/"
    assert missed(OLDER, "torch", "2.14.0+cpu", LINUX, indexes=[index]) is None
    plugin = {"jax-cuda12-plugin": Version("0.10.2")}
    assert missed(OLDER, "jax", "0.10.2", PURE, requires=JAX, beside=plugin) is None
    assert missed(OLDER, "jax", "0.10.2", PURE, requires=JAX) is not None
    gpu = {"onnxruntime-gpu": Version("1.26.0")}
    assert missed(OLDER, "onnxruntime", "1.32.0", LINUX, beside=gpu) is None
    for preferences in (
        Preferences(forced={"torch": ""}),
        Preferences(exclude=(Selector("nvidia"),)),
    ):
        assert missed(OLDER, "torch", "2.15.0", LINUX, preferences=preferences) is None


def test_what_requirements_admit():
    """A build of another release is named only if there may be one."""
    newest = Version("2.15.0")
    assert missed(OLDER, "torch", "2.15.0", LINUX, admits=lambda each: each >= newest) is None
    assert missed(OLDER, "torch", "2.15.0", LINUX, listed=[newest]) is None
    listed = [Version("2.9.1"), newest]
    assert missed(OLDER, "torch", "2.15.0", LINUX, listed=listed).label == "cuda12.8"
    listed = [Version("1.23.0"), Version("1.32.0")]
    assert missed(OLDER, "onnxruntime", "1.32.0", LINUX, listed=listed).label == "cuda12"
    blackwell = RTX5090.replace("13.0", "12.8")
    assert missed(blackwell, "onnxruntime", "1.32.0", LINUX, listed=listed) is None
    beside = {"torch": Version("2.9.0")}
    found = missed(OLDER, "torch-scatter", "2.1.2", SDIST, beside=beside)
    assert found.label == "cuda12.8_torch2.9"
    beside["torch"] = newest
    assert missed(OLDER, "torch-scatter", "2.1.2", SDIST, beside=beside) is None
    assert missed(OLDER, "flash-attn", "2.8.3", SDIST).label == ""


def test_once_a_day(tmp_path):
    environ = {"VARIANTS_CACHE_DIR": str(tmp_path / "cache")}
    first = MissedBuild("torch", Version("2.15.0"), "does not run", "cuda12.6", is_other=True)
    other = MissedBuild("torch", Version("2.14.0"), "does not run", "cuda12.6", is_other=False)
    line = "torch 2.15.0 does not run: X, Y, takes a build that does (cuda12.6 of another release)"
    assert line_of_day([first], "X", "Y", environ) == line
    assert line_of_day([first], "X", "Z", environ) == ""
    assert line_of_day([first, other], "X", "", environ).startswith("torch 2.14.0 does not run: X")
    assert line_of_day([other], "X", "", environ) == line_of_day([], "X", "", environ) == ""
    for mark in (tmp_path / "cache" / "said").iterdir():
        os.utime(mark, (0, 0))
    assert line_of_day([first, other], "X", "Y", environ) == line
    assert line_of_day([other], "X", "Y", environ) == ""
    (tmp_path / "file").touch()
    environ = {"VARIANTS_CACHE_DIR": str(tmp_path / "file")}
    assert [line_of_day([first], "X", "Y", environ) for _ in range(2)] == [line, line]


def test_names():
    """Fast to list, and those of the catalogue."""
    assert sorted(variants_catalog.project_names()) == list(CATALOG.names())

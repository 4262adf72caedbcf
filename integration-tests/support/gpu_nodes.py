"""Machines with NVIDIA GPUs that are not there: a driver library that says what variables say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .environments import ROOT, Environments, once

_SOURCE = ROOT / "packages/pep-variants/tests/providers/fake_nvml.c"


def driver_library(environments: Environments) -> Path:
    """Return the folder of a ``libnvidia-ml.so.1``, for ``LD_LIBRARY_PATH``.

    What it says is in `driver_variables`. Tests are skipped where it cannot be built.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler to build a fake driver library")

    def build(folder: Path) -> None:
        folder.mkdir()
        command = [compiler, "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o"]
        subprocess.run([*command, str(folder / "libnvidia-ml.so.1"), str(_SOURCE)], check=True)

    return once(environments.folder / "nvidia-driver", build)


def driver_variables(library: Path, cuda: str, *capabilities: str) -> dict[str, str]:
    """Return the variables of a machine whose driver supports *cuda*, with a GPU of each kind.

    Args:
        library: of `driver_library`.
        cuda: version, such as ``12.8``.
        capabilities: compute capability of each GPU, such as ``9.0``.
    """
    major, minor = map(int, cuda.split("."))
    return {
        "LD_LIBRARY_PATH": str(library),
        "FAKE_NVML_CUDA_V2": str(major * 1000 + minor * 10),
        "FAKE_NVML_DEVICES": ",".join(capabilities),
    }

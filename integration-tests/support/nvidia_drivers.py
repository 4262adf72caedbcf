"""NVIDIA's driver libraries as those of a machine, for programs that run there.

They are the stand-ins of the engine's own tests: compiled with what they say, so that a driver can
be replaced while a shell runs, or one whose answers are in variables.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from .environments import ROOT, Environments, once

_SOURCES = ROOT / "packages" / "pep-variants" / "tests" / "providers"
NVML = ("fake_nvml.c", "libnvidia-ml.so.1")
"""Source and name of the driver's management library."""
CUDA = ("fake_cuda.c", "libcuda.so.1")
"""Source and name of CUDA's driver library."""


def nvml(cuda: str, gpus: str) -> dict[str, str]:
    """Return what a driver's management library says.

    Args:
        cuda: newest CUDA version, ``12.8``.
        gpus: compute capabilities, comma-separated.
    """
    return {"FAKE_NVML_CUDA_V2": _number(cuda), "FAKE_NVML_DEVICES": gpus}


def cuda_library(cuda: str, gpus: str) -> dict[str, str]:
    """Return what CUDA's driver library says; arguments as of `nvml`."""
    return {"FAKE_CUDA_VERSION": _number(cuda), "FAKE_CUDA_DEVICES": gpus}


def _number(version: str) -> str:
    major, _, minor = version.partition(".")
    return str(int(major) * 1000 + int(minor) * 10)


def build_library(folder: Path, library: tuple[str, str], says: Mapping[str, str]) -> Path:
    """Build a driver library into *folder*; return it."""
    source, name = library
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f'    setenv("{key}", "{value}", 1);\n' for key, value in says.items())
    told = folder / "told.c"
    told.write_text(
        f'#include "{_SOURCES / source}"\n'
        f"__attribute__((constructor)) static void told(void)\n{{\n{text}}}\n"
    )
    return compiled(told, folder / name)


def redirection(folder: Path) -> Path:
    """Build the library of ``redirected.c`` into *folder*; return it.

    Preloaded into a process, it shows other files in place of the kernel's and the system's.
    """
    source = ROOT / "integration-tests" / "support" / "redirected.c"
    return compiled(source, folder / "redirected.so", "-Wall", "-Wextra", "-Werror")


def compiled(source: Path, library: Path, *options: str) -> Path:
    """Build *library* from *source*; tests are skipped where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler to build a driver library")
    library.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", str(library)]
    subprocess.run([*command, *options, str(source), "-ldl"], check=True)
    return library


def driver_library(environments: Environments) -> Path:
    """Return the folder of a management library that says what `driver_variables` say."""
    return once(
        environments.folder / "nvidia-driver",
        lambda folder: compiled(_SOURCES / NVML[0], folder / NVML[1]),
    )


def driver_variables(library: Path, cuda: str, *capabilities: str) -> dict[str, str]:
    """Return the variables of a machine whose driver supports *cuda*, with a GPU of each kind.

    Args:
        library: of `driver_library`.
        cuda: version, such as ``12.8``.
        capabilities: compute capability of each GPU, such as ``9.0``.
    """
    return {"LD_LIBRARY_PATH": str(library), **nvml(cuda, ",".join(capabilities))}

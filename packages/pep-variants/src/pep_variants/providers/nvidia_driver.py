"""What NVIDIA's driver says of itself and of the GPUs, by either of its libraries.

NVML needs neither CUDA nor a GPU context, and sees every GPU; MIG slices are not GPUs of their own
there, their GPU is. CUDA's own library is all there is on Jetson before JetPack 6, and knows what
NVML does not tell there later, or in a container that holds a MIG slice alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from .attempts import tried
from .base import load

logger = logging.getLogger(__name__)

Pair = tuple[int, int]
"""Major and minor number, of a CUDA version or a compute capability."""

_MAX_GPUS = 256
"""More than a machine has: a larger answer is nonsense."""

_WSL = "usr/lib/wsl/lib"
_TEGRA = ("usr/lib/aarch64-linux-gnu/nvidia", "usr/lib/aarch64-linux-gnu/tegra")


class Reading(NamedTuple):
    """What one library says.

    Attributes:
        source: the library.
        driver: newest CUDA version that the driver supports, None if it does not tell.
        gpus: how many GPUs there are, None if it does not tell.
        capabilities: compute capability by number of the GPU; those that do not answer are left
            out.
        problem: why the library does not work, empty if it does.
    """

    source: str
    driver: Pair | None = None
    gpus: int | None = None
    capabilities: Mapping[int, Pair] = MappingProxyType({})
    problem: str = ""


def read_nvml(root: Path, system: str, environ: Mapping[str, str]) -> Reading | None:
    """Ask NVML, None where there is no driver.

    Args:
        root: of the file system.
        system: as `sys.platform`.
        environ: environment variables, which tell where Windows is.
    """
    if system == "win32":
        libraries = _windows_nvml(environ)
        # pynvml looks for them by itself, but importing it costs tens of milliseconds.
        if not any(path.exists() for path in libraries):
            for path in libraries:
                tried(os.fspath(path), "does not exist")
            return None
        source = "nvml.dll"
    elif system == "linux":
        # Once loaded it is what pynvml gets by this name, wherever it came from.
        source = "libnvidia-ml.so.1"
        if load([source, str(root / _WSL / source)]) is None:
            return None
    else:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a package of the same import name announces its end
            import pynvml
    except ImportError as error:
        return Reading(source, problem=f"the package nvidia-ml-py is needed: {error}")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        tried(source, f"cannot be initialized: {error}")
        absent = (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        return None if error.value in absent else Reading(source, problem=f"NVML: {error}")
    try:
        gpus = _nvml_gpus(pynvml)
        return _report(
            Reading(source, _nvml_driver(pynvml), gpus, _nvml_capabilities(pynvml, gpus))
        )
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _windows_nvml(environ: Mapping[str, str]) -> tuple[Path, Path]:
    return (
        Path(environ.get("WINDIR", "C:/Windows"), "System32/nvml.dll"),
        Path(environ.get("ProgramFiles", "C:/Program Files"), "NVIDIA Corporation/NVSMI/nvml.dll"),
    )


def _nvml_driver(pynvml: ModuleType) -> Pair | None:
    # The second function is all that old drivers have; it does not look at the libcuda in use.
    for ask in (pynvml.nvmlSystemGetCudaDriverVersion_v2, pynvml.nvmlSystemGetCudaDriverVersion):
        try:
            version = _cuda_version(int(ask()))
        except pynvml.NVMLError as error:
            logger.debug("%s fails: %s", ask.__name__, error)
            continue
        if version is not None:
            return version
    return None


def _nvml_gpus(pynvml: ModuleType) -> int | None:
    try:
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError as error:
        logger.debug("NVML cannot count GPUs: %s", error)
        return None
    return count if 0 <= count <= _MAX_GPUS else None


def _nvml_capabilities(pynvml: ModuleType, gpus: int | None) -> dict[int, Pair]:
    capabilities: dict[int, Pair] = {}
    for index in range(gpus or 0):
        try:
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
        except pynvml.NVMLError as error:
            logger.debug("GPU %d does not answer: %s", index, error)
        else:
            _take(capabilities, index, (int(major), int(minor)))
    return capabilities


def read_cuda(root: Path, system: str, environ: Mapping[str, str]) -> Reading | None:
    """Ask CUDA's driver library, None where there is none that works.

    Arguments as in `read_nvml`. It does see ``CUDA_VISIBLE_DEVICES``.
    """
    from ctypes import byref, c_int, c_uint

    library = load(_cuda_libraries(root, system, environ))
    if library is None:
        return None
    source = "nvcuda.dll" if system == "win32" else "libcuda.so.1"
    try:
        status = library.cuInit(c_uint(0))
        if status not in (0, _CUDA_NO_DEVICE):
            tried(source, f"cannot be initialized: error {status} of cuInit")
            return None
        version, count = c_int(), c_int()
        known = library.cuDriverGetVersion(byref(version)) == 0
        driver = _cuda_version(version.value) if known else None
        if status == _CUDA_NO_DEVICE:
            return _report(Reading(source, driver, 0))
        if library.cuDeviceGetCount(byref(count)) or not 0 <= count.value <= _MAX_GPUS:
            return _report(Reading(source, driver))
        capabilities: dict[int, Pair] = {}
        for index in range(count.value):
            device, major, minor = c_int(), c_int(), c_int()
            if (
                library.cuDeviceGet(byref(device), c_int(index)) == 0
                and library.cuDeviceGetAttribute(byref(major), _CUDA_MAJOR, device) == 0
                and library.cuDeviceGetAttribute(byref(minor), _CUDA_MINOR, device) == 0
            ):
                _take(capabilities, index, (major.value, minor.value))
        return _report(Reading(source, driver, count.value, capabilities))
    except AttributeError as error:  # a function is missing
        tried(source, f"is not usable: {error}")
        return None


def _report(reading: Reading) -> Reading:
    driver = f"CUDA {reading.driver[0]}.{reading.driver[1]}" if reading.driver else "no version"
    gpus = "an unknown number of" if reading.gpus is None else reading.gpus or "no"
    plural = "" if reading.gpus == 1 else "s"
    tried(reading.source, f"reports {driver} and {gpus} GPU{plural}", found=True)
    return reading


_CUDA_NO_DEVICE = 100
_CUDA_MAJOR, _CUDA_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…


def _cuda_libraries(root: Path, system: str, environ: Mapping[str, str]) -> Iterable[str]:
    if system == "win32":
        return [os.fspath(Path(environ.get("WINDIR", "C:/Windows"), "System32/nvcuda.dll"))]
    if system == "linux":
        name = "libcuda.so.1"
        return [name, *(os.fspath(root / folder / name) for folder in (_WSL, *_TEGRA))]
    return []


def _cuda_version(number: int) -> Pair | None:
    """Return what the driver calls e.g. 12080 as 12.8, None for no version."""
    return (number // 1000, number % 1000 // 10) if number >= 1000 else None


def _take(capabilities: dict[int, Pair], index: int, capability: Pair) -> None:
    major, minor = capability
    if 0 < major < 1000 and 0 <= minor < 100:
        capabilities[index] = capability
    else:
        logger.debug("GPU %d reports an invalid compute capability: %d.%d", index, major, minor)

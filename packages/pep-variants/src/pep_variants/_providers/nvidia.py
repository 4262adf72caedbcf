"""The ``nvidia`` namespace: CUDA version of the driver, compute capability of the newest GPU.

The values are those of the package nvidia-variant-provider 0.0.2. The driver's management library
is asked; what that does not tell, CUDA's driver library is.

NVML needs neither CUDA nor a GPU context, and sees every GPU; MIG slices are not GPUs of their own
there, their GPU is. CUDA's own library is all there is on Jetson before JetPack 6, and knows what
NVML does not tell there later, or in a container that holds a MIG slice alone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_uint, c_void_p
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from .._model.platform import Fact
from .._model.property import Features
from .._timeouts import within
from ..errors import listed
from .base import (
    LIBRARY_SECONDS,
    DriverProvider,
    FactWord,
    FeatureWords,
    Trouble,
    Vendor,
    load,
    matching,
    numbers,
    tried,
)
from .cuda import find_troubles

logger = logging.getLogger(__name__)

DRIVER_OVERRIDE = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY_OVERRIDE = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"

LOWER_BOUND = "cuda_version_lower_bound"
UPPER_BOUND = "cuda_version_upper_bound"
SM_ARCH = "sm_arch"

OLDEST_DRIVER, NEWEST_DRIVER = (11, 0), (15, 20)
OLDEST_CAPABILITY = (5, 0)

_NUMBER = "[0-9]{1,3}"
DRIVER_PATTERN = rf"{_NUMBER}(\.{_NUMBER}(\.[0-9]+)*)?"
CAPABILITY_PATTERN = rf"{_NUMBER}\.[0-9]{{1,2}}"
"""Patterns of the two variables."""

_MAX_MINOR = NEWEST_DRIVER[1]
_KNOWN_CAPABILITIES = [
    f"{major}{minor}" for major in range(12, 4, -1) for minor in range(9, -1, -1)
]


class _Detected(NamedTuple):
    """Usable values, after overrides and warnings, and the facts behind them."""

    driver: Pair | None
    capability: Pair | None
    facts: tuple[Fact, ...]


class NvidiaProvider(DriverProvider):
    """Which CUDA versions and which GPU code run here.

    ``cuda_version_lower_bound``: versions a build may need at least, that is the driver's and
    all below, newest first, a bare major number after its minors. ``cuda_version_upper_bound``:
    versions a build may need to stay below, that is all above the driver's. ``sm_arch``: GPU code
    for the compute capability ``M.m`` of the newest GPU, ``Mm_real`` … ``M0_real``,
    ``M0_virtual``.

    Without a driver nothing is supported, without a GPU there is no ``sm_arch``. A driver that is
    there but fails, or that does not answer in time, counts as none, with a warning.

    Two variables replace the detection of one fact each: `DRIVER_OVERRIDE` (``12.8``) and
    `CAPABILITY_OVERRIDE` (``9.0``).
    """

    namespace = "nvidia"
    default_time_limit = LIBRARY_SECONDS

    def supported(self) -> Features:
        """Return the features that driver and GPU support; warns of those outside the known range.

        Raises:
            ProviderError: an override is not a version.
        """
        driver, capability = self._detected.driver, self._detected.capability
        if driver is None:
            return {}
        features = {LOWER_BOUND: _lower_bounds(driver)}
        if upper_bounds := _upper_bounds(driver):
            features[UPPER_BOUND] = upper_bounds
        if capability is not None:
            major, minor = capability
            real = (f"{major}{number}_real" for number in range(minor, -1, -1))
            features[SM_ARCH] = (*real, f"{major}0_virtual")
        return features

    def known(self) -> Features:
        """Return every value that nvidia-variant-provider 0.0.2 accepts in a build."""
        versions = _lower_bounds(NEWEST_DRIVER)
        real = (f"{capability}_real" for capability in _KNOWN_CAPABILITIES)
        virtual = (f"{capability}_virtual" for capability in _KNOWN_CAPABILITIES)
        return {LOWER_BOUND: versions, UPPER_BOUND: versions, SM_ARCH: (*real, *virtual)}

    def facts(self) -> tuple[Fact, ...]:
        """Return the CUDA version of the driver and every GPU's compute capability, best first.

        Raises:
            ProviderError: an override is not a version.
        """
        return self._detected.facts

    @cached_property
    def _detected(self) -> _Detected:
        drivers = self._forced(DRIVER_OVERRIDE, DRIVER_PATTERN, "CUDA driver", "12.8")
        capabilities = self._forced(
            CAPABILITY_OVERRIDE, CAPABILITY_PATTERN, "compute capability", "9.0"
        )
        if not drivers or not capabilities:
            readings = self._readings(not drivers, not capabilities)
            drivers = drivers or _drivers(readings)
            capabilities = capabilities or _capabilities(readings)
            counted = bool(capabilities) or any(reading.gpus == 0 for reading in readings)
            self._warn(readings, bool(drivers), counted)
        driver = drivers[0][0] if drivers else None
        capability = capabilities[0][0] if capabilities else None
        return _Detected(
            None if driver is None else _usable_driver(driver),
            # Without a driver it does not matter, so nothing is said of it.
            None if driver is None or capability is None else _usable_capability(capability),
            tuple(fact for _, fact in (*drivers, *capabilities)),
        )

    def _forced(
        self, variable: str, pattern: str, what: str, example: str
    ) -> list[tuple[Pair, Fact]]:
        forced = self.overridden(variable, pattern, "is not a version", example)
        if not forced:
            return []
        version = version_pair(forced[0])
        return [(version, Fact(what, _dotted(version), variable, True))]

    def _readings(self, driver: bool, capability: bool) -> list[Reading]:
        """Ask NVML, and CUDA for what NVML does not tell.

        Args:
            driver, capability: which of the two facts are wanted.
        """
        readings: list[Reading] = []
        try:
            for read in (read_nvml, read_cuda):
                ask = partial(read, self.root, self.system, self.environ)
                reading = within(self.time_limit, ask)
                if reading is None:
                    continue
                readings.append(reading)
                if (reading.driver is not None or not driver) and (
                    reading.capabilities or reading.gpus == 0 or not capability
                ):
                    break
        except TimeoutError as error:
            readings.append(Reading("", problem=str(error)))
        return readings

    def _warn(self, readings: list[Reading], driver: bool, gpus: bool) -> None:
        """Say why a fact is missing although there is a driver.

        Args:
            readings: the answers.
            driver, gpus: which of the two facts are known.
        """
        problems = [reading.problem for reading in readings if reading.problem]
        if problems and not (driver and gpus):
            logger.warning(
                "The NVIDIA driver cannot be queried (%s): %s Usually fixed by a reboot after a "
                "driver update; or set %s and %s.",
                "; ".join(problems),
                "the GPUs are unknown." if driver else "no NVIDIA variant is considered.",
                DRIVER_OVERRIDE,
                CAPABILITY_OVERRIDE,
                extra={"remedy": "sudo reboot" if self.system == "linux" else ""},
            )
        elif readings and not driver:
            logger.warning(
                "The NVIDIA driver does not report its CUDA version: no NVIDIA variant is "
                "considered. Set %s to that version.",
                DRIVER_OVERRIDE,
            )


def version_pair(text: str) -> Pair:
    """Return major and minor number of *text*, a value of one of the two variables."""
    major, minor, *_ = [*text.split("."), "0"]
    return int(major), int(minor)


def _drivers(readings: list[Reading]) -> list[tuple[Pair, Fact]]:
    return [
        (reading.driver, Fact("CUDA driver", _dotted(reading.driver), reading.source))
        for reading in readings
        if reading.driver is not None
    ][:1]


def _capabilities(readings: list[Reading]) -> list[tuple[Pair, Fact]]:
    """Return the compute capabilities of the first reading that has some, highest first."""
    for reading in readings:
        if reading.capabilities:
            pairs = sorted(reading.capabilities.items(), key=lambda item: item[1], reverse=True)
            return [
                (pair, Fact("compute capability", _dotted(pair), f"{reading.source}, GPU {index}"))
                for index, pair in pairs
            ]
    return []


def _usable_driver(driver: Pair) -> Pair | None:
    if OLDEST_DRIVER <= driver <= NEWEST_DRIVER:
        return driver
    logger.warning(
        "CUDA driver version %s is outside the supported range, %s to %s: no NVIDIA "
        "variant is considered. Set %s to have it treated as another one.",
        _dotted(driver),
        _dotted(OLDEST_DRIVER),
        _dotted(NEWEST_DRIVER),
        DRIVER_OVERRIDE,
    )
    return None


def _usable_capability(capability: Pair) -> Pair | None:
    if capability >= OLDEST_CAPABILITY:
        return capability
    logger.warning(
        "Compute capability %s of the newest NVIDIA GPU is below %s: no variant with GPU "
        "code for certain architectures is considered.",
        _dotted(capability),
        _dotted(OLDEST_CAPABILITY),
    )
    return None


def _lower_bounds(driver: Pair) -> tuple[str, ...]:
    values: list[str] = []
    for major in range(driver[0], OLDEST_DRIVER[0] - 1, -1):
        newest = driver[1] if major == driver[0] else _MAX_MINOR
        values += (f"{major}.{minor}" for minor in range(newest, -1, -1))
        values.append(str(major))
    return tuple(values)


def _upper_bounds(driver: Pair) -> tuple[str, ...]:
    values: list[str] = []
    for major in range(NEWEST_DRIVER[0], driver[0], -1):
        values += (f"{major}.{minor}" for minor in range(_MAX_MINOR, -1, -1))
        values.append(str(major))
    values += (f"{driver[0]}.{minor}" for minor in range(_MAX_MINOR, driver[1], -1))
    return tuple(values)


def _dotted(version: Pair) -> str:
    return f"{version[0]}.{version[1]}"


def _known_driver(text: str) -> str:
    version = version_pair(matching(DRIVER_PATTERN, "a CUDA version", "12.8")(text))
    if not OLDEST_DRIVER <= version <= NEWEST_DRIVER:
        oldest, newest = (f"{major}.{minor}" for major, minor in (OLDEST_DRIVER, NEWEST_DRIVER))
        raise ValueError(f"is outside {oldest} to {newest}, for which there are builds")
    return text


def _known_capability(text: str) -> str:
    capability = version_pair(matching(CAPABILITY_PATTERN, "a compute capability", "9.0")(text))
    if capability < OLDEST_CAPABILITY:
        major, minor = OLDEST_CAPABILITY
        raise ValueError(f"is below {major}.{minor}, the oldest for which there are builds")
    return text


def _check(facts: Mapping[str, Sequence[str]]) -> str:
    if "sm" in facts and "cuda" not in facts:
        return "sm needs cuda as well, the CUDA version of the driver: add cuda=12.8 or another one"
    return ""


def _capability_of(value: str) -> str:
    match = re.fullmatch(r"(\d+)(\d[a-z]?)_(real|virtual)", value)
    return f"{match[1]}.{match[2]}" if match else value


Pair = tuple[int, int]
"""Major and minor number, of a CUDA version or a compute capability."""

_MAX_GPUS = 256
"""More than a machine has: a larger answer is nonsense."""

_WSL = "usr/lib/wsl/lib"
_TEGRA = ("usr/lib/aarch64-linux-gnu/nvidia", "usr/lib/aarch64-linux-gnu/tegra")


class Reading(NamedTuple):
    """Facts that one library gives.

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

    The library is called as it is: what environments have as ``pynvml`` comes from three
    distributions, of which two are too old for the functions that are needed here.

    Args:
        root: of the file system.
        system: as `sys.platform`.
        environ: environment variables, which tell where Windows is.
    """
    library = load(_nvml_libraries(root, system, environ))
    if library is None:
        return None
    source = "nvml.dll" if system == "win32" else "libnvidia-ml.so.1"

    def call(function: str, *arguments: object) -> int:
        """Return the status of a function, 0 for success."""
        callee = getattr(library, function, None)
        status = int(callee(*arguments)) if callee else _NVML_NO_FUNCTION
        if status:
            logger.debug("%s fails with status %d", function, status)
        return status

    if status := call("nvmlInitWithFlags", c_uint(0)):
        problem = f"status {status}"
        if describe := getattr(library, "nvmlErrorString", None):
            describe.restype = c_char_p
            problem = (describe(status) or b"").decode(errors="replace") or problem
        tried(source, f"cannot be initialized: {problem}")
        return None if status in _NVML_ABSENT else Reading(source, problem=f"NVML: {problem}")
    try:
        driver = None
        # The second function is all that old drivers have; it does not look at the libcuda in use.
        for ask in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
            version = c_int()
            driver = driver or (None if call(ask, byref(version)) else _cuda_version(version.value))
        counted, gpus = c_uint(), None
        if not call("nvmlDeviceGetCount_v2", byref(counted)) and counted.value <= _MAX_GPUS:
            gpus = counted.value
        capabilities: dict[int, Pair] = {}
        for index in range(gpus or 0):
            device, major, minor = c_void_p(), c_int(), c_int()
            capability = (device, byref(major), byref(minor))
            if not call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(device)) and not call(
                "nvmlDeviceGetCudaComputeCapability", *capability
            ):
                _take(capabilities, index, (major.value, minor.value))
        return _report(Reading(source, driver, gpus, capabilities))
    finally:
        call("nvmlShutdown")


_NVML_NO_FUNCTION = 13
_NVML_ABSENT = (9, 12)  # the driver is not loaded, the library is not found


def _nvml_libraries(root: Path, system: str, environ: Mapping[str, str]) -> Iterable[str]:
    if system == "win32":
        system32 = Path(environ.get("WINDIR", "C:/Windows"), "System32")
        programs = Path(environ.get("ProgramFiles", "C:/Program Files"))
        return [
            os.fspath(system32 / "nvml.dll"),
            os.fspath(programs / "NVIDIA Corporation/NVSMI/nvml.dll"),
        ]
    if system == "linux":
        return ["libnvidia-ml.so.1", os.fspath(root / _WSL / "libnvidia-ml.so.1")]
    return []


def read_cuda(root: Path, system: str, environ: Mapping[str, str]) -> Reading | None:
    """Ask CUDA's driver library, None where there is none that works.

    Arguments as in `read_nvml`. It does see ``CUDA_VISIBLE_DEVICES``.
    """
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
        answers = library.cuDriverGetVersion(byref(version)) == 0
        driver = _cuda_version(version.value) if answers else None
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
    """Return a version of the driver's such as 12080 as 12.8, None for no version."""
    return (number // 1000, number % 1000 // 10) if number >= 1000 else None


def _take(capabilities: dict[int, Pair], index: int, capability: Pair) -> None:
    major, minor = capability
    if 0 < major < 1000 and 0 <= minor < 100:
        capabilities[index] = capability
    else:
        logger.debug("GPU %d reports an invalid compute capability: %d.%d", index, major, minor)


def _troubles(
    environ: Mapping[str, str], root: Path, facts: Sequence[Fact], container: str
) -> Iterable[Trouble]:
    return find_troubles(environ, root, facts, container)


VENDOR = Vendor(
    provider=NvidiaProvider,
    title="NVIDIA",
    device="NVIDIA GPU",
    absent="no NVIDIA driver",
    features={
        LOWER_BOUND: FeatureWords(
            "CUDA driver",
            fits=lambda value: f"CUDA driver {value} or newer",
            needs=lambda values: f"needs CUDA driver {min(values, key=numbers)} or newer",
            answer=lambda value: f"{value} or newer",
            has=lambda values: f"this one supports up to {values[0]}",
            lacks="NVIDIA driver",
        ),
        UPPER_BOUND: FeatureWords(
            "CUDA driver",
            fits=lambda value: f"CUDA driver older than {value}",
            needs=lambda values: f"needs CUDA driver older than {max(values, key=numbers)}",
            answer=lambda value: f"older than {value}",
            lacks="NVIDIA driver",
        ),
        SM_ARCH: FeatureWords(
            "Compute capability",
            fits=lambda value: f"compute capability {_capability_of(value)}",
            needs=lambda values: (
                "built for compute capability "
                + listed(sorted(set(map(_capability_of, values)), key=numbers))
            ),
            answer=_capability_of,
            has=lambda values: f"this GPU has {_capability_of(values[0])}",
        ),
    },
    facts={
        "cuda": FactWord(
            DRIVER_OVERRIDE, "CUDA version of the NVIDIA driver", "12.8", _known_driver
        ),
        "sm": FactWord(
            CAPABILITY_OVERRIDE,
            "compute capability of the NVIDIA GPU",
            "9.0",
            _known_capability,
            several=True,
            # The variable has one value: the newest GPU is the one that counts.
            best=lambda values: max(values, key=version_pair),
        ),
    },
    check=_check,
    counted="compute capability",
    hidden_by=("CUDA_VISIBLE_DEVICES",),
    variables=(
        "CUDA_DEVICE_ORDER",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VERSION",
        "NVIDIA_DRIVER_CAPABILITIES",
    ),
    pci="0x10de",
    nodes=("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "dxg"),
    versions=("proc/driver/nvidia/version", "sys/module/nvidia/version"),
    libraries=(
        "usr/lib/wsl/lib/libcuda.so.1",
        "Windows/System32/nvcuda.dll",
        "Windows/System32/nvml.dll",
    ),
    troubles=_troubles,
)

"""The ``nvidia`` namespace: CUDA version of the driver, compute capability of the newest GPU.

The values are those of the package nvidia-variant-provider 0.0.2. The driver is asked through
NVML, which needs neither CUDA nor a GPU context.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType

from ..errors import ProviderError, shortened
from ..property import Features

logger = logging.getLogger(__name__)

DRIVER_OVERRIDE = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY_OVERRIDE = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"

LOWER_BOUND = "cuda_version_lower_bound"
UPPER_BOUND = "cuda_version_upper_bound"
SM_ARCH = "sm_arch"

Pair = tuple[int, int]
"""Major and minor number, of a CUDA version or a compute capability."""

OLDEST_DRIVER, NEWEST_DRIVER = (11, 0), (15, 20)
OLDEST_CAPABILITY = (5, 0)
_MAX_MINOR = NEWEST_DRIVER[1]
_KNOWN_CAPABILITIES = [
    f"{major}{minor}" for major in range(12, 4, -1) for minor in range(9, -1, -1)
]


@dataclass(frozen=True)
class Nvml:
    """What the driver says.

    Attributes:
        driver: newest CUDA version that it supports, None if it does not tell.
        capability: the highest compute capability of the GPUs, None without a usable one.
    """

    driver: Pair | None
    capability: Pair | None


@dataclass(frozen=True)
class NvidiaProvider:
    """Which CUDA versions and which GPU code run here.

    ``cuda_version_lower_bound``: versions a build may need at least, that is the driver's and
    all below, newest first, a bare major number after its minors. ``cuda_version_upper_bound``:
    versions a build may need to stay below, that is all above the driver's. ``sm_arch``: GPU code
    for the compute capability ``M.m`` of the newest GPU, ``Mm_real`` … ``M0_real``,
    ``M0_virtual``.

    Without a driver nothing is supported, without a GPU there is no ``sm_arch``.

    Attributes:
        environ: environment variables, for the overrides. Each replaces the detection of one
            fact: `DRIVER_OVERRIDE` (``12.8``) and `CAPABILITY_OVERRIDE` (``9.0``).
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def namespace(self) -> str:
        """The namespace this provider governs."""
        return "nvidia"

    def supported(self) -> Features:
        """Return what driver and GPU support; warns of those outside the known range.

        Raises:
            ProviderError: an override is no version.
        """
        driver, capability = self._facts.driver, self._facts.capability
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

    def summary(self) -> str:
        """Return e.g. ``CUDA driver 12.8, compute capability 9.0``.

        Raises:
            ProviderError: an override is no version.
        """
        driver, capability = self._facts.driver, self._facts.capability
        if driver is None:
            return ""
        parts = [f"CUDA driver {_dotted(driver)}{self._mark(DRIVER_OVERRIDE)}"]
        if capability is not None:
            parts.append(
                f"compute capability {_dotted(capability)}{self._mark(CAPABILITY_OVERRIDE)}"
            )
        return ", ".join(parts)

    @cached_property
    def _facts(self) -> Nvml:
        """What is usable, after overrides and warnings."""
        driver = self._forced(DRIVER_OVERRIDE, r"([0-9]{1,3})(?:\.([0-9]{1,3})(?:\.[0-9]+)*)?")
        capability = self._forced(CAPABILITY_OVERRIDE, r"([0-9]{1,3})\.([0-9]{1,2})")
        if driver is None or capability is None:
            found = read_nvml()
            if found is not None:
                driver = driver or found.driver
                capability = capability or found.capability
                if driver is None:
                    logger.warning(
                        "The NVIDIA driver does not tell its CUDA version: no NVIDIA variant is "
                        "considered. Set %s to say it.",
                        DRIVER_OVERRIDE,
                    )
        if driver is not None and not OLDEST_DRIVER <= driver <= NEWEST_DRIVER:
            logger.warning(
                "CUDA driver version %s is outside the supported range, %s to %s: no NVIDIA "
                "variant is considered. Set %s to have it treated as another one.",
                _dotted(driver),
                _dotted(OLDEST_DRIVER),
                _dotted(NEWEST_DRIVER),
                DRIVER_OVERRIDE,
            )
            driver = None
        if driver is not None and capability is not None and capability < OLDEST_CAPABILITY:
            logger.warning(
                "Compute capability %s of the newest NVIDIA GPU is below %s: no variant with GPU "
                "code for certain architectures is considered.",
                _dotted(capability),
                _dotted(OLDEST_CAPABILITY),
            )
            capability = None
        return Nvml(driver, capability)

    def _forced(self, variable: str, pattern: str) -> Pair | None:
        text = self.environ.get(variable, "").strip()
        if not text:
            return None
        match = re.fullmatch(pattern, text)
        if match is None:
            example = "12.8" if variable == DRIVER_OVERRIDE else "9.0"
            raise ProviderError(
                f"environment variable {variable}: {shortened(text)} is no version: "
                f"set it to one like {example}, or unset it"
            )
        return int(match[1]), int(match[2] or 0)

    def _mark(self, variable: str) -> str:
        return " (forced)" if self.environ.get(variable, "").strip() else ""


def read_nvml() -> Nvml | None:
    """Ask the NVIDIA driver of this machine, None if there is none that works.

    A GPU that does not answer is left out, the others count.
    """
    if sys.platform != "win32":
        # pynvml loads the same library by the same name, but importing it costs tens of
        # milliseconds, in vain on most machines. On Windows only pynvml knows where to look.
        import ctypes

        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a package of the same import name announces its end
            import pynvml
    except ImportError:
        logger.log(
            # A driver is there, except on Windows, where that is not known yet.
            logging.DEBUG if sys.platform == "win32" else logging.WARNING,
            "The package nvidia-ml-py is missing, so NVIDIA driver and GPUs cannot be detected. "
            "Install it, or set %s and %s.",
            DRIVER_OVERRIDE,
            CAPABILITY_OVERRIDE,
        )
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.debug("NVML does not start: %s", error)
        return None
    try:
        return Nvml(_cuda_version(pynvml), _highest_capability(pynvml))
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _cuda_version(pynvml: ModuleType) -> Pair | None:
    # The second function is all that old drivers have; it does not look at the libcuda in use.
    for ask in (pynvml.nvmlSystemGetCudaDriverVersion_v2, pynvml.nvmlSystemGetCudaDriverVersion):
        try:
            number = int(ask())
        except pynvml.NVMLError as error:
            logger.debug("%s fails: %s", ask.__name__, error)
            continue
        if number > 0:
            return number // 1000, number % 1000 // 10
    return None


def _highest_capability(pynvml: ModuleType) -> Pair | None:
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        logger.debug("NVML does not count GPUs: %s", error)
        return None
    capabilities: list[Pair] = []
    for index in range(count):
        try:
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
        except pynvml.NVMLError as error:
            logger.debug("GPU %d does not answer: %s", index, error)
        else:
            capabilities.append((major, minor))
    return max(capabilities, default=None)


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

"""The ``amd`` namespace: architectures of the visible GPUs, version of the installed ROCm.

The values and their order are those of the package amd-variant-provider 0.0.2. That package runs
``rocminfo``; here the kernel is asked first, which says the same of the GPUs without starting
anything, and commands only where it says nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .._model.platform import Fact
from .._model.property import Features
from ..errors import listed
from .base import (
    COMMAND_SECONDS,
    CommandFailed,
    DriverProvider,
    FactWord,
    FeatureWords,
    Vendor,
    command_folders,
    command_output,
    find_command,
    matching,
    numbers,
    script_folders,
    tried,
)

logger = logging.getLogger(__name__)

ARCHITECTURE_OVERRIDE = "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH"
VERSION_OVERRIDE = "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION"

# Those of the package rocm-bootstrap.
BOOTSTRAP_OVERRIDE = "ROCM_BOOTSTRAP_FORCE_GFX_ARCH"
_WITHOUT_GPUS = "ROCM_BOOTSTRAP_DISABLE_DETECTION"

GFX_ARCH = "gfx_arch"
ROCM_VERSION = "rocm_version"

ARCHITECTURE_PATTERN = r"gfx[0-9]+[0-9a-f]{2}"
VERSION_PATTERN = r"([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]{1,5})?"

_KNOWN_ARCHITECTURES = """
    gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx942 gfx950
    gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036
    gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201 gfx1250
    gfx1251
"""
_KNOWN_VERSIONS = tuple(
    f"{major}.{minor}" for major in range(10, 4, -1) for minor in range(20, -1, -1)
)

_DRIVER_VISIBLE = "ROCR_VISIBLE_DEVICES"
_HIP_VISIBLE = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_DRIVER_ARCHITECTURE = "HSA_OVERRIDE_GFX_VERSION"
_DETECTION_IN_WSL = "HSA_ENABLE_DXG_DETECTION"


class Gpu(NamedTuple):
    """One GPU.

    Attributes:
        architecture: e.g. ``gfx90a``.
        uuid: ``GPU-`` and 16 hexadecimal digits, empty if it has none.
        source: which library, file or command reported it.
        forced: the user specified its architecture.
    """

    architecture: str
    uuid: str
    source: str
    forced: bool = False


_Reader = Callable[[str, str], Iterable[Gpu]]
"""Finds the GPUs in the output of a command, given that and the path of the command."""


class _Detected(NamedTuple):
    architectures: tuple[str, ...]
    version: str | None
    facts: tuple[Fact, ...]


class AmdProvider(DriverProvider):
    """Which GPU code and which ROCm builds run here.

    ``gfx_arch``: the architecture of every visible GPU, ordered as text; a build for any of them
    fits. ``rocm_version``: major and minor version of the installed ROCm, no other fits.

    GPUs come from the kernel (``/sys/class/kfd``), from ``rocminfo`` where the kernel has a driver
    that does not tell them (older kernels, WSL), on Windows from ``hipInfo``. They are limited as
    the runtime limits them: ``ROCR_VISIBLE_DEVICES`` (Linux) chooses among all by number or UUID,
    ``HIP_VISIBLE_DEVICES``, or ``CUDA_VISIBLE_DEVICES`` where that is not set, among those left;
    the first entry that names no GPU ends the list. Set but empty, the first variable hides all,
    while the other two count as not set. ``HSA_OVERRIDE_GFX_VERSION`` (``10.3.0``) replaces every
    architecture, as it does for the runtime.

    The version comes from files below ``ROCM_PATH``, by default ``/opt/rocm`` and then ``/usr``;
    on Windows below ``HIP_PATH``, which the HIP SDK sets.

    Two variables replace the detection of one fact each: `ARCHITECTURE_OVERRIDE` (``gfx1100``,
    several separated by commas, spaces or semicolons, in order of preference) and
    `VERSION_OVERRIDE` (``6.4.1``). Where the first is not set, the variables of rocm-bootstrap
    count: `BOOTSTRAP_OVERRIDE`, and ``ROCM_BOOTSTRAP_DISABLE_DETECTION=1`` for no GPU.
    """

    namespace = "amd"
    default_time_limit = COMMAND_SECONDS

    def supported(self) -> Features:
        """Return the architectures of the visible GPUs and the ROCm version.

        Raises:
            ProviderError: an override is malformed.
        """
        features: dict[str, tuple[str, ...]] = {}
        if self._detected.architectures:
            features[GFX_ARCH] = self._detected.architectures
        if self._detected.version is not None:
            features[ROCM_VERSION] = (self._detected.version,)
        return features

    def known(self) -> Features:
        """Return the architectures that ROCm knows, and versions it has or may get."""
        return {
            GFX_ARCH: tuple(sorted(_KNOWN_ARCHITECTURES.split())),
            ROCM_VERSION: _KNOWN_VERSIONS,
        }

    def facts(self) -> tuple[Fact, ...]:
        """Return every GPU, visible or hidden, and the ROCm version.

        Raises:
            ProviderError: an override is malformed.
        """
        return self._detected.facts

    @cached_property
    def _detected(self) -> _Detected:
        variable, architectures = self._forced()
        forced = self.overridden(
            VERSION_OVERRIDE, VERSION_PATTERN, "is not a ROCm version", "6.4.1"
        )
        facts: list[Fact] = []
        if architectures:
            facts += (Fact("AMD GPU", name, variable, True) for name in architectures)
        else:
            gpus = self._gpus()
            visible, hidden = self._visible(gpus)
            architectures = tuple(sorted({gpu.architecture for gpu in visible}))
            facts += (
                Fact("AMD GPU", gpu.architecture, gpu.source, gpu.forced)
                for gpu in sorted(visible, key=lambda gpu: gpu.architecture)
            )
            facts += (
                Fact("hidden AMD GPU", gpu.architecture, f"{gpu.source}, hidden by {variable}")
                for gpu, variable in hidden
            )
        version = Fact("ROCm", forced[0], VERSION_OVERRIDE, True) if forced else self._version()
        if version is None:
            if architectures:
                logger.info(
                    "No ROCm is installed: builds that bring none are left out. If there is one, "
                    "set ROCM_PATH to where it is, or %s.",
                    VERSION_OVERRIDE,
                )
            return _Detected(architectures, None, tuple(facts))
        major, minor, *_ = version.value.split(".")
        return _Detected(architectures, f"{major}.{minor}", (*facts, version))

    def _forced(self) -> tuple[str, tuple[str, ...]]:
        """Return the variable that tells the architectures, and these; nothing without one."""
        for variable in (ARCHITECTURE_OVERRIDE, BOOTSTRAP_OVERRIDE):
            if variable == BOOTSTRAP_OVERRIDE and self.environ.get(_WITHOUT_GPUS) == "1":
                break
            forced = self.overridden(
                variable,
                ARCHITECTURE_PATTERN,
                "is not a list of GPU architectures",
                "gfx1100 or gfx90a,gfx942",
                several=True,
            )
            if forced:
                return variable, forced
        return "", ()

    def _visible(self, gpus: list[Gpu]) -> tuple[list[Gpu], list[tuple[Gpu, str]]]:
        """Return the GPUs that programs see, and the others with the variable that hides them."""
        hidden: list[tuple[Gpu, str]] = []
        for variables in ((_DRIVER_VISIBLE,), _HIP_VISIBLE):
            # HIP takes an empty variable for one that is not set, the driver's runtime does not.
            variable = next(
                (
                    name
                    for name in variables
                    if self.environ.get(name) or (name == _DRIVER_VISIBLE and name in self.environ)
                ),
                None,
            )
            if variable is None or (variable == _DRIVER_VISIBLE and self.system == "win32"):
                continue
            chosen = _chosen(gpus, self.environ[variable], driver=variable == _DRIVER_VISIBLE)
            hidden += ((gpu, variable) for index, gpu in enumerate(gpus) if index not in chosen)
            gpus = [gpus[index] for index in chosen]
        return gpus, hidden

    def _gpus(self) -> list[Gpu]:
        """Return all GPUs, in the order of the driver."""
        if self.environ.get(_WITHOUT_GPUS) == "1":
            return []
        if self.system == "win32":
            return list(self._ask("hipInfo.exe", _hip_info_gpus) or ())
        if self.system != "linux":
            return []
        gpus = self._kernel_gpus()
        if gpus is None:
            # Their driver is there, and the runtime above it may know more.
            gpus = self._ask("rocminfo", _rocminfo_gpus)
        return gpus or []

    def _kernel_gpus(self) -> list[Gpu] | None:
        """Return the kernel's GPUs, None if it does not name them although it has a driver."""
        nodes = self.root / "sys/class/kfd/kfd/topology/nodes"
        try:
            numbers = sorted(int(node.name) for node in nodes.iterdir() if node.name.isdecimal())
        except OSError as error:
            tried(str(nodes), f"cannot be read: {error.strerror}")
            drivers = (self.root / "dev/kfd", self.root / "dev/dxg")  # the latter in WSL
            for driver in drivers:
                there = driver.exists()
                tried(str(driver), "exists" if there else "does not exist", found=there)
                if there:
                    return None
            return []
        tried(str(nodes), f"lists {len(numbers)} devices, CPUs included", found=True)
        gpus = []
        for number in numbers:
            path = nodes / str(number) / "properties"
            properties = _numbers(_text(path))  # nothing where a control group keeps it away
            version = properties.get("gfx_target_version", 0)
            if not version:
                if properties.get("simd_count"):  # no CPU, but a GPU in an older kernel
                    return None
                continue
            unique = properties.get("unique_id", 0)
            architecture = _architecture(version // 10000, version // 100 % 100, version % 100)
            gpus.append(Gpu(architecture, f"GPU-{unique:016x}" if unique else "", str(path)))
        replaced = gpus and self.overridden(
            _DRIVER_ARCHITECTURE, r"[0-9]{1,2}(\.[0-9]{1,2}){2}", "is not a GPU version", "10.3.0"
        )
        if replaced:
            architecture = _architecture(*map(int, replaced[0].split(".")))
            gpus = [Gpu(architecture, gpu.uuid, _DRIVER_ARCHITECTURE, True) for gpu in gpus]
        return gpus

    def _ask(self, command: str, read: _Reader) -> list[Gpu] | None:
        """Return the command's GPUs, None if there is no command or it fails."""
        folders = [*command_folders(self.environ), *(root / "bin" for root in self._roots())]
        # The wheels of ROCm have it among the scripts of their environment.
        path = find_command(command, [*folders, *script_folders(self.environ, self.system)])
        if path is None:
            return None
        # All GPUs are wanted: what limits them is applied to the answers of all sources alike.
        limits = (_DRIVER_VISIBLE, *_HIP_VISIBLE)
        environ = {name: text for name, text in self.environ.items() if name not in limits}
        problem, failed = f"{path} lists none", False
        gpus: list[Gpu] = []
        try:
            output = command_output(path, environ=environ, time_limit=self.time_limit)
            gpus = list(read(output, str(path)))
        except CommandFailed as error:
            problem, failed = str(error), True
        in_wsl = (self.root / "dev/dxg").exists() and not (self.root / "dev/kfd").exists()
        remedy = f"Set {ARCHITECTURE_OVERRIDE} to list them." if failed else ""
        command = ""
        if in_wsl and self.environ.get(_DETECTION_IN_WSL) != "1":
            remedy = f"In WSL, ROCm sees them only with {_DETECTION_IN_WSL}=1: set it."
            command = f"export {_DETECTION_IN_WSL}=1"
        if remedy and not gpus:
            logger.warning(
                "AMD GPUs cannot be detected: %s. %s", problem, remedy, extra={"remedy": command}
            )
        return gpus

    def _roots(self) -> list[Path]:
        """Return the folders in which ROCm may be, first those that the user names."""
        if self.system == "win32":
            named = self.environ.get("HIP_PATH", "").strip()
            return [Path(named)] if named else []
        named = self.environ.get("ROCM_PATH", "").strip()
        first = Path(named) if named else self.root / "opt/rocm"
        # Packages since ROCm 7.9 have a folder more.
        return [first, first / "core", *([] if named else [self.root / "usr"])]

    def _version(self) -> Fact | None:
        for root in self._roots():
            for source, text in _version_texts(root):
                if match := re.match(VERSION_PATTERN, text):
                    return Fact("ROCm", match[0], source)
                logger.debug("%s contains no ROCm version", source)
        return None


def _architecture(major: int, minor: int, stepping: int) -> str:
    return f"gfx{major}{minor:x}{stepping:x}"


def _chosen(gpus: list[Gpu], text: str, *, driver: bool) -> list[int]:
    """Return the indices of the GPUs that a variable lets through, in its order.

    ROCr and HIP agree that the first entry which names no GPU ends the list. They differ in that
    ROCr forgives white space, and ends the list at a GPU listed twice.

    Args:
        gpus: those to choose from.
        text: value of the variable: numbers and UUIDs, the latter may be cut short.
        driver: whether ROCr reads it, not HIP.
    """
    chosen: list[int] = []
    for entry in text.split(","):
        name = entry.strip() if driver else entry
        if name.upper().startswith("GPU-"):
            matches = [
                index
                for index, gpu in enumerate(gpus)
                if len(name) > 4 and gpu.uuid.upper().startswith(name.upper())
            ]
        else:
            matches = [index for index in range(len(gpus)) if name == str(index)]
        if len(matches) != 1 or (driver and matches[0] in chosen):
            break
        if matches[0] not in chosen:
            chosen.append(matches[0])
    return chosen


def _rocminfo_gpus(output: str, path: str) -> Iterator[Gpu]:
    for number, agent in enumerate(re.split(r"^Agent [0-9]+\s*$", output, flags=re.M)):
        # The first of each is the agent's, those further in are of its parts.
        properties: dict[str, str] = {}
        for name, value in re.findall(r"^\s*(Name|Uuid|Device Type):\s+(\S+)", agent, re.M):
            properties.setdefault(name, value)
        name = properties.get("Name", "")
        if properties.get("Device Type") == "GPU" and re.fullmatch(ARCHITECTURE_PATTERN, name):
            uuid = properties.get("Uuid", "")
            has_uuid = re.fullmatch(r"GPU-[0-9A-Fa-f]{16}", uuid)
            yield Gpu(name, uuid if has_uuid else "", f"{path}, agent {number}")


def _hip_info_gpus(output: str, path: str) -> Iterator[Gpu]:
    names = re.findall(r"^\s*gcnArchName:\s+(gfx[0-9a-f]+)", output, re.M)
    for number, name in enumerate(names):
        if re.fullmatch(ARCHITECTURE_PATTERN, name):
            yield Gpu(name, "", f"{path}, device {number}")


def _version_texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield what may be the version of the ROCm in *root*: where it says so, and what it says."""
    if text := _text(root / ".info/version").strip():
        yield str(root / ".info/version"), text
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
        # Only the runtime may be installed. Looking for each is faster than listing the folder.
        for major in range(15, 4, -1):
            link = root / folder / f"libamdhip64.so.{major}"
            try:
                yield str(link), link.readlink().name.rpartition(".so.")[2]
            except OSError:
                continue
    if re.fullmatch(VERSION_PATTERN, root.name):  # the HIP SDK on Windows
        yield str(root), root.name


def _numbers(text: str) -> dict[str, int]:
    """Return the integers of lines such as ``simd_count 304``."""
    pairs = re.findall(r"^(\w+) ([0-9]{1,20})\s*$", text, re.M)
    return {name: int(number) for name, number in pairs}


def _text(path: Path) -> str:
    try:
        with path.open(errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


VENDOR = Vendor(
    provider=AmdProvider,
    title="AMD",
    device="AMD GPU",
    absent="neither an AMD GPU nor ROCm",
    features={
        GFX_ARCH: FeatureWords(
            "AMD GPU",
            fits=lambda value: f"GPU {value}",
            needs=lambda values: f"built for GPU {listed(values)}",
        ),
        ROCM_VERSION: FeatureWords(
            "ROCm",
            fits=lambda value: f"ROCm {value}",
            needs=lambda values: f"needs ROCm {listed(sorted(values, key=numbers))}",
            lacks="ROCm",
        ),
    },
    facts={
        "rocm": FactWord(
            VERSION_OVERRIDE,
            "version of ROCm",
            "6.4",
            matching(VERSION_PATTERN, "a version of ROCm", "6.4"),
        ),
        "gfx": FactWord(
            ARCHITECTURE_OVERRIDE,
            "architecture of the AMD GPU",
            "gfx942",
            matching(ARCHITECTURE_PATTERN, "the architecture of an AMD GPU", "gfx942"),
            several=True,
        ),
    },
    counted="AMD GPU",
    hidden_by=("CUDA_VISIBLE_DEVICES", _DRIVER_VISIBLE, "HIP_VISIBLE_DEVICES"),
    heeds_hiding=True,
    variables=(
        "GPU_DEVICE_ORDINAL",
        "HIP_PATH",
        "HIP_PLATFORM",
        _DETECTION_IN_WSL,
        _DRIVER_ARCHITECTURE,
        "ROCM_HOME",
        "ROCM_PATH",
        "ROCM_VERSION",
    ),
    pci="0x1002",
    nodes=("kfd", "dri/renderD*"),
    versions=(
        "sys/module/amdgpu/version",
        "sys/class/kfd/kfd/topology/generation_id",
        "opt/rocm/.info/version",
    ),
    libraries=("Windows/System32/amdhip64.dll", "Windows/System32/amdhip64_6.dll"),
)

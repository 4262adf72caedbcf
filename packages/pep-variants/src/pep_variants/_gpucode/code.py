"""GPU code of a library, and the GPUs that it runs on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from .._model.property import Properties, Property

if TYPE_CHECKING:
    from packaging.tags import Tag

Capability = tuple[int, int]

_VALUE = re.compile(r"([0-9]+)([0-9])_(real|virtual)")
"""A value of ``sm_arch``."""

_CAPABILITIES: tuple[Capability, ...] = (
    (5, 0), (5, 2), (5, 3), (6, 0), (6, 1), (6, 2), (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7),
    (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1),
)  # fmt: skip
"""Compute capabilities of NVIDIA's GPUs, https://developer.nvidia.com/cuda-gpus."""
_BESIDE_ARM = frozenset({"5.3", "6.2", "7.2", "8.7", "11.0", "12.1"})
"""Those of GPUs that are on one chip with an Arm CPU: Jetson, DRIVE, DGX Spark."""

_RELEASES = {
    (7, 0): (11, 0), (7, 1): (11, 1), (7, 2): (11, 2), (7, 3): (11, 3), (7, 4): (11, 4),
    (7, 5): (11, 5), (7, 6): (11, 6), (7, 7): (11, 7), (7, 8): (11, 8), (8, 0): (12, 0),
    (8, 1): (12, 1), (8, 2): (12, 2), (8, 3): (12, 3), (8, 4): (12, 4), (8, 5): (12, 5),
    (8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9),
}  # fmt: skip
"""CUDA releases by version of PTX, https://docs.nvidia.com/cuda/parallel-thread-execution/."""
_RENUMBERED = 9
"""Since PTX 9.0, PTX 9.x is of CUDA 13.x."""

_GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": tuple(f"gfx103{number}" for number in range(7)),
    "gfx11-generic": tuple(f"gfx11{base + step:02}" for base in (0, 50) for step in range(4)),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
"""GPUs of the generic targets, https://llvm.org/docs/AMDGPUUsage.html."""


@dataclass(frozen=True)
class GpuCode:
    """GPU code of one library, or of several together.

    Attributes:
        cuda: machine code of CUDA by compute capability, ``90`` for ``sm_90``. An ``a`` at the end
            is of code for this one alone, an ``f`` of code for its family.
        ptx: PTX, which the driver compiles: ``90`` for ``compute_90``; not that of few kernels.
        ptx_version: the newest version of PTX, such as ``8.7``; empty without.
        hip: targets of AMD's GPUs, such as ``gfx90a`` or ``gfx11-generic``, without features.
        sycl: targets of SYCL: ``spir64`` is compiled for any device, ``spir64_gen`` is for GPUs of
            Intel that are not told.
        isa: level of x86-64 that the library declares as needed, such as ``v3``; empty without.
        packed: there is compressed HIP code of which the targets cannot be read.

    >>> from pep_variants.wheel_files import GpuCode
    >>> code = GpuCode(cuda=frozenset({"80", "90a"}), ptx=frozenset({"90"}))
    >>> [code.runs_on(gpu) for gpu in ("6.1", "8.6", "9.0", "12.0")]
    [False, True, True, True]
    """

    cuda: frozenset[str] = frozenset()
    ptx: frozenset[str] = frozenset()
    ptx_version: str = ""
    hip: frozenset[str] = frozenset()
    sycl: frozenset[str] = frozenset()
    isa: str = ""
    packed: bool = False

    def __bool__(self) -> bool:
        """Whether there is GPU code."""
        return bool(self.cuda or self.ptx or self.hip or self.sycl or self.packed)

    def __or__(self, other: GpuCode) -> GpuCode:
        """Return the code of both."""
        if not isinstance(other, GpuCode):
            return NotImplemented
        merged = {}
        for each in fields(GpuCode):
            one, two = getattr(self, each.name), getattr(other, each.name)
            merged[each.name] = max(one, two, key=_version) if isinstance(one, str) else one | two
        return GpuCode(**merged)

    @property
    def ptx_driver(self) -> str:
        """CUDA version that a driver needs for all of the PTX; empty if there is none."""
        if not self.ptx_version:
            return ""
        version = _version(self.ptx_version)
        known = (version[0] + 4, version[1]) if version[0] >= _RENUMBERED else (11, 0)
        return ".".join(map(str, _RELEASES.get(version, known)))

    @property
    def _architectures(self) -> frozenset[str]:
        """AMD's GPUs that there is code for."""
        return frozenset(gpu for target in self.hip for gpu in _GENERIC.get(target, (target,)))

    def runs_on(self, gpu: str, driver: str = "") -> bool | None:
        """Return whether there is code that runs on *gpu*, None without code of its vendor.

        Machine code of CUDA runs on GPUs of its major version from its minor version upwards, PTX
        on newer GPUs of any kind (CUDA C++ Programming Guide, 'Compute Capabilities').

        Args:
            gpu: compute capability such as ``8.6``, or architecture such as ``gfx1100``.
            driver: newest CUDA version that the driver supports, which PTX can be too new for;
                empty for any.
        """
        if gpu.startswith("gfx"):
            if not self.hip:
                return None
            return gpu in self._architectures
        if not (self.cuda or self.ptx):
            return None
        capability = _version(gpu)
        if any(_runs(code, capability) for code in self.cuda):
            return True
        if driver and self.ptx_version and _version(driver) < _version(self.ptx_driver):
            return False
        return any(_compiles(code, capability) for code in self.ptx)

    def properties(self, tags: Collection[Tag] = ()) -> tuple[Property, ...]:
        """Return the properties of a variant that has this code.

        PTX counts for each newer generation, which the values cannot say at once. Code for one
        GPU alone is left out where its property would admit another one that has none.

        Args:
            tags: as of `compared`.
        """
        absent = _absent(tags)
        capabilities = sorted({_parsed(code)[0] for code in self.cuda})
        values = [f"{major}{minor}_real" for major, minor in capabilities]
        values = [
            value
            for value in values
            if all(gpu in absent or self.runs_on(gpu) for gpu in _admitted(value))
        ]
        majors = sorted({major for major, _ in _CAPABILITIES})
        for major in majors:
            if any(_compiles(code, (major, 0)) for code in self.ptx):
                values.append(f"{major}0_virtual")
        return (
            *(Property("nvidia", "sm_arch", value) for value in values),
            *(Property("amd", "gfx_arch", each) for each in sorted_targets(self._architectures)),
        )

    def compared(self, properties: Properties, tags: Collection[Tag] = ()) -> Comparison:
        """Return where *properties* of a variant and this code contradict each other.

        Without any GPU code nothing does: kernels may be made at run time.

        Args:
            properties: of the variant.
            tags: of the wheel that has the code: GPUs of other machines alone do not count.
                Nothing for any machine.
        """
        absent = _absent(tags)
        values = properties.get("nvidia", {}).get("sm_arch", ())
        targets = () if self.packed else properties.get("amd", {}).get("gfx_arch", ())
        admitted = {Property("nvidia", "sm_arch", value): _admitted(value) for value in values}
        admitted |= {Property("amd", "gfx_arch", target): [target] for target in targets}
        gpus = [*map(_dotted, _CAPABILITIES)] if values else []
        gpus += sorted_targets(self._architectures) if targets else []
        named = {gpu for each in admitted.values() for gpu in each}
        lacking = {
            each: tuple(gpu for gpu in gpus if gpu not in absent and not self.runs_on(gpu))
            for each, gpus in (admitted if self else {}).items()
        }
        return Comparison(
            {each: gpus for each, gpus in lacking.items() if gpus},
            tuple(gpu for gpu in gpus if gpu not in named | absent and self.runs_on(gpu)),
        )


class Comparison(NamedTuple):
    """Where the properties of a variant and its GPU code contradict each other.

    Attributes:
        lacking: properties that admit GPUs without code, and those GPUs.
        unnamed: GPUs with code that no property admits.
    """

    lacking: Mapping[Property, tuple[str, ...]]
    unnamed: tuple[str, ...]


def combined(codes: Iterable[GpuCode]) -> GpuCode:
    """Return the code of several libraries together."""
    return reduce(or_, codes, GpuCode())


def sorted_targets(targets: Iterable[str]) -> list[str]:
    """Return *targets* of one kind in the order of their numbers."""
    return sorted(targets, key=lambda text: (_numbers(text), text))


def _numbers(text: str) -> tuple[int, ...]:
    match = re.match(r"(?:gfx)?([0-9]+)", text)
    return (int(match[1]),) if match else ()


def _admitted(value: str) -> list[str]:
    """Return the GPUs that *value* of ``sm_arch`` admits."""
    match = _VALUE.fullmatch(value)
    if match is None or (match[3] == "virtual" and match[2] != "0"):
        return []
    oldest = int(match[1]), int(match[2])
    return [_dotted(each) for each in _CAPABILITIES if each[0] == oldest[0] and each >= oldest]


def _absent(tags: Collection[Tag]) -> frozenset[str]:
    """Return the GPUs that are on none of the machines that *tags* are for."""
    arm = ("aarch64", "arm64", "any")
    is_arm = not tags or any(tag.platform.endswith(arm) for tag in tags)
    return frozenset() if is_arm else _BESIDE_ARM


def _dotted(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"


def _version(text: str) -> Capability:
    """Return the two numbers of a version; of a level such as ``v3`` its number."""
    numbers = [*map(int, re.findall(r"[0-9]+", text)), 0, 0]
    return numbers[0], numbers[1]


def _parsed(code: str) -> tuple[Capability, str]:
    """Return capability and suffix of code such as ``90a``."""
    digits = code.rstrip("af")
    return (int(digits[:-1] or 0), int(digits[-1:] or 0)), code[len(digits) :]


def _runs(code: str, gpu: Capability) -> bool:
    (major, minor), suffix = _parsed(code)
    if suffix == "a":
        return (major, minor) == gpu
    return major == gpu[0] and minor <= gpu[1]


def _compiles(code: str, gpu: Capability) -> bool:
    capability, suffix = _parsed(code)
    return _runs(code, gpu) if suffix else capability <= gpu

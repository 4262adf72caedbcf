"""What the publishers of torch, torchvision and vLLM have on their indexes, and what runs where.

These are the publishers' facts, none of the catalogue's: builds and the architectures they have
code for, as published for each release, and drivers as NVIDIA documents them. The sources:

- https://github.com/pytorch/pytorch/pull/164471, pull/175253, pull/182849, pull/194367 and
  pull/197555 (releases 2.9, 2.11 and 2.12 to 2.14), issues/190385 (2.15)
- https://github.com/pytorch/pytorch/blob/v2.8.0/.ci/manywheel/build_cuda.sh (2.8), and
  https://github.com/moi90/pytorch_compute_capabilities (2.7)
- https://github.com/runpod/containers, ``official-templates/pytorch/docker-bake.hcl`` (CUDA 12.9
  from 2.9 to 2.13: not for 2.12.0, not for Windows, the architectures of CUDA 13.0)
- https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (drivers)
- https://github.com/NixOS/nixos-hardware/pull/1843 (590 is not for Pascal and Volta)
- https://github.com/vllm-project/vllm/issues/44335 and
  https://github.com/allenai/open-instruct/pull/1874 (vLLM 0.25.1 and 0.26.0 for CUDA 12.9 are on
  indexes of the publisher's; Astral's, config/index.toml of its index, stops at 0.25.0)
- https://github.com/pytorch/pytorch/pull/161257, pull/157830 and pull/144436 (aarch64), and the GPU
  code of the wheels on PyPI from 2.11 on
- ``Requires-Dist`` of the wheels on PyPI (which CUDA they are for, which torch they require)

- https://github.com/ROCm/legacy-rocm-build/issues/4625 and
  https://github.com/pytorch/pytorch/issues/179865 (rocBLAS of ROCm 6.4 and of 7.2: GPUs that it
  has kernels for), https://github.com/astral-sh/uv/pull/18730 (2.11 for ROCm 7.2)

A GPU without kernels in rocBLAS does not count as one that a build has code for: nothing but the
simplest programs run on it. PTX is left out: no machine here needs it. So are the builds of 2.14
and later for ROCm 7.14: it is not documented which GPUs they have code for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from .index import Index
from .published_builds import ARM, LINUX, MAC, WINDOWS, Builds, Field
from .wheels import Wheel

TAGS = {"linux": LINUX, "aarch64": ARM, "windows": WINDOWS, "macos": MAC}
LINUX_ONLY, BOTH, ON_ARM = ("linux",), ("linux", "windows"), ("aarch64",)
TITLES = {"linux": "", "aarch64": ", aarch64", "windows": ", Windows", "macos": ""}


class Build(NamedTuple):
    """One of the builds of a project.

    Attributes:
        local: local version that marks its wheels, and name of its index.
        releases: specifier of the releases that have it.
        systems: names in `TAGS`.
        cuda: major version, 0 without CUDA.
        code: compute capabilities, or names of other architectures, that it has code for.
    """

    local: str
    releases: str
    systems: tuple[str, ...]
    cuda: int
    code: str


CUDA_12_6 = "5.0 6.0 7.0 7.5 8.0 8.6 9.0"
CUDA_12_8 = "7.0 7.5 8.0 8.6 9.0 10.0 12.0"
HOPPER, AMPERE = "9.0 10.0 12.0", "8.0 9.0 10.0 12.0"
TURING = "7.5 8.0 8.6 9.0 10.0 12.0"
ROCM = "gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201"
BUILDS = {
    "torch": (
        Build("cu118", "==2.7.*", BOTH, 11, CUDA_12_6),
        Build("cu126", ">=2.7,<2.15", BOTH, 12, CUDA_12_6),
        Build("cu128", "==2.7.*", BOTH, 12, TURING),
        Build("cu128", ">=2.8,<2.11", BOTH, 12, CUDA_12_8),
        Build("cu128", "==2.11.*", BOTH, 12, TURING),
        Build("cu129", "==2.8.*", BOTH, 12, CUDA_12_8),
        Build("cu129", ">=2.9,<2.11", LINUX_ONLY, 12, CUDA_12_8),
        Build("cu129", ">=2.11,<2.14,!=2.12.0", LINUX_ONLY, 12, TURING),
        Build("cu130", ">=2.9", BOTH, 13, TURING),
        Build("cu132", ">=2.12", BOTH, 13, TURING),
        Build("rocm6.3", ">=2.7,<2.10", LINUX_ONLY, 0, f"gfx900 gfx906 {ROCM}"),
        Build("rocm6.4", ">=2.8,<2.10", LINUX_ONLY, 0, ROCM),
        Build("rocm7.0", "==2.10.*", LINUX_ONLY, 0, f"{ROCM} gfx950"),
        Build("rocm7.1", "==2.10.*", LINUX_ONLY, 0, f"{ROCM} gfx950"),
        Build("rocm7.2", ">=2.11,<2.14", LINUX_ONLY, 0, f"{ROCM} gfx950 gfx1150 gfx1151"),
        Build("xpu", ">=2.9", BOTH, 0, "Arc"),
        Build("cu126", ">=2.7,<2.9", ON_ARM, 12, "9.0"),
        Build("cu126", ">=2.9,<2.15", ON_ARM, 12, "8.0 9.0"),
        Build("cu128", ">=2.7,<2.9", ON_ARM, 12, HOPPER),
        Build("cu128", ">=2.9,<2.12", ON_ARM, 12, AMPERE),
        Build("cu129", "==2.8.*", ON_ARM, 12, HOPPER),
        Build("cu129", ">=2.9,<2.14,!=2.12.0", ON_ARM, 12, AMPERE),
        Build("cu130", ">=2.9", ON_ARM, 13, f"{AMPERE} 11.0"),
        Build("cu132", ">=2.12", ON_ARM, 13, f"{AMPERE} 11.0"),
    ),
    "torchaudio": (
        Build("cu126", "==2.11.*", BOTH, 12, CUDA_12_6),
        Build("cu128", "==2.11.*", BOTH, 12, TURING),
        Build("cu130", "==2.11.*", BOTH, 13, TURING),
        Build("rocm7.2", "==2.11.*", LINUX_ONLY, 0, f"{ROCM} gfx950 gfx1150 gfx1151"),
    ),
    "vllm": (
        Build("cu129", "<0.27", LINUX_ONLY, 12, TURING),
        Build("cu130", ">=0.20", LINUX_ONLY, 13, TURING),
    ),
}
"""By project; torchvision has those of the torch that it requires."""
_TORCH = ("2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.0", "2.15.0")
VISION = {f"0.{15 + Version(text).minor}.{Version(text).micro}": text for text in _TORCH}
"""Releases of torchvision, oldest first, and the torch that each requires."""
RELEASES = {
    "torch": {torch: torch for torch in _TORCH},
    "torchvision": VISION,
    "torchaudio": {"2.11.0": ""},
    "vllm": {"0.19.1": "2.10.0", "0.26.0": "2.11.0", "0.29.0": "2.13.0"},
}
"""The same by project; the last torchaudio requires none."""
ON_PYPI = {
    "torch": {"<2.8": "cu126", ">=2.8,<2.11": "cu128", ">=2.11,<2.15": "cu130", ">=2.15": "cu132"},
    "vllm": {"<0.20": "cu129", ">=0.20": "cu130"},
}
"""The build that PyPI has for Linux, by specifier; before 2.11 not for aarch64.

For other systems, and there, it is the one for CPUs.
"""
LEAST_DRIVER = {11: 450, 12: 525, 13: 580}
"""The oldest driver for Linux, by major version of CUDA."""
CUDA_OF_DRIVER = {470: "11.4", 525: "12.0", 550: "12.4", 570: "12.8", 580: "13.0", 590: "13.1"}
DRIVERS = {
    "6.0": (470, 580),
    "7.0": (470, 580),
    "7.5": (470, 590),
    "8.0": (470, 590),
    "9.0": (525, 590),
    "10.0": (570, 590),
    "11.0": (580, 590),
    "12.0": (570, 590),
    "12.1": (580, 590),
}
"""Oldest and newest driver for GPUs, by compute capability."""


class Box(NamedTuple):
    """A machine.

    Attributes:
        name: of its GPU.
        driver: of NVIDIA, 0 without.
        system: name in `TAGS`.
        architecture: compute capability, or architecture in `Build.code`; empty without GPU.
        facts: value of ``--variant-platform``.
    """

    name: str
    driver: int
    system: str
    architecture: str
    facts: str

    @property
    def title(self) -> str:
        """Its name, driver and system."""
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.name}{driver}{TITLES[self.system]}"

    def uses(self, build: Build) -> bool:
        """Return whether the build runs on its GPU."""
        known = build.code.split()
        if not build.cuda:
            return self.architecture in known
        if self.driver < LEAST_DRIVER[build.cuda]:
            return False
        major, _, minor = self.architecture.partition(".")
        others = (each.split(".") for each in known)
        return any(each[0] == major and int(each[1]) <= int(minor) for each in others)


def _nvidia(name: str, architecture: str, cpu: str, system: str = "linux") -> Iterator[Box]:
    oldest, newest = DRIVERS[architecture]
    if system == "windows":  # whose numbers of the others differ
        oldest = max(oldest, 550)
    elif system == "aarch64":  # for which there is nothing before CUDA 12
        oldest = max(oldest, 525)
    for driver, cuda in CUDA_OF_DRIVER.items():
        if oldest <= driver <= newest:
            facts = f"cuda={cuda},sm={architecture},cpu={cpu}"
            yield Box(name, driver, system, architecture, facts)


BOXES = (
    *_nvidia("P100", "6.0", "broadwell"),
    *_nvidia("V100", "7.0", "broadwell"),
    *_nvidia("T4", "7.5", "cascadelake"),
    *_nvidia("A100", "8.0", "zen3"),
    *_nvidia("H100", "9.0", "zen4"),
    *_nvidia("B200", "10.0", "sapphirerapids"),
    *_nvidia("RTX 5090", "12.0", "zen5"),
    Box("MI100", 0, "linux", "gfx908", "rocm=7.0,gfx=gfx908,cpu=zen2"),
    Box("MI210", 0, "linux", "gfx90a", "rocm=7.0,gfx=gfx90a,cpu=zen3"),
    Box("MI300X", 0, "linux", "gfx942", "rocm=7.0,gfx=gfx942,cpu=zen4"),
    Box("Radeon VII", 0, "linux", "gfx906", "gfx=gfx906,cpu=zen2"),
    Box("Radeon RX 7900 XTX", 0, "linux", "gfx1100", "gfx=gfx1100,cpu=zen4"),
    Box("Radeon RX 9070 XT", 0, "linux", "gfx1201", "gfx=gfx1201,cpu=zen5"),
    Box("Radeon 8060S", 0, "linux", "gfx1151", "gfx=gfx1151,cpu=zen5"),
    Box("Intel Arc A770", 0, "linux", "Arc", "arc-a770-alderlake"),
    Box("no GPU", 0, "linux", "", "cpu-zen4"),
    *_nvidia("A100", "8.0", "neoverse-n1", "aarch64"),
    *_nvidia("GH200", "9.0", "neoverse-v2", "aarch64"),
    *_nvidia("Jetson Thor", "11.0", "neoverse-v3ae", "aarch64"),
    *_nvidia("DGX Spark", "12.1", "neoverse-v3ae", "aarch64"),
    *_nvidia("RTX 5090", "12.0", "zen5", "windows"),
    *_nvidia("T4", "7.5", "cascadelake", "windows"),
    Box("no GPU", 0, "windows", "", "cpu-zen4"),
    Box("Mac with Apple M4", 0, "macos", "", "apple-m4"),
)

Picks = Mapping[str, str]
"""Chosen version by project, with its local version."""


def builds_of(project: str, release: str) -> list[Build]:
    """Return the builds of a release."""
    if project == "torchvision":
        project, release = "torch", VISION[release]
    return [each for each in BUILDS[project] if Version(release) in SpecifierSet(each.releases)]


def build_of(project: str, version: str, system: str) -> Build | None:
    """Return the build that a wheel with *version* is, None for one for CPUs."""
    public, _, local = version.partition("+")
    release = Version(VISION.get(public, public) if project == "torchvision" else public)
    if not local and (system == "linux" or (system == "aarch64" and release >= Version("2.11"))):
        places = ON_PYPI.get(project, ON_PYPI["torch"]).items()
        local = next(each for text, each in places if release in SpecifierSet(text))
    builds = (each for each in builds_of(project, public) if system in each.systems)
    return next((each for each in builds if each.local == local), None)


def uses_gpu(picks: Picks, box: Box) -> bool:
    """Return whether all that was chosen runs on the GPU of the machine."""
    builds = [build_of(name, version, box.system) for name, version in picks.items()]
    if len({each and each.cuda for each in builds}) > 1:
        return False
    return all(build is not None and box.uses(build) for build in builds)


def newest(project: str, box: Box) -> str | None:
    """Return the newest release of which a build, and torch's for it, run on the machine's GPU."""

    def usable(name: str, release: str) -> set[str]:
        builds = builds_of(name, release)
        return {each.local for each in builds if box.system in each.systems and box.uses(each)}

    for release, torch in reversed(RELEASES[project].items()):
        if usable(project, release) & usable("torch", torch):
            return release
    return None


AMD = "https://stable.repo.amd.com/rocm/whl-next"


def standin() -> Field:
    """Return all the indexes: PyPI, PyTorch's, and Astral's and the publisher's for vLLM."""
    found = Field(Index(), Builds())
    whl, astral = "https://download.pytorch.org/whl", "https://wheels.astral.sh/simple"
    for name in ("torch", "torchvision"):
        for version, torch in RELEASES[name].items():
            requires = (f"torch=={torch}",) if name != "torch" else ()
            for system, tag in TAGS.items():
                found.index.add_wheel(Wheel(name, version, tag=tag, requires=requires))
                local = "" if system == "macos" else "+cpu"
                cpu = Wheel(name, f"{version}{local}", tag=tag, requires=requires)
                found.builds.put(f"{whl}/cpu/{name}/", cpu)
            for build in builds_of(name, version):
                for system in build.systems:
                    local = f"{version}+{build.local}"
                    wheel = Wheel(name, local, tag=TAGS[system], requires=requires)
                    found.builds.put(f"{whl}/{build.local}/{name}/", wheel)
        for place in (f"{whl}/cu121", f"{whl}/cu124", AMD):  # of releases that are not here
            found.builds.put(f"{place}/{name}/", Wheel(name, "0.0.1+old", tag=LINUX))
    for release, torch in RELEASES["vllm"].items():
        requires = (f"torch=={torch}",)
        found.index.add_wheel(Wheel("vllm", release, tag=LINUX, requires=requires))
        on_pypi = build_of("vllm", release, "linux")
        for local in ("cpu", *(each.local for each in builds_of("vllm", release))):
            if on_pypi is None or local != on_pypi.local:
                wheel = Wheel("vllm", f"{release}+{local}", tag=LINUX, requires=requires)
                own = local != "cpu" and Version(release) > Version("0.25.0")
                place = f"https://wheels.vllm.ai/{release}/{local}" if own else f"{astral}/{local}"
                found.builds.put(f"{place}/vllm/", wheel)
    return found

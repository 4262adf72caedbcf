"""GPUs by the name that a person knows, and the drivers that they may have.

For pages where people say what they have. A GPU that is missing is one name in a row, or one row.
What a machine is to a provider are its facts, see `machines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class KnownGpu(NamedTuple):
    """A GPU that people have.

    Attributes:
        name: as its maker sells it.
        facts: what is known of it, see `machines`; those of a driver may follow.
        systems: where it is used, names of targets such as ``linux-x86_64``.
        drivers: whose `KnownDriver` it has, empty where no fact depends on one.
        first: name of the oldest of these drivers, empty for any.
        last: name of the newest, as later ones leave it out; empty for any.
    """

    name: str
    facts: str
    systems: tuple[str, ...]
    drivers: str = ""
    first: str = ""
    last: str = ""

    def known_drivers(self) -> Iterator[KnownDriver]:
        """Yield the drivers that it may have, oldest first.

        >>> from pep_variants.machines import KNOWN_GPUS
        >>> v100 = next(gpu for gpu in KNOWN_GPUS if gpu.name == "NVIDIA V100")
        >>> [driver.name for driver in v100.known_drivers()][-1]
        '580'
        """
        names = [driver.name for driver in KNOWN_DRIVERS if driver.kind == self.drivers]
        start = names.index(self.first) if self.first else 0
        end = names.index(self.last) + 1 if self.last else len(names)
        among = names[start:end]
        for driver in KNOWN_DRIVERS:
            if driver.kind == self.drivers and driver.name in among:
                yield driver

    def assumed_driver(self) -> KnownDriver | None:
        """Return the driver that counts for people who do not know theirs, None for none.

        The newest one, as a newer driver costs nothing; of ROCm, which most builds bring along,
        none.
        """
        return None if self.drivers == "amd" else next(reversed([*self.known_drivers()]), None)

    def machine(self, driver: KnownDriver | None = None) -> str:
        """Return the facts of a machine with it, for `load_machine`.

        Args:
            driver: that is installed; None for no fact about one.

        >>> from pep_variants.machines import KNOWN_GPUS
        >>> gpu = next(gpu for gpu in KNOWN_GPUS if gpu.name == "NVIDIA V100")
        >>> [gpu.machine(driver) for driver in gpu.known_drivers()][-1]
        'cuda=13.0,sm=7.0'
        """
        facts = () if driver is None else (driver.facts,)
        return ",".join((*facts, self.facts))


class KnownDriver(NamedTuple):
    """A driver, or what else of the system's a build may need.

    Attributes:
        kind: see `KnownGpu.drivers`.
        name: as its maker and its tools give it.
        facts: what it adds to those of a GPU.
        title: with what it brings.
    """

    kind: str
    name: str
    facts: str
    title: str


_PC = ("linux-x86_64", "windows-x86_64")
_SERVER = ("linux-x86_64", "linux-aarch64")
_ALL = ("linux-x86_64", "linux-aarch64", "windows-x86_64")
_LINUX, _ARM, _MAC = _PC[:1], _SERVER[1:], ("macos-arm64",)

_CUDA = {
    "450": "11.0", "460": "11.2", "470": "11.4", "510": "11.6", "515": "11.7", "520": "11.8",
    "525": "12.0", "530": "12.1", "535": "12.2", "545": "12.3", "550": "12.4", "555": "12.5",
    "560": "12.6", "565": "12.7", "570": "12.8", "575": "12.9", "580": "13.0", "590": "13.1",
    "595": "13.2", "610": "13.3", "615": "13.4", "620": "13.5",
}  # fmt: skip
"""The newest CUDA of each driver of NVIDIA's, by its number up to the first dot."""

KNOWN_DRIVERS = (
    *(KnownDriver("nvidia", name, f"cuda={cuda}", f"{name} (CUDA {cuda})")
      for name, cuda in _CUDA.items()),
    KnownDriver("jetson", "JetPack 6", "cuda=12.6", "JetPack 6 (CUDA 12.6)"),
    KnownDriver("jetson", "JetPack 7", "cuda=13.0", "JetPack 7 (CUDA 13.0)"),
    *(KnownDriver("amd", name, f"rocm={name}", f"ROCm {name}")
      for name in ("6.3", "6.4", "7.0", "7.1", "7.2")),
)  # fmt: skip
"""Drivers by kind, older ones first. Of AMD's, ROCm's own programs, which few builds need."""

# Drivers after 580 leave out Maxwell, Pascal and Volta.
_KNOWN = (
    ("NVIDIA", "sm=5.2", _PC, "nvidia", "", "580", "GTX 960, GTX 970, GTX 980, GTX 980 Ti, M40"),
    ("NVIDIA", "sm=5.0", _PC, "nvidia", "", "580", "GTX 750 Ti"),
    ("NVIDIA", "sm=6.0", _LINUX, "nvidia", "", "580", "P100"),
    ("NVIDIA", "sm=6.1", _PC, "nvidia", "", "580",
     "GTX 1050, GTX 1050 Ti, GTX 1060, GTX 1070, GTX 1070 Ti, GTX 1080, GTX 1080 Ti, P4, P40"),
    ("NVIDIA", "sm=7.0", _PC, "nvidia", "", "580", "V100, TITAN V"),
    ("NVIDIA", "sm=7.5", _PC, "nvidia", "", "",
     "GTX 1650, GTX 1650 SUPER, GTX 1660, GTX 1660 SUPER, GTX 1660 Ti, RTX 2060, RTX 2060 SUPER, "
     "RTX 2070, RTX 2070 SUPER, RTX 2080, RTX 2080 SUPER, RTX 2080 Ti, Quadro RTX 8000"),
    ("NVIDIA", "sm=7.5", _ALL, "nvidia", "", "", "T4"),
    ("NVIDIA", "sm=8.0", _ALL, "nvidia", "", "", "A100, A30"),
    ("NVIDIA", "sm=8.6", _PC, "nvidia", "460", "",
     "RTX 3050, RTX 3060, RTX 3060 Ti, RTX 3070, RTX 3070 Ti, RTX 3080, RTX 3080 Ti, RTX 3090, "
     "RTX 3090 Ti, RTX A2000, RTX A4000, RTX A5000, RTX A6000"),
    ("NVIDIA", "sm=8.6", _ALL, "nvidia", "460", "", "A2, A10, A10G, A16, A40"),
    ("NVIDIA", "sm=8.7", _ARM, "jetson", "", "",
     "Jetson AGX Orin, Jetson Orin NX, Jetson Orin Nano"),
    ("NVIDIA", "sm=8.9", _PC, "nvidia", "525", "",
     "RTX 4050, RTX 4060, RTX 4060 Ti, RTX 4070, RTX 4070 SUPER, RTX 4070 Ti, RTX 4070 Ti SUPER, "
     "RTX 4080, RTX 4080 SUPER, RTX 4090, RTX 6000 Ada"),
    ("NVIDIA", "sm=8.9", _ALL, "nvidia", "525", "", "L4, L40, L40S"),
    ("NVIDIA", "sm=9.0", _SERVER, "nvidia", "525", "", "H100, H200, H20"),
    ("NVIDIA", "sm=9.0", _ARM, "nvidia", "525", "", "GH200"),
    ("NVIDIA", "sm=10.0", _SERVER, "nvidia", "570", "", "B100, B200"),
    ("NVIDIA", "sm=10.0", _ARM, "nvidia", "570", "", "GB200"),
    ("NVIDIA", "sm=10.3", _SERVER, "nvidia", "580", "", "B300"),
    ("NVIDIA", "sm=10.3", _ARM, "nvidia", "580", "", "GB300"),
    ("NVIDIA", "sm=11.0", _ARM, "jetson", "JetPack 7", "", "Jetson AGX Thor"),
    ("NVIDIA", "sm=12.0", _PC, "nvidia", "570", "",
     "RTX 5050, RTX 5060, RTX 5060 Ti, RTX 5070, RTX 5070 Ti, RTX 5080, RTX 5090, "
     "RTX PRO 4500 Blackwell, RTX PRO 5000 Blackwell, RTX PRO 6000 Blackwell"),
    ("NVIDIA", "sm=12.1", _ARM, "nvidia", "580", "", "DGX Spark (GB10)"),
    ("AMD", "gfx=gfx900", _LINUX, "amd", "", "", "RX Vega 56, RX Vega 64, Instinct MI25"),
    ("AMD", "gfx=gfx906", _LINUX, "amd", "", "", "Radeon VII, Instinct MI50, Instinct MI60"),
    ("AMD", "gfx=gfx908", _LINUX, "amd", "", "", "Instinct MI100"),
    ("AMD", "gfx=gfx90a", _LINUX, "amd", "", "", "Instinct MI210, Instinct MI250, Instinct MI250X"),
    ("AMD", "gfx=gfx942", _LINUX, "amd", "", "",
     "Instinct MI300A, Instinct MI300X, Instinct MI325X"),
    ("AMD", "gfx=gfx950", _LINUX, "amd", "7.0", "", "Instinct MI350X, Instinct MI355X"),
    ("AMD", "gfx=gfx1010", _PC, "amd", "", "", "RX 5600 XT, RX 5700, RX 5700 XT"),
    ("AMD", "gfx=gfx1012", _PC, "amd", "", "", "RX 5500 XT"),
    ("AMD", "gfx=gfx1030", _PC, "amd", "", "", "RX 6800, RX 6800 XT, RX 6900 XT, RX 6950 XT"),
    ("AMD", "gfx=gfx1031", _PC, "amd", "", "", "RX 6700 XT, RX 6750 XT"),
    ("AMD", "gfx=gfx1032", _PC, "amd", "", "", "RX 6600, RX 6600 XT, RX 6650 XT"),
    ("AMD", "gfx=gfx1034", _PC, "amd", "", "", "RX 6400, RX 6500 XT"),
    ("AMD", "gfx=gfx1035", _PC, "amd", "", "", "660M, 680M"),
    ("AMD", "gfx=gfx1100", _PC, "amd", "", "",
     "RX 7900 GRE, RX 7900 XT, RX 7900 XTX, PRO W7900"),
    ("AMD", "gfx=gfx1101", _PC, "amd", "", "", "RX 7700 XT, RX 7800 XT, PRO W7700"),
    ("AMD", "gfx=gfx1102", _PC, "amd", "", "", "RX 7600, RX 7600 XT"),
    ("AMD", "gfx=gfx1103", _PC, "amd", "", "", "740M, 760M, 780M"),
    ("AMD", "gfx=gfx1150", _PC, "amd", "", "", "880M, 890M"),
    ("AMD", "gfx=gfx1151", _PC, "amd", "", "", "8050S, 8060S, Ryzen AI Max (Strix Halo)"),
    ("AMD", "gfx=gfx1152", _PC, "amd", "", "", "840M, 860M"),
    ("AMD", "gfx=gfx1200", _PC, "amd", "6.4", "", "RX 9060 XT"),
    ("AMD", "gfx=gfx1201", _PC, "amd", "6.4", "", "RX 9070, RX 9070 GRE, RX 9070 XT"),
    ("Intel", "intel=12.55.8", _PC, "", "", "", "Arc A580, Arc A750, Arc A770"),
    ("Intel", "intel=12.56.5", _PC, "", "", "", "Arc A310, Arc A380"),
    ("Intel", "intel=12.60.7", _LINUX, "", "", "", "Data Center GPU Max"),
    ("Intel", "intel=20.1.0", _PC, "", "", "", "Arc B570, Arc B580"),
    ("Intel", "intel=20.4.4", _PC, "", "", "", "Lunar Lake (Arc 130V and 140V)"),
    ("Intel", "intel=12.71.4", _PC, "", "", "", "Meteor Lake (Arc graphics)"),
    ("Intel", "intel=12.3.0", _PC, "", "", "", "Iris Xe"),
    ("Apple", "cpu=m1", _MAC, "", "", "", "M1, M2, M3, M4, M5"),
    ("", "cpu=x86-64-v3", _PC, "", "", "", "none"),
    ("", "cpu=armv8.2-a", _ARM, "", "", "", "none"),
)  # fmt: skip

KNOWN_GPUS = tuple(
    KnownGpu(f"{maker} {name}".strip(), facts, systems, drivers, first, last)
    for maker, facts, systems, drivers, first, last, names in _KNOWN
    for name in names.split(", ")
)
"""Every known GPU, by maker, older ones first; ``none`` is a machine without one, see its CPU."""

SEEN_BY = {
    "nvidia": dict.fromkeys(_ALL, "nvidia-smi --query-gpu=name,driver_version --format=csv"),
    "jetson": dict.fromkeys(_ARM, "cat /etc/nv_tegra_release"),
    "amd": dict.fromkeys(_LINUX, "cat /opt/rocm/.info/version"),
}
"""The command that shows which driver of a kind there is, by system."""

"""Well-known machines, one for each class, by name: ``h100-zen4``.

They are for machines that are not at hand: to try what is chosen there, or to write down what is
installed for. CPUs that archspec does not know are given as what it takes them for on Linux.
"""

from __future__ import annotations

from typing import NamedTuple

from .._choose.preferences import NATIVE


class KnownMachine(NamedTuple):
    """A class of machines.

    Attributes:
        name: as it is written in options and URLs.
        facts: what is known of it, see `machines`.
        title: what it is, one sentence without its full stop.
    """

    name: str
    facts: str
    title: str


# fmt: off
KNOWN_MACHINES = (
    # NVIDIA GPU, x86-64
    KnownMachine("gtx-1080-ti-sandybridge", "cuda=12.2,sm=6.1,cpu=sandybridge",
                 "NVIDIA GTX 1080 Ti, also 1070 and 1080 (Pascal), with an Intel Sandy Bridge "
                 "CPU: AVX"),
    KnownMachine("gtx-1080-ti-haswell", "cuda=12.8,sm=6.1,cpu=haswell",
                 "NVIDIA GTX 1080 Ti, also 1070 and 1080 (Pascal), with an Intel Haswell CPU: "
                 "AVX2"),
    KnownMachine("v100-broadwell", "cuda=12.4,sm=7.0,cpu=broadwell",
                 "NVIDIA V100 (Volta) with an Intel Broadwell CPU, as in a DGX-1: AVX2"),
    KnownMachine("t4-cascadelake", "cuda=12.2,sm=7.5,cpu=cascadelake",
                 "NVIDIA T4 (Turing) with an Intel Cascade Lake CPU: AVX-512 VNNI"),
    KnownMachine("rtx-2080-ti-zen2", "cuda=13.0,sm=7.5,cpu=zen2",
                 "NVIDIA RTX 2080 Ti, also 2060 to 2080 (Turing), with an AMD Zen 2 CPU: AVX2"),
    KnownMachine("quadro-rtx-8000-skylake-avx512", "cuda=12.9,sm=7.5,cpu=skylake-avx512",
                 "NVIDIA Quadro RTX 8000 (Turing) with driver 575, as in the PyTorch tutorial, "
                 "and an Intel Xeon or Core X of the Skylake generation: AVX-512"),
    KnownMachine("a100-zen3", "cuda=12.4,sm=8.0,cpu=zen3",
                 "NVIDIA A100, also A30 (Ampere), with an AMD EPYC Milan CPU: AVX2"),
    KnownMachine("a100-cascadelake", "cuda=11.4,sm=8.0,cpu=cascadelake",
                 "NVIDIA A100 (Ampere) with an Intel Cascade Lake CPU, AVX-512 VNNI, and the old "
                 "driver 470"),
    KnownMachine("rtx-3090-alderlake", "cuda=12.8,sm=8.6,cpu=alderlake",
                 "NVIDIA RTX 3090, also 3080 Ti (Ampere), with an Intel i9-12900K: AVX2, because "
                 "no CPU of that generation has AVX-512 in its efficiency cores"),
    KnownMachine("rtx-3090-skylake-avx512", "cuda=13.0,sm=8.6,cpu=skylake-avx512",
                 "NVIDIA RTX 3090, also 3080 Ti (Ampere), with an Intel Xeon or Core X of the "
                 "Skylake generation: AVX-512"),
    KnownMachine("a40-icelake", "cuda=12.8,sm=8.6,cpu=icelake",
                 "NVIDIA A40, also A5000 (Ampere), with an Intel Ice Lake CPU: AVX-512 VNNI"),
    KnownMachine("rtx-4090-zen4", "cuda=12.9,sm=8.9,cpu=zen4",
                 "NVIDIA RTX 4090, also 4060 Ti to 4080 (Ada Lovelace), with an AMD Zen 4 CPU: "
                 "AVX-512 BF16 and VNNI"),
    KnownMachine("l4-zen3", "cuda=13.0,sm=8.9,cpu=zen3",
                 "NVIDIA L4, also L40 (Ada Lovelace), with an AMD EPYC Milan CPU: AVX2"),
    KnownMachine("l40s-zen4", "cuda=12.8,sm=8.9,cpu=zen4",
                 "NVIDIA L40S (Ada Lovelace, not Hopper) with an AMD EPYC Genoa CPU: AVX-512 BF16 "
                 "and VNNI"),
    KnownMachine("h100-sapphirerapids", "cuda=13.0,sm=9.0,cpu=sapphirerapids",
                 "NVIDIA H100 (Hopper) with an Intel Sapphire Rapids CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("h100-zen4", "cuda=12.8,sm=9.0,cpu=zen4",
                 "NVIDIA H100 (Hopper) with an AMD EPYC Genoa CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("h100-zen3", "cuda=12.4,sm=9.0,cpu=zen3",
                 "NVIDIA H100 (Hopper) with an AMD EPYC Milan CPU: AVX2"),
    KnownMachine("h200-sapphirerapids", "cuda=12.8,sm=9.0,cpu=sapphirerapids",
                 "NVIDIA H200 (Hopper) with an Intel Sapphire Rapids CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("b200-sapphirerapids", "cuda=12.8,sm=10.0,cpu=sapphirerapids",
                 "NVIDIA B200, also B100 (Blackwell), with an Intel Sapphire or Emerald Rapids "
                 "CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("b300-zen5", "cuda=13.0,sm=10.3,cpu=zen5",
                 "NVIDIA B300 (Blackwell) with an AMD EPYC Turin CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("rtx-5090-zen5", "cuda=13.0,sm=12.0,cpu=zen5",
                 "NVIDIA RTX 5090 (Blackwell) with an AMD Zen 5 CPU: AVX-512 BF16 and VNNI"),
    KnownMachine("rtx-5090-alderlake", "cuda=12.8,sm=12.0,cpu=alderlake",
                 "NVIDIA RTX 5090 (Blackwell) with an Intel Core CPU of the 12th to 14th "
                 "generation: AVX2"),

    # NVIDIA GPU, 64-bit Arm
    KnownMachine("t4g-graviton2", "cuda=12.2,sm=7.5,cpu=neoverse-n1",
                 "NVIDIA T4G (Turing) with an AWS Graviton2 CPU: ARMv8.2"),
    KnownMachine("a100-altra", "cuda=12.4,sm=8.0,cpu=neoverse-n1",
                 "NVIDIA A100, also A30 (Ampere), with an Ampere Altra CPU: ARMv8.2"),
    KnownMachine("h100-graviton3", "cuda=12.8,sm=9.0,cpu=neoverse-v1",
                 "NVIDIA H100 (Hopper) with an AWS Graviton3 CPU: ARMv8.4 and SVE, but no SVE2"),
    KnownMachine("gh200-grace", "cuda=13.0,sm=9.0,cpu=neoverse-v2",
                 "NVIDIA GH200 (Hopper) with its Grace CPU: ARMv9"),
    KnownMachine("gb200-grace", "cuda=12.8,sm=10.0,cpu=neoverse-v2",
                 "NVIDIA GB200 (Blackwell) with its Grace CPU: ARMv9"),
    KnownMachine("thor", "cuda=13.0,sm=11.0,cpu=neoverse-v3ae",
                 "NVIDIA DRIVE Thor or Jetson AGX Thor (Blackwell): ARMv9"),
    KnownMachine("dgx-spark", "cuda=13.0,sm=12.1,cpu=neoverse-v3ae",
                 "NVIDIA DGX Spark, GB10 (Blackwell): ARMv9; archspec takes its Cortex-X925 for a "
                 "Neoverse V3AE"),
    KnownMachine("jetson-orin", "cuda=12.6,sm=8.7,cpu=neoverse-n1",
                 "NVIDIA Jetson Orin or DRIVE Orin (Ampere): ARMv8.2; archspec takes its "
                 "Cortex-A78AE for a Neoverse N1"),

    # AMD GPU
    KnownMachine("mi300x-rocm6.4", "rocm=6.4,gfx=gfx942,cpu=zen4",
                 "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 6.4 and an AMD EPYC "
                 "Genoa CPU"),
    KnownMachine("mi300x-rocm7.0", "rocm=7.0,gfx=gfx942,cpu=zen4",
                 "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 7.0 and an AMD EPYC "
                 "Genoa CPU"),
    KnownMachine("mi300x-rocm7.1", "rocm=7.1,gfx=gfx942,cpu=zen4",
                 "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 7.1 and an AMD EPYC "
                 "Genoa CPU"),
    KnownMachine("mi350x-rocm7.0", "rocm=7.0,gfx=gfx950,cpu=zen5",
                 "AMD Instinct MI350X, also MI355X, with ROCm 7.0 and an AMD EPYC Turin CPU"),
    KnownMachine("mi250x-rocm6.4", "rocm=6.4,gfx=gfx90a,cpu=zen3",
                 "AMD Instinct MI250X, also MI250, with ROCm 6.4 and an AMD EPYC Milan CPU"),
    KnownMachine("mi210-rocm6.3", "rocm=6.3,gfx=gfx90a,cpu=zen3",
                 "AMD Instinct MI210 with ROCm 6.3 and an AMD EPYC Milan CPU"),
    KnownMachine("mi100-mi210-rocm7.0", "rocm=7.0,gfx=gfx908+gfx90a,cpu=zen2",
                 "AMD Instinct MI100 and MI210 in one machine, with ROCm 7.0 and an AMD EPYC Rome "
                 "CPU"),
    KnownMachine("rx-7900-rocm6.4", "rocm=6.4,gfx=gfx1100,cpu=alderlake",
                 "AMD Radeon RX 7900 with ROCm 6.4.1 and an Intel Core CPU of the 12th to 14th "
                 "generation"),
    KnownMachine("rx-7900-zen4-rocm6.4", "rocm=6.4,gfx=gfx1036+gfx1100,cpu=zen4",
                 "AMD Radeon RX 7900 with ROCm 6.4.1 and an AMD Ryzen 7000 CPU, whose own small "
                 "GPU (gfx1036) is visible too"),
    KnownMachine("rx-9070-rocm6.4", "rocm=6.4,gfx=gfx1201,cpu=zen3",
                 "AMD Radeon RX 9070 with ROCm 6.4 and an AMD Zen 3 CPU"),
    KnownMachine("rx-6800-rocm6.3", "rocm=6.3,gfx=gfx1030,cpu=zen3",
                 "AMD Radeon RX 6800, also 6900 XT, with ROCm 6.3 and an AMD Zen 3 CPU"),
    KnownMachine("rx-5700-rocm6.4", "rocm=6.4,gfx=gfx1010,cpu=zen2",
                 "AMD Radeon RX 5700, which few builds have code for, with ROCm 6.4 and an AMD "
                 "Zen 2 CPU"),
    KnownMachine("ryzen-ai-max-rocm7.0", "rocm=7.0,gfx=gfx1151,cpu=zen5",
                 "AMD Ryzen AI Max (Strix Halo) with ROCm 7.0"),

    # Intel GPU
    KnownMachine("arc-a770-alderlake", "intel=12.55.8,cpu=alderlake",
                 "Intel Arc A770, also A750 and Flex 170 (Alchemist, ACM-G10), with an Intel Core "
                 "CPU of the 12th to 14th generation"),
    KnownMachine("arc-a380-alderlake", "intel=12.56.5,cpu=alderlake",
                 "Intel Arc A380, also A310 and Flex 140 (Alchemist, ACM-G11), with an Intel Core "
                 "CPU of the 12th to 14th generation"),
    KnownMachine("arc-b580-zen3", "intel=20.1.0,cpu=zen3",
                 "Intel Arc B580, also B570 (Battlemage), with an AMD Zen 3 CPU"),
    KnownMachine("lunar-lake", "intel=20.4.4,cpu=alderlake",
                 "Intel Core Ultra 200V (Lunar Lake); archspec takes its CPU for Alder Lake"),
    KnownMachine("meteor-lake", "intel=12.71.4,cpu=alderlake",
                 "Intel Core Ultra 100H (Meteor Lake); archspec takes its CPU for Alder Lake"),
    KnownMachine("ponte-vecchio-sapphirerapids", "intel=12.60.7,cpu=sapphirerapids",
                 "Intel Data Center GPU Max (Ponte Vecchio) with an Intel Sapphire Rapids CPU"),
    KnownMachine("iris-xe-alderlake", "intel=12.3.0,cpu=alderlake",
                 "laptop with Intel Iris Xe graphics, which few builds have code for, and an "
                 "Intel Core CPU of the 12th or 13th generation"),

    # no accelerator
    KnownMachine("cpu-x86-64-v1", "cpu=x86-64-v1",
                 "the oldest x86-64 CPUs, and emulated ones: x86-64-v1"),
    KnownMachine("cpu-x86-64-v2", "cpu=x86-64-v2",
                 "any x86-64 CPU with SSE4.2: x86-64-v2"),
    KnownMachine("cpu-x86-64-v3", "cpu=x86-64-v3",
                 "any x86-64 CPU with AVX2: x86-64-v3"),
    KnownMachine("cpu-x86-64-v4", "cpu=x86-64-v4",
                 "any x86-64 CPU with AVX-512: x86-64-v4"),
    KnownMachine("cpu-sandybridge", "cpu=sandybridge",
                 "Intel Sandy Bridge CPU: AVX"),
    KnownMachine("cpu-bulldozer", "cpu=bulldozer",
                 "AMD Bulldozer CPU: AVX"),
    KnownMachine("cpu-haswell", "cpu=haswell",
                 "Intel Haswell CPU: AVX2"),
    KnownMachine("cpu-zen", "cpu=zen",
                 "AMD Zen CPU, the first one: AVX2"),
    KnownMachine("laptop-alderlake", "cpu=alderlake",
                 "laptop with an Intel Core CPU of the 12th to 14th generation, without Level "
                 "Zero: AVX2"),
    KnownMachine("cpu-skylake-avx512", "cpu=skylake-avx512",
                 "Intel Xeon or Core X of the Skylake generation: AVX-512"),
    KnownMachine("cpu-cascadelake", "cpu=cascadelake",
                 "Intel Cascade Lake CPU: AVX-512 VNNI"),
    KnownMachine("cpu-sapphirerapids", "cpu=sapphirerapids",
                 "Intel Sapphire or Emerald Rapids CPU: AVX-512 BF16 and VNNI, AMX"),
    KnownMachine("cpu-zen4", "cpu=zen4",
                 "AMD Zen 4 CPU, e.g. EPYC Genoa: AVX-512 BF16 and VNNI"),
    KnownMachine("cpu-graviton2", "cpu=neoverse-n1",
                 "AWS Graviton2 CPU: ARMv8.2"),
    KnownMachine("cpu-graviton3", "cpu=neoverse-v1",
                 "AWS Graviton3 CPU: ARMv8.4 and SVE, but no SVE2"),
    KnownMachine("cpu-graviton4", "cpu=neoverse-v2",
                 "AWS Graviton4 CPU: ARMv9"),
    KnownMachine("cpu-grace", "cpu=neoverse-v2",
                 "NVIDIA Grace CPU without a GPU: ARMv9"),
    KnownMachine("apple-m1", "cpu=m1",
                 "Mac with an Apple M1"),
    KnownMachine("apple-m4", "cpu=m4",
                 "Mac with an Apple M4"),
)
# fmt: on
"""Every known machine, by kind of accelerator, older ones first."""

BY_NAME = {machine.name: machine for machine in KNOWN_MACHINES}
"""The same by name."""


def names_file(text: str) -> bool:
    """Return whether *text* is the path of a platform file, not a name or facts.

    >>> from pep_variants.machines import names_file
    >>> names_file("machines/h100.toml"), names_file("h100-zen4"), names_file("cuda=12.8")
    (True, False, False)
    """
    if text.endswith(".toml") or any(separator in text for separator in "/\\"):
        return True
    return "=" not in text and text not in BY_NAME and text != NATIVE

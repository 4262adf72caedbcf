"""Names that people know, for the values of providers: of GPUs and of CPUs."""

from __future__ import annotations

NVIDIA = {
    "12.1": "GB10, DGX Spark (Blackwell)",
    "12.0": "RTX 50 series, RTX PRO Blackwell (Blackwell)",
    "11.0": "Jetson Thor, DRIVE Thor (Blackwell)",
    "10.3": "B300, GB300 (Blackwell)",
    "10.0": "B200, GB200, B100 (Blackwell)",
    "9.0": "H100, H200, GH200 (Hopper)",
    "8.9": "L4, L40, L40S, RTX 40 series (Ada Lovelace)",
    "8.7": "Jetson Orin, DRIVE Orin (Ampere)",
    "8.6": "A40, A10, A16, A2, RTX 30 series (Ampere)",
    "8.0": "A100, A30 (Ampere)",
    "7.5": "T4, RTX 20 series, GTX 16 series (Turing)",
    "7.2": "Jetson Xavier (Volta)",
    "7.0": "V100, Titan V (Volta)",
    "6.2": "Jetson TX2 (Pascal)",
    "6.1": "GTX 10 series, P4, P40 (Pascal)",
    "6.0": "P100 (Pascal)",
    "5.3": "Jetson Nano, Jetson TX1 (Maxwell)",
    "5.2": "GTX 900 series, M40, M60 (Maxwell)",
    "5.0": "GTX 750, M10 (Maxwell)",
}
"""Products by compute capability, newest first. Source: NVIDIA, "CUDA GPU Compute Capability"."""

AMD = {
    "gfx950": "Instinct MI350X, MI355X",
    "gfx942": "Instinct MI300X, MI300A, MI325X",
    "gfx90a": "Instinct MI210, MI250, MI250X",
    "gfx908": "Instinct MI100",
    "gfx906": "Instinct MI50, MI60, Radeon VII",
    "gfx1201": "Radeon RX 9070, AI PRO R9700",
    "gfx1200": "Radeon RX 9060",
    "gfx1151": "Ryzen AI Max",
    "gfx1150": "Ryzen AI 300",
    "gfx1102": "Radeon RX 7600",
    "gfx1101": "Radeon RX 7700 XT, 7800 XT",
    "gfx1100": "Radeon RX 7900, PRO W7900",
    "gfx1032": "Radeon RX 6600",
    "gfx1031": "Radeon RX 6700 XT",
    "gfx1030": "Radeon RX 6800, 6900 XT",
    "gfx1010": "Radeon RX 5700",
}
"""Products by architecture. Source: AMD, "Supported GPUs" of ROCm and LLVM's AMDGPU user guide."""

INTEL = {
    "30.0.4": "Core Ultra 300H (Panther Lake)",
    "20.4.4": "Core Ultra 200V (Lunar Lake)",
    "20.1.0": "Arc B580, B570 (Battlemage)",
    "12.74.4": "Core Ultra 200H (Arrow Lake)",
    "12.71.4": "Core Ultra 100H (Meteor Lake)",
    "12.70.4": "Core Ultra 100U, 200S (Meteor Lake, Arrow Lake)",
    "12.60.7": "Data Center GPU Max (Ponte Vecchio)",
    "12.56.5": "Arc A380, A310, Flex 140 (Alchemist)",
    "12.55.8": "Arc A770, A750, Flex 170 (Alchemist)",
    "12.3.0": "Iris Xe (Alder Lake, Raptor Lake)",
}
"""Products by IP version, see `pep_variants.model.intel_gpus`."""

CPUS = {
    "x86_64": "any x86-64 (x86-64-v1)",
    "x86_64_v2": "any with SSE4.2 (x86-64-v2)",
    "x86_64_v3": "any with AVX2 (x86-64-v3)",
    "x86_64_v4": "any with AVX-512 (x86-64-v4)",
    "sandybridge": "Intel Sandy Bridge",
    "haswell": "Intel Haswell",
    "broadwell": "Intel Broadwell",
    "skylake": "Intel Skylake",
    "skylake_avx512": "Intel Skylake with AVX-512 (Xeon, Core X)",
    "cascadelake": "Intel Cascade Lake",
    "icelake": "Intel Ice Lake",
    "sapphirerapids": "Intel Sapphire Rapids, Emerald Rapids",
    "alderlake": "Intel Core, 12th to 14th generation",
    "arrowlake": "Intel Arrow Lake",
    "bulldozer": "AMD Bulldozer",
    "zen": "AMD Zen",
    "zen2": "AMD Zen 2 (EPYC Rome)",
    "zen3": "AMD Zen 3 (EPYC Milan)",
    "zen4": "AMD Zen 4 (EPYC Genoa)",
    "zen5": "AMD Zen 5 (EPYC Turin)",
    "aarch64": "any 64-bit Arm (ARMv8)",
    "armv8.2a": "any with ARMv8.2",
    "armv9.0a": "any with ARMv9",
    "neoverse_n1": "Neoverse N1 (Graviton2, Ampere Altra)",
    "neoverse_v1": "Neoverse V1 (Graviton3)",
    "neoverse_n2": "Neoverse N2 (Axion, Cobalt 100)",
    "neoverse_v2": "Neoverse V2 (Graviton4, NVIDIA Grace)",
    "neoverse_v3ae": "Neoverse V3AE (Thor)",
    "m1": "Apple M1",
    "m2": "Apple M2",
    "m3": "Apple M3",
    "m4": "Apple M4",
}
"""CPUs by archspec's name: those that the form offers."""

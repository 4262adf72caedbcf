"""Writes the example platform files: what the built-in providers answer on well-known machines.

Run it after a change to a provider, to archspec or to the table, and commit what it wrote:

    python packages/variants-cli/tests/make_platforms.py [FOLDER]

The values of NVIDIA GPUs and of CPUs are the providers' own, for that CUDA driver, that compute
capability and that microarchitecture of archspec. CPUs that archspec does not know are given as
what it takes them for on Linux. Those of AMD and Intel GPUs stand in the table as they are.
"""

import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from pep_variants.detect.providers.aarch64 import AArch64Provider
from pep_variants.detect.providers.cpu import known_cpus
from pep_variants.detect.providers.nvidia import (
    CAPABILITY_OVERRIDE,
    DRIVER_OVERRIDE,
    NvidiaProvider,
)
from pep_variants.detect.providers.x86_64 import X8664Provider
from pep_variants.detect.registry import BUILTIN_NAMESPACES
from pep_variants.formats.platform_file import write_platform
from pep_variants.model.platform import Platform, Support

FOLDER = Path(__file__).parents[2] / "variants-index" / "src" / "variants_index" / "named_platforms"
CPUS = {cpu.name: cpu for family in ("x86_64", "aarch64") for cpu in known_cpus(family)}
ABSENT = {
    "nvidia": "no NVIDIA driver",
    "amd": "neither an AMD GPU nor ROCm",
    "intel": "no Intel GPU with Level Zero",
    "ascend": "no Ascend NPU",
    "x86_64": "a CPU of another family",
    "aarch64": "a CPU of another family",
}


class Machine(NamedTuple):
    """A class of machine.

    Attributes:
        name: of the file, without ``.toml``.
        title: what it is.
        cpu: archspec's name of the microarchitecture.
        cuda: CUDA version of the driver and compute capability, e.g. ``12.8 9.0``.
        rocm: ROCm version and GPU architectures, e.g. ``6.4 gfx942``.
        intel: device IPs of the GPUs and of those whose code they run as well.
    """

    name: str
    title: str
    cpu: str
    cuda: str = ""
    rocm: str = ""
    intel: str = ""


# fmt: off
MACHINES = (
    # NVIDIA GPU, x86-64
    Machine("gtx-1080-ti-sandybridge",
            "NVIDIA GTX 1080 Ti, also 1070 and 1080 (Pascal), with an Intel Sandy Bridge CPU: AVX",
            "sandybridge", cuda="12.2 6.1"),
    Machine("gtx-1080-ti-haswell",
            "NVIDIA GTX 1080 Ti, also 1070 and 1080 (Pascal), with an Intel Haswell CPU: AVX2",
            "haswell", cuda="12.8 6.1"),
    Machine("v100-broadwell",
            "NVIDIA V100 (Volta) with an Intel Broadwell CPU, as in a DGX-1: AVX2",
            "broadwell", cuda="12.4 7.0"),
    Machine("t4-cascadelake",
            "NVIDIA T4 (Turing) with an Intel Cascade Lake CPU: AVX-512 VNNI",
            "cascadelake", cuda="12.2 7.5"),
    Machine("rtx-2080-ti-zen2",
            "NVIDIA RTX 2080 Ti, also 2060 to 2080 (Turing), with an AMD Zen 2 CPU: AVX2",
            "zen2", cuda="13.0 7.5"),
    Machine("quadro-rtx-8000-skylake-avx512",
            "NVIDIA Quadro RTX 8000 (Turing) with driver 575, as in the PyTorch tutorial, and an "
            "Intel Xeon or Core X of the Skylake generation: AVX-512",
            "skylake_avx512", cuda="12.9 7.5"),
    Machine("a100-zen3",
            "NVIDIA A100, also A30 (Ampere), with an AMD EPYC Milan CPU: AVX2",
            "zen3", cuda="12.4 8.0"),
    Machine("a100-cascadelake",
            "NVIDIA A100 (Ampere) with an Intel Cascade Lake CPU, AVX-512 VNNI, and the old "
            "driver 470",
            "cascadelake", cuda="11.4 8.0"),
    Machine("rtx-3090-alderlake",
            "NVIDIA RTX 3090, also 3080 Ti (Ampere), with an Intel i9-12900K: AVX2, because no "
            "CPU of that generation has AVX-512 in its efficiency cores",
            "alderlake", cuda="12.8 8.6"),
    Machine("rtx-3090-skylake-avx512",
            "NVIDIA RTX 3090, also 3080 Ti (Ampere), with an Intel Xeon or Core X of the Skylake "
            "generation: AVX-512",
            "skylake_avx512", cuda="13.0 8.6"),
    Machine("a40-icelake",
            "NVIDIA A40, also A5000 (Ampere), with an Intel Ice Lake CPU: AVX-512 VNNI",
            "icelake", cuda="12.8 8.6"),
    Machine("rtx-4090-zen4",
            "NVIDIA RTX 4090, also 4060 Ti to 4080 (Ada Lovelace), with an AMD Zen 4 CPU: AVX-512 "
            "BF16 and VNNI",
            "zen4", cuda="12.9 8.9"),
    Machine("l4-zen3",
            "NVIDIA L4, also L40 (Ada Lovelace), with an AMD EPYC Milan CPU: AVX2",
            "zen3", cuda="13.0 8.9"),
    Machine("l40s-zen4",
            "NVIDIA L40S (Ada Lovelace, not Hopper) with an AMD EPYC Genoa CPU: AVX-512 BF16 and "
            "VNNI",
            "zen4", cuda="12.8 8.9"),
    Machine("h100-sapphirerapids",
            "NVIDIA H100 (Hopper) with an Intel Sapphire Rapids CPU: AVX-512 BF16 and VNNI",
            "sapphirerapids", cuda="13.0 9.0"),
    Machine("h100-zen4",
            "NVIDIA H100 (Hopper) with an AMD EPYC Genoa CPU: AVX-512 BF16 and VNNI",
            "zen4", cuda="12.8 9.0"),
    Machine("h100-zen3",
            "NVIDIA H100 (Hopper) with an AMD EPYC Milan CPU: AVX2",
            "zen3", cuda="12.4 9.0"),
    Machine("h200-sapphirerapids",
            "NVIDIA H200 (Hopper) with an Intel Sapphire Rapids CPU: AVX-512 BF16 and VNNI",
            "sapphirerapids", cuda="12.8 9.0"),
    Machine("b200-sapphirerapids",
            "NVIDIA B200, also B100 (Blackwell), with an Intel Sapphire or Emerald Rapids CPU: "
            "AVX-512 BF16 and VNNI",
            "sapphirerapids", cuda="12.8 10.0"),
    Machine("b300-zen5",
            "NVIDIA B300 (Blackwell) with an AMD EPYC Turin CPU: AVX-512 BF16 and VNNI",
            "zen5", cuda="13.0 10.3"),
    Machine("rtx-5090-zen5",
            "NVIDIA RTX 5090 (Blackwell) with an AMD Zen 5 CPU: AVX-512 BF16 and VNNI",
            "zen5", cuda="13.0 12.0"),
    Machine("rtx-5090-alderlake",
            "NVIDIA RTX 5090 (Blackwell) with an Intel Core CPU of the 12th to 14th generation: "
            "AVX2",
            "alderlake", cuda="12.8 12.0"),

    # NVIDIA GPU, 64-bit Arm
    Machine("t4g-graviton2",
            "NVIDIA T4G (Turing) with an AWS Graviton2 CPU: ARMv8.2",
            "neoverse_n1", cuda="12.2 7.5"),
    Machine("a100-altra",
            "NVIDIA A100, also A30 (Ampere), with an Ampere Altra CPU: ARMv8.2",
            "neoverse_n1", cuda="12.4 8.0"),
    Machine("h100-graviton3",
            "NVIDIA H100 (Hopper) with an AWS Graviton3 CPU: ARMv8.4 and SVE, but no SVE2",
            "neoverse_v1", cuda="12.8 9.0"),
    Machine("gh200-grace",
            "NVIDIA GH200 (Hopper) with its Grace CPU: ARMv9",
            "neoverse_v2", cuda="13.0 9.0"),
    Machine("gb200-grace",
            "NVIDIA GB200 (Blackwell) with its Grace CPU: ARMv9",
            "neoverse_v2", cuda="12.8 10.0"),
    Machine("thor",
            "NVIDIA DRIVE Thor or Jetson AGX Thor (Blackwell): ARMv9",
            "neoverse_v3ae", cuda="13.0 11.0"),
    Machine("dgx-spark",
            "NVIDIA DGX Spark, GB10 (Blackwell): ARMv9; archspec takes its Cortex-X925 for a "
            "Neoverse V3AE",
            "neoverse_v3ae", cuda="13.0 12.1"),
    Machine("jetson-orin",
            "NVIDIA Jetson Orin or DRIVE Orin (Ampere): ARMv8.2; archspec takes its Cortex-A78AE "
            "for a Neoverse N1",
            "neoverse_n1", cuda="12.6 8.7"),

    # AMD GPU
    Machine("mi300x-rocm6.4",
            "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 6.4 and an AMD EPYC Genoa CPU",
            "zen4", rocm="6.4 gfx942"),
    Machine("mi300x-rocm7.0",
            "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 7.0 and an AMD EPYC Genoa CPU",
            "zen4", rocm="7.0 gfx942"),
    Machine("mi300x-rocm7.1",
            "AMD Instinct MI300X, also MI300A and MI325X, with ROCm 7.1 and an AMD EPYC Genoa CPU",
            "zen4", rocm="7.1 gfx942"),
    Machine("mi350x-rocm7.0",
            "AMD Instinct MI350X, also MI355X, with ROCm 7.0 and an AMD EPYC Turin CPU",
            "zen5", rocm="7.0 gfx950"),
    Machine("mi250x-rocm6.4",
            "AMD Instinct MI250X, also MI250, with ROCm 6.4 and an AMD EPYC Milan CPU",
            "zen3", rocm="6.4 gfx90a"),
    Machine("mi210-rocm6.3",
            "AMD Instinct MI210 with ROCm 6.3 and an AMD EPYC Milan CPU",
            "zen3", rocm="6.3 gfx90a"),
    Machine("mi100-mi210-rocm7.0",
            "AMD Instinct MI100 and MI210 in one machine, with ROCm 7.0 and an AMD EPYC Rome CPU",
            "zen2", rocm="7.0 gfx908 gfx90a"),
    Machine("rx-7900-rocm6.4",
            "AMD Radeon RX 7900 with ROCm 6.4.1 and an Intel Core CPU of the 12th to 14th "
            "generation",
            "alderlake", rocm="6.4 gfx1100"),
    Machine("rx-7900-zen4-rocm6.4",
            "AMD Radeon RX 7900 with ROCm 6.4.1 and an AMD Ryzen 7000 CPU, whose own small GPU "
            "(gfx1036) is visible too",
            "zen4", rocm="6.4 gfx1036 gfx1100"),
    Machine("rx-9070-rocm6.4",
            "AMD Radeon RX 9070 with ROCm 6.4 and an AMD Zen 3 CPU",
            "zen3", rocm="6.4 gfx1201"),
    Machine("rx-6800-rocm6.3",
            "AMD Radeon RX 6800, also 6900 XT, with ROCm 6.3 and an AMD Zen 3 CPU",
            "zen3", rocm="6.3 gfx1030"),
    Machine("rx-5700-rocm6.4",
            "AMD Radeon RX 5700, which few builds have code for, with ROCm 6.4 and an AMD Zen 2 "
            "CPU",
            "zen2", rocm="6.4 gfx1010"),
    Machine("ryzen-ai-max-rocm7.0",
            "AMD Ryzen AI Max (Strix Halo) with ROCm 7.0",
            "zen5", rocm="7.0 gfx1151"),

    # Intel GPU
    Machine("arc-a770-alderlake",
            "Intel Arc A770, also A750 and Flex 170 (Alchemist, ACM-G10), with an Intel Core CPU "
            "of the 12th to 14th generation",
            "alderlake", intel="12.55.8"),
    Machine("arc-a380-alderlake",
            "Intel Arc A380, also A310 and Flex 140 (Alchemist, ACM-G11), with an Intel Core CPU "
            "of the 12th to 14th generation",
            "alderlake", intel="12.56.5 12.55.8"),
    Machine("arc-b580-zen3",
            "Intel Arc B580, also B570 (Battlemage), with an AMD Zen 3 CPU",
            "zen3", intel="20.1.0"),
    Machine("lunar-lake",
            "Intel Core Ultra 200V (Lunar Lake); archspec takes its CPU for Alder Lake",
            "alderlake", intel="20.4.4 20.1.0"),
    Machine("meteor-lake",
            "Intel Core Ultra 100H (Meteor Lake); archspec takes its CPU for Alder Lake",
            "alderlake", intel="12.71.4 12.70.4"),
    Machine("ponte-vecchio-sapphirerapids",
            "Intel Data Center GPU Max (Ponte Vecchio) with an Intel Sapphire Rapids CPU",
            "sapphirerapids", intel="12.60.7"),
    Machine("iris-xe-alderlake",
            "laptop with Intel Iris Xe graphics, which few builds have code for, and an Intel "
            "Core CPU of the 12th or 13th generation",
            "alderlake", intel="12.3.0"),

    # no accelerator
    Machine("cpu-x86-64-v1", "the oldest x86-64 CPUs, and emulated ones: x86-64-v1", "x86_64"),
    Machine("cpu-x86-64-v2", "any x86-64 CPU with SSE4.2: x86-64-v2", "x86_64_v2"),
    Machine("cpu-x86-64-v3", "any x86-64 CPU with AVX2: x86-64-v3", "x86_64_v3"),
    Machine("cpu-x86-64-v4", "any x86-64 CPU with AVX-512: x86-64-v4", "x86_64_v4"),
    Machine("cpu-sandybridge", "Intel Sandy Bridge CPU: AVX", "sandybridge"),
    Machine("cpu-bulldozer", "AMD Bulldozer CPU: AVX", "bulldozer"),
    Machine("cpu-haswell", "Intel Haswell CPU: AVX2", "haswell"),
    Machine("cpu-zen", "AMD Zen CPU, the first one: AVX2", "zen"),
    Machine("laptop-alderlake",
            "laptop with an Intel Core CPU of the 12th to 14th generation, without Level Zero: "
            "AVX2",
            "alderlake"),
    Machine("cpu-skylake-avx512", "Intel Xeon or Core X of the Skylake generation: AVX-512",
            "skylake_avx512"),
    Machine("cpu-cascadelake", "Intel Cascade Lake CPU: AVX-512 VNNI", "cascadelake"),
    Machine("cpu-sapphirerapids",
            "Intel Sapphire or Emerald Rapids CPU: AVX-512 BF16 and VNNI, AMX", "sapphirerapids"),
    Machine("cpu-zen4", "AMD Zen 4 CPU, e.g. EPYC Genoa: AVX-512 BF16 and VNNI", "zen4"),
    Machine("cpu-graviton2", "AWS Graviton2 CPU: ARMv8.2", "neoverse_n1"),
    Machine("cpu-graviton3", "AWS Graviton3 CPU: ARMv8.4 and SVE, but no SVE2", "neoverse_v1"),
    Machine("cpu-graviton4", "AWS Graviton4 CPU: ARMv9", "neoverse_v2"),
    Machine("cpu-grace", "NVIDIA Grace CPU without a GPU: ARMv9", "neoverse_v2"),
    Machine("apple-m1", "Mac with an Apple M1", "m1"),
    Machine("apple-m4", "Mac with an Apple M4", "m4"),
)
# fmt: on


def features_by_namespace(machine):
    """What the providers answer, for the namespaces of which anything is supported."""
    cpu = CPUS[machine.cpu]
    provider = X8664Provider if cpu.family == "x86_64" else AArch64Provider
    found = {cpu.family: provider(lambda _: cpu).supported()}
    if machine.cuda:
        driver, capability = machine.cuda.split()
        forced = {DRIVER_OVERRIDE: driver, CAPABILITY_OVERRIDE: capability}
        found["nvidia"] = NvidiaProvider(forced).supported()
    if machine.rocm:
        version, *architectures = machine.rocm.split()
        found["amd"] = {"gfx_arch": tuple(architectures), "rocm_version": (version,)}
    if machine.intel:
        found["intel"] = {"device_ip": tuple(machine.intel.split())}
    return found


def sources(machine):
    """What the values are for, in words."""
    if machine.cuda:
        yield "CUDA driver {}, compute capability {}".format(*machine.cuda.split())
    if machine.rocm:
        version, *architectures = machine.rocm.split()
        yield f"ROCm {version}, {' and '.join(architectures)}"
    if machine.intel:
        yield f"device IP {machine.intel.split()[0]}"
    yield f"archspec's CPU {machine.cpu}"


def platform_file(machine):
    """The text of the file."""
    features = features_by_namespace(machine)
    namespaces = {
        namespace: Support(
            features.get(namespace, {}),
            (f"{known.package}=={known.stands_for}",),
            known.plugin_apis[0],
            "" if namespace in features else ABSENT[namespace],
        )
        for namespace, known in sorted(BUILTIN_NAMESPACES.items())
    }
    title = f"Example: {machine.title}."
    origin = f"What the built-in providers answer for {', '.join(sources(machine))}."
    comment = [line for text in (title, origin) for line in textwrap.wrap(text, 98)]
    written = write_platform(Platform(namespaces), "variants-cli, example")
    return "".join(f"# {line}\n" for line in comment) + "\n" + written


def main(folder):
    for machine in MACHINES:
        (folder / f"{machine.name}.toml").write_bytes(platform_file(machine).encode())
    print(f"{folder}: {len(MACHINES)} files")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

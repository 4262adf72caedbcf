"""The build matrices of PyTorch and torchvision: their documents' tables, row by row.

The documents give people a table of variants per CUDA branch, and decision trees to find theirs.
The first is what the matrix files have to come to. The second is what the engine replaces: here
each row is a machine, told by its facts, and the build that it gets.

The documents name some machines wrongly. What happens follows the hardware; such rows say so with
the comment "they say".
"""

import json
import re
from pathlib import Path

import pytest

from pep_variants._choose.explanation import why_not
from pep_variants._choose.ranking import rank
from pep_variants._detect.detector import Detector
from pep_variants._detect.machines import load_machine
from pep_variants._formats.reader import read_metadata
from pep_variants._providers.cpu import known_cpus
from variants_cli import matrices
from variants_cli._matrix.combination import combine
from variants_cli._matrix.output import metadata
from variants_cli._matrix.reading import read_matrix

FOLDER = Path(matrices.__path__[0])
LINUX = {"platform_system": "Linux", "os_name": "posix", "sys_platform": "linux"}

TORCH_12_8 = "torch-2.8.0-cuda12.8"
TORCH_12_9 = "torch-2.9.1-cuda12.9"
TORCH_13_0 = "torch-2.10.0-cuda13.0"
VISION_12_8 = "torchvision-0.23.0-cuda12.8"
VISION_12_9 = "torchvision-0.24.0-cuda12.9"
VISION_13_0 = "torchvision-0.25.0-cuda13.0"
ALL = (TORCH_12_8, TORCH_12_9, TORCH_13_0, VISION_12_8, VISION_12_9)
CUDA = {name: "cuda" + name.rpartition("cuda")[2].replace(".", "_") for name in (*ALL, VISION_13_0)}

BF16, INT8 = "bf16_training", "int8_inference"


class Builds:
    """The variants of one matrix file, and the metadata that an index would have of them."""

    def __init__(self, name):
        matrix = read_matrix(FOLDER / f"{name}.toml")
        self.name = name
        self.variants = {variant.label: variant for variant in combine(matrix)}
        self.text = metadata(matrix, list(self.variants.values()))
        self.metadata = read_metadata(self.text, name)

    def __contains__(self, label):
        return label in self.variants

    def label(self, build):
        """Label of the build that the documents call e.g. ``sm90-avx512`` or ``cpu-avx2``."""
        build = build.replace("-", "_")
        return build if build.startswith("cpu_") else f"{CUDA[self.name]}_{build}"

    def ranked(self, platform, *enable):
        detector = Detector(environment=LINUX, platform=platform, enabled=enable)
        return rank(self.metadata, detector.platform(self.metadata))

    def chosen(self, platform, *enable):
        return next(iter(self.ranked(platform, *enable).labels), None)


CPUS = {cpu.name: cpu for family in ("x86_64", "aarch64") for cpu in known_cpus(family)}
BUILDS = {name: Builds(name) for name in CUDA}


def machine(cpu, cuda=""):
    """Return a machine, of a CUDA version and a compute capability if it has a GPU."""
    driver, _, capability = cuda.partition(" ")
    return load_machine(f"cuda={driver},sm={capability},cpu={cpu}" if cuda else f"cpu={cpu}")


# The tables of variants.

ALL_13_0 = """
cpu   avx avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm75      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm80      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm86      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm89      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm90      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm100     avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm103     avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm110                                       armv8_2 armv9
sm120     avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm121                                       armv8_2 armv9
"""
ALL_12_8 = """
sm120     avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm100     avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm90      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm89      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm86      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm80      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
cpu       avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
sm61  avx avx2
"""
B300 = "sm103 avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9"
# What torchvision has for CUDA 12.9 and PyTorch has not.
TURING_AND_AVX = """
sm75      avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
cpu   avx
"""
TABLES = {
    TORCH_12_8: (ALL_12_8, 44),
    TORCH_12_9: (ALL_12_8 + B300, 50),
    TORCH_13_0: (ALL_13_0, 59),
    VISION_12_8: (ALL_12_8, 44),
    VISION_12_9: (ALL_12_8 + B300 + TURING_AND_AVX, 57),
    # The two that torchvision has no other builds for, also for x86-64, unlike PyTorch.
    VISION_13_0: (
        """
        sm110 avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
        sm121 avx2 avx512 avx512bf16 avx512vnni armv8_2 armv9
        """,
        12,
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_variants_are_those_of_the_table(name):
    table, count = TABLES[name]
    rows = [line.split() for line in table.strip().splitlines()]
    wanted = [BUILDS[name].label(f"{gpu}-{cpu}") for gpu, *cpus in rows for cpu in cpus]
    assert len(wanted) == count
    assert sorted(BUILDS[name].variants) == sorted(wanted)


RECIPE = {
    "avx": "-mavx",
    "avx2": "-mavx2 -mfma",
    "avx512": "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma",
    "avx512bf16": "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx512bf16 -mfma",
    "avx512vnni": "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx512vnni -mfma",
    "armv8_2": "-march=armv8.2-a",
    "armv9": "-march=armv9-a",
}


@pytest.mark.parametrize("name", ALL)
def test_flags_are_those_of_the_recipe(name):
    """torchvision is built by setuptools, where CFLAGS would take the place of ``-O3``."""
    is_torch = name.startswith("torch-")
    languages = ("CFLAGS", "CXXFLAGS") if is_torch else ("c", "cxx")
    for variant in BUILDS[name].variants.values():
        settings = variant.settings
        found, none = settings.flags, settings.compiler_flags
        if not is_torch:
            found, none = none, found
            assert settings.environment["MAX_JOBS"] == "32"
        flags = tuple(RECIPE[variant.values["cpu"].name].split())
        assert (found, none) == (dict.fromkeys(languages, flags), {})


# Compute capability, the architecture, and one of its own kind of CPU: "Which GPU do you have?" and
# the reference of architectures.
GPUS = [
    ("12.1", "sm121", "neoverse_v3ae"),  # DGX Spark
    ("12.0", "sm120", "zen3"),  # RTX 5090
    ("11.0", "sm110", "neoverse_v3ae"),  # NVIDIA DRIVE Thor
    ("8.7", "sm86", "neoverse_n1"),  # DRIVE Orin; 11.0 and SM110, they say of 'Orin+'
    ("10.3", "sm103", "zen3"),  # B300
    ("10.0", "sm100", "zen3"),  # B100, B200
    ("9.0", "sm90", "zen3"),  # H100, H200
    ("8.9", "sm89", "zen3"),  # RTX 4060 Ti to 4090, L4, L40; L40S: 9.0 and SM90, they say
    ("8.6", "sm86", "zen3"),  # RTX 3080 Ti to 3090 Ti, A40, A5000
    ("8.0", "sm80", "zen3"),  # A100, A30
    ("7.5", "sm75", "zen3"),  # T4, RTX 2060 to 2080 Ti, Quadro RTX 6000 and 8000
    ("6.1", "sm61", "zen3"),  # GTX 1070 to 1080 Ti
]
# What a machine gets where nothing is built for its architecture: code for an older one of its
# generation, which runs on it, or else the build for its CPU.
INSTEAD = {
    "sm121": {TORCH_12_8: "sm120", TORCH_12_9: "sm120", VISION_12_8: "sm120", VISION_12_9: "sm120"},
    "sm110": dict.fromkeys((TORCH_12_8, TORCH_12_9, VISION_12_8, VISION_12_9), "cpu"),
    "sm103": {TORCH_12_8: "sm100", VISION_12_8: "sm100"},
    "sm75": dict.fromkeys((TORCH_12_8, TORCH_12_9, VISION_12_8), "cpu"),
    "sm61": {TORCH_13_0: "cpu"},
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("capability", "architecture", "cpu"), GPUS)
def test_gpu(name, capability, architecture, cpu):
    builds = BUILDS[name]
    isa = {"zen3": "avx2", "neoverse_n1": "armv8_2", "neoverse_v3ae": "armv9"}[cpu]
    wanted = INSTEAD.get(architecture, {}).get(name, architecture)
    assert (builds.label(f"{architecture}-{isa}") in builds) == (wanted == architecture)
    platform = machine(cpu, f"13.0 {capability}")
    assert builds.chosen(platform) == builds.label(f"{wanted}-{isa}")


# What lscpu shows, what for, a CPU that has it, and the build: "Which CPU ISA should you use?" and
# the guide to the CPU variants.
INSTRUCTION_SETS = [
    ("avx512_bf16", BF16, "zen4", "avx512bf16"),
    ("avx512_bf16", BF16, "sapphirerapids", "avx512bf16"),
    ("avx512_vnni", INT8, "cascadelake", "avx512vnni"),
    ("avx512_vnni", INT8, "icelake", "avx512vnni"),
    ("avx512_vnni", INT8, "zen4", "avx512vnni"),
    ("avx512f", INT8, "skylake_avx512", "avx512"),  # Skylake-SP has VNNI, they say
    ("avx512f", BF16, "cascadelake", "avx512"),
    ("avx512f", "", "skylake_avx512", "avx512"),
    ("avx512f", "", "cascadelake", "avx512"),
    ("avx512f", "", "sapphirerapids", "avx512"),
    ("avx512f", "", "zen4", "avx512"),
    ("avx512f", "", "zen5", "avx512"),
    ("avx2", "", "haswell", "avx2"),
    ("avx2", "", "zen", "avx2"),
    ("avx2", "", "alderlake", "avx2"),
    ("avx2", BF16, "haswell", "avx2"),
    ("avx2", INT8, "haswell", "avx2"),
    ("avx", "", "sandybridge", "avx"),
    ("avx", "", "bulldozer", "avx"),
    ("sve2", "", "neoverse_v2", "armv9"),  # Grace, Graviton4
    ("sve2", INT8, "neoverse_v2", "armv9"),
    ("sve", "", "neoverse_v1", "armv8_2"),  # SVE2 and ARMv9, they say of Graviton3
    ("asimddp", "", "neoverse_n1", "armv8_2"),  # Graviton2
]
BETTER = ("avx512_bf16", "avx512_vnni", "avx512f", "avx2", "sve2", "sve")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("flag", "workload", "cpu", "isa"), INSTRUCTION_SETS)
def test_instruction_set(name, flag, workload, cpu, isa):
    assert flag in CPUS[cpu].features
    if flag == isa:  # 'avx2 (no avx512)', 'avx only'
        assert not CPUS[cpu].features.intersection(BETTER[: (*BETTER, flag).index(flag)])
    builds = BUILDS[name]
    enable = [workload] if workload else []
    chosen = builds.chosen(machine(cpu), *enable)
    assert chosen == (builds.label(f"cpu-{isa}") if builds.label(f"cpu-{isa}") in builds else None)
    assert (chosen is None) == (isa == "avx" and name in (TORCH_12_8, TORCH_12_9, VISION_12_8))
    # The same CPU beside a GPU; there it counts what was built for it.
    beside = builds.label(f"sm90-{isa}")
    chosen = builds.chosen(machine(cpu, "13.0 9.0"), *enable)
    assert chosen == (beside if beside in builds else builds.chosen(machine(cpu), *enable))


# The CUDA version that a driver supports itself, by its branch (CUDA release notes, table 3).
DRIVERS = {
    "525": "12.0", "535": "12.2", "545": "12.3", "550": "12.4", "555": "12.5", "560": "12.6",
    "565": "12.7", "570": "12.8", "575": "12.9", "580": "13.0",
}  # fmt: skip
OLDER = dict(zip(list(DRIVERS)[1:], DRIVERS, strict=False))


@pytest.mark.parametrize("name", ALL)
def test_oldest_driver(name):
    """The minimum of the CUDA branch, or of a GPU that is newer than that.

    For CUDA 13 they say 570: but no CUDA 13 runs on a driver for CUDA 12.
    """
    builds = BUILDS[name]
    labels = [label for label in builds.variants if re.search(r"_sm\d+_avx2$", label)]
    assert len(labels) >= 7
    for wanted in labels:
        digits = wanted.split("_")[-2].removeprefix("sm")
        branch = "580" if name == TORCH_13_0 else "570" if digits == "120" else "550"
        capability = f"{digits[:-1]}.{digits[-1]}"
        oldest, older = DRIVERS[branch], DRIVERS[OLDER[branch]]
        assert builds.chosen(machine("zen3", f"{oldest} {capability}")) == wanted
        found = builds.ranked(machine("zen3", f"{older} {capability}"))
        assert found.labels[0] == "cpu_avx2"
        assert why_not(found, wanted) == (
            f"needs CUDA driver {oldest} or newer, this one supports up to {older}",
        )


def test_the_metadata_says_it_in_the_standard_format():
    tree = json.loads(BUILDS[TORCH_12_8].text)
    assert tree["providers"][INT8] == {"static-properties": {"build": ["on"]}, "optional": True}
    assert tree["$schema"].endswith("v0.2.0.json")


@pytest.mark.parametrize(
    ("torch", "vision"), [(TORCH_12_8, VISION_12_8), (TORCH_12_9, VISION_12_9)]
)
def test_torchvision_agrees_where_torch_has_the_build(torch, vision):
    """The same order of the same properties: each machine gets builds that go together."""
    trees = [json.loads(BUILDS[name].text) for name in (torch, vision)]
    variants = [tree.pop("variants") for tree in trees]
    assert trees[0] == trees[1]
    assert variants[0].items() <= variants[1].items()


# ROCm: the release of the field, as a matrix.

ROCM = "torch-2.9.0-rocm"
FIXTURES = Path(__file__).parents[2] / "pep-variants" / "tests" / "fixtures"


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="an sdist has no files of the engine's tests")
def test_rocm():
    builds = Builds(ROCM)
    found = read_metadata((FIXTURES / f"{ROCM}-variants.json").read_bytes(), ROCM)
    assert builds.metadata.variants == found.variants
    assert builds.metadata.namespaces == found.namespaces
    assert builds.chosen(load_machine("mi300x-rocm6.4")) == "rocm6.4"
    assert builds.chosen(load_machine("mi210-rocm6.3")) == "rocm6.3"
    assert builds.chosen(load_machine("mi300x-rocm7.0")) == "null"
    for variant in builds.variants.values():
        told = variant.settings.environment.get("PYTORCH_ROCM_ARCH", "").split(";")
        gpus = [item.value for item in variant.settings.properties if item.feature == "gfx_arch"]
        assert list(filter(None, told)) == gpus

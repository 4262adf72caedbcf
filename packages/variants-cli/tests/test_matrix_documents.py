"""The build matrices of PyTorch and torchvision: their documents' tables, row by row.

The documents give people a table of variants per CUDA branch, and decision trees to find theirs.
The first is what the matrix files have to come to. The second is what the engine replaces: here
each row is a machine, told by its facts, and the build that it gets.

The documents name some machines wrongly. What happens follows the hardware; such rows say so with
the comment "they say".
"""

import json
import sys
from pathlib import Path

import pytest

from pep_variants.choose.explanation import why_not
from pep_variants.choose.ranking import rank
from pep_variants.detect.detector import Detector
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine
from pep_variants.formats.reader import read_metadata
from variants_cli import matrices
from variants_cli.matrix.backends import additions
from variants_cli.matrix.combination import combine
from variants_cli.matrix.output import metadata
from variants_cli.matrix.reading import read_matrix

sys.path.insert(0, str(Path(__file__).parent))


FOLDER = Path(matrices.__path__[0])
LINUX = {"platform_system": "Linux", "os_name": "posix", "sys_platform": "linux"}

TORCH_12_8 = "torch-2.8.0-cuda12.8"
TORCH_12_9 = "torch-2.9.1-cuda12.9"
TORCH_13_0 = "torch-2.10.0-cuda13.0"
VISION_12_8 = "torchvision-0.23.0-cuda12.8"
VISION_12_9 = "torchvision-0.24.0-cuda12.9"
ALL = (TORCH_12_8, TORCH_12_9, TORCH_13_0, VISION_12_8, VISION_12_9)
CUDA = {name: "cuda" + name.rpartition("cuda")[2].replace(".", "_") for name in ALL}

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


BUILDS = {name: Builds(name) for name in ALL}


def machine(cpu, cuda=""):
    """Return a machine, of a CUDA version and a compute capability if it has a GPU."""
    driver, _, capability = cuda.partition(" ")
    return load_machine(f"cuda={driver},sm={capability},cpu={cpu}" if cuda else f"cpu={cpu}")


def example(name):
    return load_machine(name)


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
}


@pytest.mark.parametrize("name", ALL)
def test_variants_are_those_of_the_table(name):
    table, count = TABLES[name]
    rows = [line.split() for line in table.strip().splitlines()]
    wanted = [BUILDS[name].label(f"{gpu}-{cpu}") for gpu, *cpus in rows for cpu in cpus]
    assert len(wanted) == count
    assert sorted(BUILDS[name].variants) == sorted(wanted)


def test_flags_are_those_of_the_recipe():
    flags = "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma"
    for name in ALL:
        settings = BUILDS[name].variants[BUILDS[name].label("sm89-avx512")].settings
        is_torch = name.startswith("torch-")  # the others are built by setuptools
        found = settings.flags if is_torch else settings.compiler_flags
        assert {key: " ".join(words) for key, words in found.items()} == dict.fromkeys(
            ("CFLAGS", "CXXFLAGS") if is_torch else ("c", "cxx"), flags
        )


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


# Recommendations for special workloads: matrices, machine, what for, build. All others are
# among the example machines below.
SCENARIOS = [
    ((TORCH_12_8, VISION_12_9), "a40-icelake", INT8, "sm86-avx512vnni"),
    (ALL, "h100-sapphirerapids", INT8, "sm90-avx512vnni"),
    (ALL, "rtx-5090-zen5", INT8, "sm120-avx512vnni"),
    ((TORCH_12_8, VISION_12_9), "h100-zen4", INT8, "sm90-avx512vnni"),
    ((TORCH_12_8, VISION_12_9), "h100-zen4", BF16, "sm90-avx512bf16"),
]


@pytest.mark.parametrize(("names", "where", "workload", "build"), SCENARIOS)
def test_scenario(names, where, workload, build):
    for name in names:
        builds = BUILDS[name]
        assert builds.chosen(example(where), workload) == builds.label(build), name


# The CUDA version that a driver supports itself, by its branch (CUDA release notes, table 3).
DRIVERS = {
    "525": "12.0", "535": "12.2", "545": "12.3", "550": "12.4", "555": "12.5", "560": "12.6",
    "565": "12.7", "570": "12.8", "575": "12.9", "580": "13.0",
}  # fmt: skip
OLDER = dict(zip(list(DRIVERS)[1:], DRIVERS, strict=False))
# Compute capability, the oldest driver that knows the GPU, and the oldest one that its build runs
# on: the branch's own minimum, or that of the GPU if it is newer.
MINIMUMS = [
    (name, capability, branch)
    for names, rows in (
        (
            (TORCH_12_8, TORCH_12_9, VISION_12_8, VISION_12_9),
            [("8.0", "550"), ("8.6", "550"), ("8.9", "550"), ("9.0", "550"), ("10.0", "550"),
             ("12.0", "570")],
        ),
        ((TORCH_12_9, VISION_12_9), [("10.3", "550")]),
        ((TORCH_12_8, TORCH_12_9), [("6.1", "550")]),
        ((VISION_12_9,), [("7.5", "550"), ("6.1", "550")]),
        # 570, they say: but no CUDA 13 runs on a driver for CUDA 12.
        (
            (TORCH_13_0,),
            [("7.5", "580"), ("8.0", "580"), ("8.6", "580"), ("8.9", "580"), ("9.0", "580"),
             ("10.0", "580"), ("10.3", "580"), ("12.0", "580")],
        ),
    )
    for name in names
    for capability, branch in rows
]  # fmt: skip


@pytest.mark.parametrize(("name", "capability", "driver"), MINIMUMS)
def test_oldest_driver(name, capability, driver):
    builds = BUILDS[name]
    wanted = builds.label(f"sm{capability.replace('.', '')}-avx2")
    oldest, older = DRIVERS[driver], DRIVERS[OLDER[driver]]
    assert builds.chosen(machine("zen3", f"{oldest} {capability}")) == wanted
    found = builds.ranked(machine("zen3", f"{older} {capability}"))
    assert found.labels[0] == "cpu_avx2"
    assert why_not(found, wanted) == (
        f"needs CUDA driver {oldest} or newer, this one supports up to {older}",
    )


EXAMPLES = sorted(BY_NAME)

# Every example machine that the matrices are for: its build in the two largest of them.
# fmt: off
MACHINES = [
    ("gtx-1080-ti-sandybridge", "cpu-avx", "cpu-avx"),  # a driver for CUDA 12.2
    ("gtx-1080-ti-haswell", "sm61-avx2", "cpu-avx2"),
    ("v100-broadwell", "cpu-avx2", "cpu-avx2"),  # there is no build for 7.0
    ("t4-cascadelake", "cpu-avx512", "cpu-avx512"),  # a driver for CUDA 12.2
    ("rtx-2080-ti-zen2", "sm75-avx2", "sm75-avx2"),
    ("quadro-rtx-8000-skylake-avx512", "sm75-avx512", "cpu-avx512"),
    ("a100-zen3", "sm80-avx2", "cpu-avx2"),
    ("a100-cascadelake", "cpu-avx512", "cpu-avx512"),
    ("rtx-3090-alderlake", "sm86-avx2", "cpu-avx2"),  # AVX-512, they say of the i9-12900K
    ("rtx-3090-skylake-avx512", "sm86-avx512", "sm86-avx512"),
    ("a40-icelake", "sm86-avx512", "cpu-avx512"),
    ("rtx-4090-zen4", "sm89-avx512", "cpu-avx512"),
    ("l4-zen3", "sm89-avx2", "sm89-avx2"),
    ("l40s-zen4", "sm89-avx512", "cpu-avx512"),  # a Hopper, they say
    ("h100-sapphirerapids", "sm90-avx512", "sm90-avx512"),
    ("h100-zen4", "sm90-avx512", "cpu-avx512"),
    ("h100-zen3", "sm90-avx2", "cpu-avx2"),
    ("h200-sapphirerapids", "sm90-avx512", "cpu-avx512"),
    ("b200-sapphirerapids", "sm100-avx512", "cpu-avx512"),
    ("b300-zen5", "sm103-avx512", "sm103-avx512"),
    ("rtx-5090-zen5", "sm120-avx512", "sm120-avx512"),
    ("rtx-5090-alderlake", "sm120-avx2", "cpu-avx2"),
    ("t4g-graviton2", "cpu-armv8_2", "cpu-armv8_2"),  # a driver for CUDA 12.2
    ("a100-altra", "sm80-armv8_2", "cpu-armv8_2"),
    ("h100-graviton3", "sm90-armv8_2", "cpu-armv8_2"),  # ARMv9 and SVE2, they say of Graviton3
    ("gh200-grace", "sm90-armv9", "sm90-armv9"),
    ("gb200-grace", "sm100-armv9", "cpu-armv9"),
    ("thor", "cpu-armv9", "sm110-armv9"),
    ("dgx-spark", "sm120-armv9", "sm121-armv9"),
    ("jetson-orin", "sm86-armv8_2", "cpu-armv8_2"),  # 11.0, they say
    ("cpu-x86-64-v1", None, None),
    ("cpu-x86-64-v2", None, None),
    ("cpu-x86-64-v3", "cpu-avx2", "cpu-avx2"),
    ("cpu-x86-64-v4", "cpu-avx512", "cpu-avx512"),
    ("cpu-sandybridge", "cpu-avx", "cpu-avx"),
    ("cpu-bulldozer", "cpu-avx", "cpu-avx"),
    ("cpu-haswell", "cpu-avx2", "cpu-avx2"),
    ("cpu-zen", "cpu-avx2", "cpu-avx2"),
    ("laptop-alderlake", "cpu-avx2", "cpu-avx2"),
    ("cpu-skylake-avx512", "cpu-avx512", "cpu-avx512"),
    ("cpu-cascadelake", "cpu-avx512", "cpu-avx512"),
    ("cpu-sapphirerapids", "cpu-avx512", "cpu-avx512"),
    ("cpu-zen4", "cpu-avx512", "cpu-avx512"),
    ("cpu-graviton2", "cpu-armv8_2", "cpu-armv8_2"),
    ("cpu-graviton3", "cpu-armv8_2", "cpu-armv8_2"),
    ("cpu-graviton4", "cpu-armv9", "cpu-armv9"),
    ("cpu-grace", "cpu-armv9", "cpu-armv9"),
]
# fmt: on


@pytest.mark.parametrize(("where", "cuda_12_9", "cuda_13_0"), MACHINES)
def test_example_machine(where, cuda_12_9, cuda_13_0):
    for name, build in ((VISION_12_9, cuda_12_9), (TORCH_13_0, cuda_13_0)):
        wanted = None if build is None else BUILDS[name].label(build)
        assert BUILDS[name].chosen(example(where)) == wanted


def test_no_example_machine_is_left_out():
    others = {name for name in EXAMPLES if name.startswith("apple-")}
    for namespace in ("amd", "intel"):
        others |= {name for name in EXAMPLES if example(name).support(namespace).features}
    assert {row[0] for row in MACHINES} == {*EXAMPLES} - others


# Special builds are for those who ask, on whichever machine, and are no worse for the others.


@pytest.mark.parametrize("name", ALL)
def test_nobody_gets_a_special_build_unasked(name):
    builds = BUILDS[name]
    for where in EXAMPLES:
        found = builds.ranked(example(where))
        assert not [label for label in found.labels if label.endswith(("bf16", "vnni"))], where
        for workload, ending in ((BF16, "avx512bf16"), (INT8, "avx512vnni")):
            asked = builds.chosen(example(where), workload)
            if asked != next(iter(found.labels), None):
                assert asked is not None
                assert asked.endswith(f"_{ending}")
                assert asked.replace(ending, "avx512") == found.labels[0]  # same GPU


def test_who_is_told_how_to_ask():
    found = BUILDS[TORCH_12_8].ranked(example("h100-zen4"))
    (reason,) = why_not(found, "cuda12_8_sm90_avx512vnni")
    assert reason.startswith("needs int8_inference :: build on")
    assert "--variant-enable int8_inference" in reason


def test_the_metadata_says_it_in_the_standard_format():
    tree = json.loads(BUILDS[TORCH_12_8].text)
    assert tree["providers"][INT8] == {"static-properties": {"build": ["on"]}, "optional": True}
    assert tree["$schema"].endswith("v0.2.0.json")


# torchvision agrees with torch.


def test_torchvision_of_cuda_12_8_agrees_everywhere():
    torch, vision = BUILDS[TORCH_12_8], BUILDS[VISION_12_8]
    assert json.loads(torch.text) == json.loads(vision.text)


@pytest.mark.parametrize("workload", ["", BF16, INT8])
def test_torchvision_of_cuda_12_9_agrees_where_torch_has_the_build(workload):
    torch, vision = BUILDS[TORCH_12_9], BUILDS[VISION_12_9]
    differing = {}
    for where in EXAMPLES:
        enable = [workload] if workload else []
        pair = torch.chosen(example(where), *enable), vision.chosen(example(where), *enable)
        if pair[0] != pair[1]:
            differing[where] = pair
            assert pair[1] not in torch
    # The Turing and AVX builds, which PyTorch has not on that branch.
    assert sorted(differing) == [
        "cpu-bulldozer",
        "cpu-sandybridge",
        "gtx-1080-ti-sandybridge",
        "quadro-rtx-8000-skylake-avx512",
        "rtx-2080-ti-zen2",
    ]


@pytest.mark.parametrize(
    ("vision", "torch"), [(VISION_12_8, TORCH_12_8), (VISION_12_9, TORCH_13_0)]
)
def test_torchvision_has_the_flags_of_torch_behind_those_of_the_interpreter(vision, torch):
    """It is built by setuptools, where CFLAGS would take the place of ``-O3``."""

    def cpus(name, of):
        return {
            variant.values["cpu"].name: of(variant.settings)
            for variant in BUILDS[name].variants.values()
        }

    words = cpus(torch, lambda settings: (settings.flags["CFLAGS"], settings.flags["CXXFLAGS"]))
    added = cpus(
        vision, lambda settings: (settings.compiler_flags["c"], settings.compiler_flags["cxx"])
    )
    assert added == {cpu: words[cpu] for cpu in added}
    for variant in BUILDS[vision].variants.values():
        assert not variant.settings.flags
        assert variant.settings.environment["MAX_JOBS"] == "32"
    some = next(v for v in BUILDS[vision].variants.values() if v.values["cpu"].name == "avx2")
    found = additions(some.settings.compiler_flags, {}, {}, system="linux", interpreter="-O3")
    assert found == dict.fromkeys(("CFLAGS", "CXXFLAGS"), "-O3 -mavx2 -mfma")


# ROCm: the release of the field, as a matrix.

ROCM = "torch-2.9.0-rocm"
FIXTURES = Path(__file__).parents[2] / "pep-variants" / "tests" / "fixtures"


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="an sdist has no files of the engine's tests")
def test_rocm():
    builds = Builds(ROCM)
    found = read_metadata((FIXTURES / f"{ROCM}-variants.json").read_bytes(), ROCM)
    assert builds.metadata.variants == found.variants
    assert builds.metadata.namespaces == found.namespaces
    assert builds.chosen(example("mi300x-rocm6.4")) == "rocm6.4"
    assert builds.chosen(example("mi210-rocm6.3")) == "rocm6.3"
    assert builds.chosen(example("mi300x-rocm7.0")) == "null"
    for variant in builds.variants.values():
        told = variant.settings.environment.get("PYTORCH_ROCM_ARCH", "").split(";")
        gpus = [item.value for item in variant.settings.properties if item.feature == "gfx_arch"]
        assert list(filter(None, told)) == gpus

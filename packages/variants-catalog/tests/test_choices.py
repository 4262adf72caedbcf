"""The shipped catalogue; what a release of each project gives on each machine, judged by hand.

`variants catalog check` finds what is wrong in one entry.
"""

import re
import shlex
from dataclasses import replace

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import variants_catalog
from pep_variants._choose.preferences import Preferences
from pep_variants._choose.rejections import why_not_better
from pep_variants._choose.selection import File, select
from pep_variants._detect.detector import Detector
from pep_variants._detect.machines import load_machine
from pep_variants._model.platform import Platform, Support
from pep_variants._model.property import ABI_DEPENDENCY
from pep_variants._providers.nvidia import NvidiaProvider
from pep_variants._providers.registry import ACCELERATORS, BUILTIN_NAMESPACES, ask_known
from pep_variants.safe_files import read_toml
from variants_catalog._catalogs import DirectoryCatalog
from variants_catalog._entry_checks import sample_versions
from variants_catalog.catalogs import plain_lines, source_of
from variants_catalog.entries import target

CATALOG = DirectoryCatalog(variants_catalog.projects())
NAMES = list(CATALOG.names())

MACHINES = {
    "cpu": "cpu-zen4",
    "apple": "apple-m4",
    "pascal": "gtx-1080-ti-haswell",
    "pascal 13": "cuda=13.0,sm=6.1,cpu=haswell",
    "v100": "v100-broadwell",
    "v100 13": "cuda=13.0,sm=7.0,cpu=broadwell",
    "t4": "t4-cascadelake",
    "a100": "a100-zen3",
    "h100": "h100-zen4",
    "h100 13": "h100-sapphirerapids",
    "b200": "b200-sapphirerapids",
    "rtx5090": "rtx-5090-zen5",
    "spark": "dgx-spark",
    "thor": "thor",
    "old": "a100-cascadelake",
    "mi300x": "mi300x-rocm7.0",
    "rx7900": "rx-7900-rocm6.4",
    "strix": "ryzen-ai-max-rocm7.0",
    "rx5700": "rx-5700-rocm6.4",
    "arc": "arc-a770-alderlake",
    "b580": "arc-b580-zen3",
}
"""Named platforms, or facts. CUDA drivers: 13.0 for ``h100 13``, ``rtx5090``, ``spark`` and
``thor``; 12.8 for ``pascal``, ``h100`` and ``b200``; 12.4 for ``v100`` and ``a100``; 12.2 for
``t4``; 11.4 for ``old``."""
PLATFORMS = {name: load_machine(text) for name, text in MACHINES.items()}

TAGS = {"apple": "macosx", "spark": "_aarch64", "thor": "_aarch64"}
TAGS |= {"aarch64": "_aarch64", "win": "win_amd64"}
"""What platform tags contain; the other machines are ``linux_x86_64``."""


def published(entry, version):
    """What the catalogue makes of the files of *version*, if every source has one of each."""
    found = []
    for variant in entry.variants:
        if not variant.admits(Version(version)):
            continue
        name = target(variant) if variant.is_redirect else entry.name
        local = (variant.local or ("",))[0].replace("{torch}", "2.11")
        plus = "+" if local else ""
        filename = f"{name.replace('-', '_')}-{version}{plus}{local}-py3-none-any.whl"
        if variant.place:
            found += entry.files(variant.place, filename)
        elif name == entry.name:
            found += entry.own_files(filename)
        else:
            found += entry.renamed_files(filename)
    return {item.filename: item for item in found}.values()


def runs_on(filename, name):
    """Whether the platform tags of a labelled wheel are of the machine called *name*."""
    tags = filename.rsplit("-", 2)[1]
    return tags == "any" or re.search(TAGS.get(name, "linux.*_x86_64"), tags) is not None


def choice(name, version, on):
    """The label that is chosen, empty for the project's own wheel without a label."""
    return selected(name, version, PLATFORMS[on], on).chosen.label or ""


def selected(name, version, platform, on=""):
    """The decision about a release, on *platform* and with the wheels for the machine *on*."""
    entry = CATALOG.project(name)
    files = [
        File(item.filename, "catalogue", item)
        for item in published(entry, version)
        if runs_on(item.filename, on)
    ]
    files.append(File(f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "catalogue", None))
    metadata = entry.metadata([file.item for file in files if file.item is not None])
    # Resolvers compare what is built against a torch with the torch that is chosen.
    variants = {
        label: {name: held for name, held in properties.items() if name != ABI_DEPENDENCY}
        for label, properties in metadata.variants.items()
    }
    metadata = replace(metadata, variants=variants)
    selection = select(
        files,
        metadata=lambda _: metadata,
        platform=Detector(platform=platform).platform,
        preferences=Preferences(),
        project=name,
    )
    assert not selection.problems
    return selection


CUDA12 = "v100, t4, a100, h100, b200"
CUDA13 = "h100 13, rtx5090, spark, thor"
AMD = "mi300x, rx7900, strix, rx5700"
INTEL = "arc, b580"
REST = "cpu, apple, old"
OTHERS = f"{AMD}, {INTEL}, {REST}"
ALL = f"pascal, pascal 13, v100 13, {CUDA12}, {CUDA13}, {AMD}, {INTEL}, {REST}"

CASES = {
    # The first release without builds for CUDA 12.
    "torch 2.15.0": f"""
        cuda13.2: {CUDA13}
        xpu: {INTEL}
        null: pascal, pascal 13, v100 13, {CUDA12}, {AMD}, {REST}
        """,
    # A Pascal or Volta GPU runs the build for CUDA 12.6 only, whatever its driver. No build of 2.14
    # for CUDA 12 has code for Blackwell.
    "torch 2.14.0": f"""
        cuda12.6: pascal, v100, t4, a100, h100, pascal 13, v100 13
        cuda13.2: {CUDA13}
        xpu: {INTEL}
        null: b200, {AMD}, {REST}
        """,
    "torch 2.13.0": f"""
        cuda12.6: pascal, v100, t4, a100, h100, pascal 13, v100 13
        cuda12.9: b200
        cuda13.0: {CUDA13}
        rocm7.2: mi300x, rx7900, strix
        rocm10.0_gfx1010: rx5700
        xpu: {INTEL}
        null: {REST}
        """,
    "torch 2.11.0, torchvision 0.26.0, torchaudio 2.11.0": f"""
        cuda12.6: pascal, v100, pascal 13, v100 13
        cuda12.8: t4, a100, h100, b200
        cuda13.0: {CUDA13}
        rocm7.2: mi300x, rx7900, strix
        xpu: {INTEL}
        null: rx5700, {REST}
        """,
    # As the publisher's own variant wheels of 2.9.0 and 2.8.0 are chosen, except that ROCm is
    # brought by the wheels, and Thor has no wheel there.
    "torch 2.9.0": f"""
        cuda12.6: pascal, pascal 13
        cuda12.8: {CUDA12}, v100 13
        cuda13.0: {CUDA13}
        rocm6.4: mi300x, rx7900
        xpu: {INTEL}
        null: strix, rx5700, {REST}
        """,
    "torch 2.8.0": f"""
        cuda12.6: pascal, pascal 13
        cuda12.8: {CUDA12}
        cuda12.9: h100 13, rtx5090, spark, v100 13
        rocm6.4: mi300x, rx7900
        null: thor, strix, rx5700, {INTEL}, {REST}
        """,
    "torch 2.7.1": f"""
        cuda11.8: old
        cuda12.6: pascal, v100, pascal 13, v100 13
        cuda12.8: t4, a100, h100, b200, h100 13, rtx5090, spark
        rocm6.3: mi300x, rx7900
        null: thor, strix, rx5700, {INTEL}, cpu, apple
        """,
    # Older than Blackwell.
    "torch 2.5.1": f"""
        cuda11.8: old
        cuda12.4: pascal, v100, t4, a100, h100, h100 13, pascal 13, v100 13
        null: b200, rtx5090, spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    "torch 2.4.0": f"""
        cuda11.8: old
        cuda12.1: pascal, v100, t4, a100, h100, h100 13, pascal 13, v100 13
        null: b200, rtx5090, spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    "torchcodec 0.10.0": f"""
        cuda12.6: pascal, v100, pascal 13, v100 13
        cuda12.8: t4, a100, h100, b200
        cuda13.0: {CUDA13}
        null: {AMD}, {INTEL}, {REST}
        """,
    "fbgemm-gpu 1.5.0": f"""
        cuda12.8: t4, a100, h100, b200
        cuda13.0: h100 13, rtx5090, spark
        rocm7.1: mi300x
        null: pascal, v100, pascal 13, v100 13, thor, rx7900, strix, rx5700, {INTEL}, {REST}
        """,
    # The wheel of the public index for Linux is another build, and not for the others.
    "fbgemm-gpu 1.9.0, fbgemm-gpu 1.8.0": f"""
        cuda12.8: t4, a100, h100, b200
        cuda13.0: h100 13, rtx5090, spark
        null: pascal, v100, pascal 13, v100 13, thor, {AMD}, {INTEL}, {REST}
        """,
    # For CUDA 13 since 0.5.11; the wheel may be installed anywhere.
    "sglang 0.5.23": f"""
        cuda13: h100 13
         : pascal, pascal 13, v100 13, {CUDA12}, rtx5090, spark, thor, {OTHERS}
        """,
    "sglang 0.5.10": f"""
        cuda12: a100, h100, h100 13
         : pascal, pascal 13, v100, v100 13, t4, b200, rtx5090, spark, thor, {OTHERS}
        """,
    "xformers 0.0.33": f"""
        cuda12.8: t4, a100, h100, b200
        cuda13.0: {CUDA13}
         : pascal, v100, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "flash-attn 2.8.3.post1": f"""
        cuda12.8_torch2.11: a100, h100, b200
        cuda13.0_torch2.11: {CUDA13}
         : pascal, v100, t4, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "causal-conv1d 1.6.2.post1": f"""
        cuda13.0_torch2.11: {CUDA13}
        cuda12.8_torch2.11: t4, a100, h100, b200
         : pascal, v100, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "mmcv 2.2.0, transformer-engine-torch 2.16.0": f"""
        cuda13.0_torch2.11: h100 13, rtx5090, spark
        cuda12.8_torch2.11: {CUDA12}, v100 13
         : thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "pytorch3d 0.7.9": f"""
        cuda12.8_torch2.11: {CUDA12}, v100 13, h100 13, rtx5090, spark
         : thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    # For Hopper alone.
    "flash-attn-3 3.0.0b1": f"""
        cuda13.0_torch2.11: h100 13
        cuda12.8_torch2.11: h100
         : v100, t4, a100, b200, rtx5090, spark, thor, pascal, pascal 13, v100 13, {OTHERS}
        """,
    "deep-gemm 2.1.1": f"""
        cuda13.0_torch2.11: h100 13
        cuda12.8_torch2.11: h100, b200
         : v100, t4, a100, rtx5090, spark, thor, pascal, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    # Neither before Ampere nor on B200.
    "sageattention 2.2.0": f"""
        cuda13.0_torch2.11: h100 13, rtx5090, spark
        cuda12.8_torch2.11: a100, h100
         : v100, t4, b200, thor, pascal, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "megablocks 0.10.0": f"""
        cuda12.8_torch2.11: {CUDA12}, v100 13, h100 13, rtx5090, spark
         : thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    # The newest torch that there is a wheel for.
    "torch-scatter 2.1.2": f"""
        cuda12.8_torch2.9: pascal, pascal 13, v100 13, {CUDA12}, {CUDA13}
        cpu_torch2.9: {AMD}, {INTEL}, {REST}
        """,
    "deepspeed 0.19.2": f"""
        cuda12.8_torch2.11: pascal, pascal 13, v100 13, {CUDA12}
        cuda13.0_torch2.11: h100 13, rtx5090, spark
         : thor, {AMD}, {INTEL}, {REST}
        """,
    "vllm 0.25.0": f"""
        cuda12.9: t4, a100, h100, b200
        cuda13.0: {CUDA13}
        null: pascal, v100, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "llama-cpp-python 0.3.35": f"""
        cuda12.5: pascal, pascal 13, v100 13, {CUDA12}
        cuda13.0: {CUDA13}
        null: {AMD}, {INTEL}, {REST}
        """,
    "cupy 14.2.0": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}
        cuda13: {CUDA13}
        rocm7.0: mi300x, strix
         : rx7900, rx5700, {INTEL}, {REST}
        """,
    "cupy 13.6.0": f"""
        cuda11: old
        cuda12: pascal, pascal 13, v100 13, {CUDA12}
        cuda13: {CUDA13}
         : {AMD}, {INTEL}, cpu, apple
        """,
    # Since 1.27 for CUDA 13 only.
    "onnxruntime 1.31.1": f"""
        cuda13: h100 13, rtx5090, spark
         : thor, pascal, pascal 13, v100 13, {CUDA12}, {AMD}, {INTEL}, {REST}
        """,
    "onnxruntime 1.26.0": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}, h100 13, rtx5090
         : spark, thor, {AMD}, {INTEL}, {REST}
        """,
    # The PTX of this one release is for 9.0a.
    "onnxruntime 1.23.0": f"""
        cuda12: pascal, pascal 13, v100 13, v100, t4, a100, h100, h100 13
         : b200, rtx5090, spark, thor, {AMD}, {INTEL}, {REST}
        """,
    "jax 0.12.0, nvidia-dali 2.4.0": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}
        cuda13: {CUDA13}
         : {AMD}, {INTEL}, {REST}
        """,
    # The code for an RTX 50 has a known fault.
    "tensorflow 2.21.0": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}, h100 13
        null: rtx5090, {AMD}, {INTEL}, cpu, old
         : spark, thor, apple
        """,
    "transformer-engine 2.20.2": f"""
        cuda12: v100 13, {CUDA12}
        cuda13: h100 13, rtx5090, spark
         : pascal, pascal 13, thor, {AMD}, {INTEL}, {REST}
        """,
    "cuquantum-python 26.9.0": f"""
        cuda12: v100 13, {CUDA12}
        cuda13: {CUDA13}
         : pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "numba-cuda 0.30.4": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}
        cuda13: {CUDA13}
         : {AMD}, {INTEL}, {REST}
        """,
    # For x86_64 alone, with PTX for newer GPUs.
    "qiskit-aer 0.18.2": f"""
        cuda11: old
        cuda12: v100 13, {CUDA12}, h100 13, rtx5090
         : pascal, pascal 13, spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    "tensorflow 2.20.0": f"""
        cuda12: pascal, pascal 13, v100, t4, a100, h100, v100 13, h100 13
        null: b200, rtx5090, {AMD}, {INTEL}, cpu, old
         : spark, thor, apple
        """,
    # The GPU builds are for Linux, and not for the oldest driver of CUDA 12. Code of 10.0a is not
    # for all of 10.
    "mlx 0.32.4": f"""
        cuda12: a100, h100
        cuda13: h100 13, rtx5090, spark
        null: pascal, v100, t4, b200, thor, pascal 13, v100 13, {AMD}, {INTEL}, cpu, old
         : apple
        """,
    "pyg-lib 0.9.0": f"""
        cuda13.2_torch2.11: h100 13, rtx5090, spark
        cuda12.8_torch2.11: {CUDA12}, v100 13
        cpu_torch2.11: thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "mamba-ssm 2.3.2.post1": f"""
        cuda13.0_torch2.11: {CUDA13}
        cuda12.8_torch2.11: t4, a100, h100, b200
         : pascal, v100, pascal 13, v100 13, {AMD}, {INTEL}, {REST}
        """,
    "torch-sparse 0.6.18, torch-cluster 1.6.3": f"""
        cuda12.8_torch2.7: pascal, pascal 13, v100 13, {CUDA12}, {CUDA13}
        cpu_torch2.7: {AMD}, {INTEL}, {REST}
        """,
    "spconv 2.3.8": f"""
        cuda11: old
        cuda12: pascal, pascal 13, v100 13, {CUDA12}, h100 13, rtx5090
         : spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    "faiss 1.15.1": f"""
        cuda12: v100 13, {CUDA12}, h100 13, rtx5090
        null: pascal, pascal 13, spark, thor, {AMD}, {INTEL}, {REST}
        """,
    "faiss 1.13.2": f"""
        cuda12: v100, t4, a100, v100 13
        null: pascal, pascal 13, h100, b200, {CUDA13}, {AMD}, {INTEL}, {REST}
        """,
    "cudf 26.10.2": f"""
        cuda12: v100 13, {CUDA12}
        cuda13: h100 13, rtx5090, spark
         : thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "cucim 26.10.0": f"""
        cuda12: v100 13, {CUDA12}
        cuda13: {CUDA13}
         : pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "cudf 25.8.0": f"""
        cuda12: v100 13, {CUDA12}, h100 13, rtx5090, spark
         : thor, pascal, pascal 13, {AMD}, {INTEL}, {REST}
        """,
    "xgboost 3.4.1": f"""
        cuda13: h100 13, rtx5090, spark
        null: pascal, pascal 13, v100 13, {CUDA12}, thor, {AMD}, {INTEL}, cpu, old
         : apple
        """,
    "xgboost 3.3.0": f"""
        cuda12: t4, a100, h100, b200, h100 13, rtx5090, spark
        null: v100, v100 13, pascal, pascal 13, thor, {AMD}, {INTEL}, cpu, old
         : apple
        """,
    "xgboost 3.2.0": f"""
        cuda12: pascal, pascal 13, v100 13, {CUDA12}, h100 13, rtx5090, spark
        null: thor, {AMD}, {INTEL}, cpu, old
         : apple
        """,
    # The oldest releases, without PTX: GPUs that are newer have the build for CPUs.
    "torch 2.0.1, torchvision 0.15.2, torchaudio 2.0.2": f"""
        cuda11.7: pascal, pascal 13, v100, v100 13, t4, a100, old
        cuda11.8: h100, h100 13
        null: b200, rtx5090, spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    "torch 1.13.1, torchvision 0.14.1, torchaudio 0.13.1": f"""
        cuda11.7: pascal, pascal 13, v100, v100 13, t4, a100, old
        null: h100, h100 13, b200, rtx5090, spark, thor, {AMD}, {INTEL}, cpu, apple
        """,
    # Too old for the catalogue: the wheel of the user's own index, without a label.
    "torch 1.12.1": f" : {ALL}",
    # The same for every machine: what torch's build for ROCm requires.
    "triton-rocm 3.6.0": f"null: {ALL}",
}


@pytest.mark.parametrize(
    ("release", "text"), [(each, text) for key, text in CASES.items() for each in key.split(", ")]
)
def test_choice(release, text):
    name, version = release.split(" ")
    wanted = {}
    for line in text.strip().splitlines():
        label, _, machines = line.strip().partition(":")
        wanted |= dict.fromkeys(machines.strip().split(", "), label)
    assert set(wanted) == set(MACHINES)
    assert {each: choice(name, version, each) for each in wanted} == wanted


@pytest.mark.parametrize(
    ("project", "version", "label", "is_for_all"),
    [
        ("fbgemm-gpu", "1.9.0", "cuda13", False),
        ("fbgemm-gpu", "1.5.0", "cuda12", False),
        ("torch", "2.0.1", "cuda11.7", False),
        ("sglang", "0.5.23", "cuda13", True),
    ],
)
def test_own_wheels_that_are_builds(project, version, label, is_for_all):
    """The wheel of the public index for Linux, which is for everyone only if the entry says so."""
    entry = CATALOG.project(project)
    name = f"{project.replace('-', '_')}-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
    (file,) = entry.own_files(name)
    assert (file.label, entry.is_build(file)) == (label, not is_for_all)


@pytest.mark.parametrize(
    ("release", "tag", "machines"),
    [
        ("torch 2.15.0", "aarch64", {"13.0 7.5": "null", "13.0 8.0": "cuda13.2"}),
        # The build for CUDA 12.6 has code for Maxwell to Turing on x86_64 and Windows alone.
        ("torch 2.14.0", "aarch64",
         {"12.8 7.5": "null", "12.8 8.6": "cuda12.6", "12.8 10.0": "null",
          "13.0 12.1": "cuda13.2"}),
        ("torch 2.14.0", "win", {"12.8 7.5": "cuda12.6", "13.0 12.0": "cuda13.2"}),
        ("torch 2.14.0", "x86_64", {"13.0 11.0": "null", "13.0 7.5": "cuda13.2"}),
        ("torchvision 0.26.0", "aarch64", {"12.8 7.5": "null", "12.8 10.0": "cuda12.8"}),
        ("torch 2.8.0", "aarch64", {"12.9 8.0": "null", "12.9 9.0": "cuda12.9"}),
        ("onnxruntime 1.31.1", "aarch64",
         {"13.0 8.0": "", "13.0 8.9": "cuda13", "13.0 9.0": "cuda13", "13.0 12.1": "cuda13"}),
        ("onnxruntime 1.26.0", "win",
         {"12.8 7.0": "", "12.8 8.0": "", "12.8 8.6": "cuda12", "12.8 9.0": "cuda12"}),
    ],
)  # fmt: skip
def test_choice_by_platform(release, tag, machines):
    """By CUDA driver and compute capability, with wheels whose platform tags contain *tag*."""
    name, version = release.split(" ")
    for machine, wanted in machines.items():
        driver, capability = machine.split(" ")
        platform = load_machine(f"cuda={driver},sm={capability}")
        assert (selected(name, version, platform, tag).chosen.label or "") == wanted, machine


NO_ROCM = (
    "built for GPU gfx1030, gfx1100, gfx1101, gfx1102, … (14 values), this machine has gfx1103"
)
ROCM_72 = "rocm7.0 needs ROCm 7.0, this machine has 7.2"
NO_AMD, NO_INTEL = "no build is for the AMD GPU", "no build is for the Intel GPU"
ALL_MISSING = "no AMD GPU, no Intel GPU and no NVIDIA driver"
NEEDS_13 = "needs CUDA driver 13.0 or newer, this one supports up to 12.8"

REASONS = {
    # A project with builds for the maker of the GPU, but not for this one.
    ("torch 2.12.0", "gfx=gfx1103"): f"rocm7.2 {NO_ROCM}",
    ("torch 2.12.0", "rx-5700-rocm6.4"): NO_ROCM.replace("gfx1103", "gfx1010"),
    ("torch 2.13.0", "gfx=gfx1033"): "this machine has gfx1033",
    ("cupy 14.2.0", "gfx=gfx942,rocm=7.2"): ROCM_72,
    ("cupy 14.2.0", "gfx=gfx942"): "rocm7.0 needs ROCm 7.0, no ROCm in gfx=gfx942",
    # A release without builds for this maker.
    ("torch 2.15.0", "gfx=gfx1100"): NO_AMD,
    ("torch 2.15.0", "rx-7900-rocm6.4"): NO_AMD,
    ("torch 2.8.0", "arc-a770-alderlake"): NO_INTEL,
    ("cupy 13.6.0", "mi300x-rocm7.0"): NO_AMD,
    # A project without builds for this maker.
    ("onnxruntime 1.31.1", "mi300x-rocm7.0"): "no NVIDIA driver in mi300x-rocm7.0",
    ("jax 0.12.0", "arc-b580-zen3"): "no NVIDIA driver and no TPU in arc-b580-zen3",
    # An old driver, no accelerator at all.
    ("onnxruntime 1.31.1", "h100-zen4"): f"cuda13 {NEEDS_13}",
    ("tensorflow 2.21.0", "rtx-5090-zen5"): (
        "cuda12 has a known fault on compute capability 12.*: https://github.com/tensorflow/"
        "tensorflow/issues/111958"
    ),
    ("torch 2.13.0", "cpu-zen4"): f"{ALL_MISSING} in cpu-zen4",
    ("torch 2.13.0", ""): f"{ALL_MISSING} found",
}


@pytest.mark.parametrize(("release", "machine"), REASONS)
def test_the_reason_names_what_is_here(release, machine):
    platform = (
        load_machine(machine) if machine else Platform(dict.fromkeys(ACCELERATORS, Support()))
    )
    selection = selected(*release.split(), platform)
    assert REASONS[release, machine] in why_not_better(selection, selection.chosen)


@pytest.mark.parametrize(
    ("release", "driver", "reason"),
    [
        ("cupy 13.6.0", "11.4", "8.9, … (7 values), this GPU has 3.7"),
        ("torch 2.13.0", "11.4", "this one supports up to 11.4"),
        ("torch 2.13.0", "10.2", "this one supports up to 10.2"),
    ],
)
def test_a_gpu_that_is_too_old_is_no_missing_gpu(release, driver, reason):
    """A K80, of compute capability 3.7."""
    forced = {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver,
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "3.7",
    }
    nvidia = ask_known(BUILTIN_NAMESPACES["nvidia"], NvidiaProvider(forced))
    platform = Platform({**dict.fromkeys(ACCELERATORS, Support()), "nvidia": nvidia})
    selection = selected(*release.split(), platform)
    assert reason in why_not_better(selection, selection.chosen)


def test_a_tpu():
    platform = Platform({"tpu": Support({"present": ("true",)})})
    assert selected("jax", "0.12.0", platform).chosen.label == "tpu"


def test_there_are_entries():
    assert len(NAMES) >= 25
    assert len(list(variants_catalog.projects().iterdir())) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_entry(name):
    """CUDA needs a driver; CUDA 13 has no code for GPUs before compute capability 7.5."""
    entry = CATALOG.project(name)
    assert entry.name == name
    assert entry.documentation.startswith("https://")
    assert entry.sources
    assert all(url.startswith("https://") for url in (*entry.sources, *entry.places))
    assert name not in entry.coherent
    # No project that stands for another one is itself in the catalogue.
    assert not set(entry.targets) & set(NAMES)
    for variant in entry.variants:
        bounds = [text for text in variant.properties if ":: cuda_version_lower_bound ::" in text]
        assert len(bounds) == variant.label.startswith("cuda"), variant.label
        if variant.label.startswith("cuda13"):
            codes = re.findall(r"sm_arch :: (\d+)_", " ".join(variant.properties))
            assert codes
            assert min(map(int, codes)) >= 75


@pytest.mark.parametrize("name", NAMES)
def test_every_build_of_the_default_catalogue_has_a_line(name):
    entry = CATALOG.project(name)
    seen = set()
    for version in reversed(sample_versions(entry.variants)):
        for file in published(entry, str(version)):
            places = [place for place in entry.places if file in entry.files(place, file.published)]
            place = places[0] if places else ""
            source = source_of(entry, file, entry.page(place) if place else "")
            if (file.label, source.name, place) in seen:
                continue
            seen.add((file.label, source.name, place))
            lines = plain_lines([source])
            if not lines["pip"].text:
                assert source.is_ambiguous, source
                continue
            wanted, *_ = [Requirement(text) for text in shlex.split(lines["pip"].text)[2:3]]
            assert wanted.name in (name, *entry.targets)
            assert version in wanted.specifier or file.published_version in wanted.specifier
            for line in lines.values():
                assert (place in line.text) if place else ("http" not in line.text), line
            assert read_toml(lines["pixi"].text)["pypi-dependencies"]

"""Which build each class of machine gets, told by the known machines.

They stand for the machines of the documents from which the builds here are taken: torch's
own metadata, the PyTorch tutorial and PyTorch's note on ROCm. Build matrices are told by their own
tests in variants-cli.
"""

import pytest

from pep_variants.choose.explanation import why_chosen, why_not
from pep_variants.choose.ranking import rank
from pep_variants.detect.detector import Detector
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine
from pep_variants.formats.reader import read_metadata

LINUX = {"platform_system": "Linux", "os_name": "posix", "sys_platform": "linux"}
MAC = {"platform_system": "Darwin", "os_name": "posix", "sys_platform": "darwin"}


def ranked(metadata, name, preferences=None):
    environment = MAC if name.startswith("apple-") else LINUX
    detector = Detector(environment=environment, platform=load_machine(name))
    return rank(metadata, detector.platform(metadata), preferences)


def reason(found, label):
    return "; ".join(why_not(found, label))


@pytest.fixture
def metadata(fixtures):
    """A function that reads one of the fixtures."""
    return lambda name: read_metadata((fixtures / name).read_bytes(), name)


# fmt: off
# Machine; labels that fit, best first; why the first one; another label and why not that one.
TORCH_2_10 = [
    ("gtx-1080-ti-sandybridge", "cuda12.6 null",
     "CUDA driver 12.0 or newer, compute capability 6.0",
     "cuda12.8",
     "built for compute capability 7.0, 7.5, 8.0, 8.6, … (7 values), this GPU has 6.1"),
    ("a100-cascadelake", "null", "",
     "cuda12.6", "needs CUDA driver 12.0 or newer, this one supports up to 11.4"),
    ("rtx-3090-alderlake", "cuda12.8 cuda12.6 null",
     "CUDA driver 12.0 or newer, compute capability 8.6",
     "cuda13.0", "needs CUDA driver 13.0 or newer, this one supports up to 12.8"),
    # Nothing is built for 8.9: what is for 8.6 runs there.
    ("rtx-4090-zen4", "cuda12.8 cuda12.6 null",
     "CUDA driver 12.0 or newer, compute capability 8.6",
     "cuda13.0", "needs CUDA driver 13.0 or newer, this one supports up to 12.9"),
    ("b300-zen5", "cuda13.0 cuda12.8 null",
     "CUDA driver 13.0 or newer, compute capability 10.0",
     "cuda12.6",
     "built for compute capability 5.0, 6.0, 7.0, 7.5, … (7 values), this GPU has 10.3"),
    # The driver would do, but there is no build for 11.0, and what is for 10.0 does not run there.
    ("thor", "null", "",
     "cuda13.0",
     "built for compute capability 7.5, 8.0, 8.6, 9.0, … (6 values), this GPU has 11.0"),
    ("dgx-spark", "cuda13.0 cuda12.8 null",
     "CUDA driver 13.0 or newer, compute capability 12.0",
     "cuda12.6",
     "built for compute capability 5.0, 6.0, 7.0, 7.5, … (7 values), this GPU has 12.1"),

    # ROCm has to be exactly what the build is for, older or newer does not do.
    ("mi300x-rocm6.4", "null", "",
     "rocm7.0", "needs ROCm 7.0, this machine has 6.4"),
    ("mi300x-rocm7.0", "rocm7.0 null", "GPU gfx942, ROCm 7.0",
     "rocm7.1", "needs ROCm 7.1, this machine has 7.0"),
    ("mi100-mi210-rocm7.0", "rocm7.0 null", "GPU gfx908, ROCm 7.0",
     "rocm7.1", "needs ROCm 7.1, this machine has 7.0"),
    ("rx-5700-rocm6.4", "null", "",
     "rocm7.0",
     "built for GPU gfx1030, gfx1100, gfx1101, gfx1102, … (14 values), "
     "this machine has gfx1010; needs ROCm 7.0, this machine has 6.4"),

    # It is a 12.56.5.
    ("arc-a380-alderlake", "xpu null", "Intel GPU 12.55.8 (acm-g10, dg2-g10, ats-m150)", "", ""),
    ("lunar-lake", "xpu null", "Intel GPU 20.4.4 (lnl-m)", "", ""),
    ("iris-xe-alderlake", "null", "",
     "xpu",
     "built for Intel GPU 12.55.8, 12.60.7, 12.71.4, 12.74.4, … (8 values), "
     "this machine has 12.3.0 (adl-p, rpl-p)"),

    ("apple-m4", "null", "",
     "xpu",
     "built for Intel GPU 12.55.8, 12.60.7, 12.71.4, 12.74.4, … (8 values); "
     "nothing of intel is supported here"),
]
# fmt: on


@pytest.mark.parametrize(("name", "order", "why", "other", "not_because"), TORCH_2_10)
def test_torch_2_10(metadata, name, order, why, other, not_because):
    found = ranked(metadata("torch-2.10.0-variants.json"), name)
    assert " ".join(found.labels) == order
    assert why_chosen(found.ranked[0].supported) == why
    assert len(found.labels) + len(found.rejected_labels) == 7
    if other:
        assert reason(found, other) == not_because


def test_torch_2_10_without_accelerator(metadata):
    rest = [name for name in BY_NAME if name.startswith(("cpu-", "laptop-", "apple-"))]
    assert len(rest) == 19
    for name in rest:
        found = ranked(metadata("torch-2.10.0-variants.json"), name)
        assert found.labels == ("null",), name
        for label in found.rejected_labels:
            assert "is supported here" in reason(found, label), name

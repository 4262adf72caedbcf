"""The machines of the field's documents, through pip: forced by the providers' own variables.

AMD GPUs also as the kernel tells of them, by a directory in its place.
"""

from __future__ import annotations

import json

import pytest

from support.environments import ROOT
from support.index import index_of
from support.nvidia_drivers import redirection as redirected_library
from support.wheels import Release

FIXTURES = ROOT / "packages" / "pep-variants" / "tests" / "fixtures"


def rocm(gfx, version):
    return {
        "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH": gfx,
        "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION": version,
    }


def cuda(driver, capability):
    return {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver,
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": capability,
    }


# Fixture, version, environment, label. The ROCm document: an exact match of major.minor, and a
# wheel that supports at least one of the GPUs.
CASES = [
    ("torch-2.9.0-rocm-variants.json", "2.9.0", rocm("gfx1100", "6.4.1"), "rocm6.4"),
    ("torch-2.9.0-rocm-variants.json", "2.9.0", rocm("gfx942", "6.3.0"), "rocm6.3"),
    ("torch-2.9.0-rocm-variants.json", "2.9.0", rocm("gfx1100", "7.0.0"), "null"),
    ("torch-2.9.0-rocm-variants.json", "2.9.0", rocm("gfx906;gfx1153", "6.4"), "rocm6.4"),
    ("torch-2.9.0-rocm-variants.json", "2.9.0", rocm("gfx1153", "6.4"), "null"),
    ("torch-2.10.0-variants.json", "2.10.0", rocm("gfx942", "7.1.0"), "rocm7.1"),
    ("torch-2.10.0-variants.json", "2.10.0", cuda("13.0", "12.0"), "cuda13.0"),
    ("torch-2.10.0-variants.json", "2.10.0", cuda("12.8", "9.0"), "cuda12.8"),
    ("torch-2.10.0-variants.json", "2.10.0", cuda("12.8", "6.1"), "cuda12.6"),
    (
        "torch-2.10.0-variants.json",
        "2.10.0",
        {"INTEL_VARIANT_PROVIDER_FORCE_DEVICE_IP": "20.4.4"},
        "xpu",
    ),
]


@pytest.mark.one
@pytest.mark.parametrize(("fixture", "version", "env", "label"), CASES)
def test_machine(patched, serve, fixture, version, env, label):
    found = json.loads((FIXTURES / fixture).read_text())
    index = serve(index_of([Release("torch", version, found)]))
    done = patched.pip("install", "--dry-run", "--index-url", index.url, "torch", env=env)
    assert f"Would install torch-{version}-{label}\n" in done.out, done


GFX1100, GFX1036 = 110000, 100306
NODES = "/sys/class/kfd/kfd/topology/nodes"


@pytest.fixture(scope="module")
def redirection(tmp_path_factory):
    """A library that shows a process other directories in place of the kernel's."""
    return redirected_library(tmp_path_factory.mktemp("redirected"))


@pytest.mark.one
@pytest.mark.parametrize(
    ("variables", "label"),
    [
        # The GPU that builds are for and the one in the processor, which none is for: a build for
        # one of them fits.
        ({}, "rocm6.4"),
        ({"HIP_VISIBLE_DEVICES": "0"}, "rocm6.4"),
        ({"HIP_VISIBLE_DEVICES": "1"}, "null"),
        ({"HIP_VISIBLE_DEVICES": "1,0"}, "rocm6.4"),
        ({"HIP_VISIBLE_DEVICES": ""}, "rocm6.4"),
        ({"ROCR_VISIBLE_DEVICES": "1"}, "null"),
        ({"ROCR_VISIBLE_DEVICES": ""}, "null"),
        # The second of those that the first variable leaves, of which there is none.
        ({"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}, "null"),
        ({"AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION": "7.0.0"}, "null"),
    ],
)
def test_mixed_gpus(patched, serve, redirection, tmp_path, variables, label):
    nodes = tmp_path / "nodes"
    for number, (version, units) in enumerate([(0, 0), (GFX1100, 96), (GFX1036, 2)]):
        (nodes / str(number)).mkdir(parents=True)
        text = f"simd_count {units}\ngfx_target_version {version}\n"
        (nodes / str(number) / "properties").write_text(text)
    rocm = tmp_path / "rocm"
    (rocm / ".info").mkdir(parents=True)
    (rocm / ".info" / "version").write_text("6.4.1-83\n")
    env = {
        "LD_PRELOAD": str(redirection),
        "REDIRECTED_FROM": NODES,
        "REDIRECTED_TO": str(nodes),
        "ROCM_PATH": str(rocm),
        **variables,
    }
    found = json.loads((FIXTURES / "torch-2.9.0-rocm-variants.json").read_text())
    index = serve(index_of([Release("torch", "2.9.0", found)]))
    done = patched.pip("install", "--dry-run", "--index-url", index.url, "torch", env=env)
    assert f"Would install torch-2.9.0-{label}\n" in done.out, done

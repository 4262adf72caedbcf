"""The machines of the field's documents, through pip: forced by the providers' own variables."""

from __future__ import annotations

import json

import pytest

from support.environments import ROOT
from support.index import index_of
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

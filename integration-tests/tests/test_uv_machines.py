"""The machines of the field's documents, through unmodified uv."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from support.environments import ROOT
from support.index import Index, index_of
from support.projects import cuda
from support.uvs import Machine
from support.wheels import Release, Wheel

PYTHON = sys.executable
FIXTURES = ROOT / "packages" / "pep-variants" / "tests" / "fixtures"
Serve = Callable[[Index], Index]

# What is installed beside torch on a ROCm machine, and what the document shows of it.
COMMON = {
    "filelock": "3.20.0",
    "fsspec": "2025.9.0",
    "jinja2": "3.1.6",
    "networkx": "3.4.2",
    "sympy": "1.14.0",
    "typing-extensions": "4.15.0",
}
ROCM_TRITON = ("pytorch-triton-rocm", "3.5.0")
CUDA_TRITON = ("triton", "3.5.0")
GATED = (
    "pytorch-triton-rocm==3.5.0; 'amd' in variant_namespaces and python_version >= '3'",
    "triton==3.5.0; 'nvidia' in variant_namespaces",
)


def rocm(gfx: str, version: str) -> dict[str, str]:
    return {
        "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH": gfx,
        "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION": version,
    }


def nvidia(driver: str, capability: str) -> dict[str, str]:
    return {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver,
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": capability,
    }


def intel(device: str) -> dict[str, str]:
    return {"INTEL_VARIANT_PROVIDER_FORCE_DEVICE_IP": device}


def fixture(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


def pytorch_2_9() -> Index:
    """torch and torchvision of the ROCm document, and all that they depend on."""
    metadata = fixture("torch-2.9.0-rocm-variants.json")
    requires = tuple(f"{name}=={version}" for name, version in COMMON.items())
    index = index_of(
        [
            Release("torch", "2.9.0", metadata, (*requires, *GATED)),
            Release("torchvision", "0.24.0", metadata, ("torch==2.9.0",)),
        ]
    )
    for name, version in (*COMMON.items(), ROCM_TRITON, CUDA_TRITON):
        index.add_wheel(Wheel(name, version), metadata_file=True)
    return index


@pytest.mark.parametrize(
    ("environ", "label"),
    [
        (rocm("gfx908;gfx90a", "6.4.1"), "rocm6.4"),
        (rocm("gfx1100", "6.3.0"), "rocm6.3"),
        (rocm("gfx1100", "7.0.0"), "null"),
        (rocm("gfx1153", "6.4.0"), "null"),
    ],
)
def test_the_command_of_the_rocm_document(
    machine: Machine, serve: Serve, environ: Mapping[str, str], label: str
) -> None:
    index = serve(pytorch_2_9())
    machine = machine.with_environ({**environ, "UV_DEFAULT_INDEX": index.url})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "-v", "torch", "torchvision")
    assert done.code == 0, done
    assert machine.labels() == {"torch": label, "torchvision": label}
    listed = machine.plain("pip", "freeze").out.splitlines()
    wanted = {"torch==2.9.0", "torchvision==0.24.0"}
    wanted |= {f"{name}=={version}" for name, version in COMMON.items()}
    wanted |= {"pytorch-triton-rocm==3.5.0"} if label != "null" else set()
    assert set(listed) == wanted
    assert machine.plain("pip", "check").code == 0
    # Which GPUs and which ROCm were found, and why a variant was not taken.
    table = done.err[done.err.index("Variants of torch 2.9.0:") :]
    for gpu in environ["AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH"].split(";"):
        assert gpu in done.err
    rows = {line.split()[0]: line for line in table.splitlines()[1:4]}
    assert rows[label].split()[1] == "chosen"
    if label == "rocm6.4":
        assert "ROCm 6.3" in rows["rocm6.3"]


@pytest.mark.matrix
def test_every_uv_follows_the_document(every_machine: Machine, serve: Serve) -> None:
    index = serve(pytorch_2_9())
    environ = {**rocm("gfx908;gfx90a", "6.4.1"), "UV_DEFAULT_INDEX": index.url}
    machine = every_machine.with_environ(environ)
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "torch", "torchvision")
    assert done.code == 0, done
    assert machine.labels() == {"torch": "rocm6.4", "torchvision": "rocm6.4"}
    assert "Variant rocm6.4 for torch 2.9.0: " in done.err
    assert machine.plain("pip", "check").code == 0


CASES = [
    (rocm("gfx942", "7.1.0"), "rocm7.1"),
    (nvidia("13.0", "12.0"), "cuda13.0"),
    (nvidia("12.8", "9.0"), "cuda12.8"),
    (nvidia("12.8", "6.1"), "cuda12.6"),
    (intel("20.4.4"), "xpu"),
]


@pytest.mark.parametrize(("environ", "label"), CASES)
def test_the_machines_of_the_field(
    machine: Machine, serve: Serve, environ: Mapping[str, str], label: str
) -> None:
    release = Release("torch", "2.10.0", fixture("torch-2.10.0-variants.json"))
    machine = machine.with_environ({**environ, "UV_DEFAULT_INDEX": serve(index_of([release])).url})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "torch")
    assert done.code == 0, done
    assert machine.labels() == {"torch": label}


@pytest.mark.parametrize(
    ("platform", "label"),
    [
        ("cpu-x86-64-v2", "v2"),
        ("cpu-x86-64-v3", "v3"),
        ("cpu=x86-64-v3", "v3"),
        ("cuda=12.8,sm=9.0,cpu=zen4", "v4"),
        ("h100-zen4,cpu=x86-64-v2", "v2"),
        ("cuda=12.8,sm=9.0", "null"),
    ],
)
def test_levels_of_cpus(machine: Machine, serve: Serve, platform: str, label: str) -> None:
    from support.wheels import X86_64, metadata

    levels = {"null": {}, **{f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (2, 3, 4)}}
    release = Release(
        "fast", "1.0", metadata(levels, namespaces=["x86_64"], providers={"x86_64": X86_64})
    )
    machine = machine.with_environ({"UV_DEFAULT_INDEX": serve(index_of([release])).url})
    machine.create_environment(PYTHON)
    done = machine.run("--variant-platform", platform, "pip", "install", "fast")
    assert done.code == 0, done
    assert machine.labels() == {"fast": label}


@pytest.mark.parametrize("driver", ["12.5", "12.6", "12.8", "13.0"])
def test_the_choice_is_the_one_of_uvs_preview(machine: Machine, serve: Serve, driver: str) -> None:
    index = serve(index_of([Release("app", "1.0", cuda("12.6", "12.8", "13.0"))]))
    machine = machine.with_environ({**nvidia(driver, "9.0"), "UV_DEFAULT_INDEX": index.url})
    labels = []
    for run, options in (
        (machine.plain, ["--preview-features", "wheel-variants"]),
        (machine.run, []),
    ):
        environment = machine.create_environment(PYTHON, machine.work / f"{len(labels)}")
        done = run("pip", "install", *options, "--python", str(environment.path), "app")
        assert done.code == 0, done
        labels.append(machine.labels(environment.path))
    assert labels[0] == labels[1] != {}


def test_a_known_provider_of_another_version_is_a_strangers(machine: Machine, serve: Serve) -> None:
    metadata = cuda("12.6", "12.8")
    provider = {**metadata["providers"]["nvidia"], "requires": ["nvidia-variant-provider>=9"]}
    index = index_of([Release("app", "1.0", {**metadata, "providers": {"nvidia": provider}})])
    url = serve(index).url
    machine = machine.with_environ({**nvidia("12.8", "9.0"), "UV_DEFAULT_INDEX": url})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "null"}
    assert "--variant-allow-provider 'nvidia-variant-provider>=9'" in done.err
    # A description of the machine is the user's word, whatever the provider.
    file = machine.work / "gpu.toml"
    file.write_text(
        '[[provider]]\nnamespace = "nvidia"\n'
        '[provider.properties]\ncuda_version_lower_bound = ["12.8", "12.7"]\n'
    )
    done = machine.run("--variant-platform", str(file), "pip", "install", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}

"""Wrong choices with a real pip, each from its cause to the remedy, typed as doctor prints it.

What doctor finds on which machine is tested beside `variants_index.doctor` and `variants_cli`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator

import pytest

from pep_variants.providers.nvidia import DRIVER_OVERRIDE
from support.doctor_shell import Shell, first
from support.documents import Reader
from support.index import Index
from support.nvidia_drivers import driver_library, driver_variables
from support.projects import gpu_index
from support.published_builds import TORCH, published, standing_in
from support.wheels import Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machines with Linux")

Serve = Callable[[Index], Index]


@pytest.fixture
def shell(reader: Reader) -> Shell:
    """The shell of a user whose pip knows variants; no other installer is there."""
    reader.with_pip(shim=True)
    reader.use_variants()
    shell = Shell(reader)
    shell.environ["PATH"] = f"{reader.programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return shell


@pytest.fixture
def drive(shell: Shell) -> Callable[[str], None]:
    """Install an NVIDIA driver for a version of CUDA, beside an H100."""
    library = driver_library(shell.reader.environments)

    def install(cuda: str) -> None:
        shell.environ |= driver_variables(library, cuda, "9.0")

    return install


@pytest.fixture
def gpu(serve: Serve, shell: Shell) -> Index:
    """The index of the user, with variants for CUDA 12.6 and 12.8, and a wheel without one."""
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "2.0"))
    shell.environ["PIP_INDEX_URL"] = serve(index).url
    return index


Drive = Callable[[str], None]


def test_a_forgotten_override(shell: Shell, drive: Drive, gpu: Index) -> None:
    """Then a better variant, then an older driver: one does not fit, and one is out of reach."""
    drive("12.8")
    shell.environ[DRIVER_OVERRIDE] = "12.6"
    shell.type("pip install gpu")
    command = first(shell.doctor(), "override", "sets CUDA driver 12.6, but 12.8 was detected")
    shell.type(command)
    shell.type(first(shell.doctor(), "better-variant", "variant cu128 fits better"))
    assert shell.doctor()["well"]
    drive("12.6")
    shell.type(first(shell.doctor(), "stale-variant", "as variant cu128, which does not fit"))
    tree = shell.doctor()
    assert tree["well"]
    command = first(
        tree,
        "unfit-variants",
        "gpu 2.0: variant cu126 is the best that fits this machine: cu128 needs CUDA driver 12.8 "
        "or newer, this one supports up to 12.6",
    )
    assert re.search("cu128 +rejected", shell.type(command))


def test_variants_switched_off_in_pip(shell: Shell, drive: Drive, gpu: Index) -> None:
    """In its configuration, and with the variable of the shim."""
    drive("12.8")
    shell.environ["PEP_VARIANTS_SHIM"] = "0"
    shell.type("pip install gpu")
    shell.type(first(shell.doctor("gpu"), "shim-off", "PEP_VARIANTS_SHIM=0 switches off"))
    shell.type("pip config --user set global.no-variants true")
    tree = shell.doctor("gpu")
    (hint,) = (each for each in tree["problems"] if each["code"] == "setting")
    assert "variants are switched off, for pip: global.no-variants = true in " in hint["text"]
    shell.type(hint["command"])
    tree = shell.doctor("gpu")
    assert "setting" not in {problem["code"] for problem in tree["problems"]}
    shell.type(first(tree, "better-variant"))
    assert shell.doctor("gpu")["well"]


@pytest.fixture
def torch(shell: Shell) -> Iterator[None]:
    """PyPI and PyTorch's indexes."""
    with standing_in(published(torch=TORCH)) as field:
        shell.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        yield


@pytest.mark.usefixtures("torch")
def test_torch_from_pypi(shell: Shell, drive: Drive) -> None:
    drive("12.4")
    shell.type("pip install torch")
    tree = shell.doctor()
    command = first(tree, "catalog-off", "torch 2.14.0 does not run on the NVIDIA GPU that is here")
    assert command == (
        "pip config set global.variant-catalog default && pip install --variant-switch torch"
    )
    assert first(shell.doctor("torch"), "catalog-off") == command
    shell.type(command)
    assert shell.doctor()["well"]
    assert shell.doctor("torch")["well"]
    (state,) = shell.doctor()["packages"]
    assert state["installed"] == "cuda12.6"
    # A place that cannot be reached.
    shell.environ["VARIANTS_CATALOG_MIRROR"] = "https://download.pytorch.org=http://127.0.0.1:9"
    tree = shell.doctor()
    first(tree, "catalog-place", "torch", "Cannot reach ")

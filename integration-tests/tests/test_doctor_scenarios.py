"""Wrong choices with a real pip, each from its cause to the remedy, typed as doctor prints it.

What doctor finds on which machine is tested beside `variants_index.doctor` and `variants_cli`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pep_variants._providers.nvidia import DRIVER_OVERRIDE
from support.doctor_shell import Shell, first, link_programs
from support.documents import Reader
from support.index import Index, served
from support.nvidia_drivers import driver_library, driver_variables
from support.projects import gpu_index
from support.published_builds import LINUX, TORCH, published, standing_in
from support.uvs import UVS, downloaded_uv
from support.wheels import Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machines with Linux")

Serve = Callable[[Index], Index]


@pytest.fixture
def shell(reader: Reader) -> Shell:
    """The shell of a user whose pip knows variants; no other installer is there."""
    reader.with_pip(shim=True)
    reader.use_variants()
    link_programs(reader.programs)
    shell = Shell(reader)
    shell.environ["PATH"] = str(reader.programs)
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


@pytest.mark.usefixtures("torch")
def test_the_gpu_stands_idle(shell: Shell, drive: Drive) -> None:
    """The build for CPUs, from before there was a GPU, and no catalogue."""
    shell.type("pip install --variant-catalog default torch")
    assert shell.doctor()["well"]
    drive("13.0")
    for arguments in ((), ("torch",)):
        found = shell.doctor(*arguments)
        command = first(found, "catalog-off", "torch 2.14.0+cpu does not use the NVIDIA GPU that")
    shell.type(command)
    tree = shell.doctor()
    assert tree["well"]
    assert [each["installed"] for each in tree["packages"]] == ["cuda13.2"]


@pytest.mark.usefixtures("torch")
def test_an_environment_without_pip(shell: Shell, drive: Drive) -> None:
    """It is found from below; pip is that of the system, and uv-variants does it."""
    drive("12.4")
    reader = shell.reader
    uv = downloaded_uv(UVS[-1], reader.environments.wheelhouse)
    reader.tool("pip", f"echo '{SYSTEM_PIP}'")
    shell.environ |= {
        "PATH": f"{reader.programs}{os.pathsep}{uv.parent}",
        "UV_DEFAULT_INDEX": shell.environ["PIP_INDEX_URL"],
        "VARIANTS_CATALOG": "default",
    }
    del shell.environ["VIRTUAL_ENV"]
    shell.type(f"uv venv --python {sys.executable} && mkdir below")
    shell.type("uv pip install torch")
    shell.reader.work = reader.work / "below"
    tree = shell.doctor()
    root = str(reader.work.parent / ".venv")
    assert tree["environment"] == root
    command = first(tree, "stale-variant", "torch 2.14.0 is installed as variant cuda13.")
    assert command == (
        f"uv-variants --variant-switch pip install --python {root}/bin/python "
        f"--index-url {shell.environ['PIP_INDEX_URL']} torch"
    )
    shell.type(command)
    tree = shell.doctor()
    assert tree["well"]
    assert [each["installed"] for each in tree["packages"]] == ["cuda12.6"]


SYSTEM_PIP = "pip 24.0 from /usr/lib/python3/dist-packages/pip (python 3.12)"
SO = "nvidia/nccl/lib/libnccl.so.2"


def about_packages(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the problems, without hints at the machine of the tests."""
    codes = {"shared-files", "missing-files", "unrequired", "unmet-requirement"}
    return [each for each in tree["problems"] if each["fails"] or each["code"] in codes]


@pytest.fixture
def shared(serve: Serve, shell: Shell) -> Index:
    """An index with two libraries that own one file, and projects that require one each."""
    index = Index()
    for cuda in ("12", "13"):
        name = f"nvidia-nccl-cu{cuda}"
        index.add_wheel(Wheel(name, "2.0", files={SO: f"for CUDA {cuda}"}))
        index.add_wheel(Wheel(f"for-{cuda}", "1.0", requires=(f"{name}==2.0",)))
    for name in ("onnxruntime", "onnxruntime-gpu"):
        files = {"onnxruntime/__init__.py": f"name = {name!r}"}
        index.add_wheel(Wheel(name, "1.26.0", files=files, tag=LINUX))
    shell.environ["PIP_INDEX_URL"] = serve(index).url
    return index


@pytest.mark.usefixtures("shared")
def test_two_owners_of_a_file(shell: Shell) -> None:
    """What is required stays, whichever was written last."""
    for kept, other in (("12", "13"), ("13", "12")):
        shell.type(f"pip install for-{kept} && pip install --no-deps nvidia-nccl-cu{other}")
        text = f"nvidia-nccl-cu{kept}==2.0 is required"
        command = first(shell.doctor(), "shared-files", "own the same 1 file", text)
        shell.type(command)
        assert about_packages(shell.doctor()) == []
        (library,) = (shell.reader.home / "env").glob(f"lib/python*/site-packages/{SO}")
        assert library.read_text() == f"for CUDA {kept}"
        shell.type(f"pip uninstall --yes for-{kept} nvidia-nccl-cu{kept}")
    # Both are required, and only one can be.
    shell.type("pip install for-12 for-13")
    first(shell.doctor(), "shared-files", "are required, and cannot share an environment")


@pytest.mark.usefixtures("shared")
def test_libraries_that_nothing_requires(shell: Shell) -> None:
    shell.type("pip install for-12 && pip uninstall --yes for-12")
    (hint,) = about_packages(shell.doctor())
    assert (hint["code"], hint["fails"]) == ("unrequired", False)
    assert "nothing requires nvidia-nccl-cu12 any more" in hint["text"]
    shell.type(hint["command"])
    assert about_packages(shell.doctor()) == []


@pytest.mark.usefixtures("shared")
def test_two_builds_of_one_project(shell: Shell, drive: Drive) -> None:
    """The one for the GPU is installed, under its publisher's name or by the catalogue."""
    drive("12.8")
    for catalog in (False, True):
        shell.type("pip install onnxruntime-gpu onnxruntime")
        if catalog:
            shell.environ["VARIANTS_CATALOG"] = "default"
        shell.type(first(shell.doctor(), "shared-files", "own the same 1 file, __init__.py"))
        tree = shell.doctor("onnxruntime" if catalog else "onnxruntime-gpu")
        assert tree["well"]
        assert [each["installed"] for each in tree["packages"]] == (
            ["cuda12"] if catalog else [None]
        )
        assert "onnxruntime-gpu" in shell.type("python -c 'import onnxruntime as o; print(o.name)'")
        shell.type("pip uninstall --yes onnxruntime-gpu onnxruntime")


def test_a_torchvision_for_another_torch(shell: Shell, drive: Drive) -> None:
    """Both are builds for the GPU, and do not go together."""
    drive("13.0")
    index = Index()
    for torch, vision in (("2.13.0", "0.28.0"), ("2.14.0", "0.29.0")):
        index.add_wheel(Wheel("torch", torch, tag=LINUX))
        index.add_wheel(Wheel("torchvision", vision, tag=LINUX, requires=(f"torch=={torch}",)))
    with served(index):
        shell.environ["PIP_INDEX_URL"] = index.url
        shell.type("pip install --no-deps torch==2.14.0 torchvision==0.28.0")
        text = "torchvision 0.28.0 requires torch==2.13.0, and torch 2.14.0 is installed"
        command = first(shell.doctor(), "unmet-requirement", text)
        shell.type(command)
        assert shell.doctor()["well"]
        shell.type("pip check")


def test_all_indexes_of_pip(shell: Shell, serve: Serve, gpu: Index) -> None:
    """Of variables and of files: none takes the place of another."""
    other = Index()
    other.add_wheel(Wheel("gpu", "1.0"))
    third = Index()
    shell.environ["PIP_EXTRA_INDEX_URL"] = serve(other).url
    shell.type(f"pip config --site set global.find-links {shell.reader.work}")
    shell.type("pip install gpu==2.0")
    tree = shell.doctor("gpu")
    assert "wrong-index" not in {each["code"] for each in tree["problems"]}
    (row,) = (each for each in tree["configuration"] if each["subject"] == "indexes")
    assert {gpu.url, other.url} <= set(row["text"].split(", "))
    assert third.requests == []


def test_no_network(shell: Shell, gpu: Index, drive: Drive) -> None:
    drive("12.8")
    shell.type("pip install gpu")
    shell.environ["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple/"
    command = first(shell.doctor(), "lookup", "could not be asked", "127.0.0.1:9")
    assert command == "variants doctor --offline"
    shell.type(command)

"""``uv-variants doctor``: what fits this machine, what does not, and what to type."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.doctor_report import check_report
from support.gpu_libraries import library
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, GPU, gpu_index
from support.uvs import UVS, Machine, project
from support.wheels import Wheel
from uv_variants._uv_version import TESTED_UVS

Serve = Callable[[Index], Index]


@pytest.fixture
def index(serve: Serve) -> Index:
    index = gpu_index()
    index.add_wheel(Wheel("plain", "1.0"))
    return serve(index)


def on(machine: Machine, index: Index) -> Machine:
    return machine.with_environ({"UV_DEFAULT_INDEX": index.url, **CUDA_12_8})


def found(machine: Machine, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = machine.run("doctor", "--json", *arguments)
    assert done.out.startswith("{"), done
    tree = json.loads(done.out)
    check_report(tree)
    return done.code, tree


OWN = {"stale-variant", "better-variant", "lock", "lookup", "uv-missing", "uv-version"}
OWN |= {"configuration", "plugin"}


def problems(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the problems, without hints at the machine of the tests."""
    return [each for each in tree["problems"] if each["code"] in OWN]


def with_lock(machine: Machine, index: Index, label: str) -> None:
    """Write a project whose lock has *label* of gpu 2.0."""
    project(machine.work, ["gpu"])
    url = f"{index.url}gpu/.variant/{label}/gpu-2.0-0_{label}-py3-none-any.whl"
    (machine.work / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.10"\n\n[[package]]\nname = "gpu"\nversion = "2.0"\n'
        f'source = {{ registry = "{index.url}" }}\n'
        f'wheels = [\n    {{ url = "{url}", hash = "sha256:0" }},\n]\n'
    )


def test_the_tested_uvs() -> None:
    assert TESTED_UVS == UVS


@pytest.mark.matrix
def test_what_is_installed_fits(every_machine: Machine, index: Index) -> None:
    machine = on(every_machine, index)
    machine.create_environment(sys.executable)
    done = machine.run("pip", "install", "gpu", "plain")
    assert done.code == 0, done
    code, tree = found(machine)
    assert (code, tree["well"], problems(tree)) == (0, True, [])
    (gpu,) = tree["packages"]
    assert (gpu["installed"], gpu["fits"], gpu["now"]) == ("cu128", True, "cu128")
    assert tree["environment"] == str(machine.work / ".venv")
    # The driver is older now: the variant does not fit any more.
    older = machine.with_environ({DRIVER: "12.6"})
    done = older.run("doctor")
    assert done.code == 1, done
    _, problem, command, *_ = done.out.splitlines()
    assert problem.startswith(
        "problem: gpu 2.0 is installed as variant cu128, which does not fit this machine ("
    )
    assert problem.endswith("; variant cu126 does")
    # What it says to type helps.
    assert older.run(*command.split()[1:]).code == 0
    done = older.run("doctor")
    assert done.code == 0, done
    assert (
        "hint: gpu 2.0: variant cu126 is the best that fits this machine: cu128 needs" in done.out
    )


def test_what_every_doctor_finds_in_an_environment(machine: Machine, index: Index) -> None:
    """Damaged metadata, and a project whose builds the catalogue knows."""
    index.add_wheel(Wheel("torch", "2.9.0"))
    machine = on(machine, index)
    machine.create_environment(sys.executable)
    assert machine.run("pip", "install", "gpu", "torch").code == 0
    (document,) = (machine.work / ".venv").rglob("gpu-2.0.dist-info/variant.json")
    document.write_text("{}")
    code, tree = found(machine, "--offline")
    assert code == 1
    codes = {each["code"]: each for each in tree["problems"]}
    assert "variant.json of gpu 2.0" in codes["metadata"]["text"]
    assert codes["metadata"]["command"] == "uv-variants --variant-switch pip install gpu"
    assert codes["catalog-off"]["text"].startswith("torch has builds for GPUs and CPUs in the cat")
    assert codes["catalog-off"]["command"] == "uv-variants catalog enable"


def test_a_gpu_without_code(machine: Machine, index: Index) -> None:
    index.add_wheel(Wheel("kernels", "1.0", files={"kernels/x.so": library(cuda=["75"])}))
    index.add_wheel(
        Wheel("onnxruntime-gpu", "1.23.0", files={"ort/x.so": library(cuda=["75", "90a"])})
    )
    machine = on(machine, index).with_environ({GPU: "12.0"})
    machine.create_environment(sys.executable)
    assert machine.run("pip", "install", "kernels", "onnxruntime-gpu").code == 0
    code, tree = found(machine)
    assert code == 1
    kernels, runtime = [each for each in tree["problems"] if each["code"] == "gpu-code"]
    assert kernels["text"] == (
        "kernels 1.0 has no code for the GPU that is here, compute capability 12.0: it has CUDA "
        "code for 7.5; no build that has it is known"
    )
    assert runtime["command"] == "uv-variants pip install 'onnxruntime-gpu!=1.23.0,<1.27,>=1.21'"
    assert [each["subject"] for each in tree["code"]] == ["kernels 1.0", "onnxruntime-gpu 1.23.0"]
    assert found(machine.with_environ({GPU: "7.5"}))[0] == 0


def test_a_lock_that_does_not_fit(machine: Machine, index: Index) -> None:
    machine = on(machine, index).with_environ({DRIVER: "12.6"})
    with_lock(machine, index, "cu128")
    code, tree = found(machine)
    assert code == 1
    (state,) = tree["lock"]["packages"]
    assert (state["project"], state["locked"], state["fits"]) == ("gpu", "cu128", False)
    assert (state["now"], tree["lock"]["path"]) == ("cu126", str(machine.work / "uv.lock"))
    (problem,) = problems(tree)
    assert "is locked as variant cu128, which does not fit this machine" in problem["text"]
    assert problem["command"] == ("uv-variants --variant-platform native lock && uv-variants sync")
    assert found(on(machine, index))[0] == 0


def test_what_cannot_be_asked(machine: Machine, index: Index) -> None:
    """Offline nothing is, and an index that is not there is a hint."""
    machine = on(machine, index)
    with_lock(machine, index, "cu128")
    asked = len(index.requests)
    code, tree = found(machine, "--offline")
    assert code == 0
    assert tree["lock"]["packages"][0]["fits"] is None
    assert found(machine.with_environ({"UV_OFFLINE": "1"}))[0] == 0
    assert len(index.requests) == asked
    code, tree = found(machine.with_environ({"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"}))
    assert code == 0
    (problem,) = problems(tree)
    assert "could not be asked" in problem["text"]


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
@pytest.mark.parametrize(("version", "code"), [("0.4.30", 1), ("99.0.0", 0), ("", 1)])
def test_other_uvs(machine: Machine, tmp_path: Path, version: str, code: int) -> None:
    """One that is too old, one that is not tested, none."""
    uv = tmp_path / "uv"
    if version:
        uv.write_text(f"#!/bin/sh\necho uv {version}\n")
        uv.chmod(0o755)
    ended, tree = found(machine.with_environ({"VARIANTS_UV": str(uv)}), "--offline")
    (problem,) = problems(tree)
    assert ended == code
    assert (version or str(uv)) in problem["text"]


def test_wrong_options(machine: Machine) -> None:
    done = machine.run("doctor", "--no-such-option")
    assert (done.code, done.out) == (2, "")

"""Wrong choices, each from its cause to the remedy that doctor names, typed as it is printed.

What is no part of a machine of the tests (a container, a driver, a scheduler) is at the lowest
seam: files below another root, a driver library compiled here, a program on ``PATH``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pep_variants.providers.nvidia import DRIVER_OVERRIDE
from support.doctor_report import check_report
from support.documents import Reader
from support.environments import PIPS, Environment
from support.index import Index
from support.nvidia_drivers import driver_library, driver_variables
from support.plugins import PLUGIN, acme_index
from support.projects import gpu_index
from support.published_builds import TORCH, published, standing_in
from support.uvs import UVS, downloaded_uv
from support.wheels import Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machines with Linux")

Serve = Callable[[Index], Index]

ROOTED = """
import json, os, sys
from pathlib import Path
from variants_cli.checkup import examine, find_environment
found = examine(find_environment(None), os.environ, root=Path(sys.argv[1]))
print(json.dumps(found.as_tree()))
"""
NVIDIA = {
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
}


class Shell:
    """A shell: variables that a command exports are there for the next one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.root = reader.home / "root"
        self.root.mkdir()
        self.environ = dict(reader.variables)

    def type(self, command: str) -> str:
        """Run *command*, return what it prints."""
        kept = self.reader.home / "variables"
        done = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?\nenv -0 > {kept}\nexit $status"],
            cwd=self.reader.work, env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        lines = kept.read_text().split("\0")
        self.environ = dict(line.split("=", 1) for line in lines if "=" in line)
        return done.stdout

    def fails(self, command: str) -> str:
        """Run *command*, which finds something wrong; return what it says of it."""
        done = subprocess.run(
            shlex.split(command), cwd=self.reader.work, env=self.environ, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        return done.stderr

    def write(self, files: dict[str, str]) -> None:
        """Write files of the machine."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def doctor(self, *arguments: str) -> dict[str, Any]:
        """Return what ``variants doctor`` prints."""
        return self.report("variants", "doctor", "--json", "--no-cache", *arguments)

    def doctor_there(self) -> dict[str, Any]:
        """Return what it finds on the machine whose files are below `root`."""
        python = str(self.reader.environments.programs().python)
        return self.report(python, "-c", ROOTED, str(self.root))

    def report(self, *command: str) -> dict[str, Any]:
        done = subprocess.run(
            command, cwd=self.reader.work, env=self.environ, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.stdout.startswith("{"), done.stderr
        tree: dict[str, Any] = json.loads(done.stdout)
        check_report(tree)
        return tree


def codes(tree: dict[str, Any]) -> set[str]:
    """Return the codes of all problems and hints."""
    return {problem["code"] for problem in tree["problems"]}


def first(tree: dict[str, Any], code: str, *said: str) -> str:
    """Return the command of the first problem, which says this."""
    problem = tree["problems"][0]
    assert problem["code"] == code, tree["problems"]
    for text in said:
        assert text in problem["text"]
    command: str = problem["command"]
    return command


@pytest.fixture
def environment(reader: Reader) -> Environment:
    """The environment of the user, whose pip knows variants."""
    made = reader.environments.patched("3.12", PIPS[-1]).copied(reader.home / "env")
    for name in ("python", "pip"):
        reader.tool(name, f'exec {made.python} {"-m pip" if name == "pip" else ""} "$@"')
    reader.environ |= {"VIRTUAL_ENV": str(made.path)}
    return made


@pytest.fixture
def shell(reader: Reader, environment: Environment) -> Shell:
    reader.use_variants()
    made = Shell(reader)
    # No installers but those that a test puts there.
    made.environ["PATH"] = f"{reader.programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return made


@pytest.fixture
def drive(shell: Shell) -> Callable[[str], None]:
    """Install an NVIDIA driver for a version of CUDA, beside an H100."""
    library = driver_library(shell.reader.environments)

    def install(cuda: str) -> None:
        shell.environ |= driver_variables(library, cuda, "9.0")

    return install


@pytest.fixture
def gpu(serve: Serve, shell: Shell) -> Index:
    """The index of the user, with variants for CUDA 12.6 and 12.8."""
    index = serve(gpu_index())
    shell.environ["PIP_INDEX_URL"] = index.url
    return index


Drive = Callable[[str], None]


def test_an_old_driver(shell: Shell, drive: Drive, gpu: Index) -> None:
    drive("12.6")
    shell.type("pip install gpu")
    tree = shell.doctor()
    command = first(
        tree,
        "unfit-variants",
        "gpu 2.0: variant cu126 is the best that fits this machine: cu128 needs CUDA driver 12.8 "
        "or newer, this one supports up to 12.6",
    )
    assert tree["well"]
    assert re.search("cu128 +rejected", shell.type(command))
    drive("12.8")
    command = first(shell.doctor(), "better-variant", "variant cu128 fits better")
    shell.type(command)
    assert not {"better-variant", "unfit-variants"} & codes(shell.doctor())


def test_a_stale_variant(shell: Shell, drive: Drive, gpu: Index) -> None:
    drive("12.8")
    shell.type("pip install gpu")
    drive("12.6")
    command = first(shell.doctor(), "stale-variant", "as variant cu128, which does not fit")
    assert command == "pip install --variant-switch gpu"
    shell.type(command)
    assert shell.doctor()["well"]


def test_a_forgotten_override(shell: Shell, drive: Drive, gpu: Index) -> None:
    drive("12.8")
    shell.environ[DRIVER_OVERRIDE] = "12.6"
    shell.type("pip install gpu")
    command = first(shell.doctor(), "override", "CUDA driver is 12.6, but this machine has 12.8")
    assert command == f"unset {DRIVER_OVERRIDE}"
    shell.type(command)
    shell.type(first(shell.doctor(), "better-variant"))
    assert shell.doctor()["well"]


def test_a_plugin_that_is_not_allowed(shell: Shell, serve: Serve) -> None:
    shell.environ["PIP_INDEX_URL"] = serve(acme_index(PLUGIN)).url
    shell.type("pip install app")
    command = first(shell.doctor(), "plugin", "acme-provider", "nor allowed to run")
    assert command == "export VARIANTS_ALLOW_PROVIDER='acme-provider<2,>=1'"
    shell.type(command)
    tree = shell.doctor()
    shell.type(first(tree, "better-variant", "app 1.0 is installed as variant null"))
    assert shell.doctor()["well"]


def test_a_login_node(shell: Shell) -> None:
    library = driver_library(shell.reader.environments)
    found = " ".join(f"{name}={text}" for name, text in
                     driver_variables(library, "12.8", "9.0").items())  # fmt: skip
    shell.reader.tool("sbatch", "exit 1")
    shell.reader.tool("srun", f'shift\nexport SLURM_JOB_ID=1 {found}\nexec "$@"')
    command = first(shell.doctor_there(), "login-node", "Slurm is here and no GPU is", "platform.t")
    shell.type(command)
    shell.type("export VARIANTS_PLATFORM=$PWD/platform.toml")
    tree = shell.doctor_there()
    assert "login-node" not in codes(tree)
    assert "12.8" in (shell.reader.work / "platform.toml").read_text()


def test_a_platform_file_that_was_left(shell: Shell, drive: Drive, gpu: Index) -> None:
    drive("12.6")
    settings = shell.reader.home / ".config/variants/variants.toml"
    settings.parent.mkdir(parents=True)
    shell.type(f"variants detect -o {settings.parent}/machine.toml")
    settings.write_text('platform = "machine.toml"\n')
    drive("12.8")
    shell.type("pip install gpu")
    tree = shell.doctor()
    (hint,) = (each for each in tree["problems"] if each["code"] == "setting")
    assert tree["problems"].index(hint) <= 1
    said = f"machine.toml, from {settings}, and differs from this machine in nvidia: remove it"
    assert said in hint["text"]
    assert hint["command"] == f"variants detect -o {settings.parent}/machine.toml"
    shell.type(hint["command"])
    shell.type(first(shell.doctor(), "better-variant", "variant cu128 fits better"))
    assert shell.doctor()["well"]
    settings.unlink()
    assert "setting" not in codes(shell.doctor())


def test_no_variants_in_the_configuration_of_pip(shell: Shell, drive: Drive, serve: Serve) -> None:
    drive("12.8")
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "2.0"))
    shell.environ["PIP_INDEX_URL"] = serve(index).url
    shell.type("pip config --user set global.no-variants true && pip install gpu")
    tree = shell.doctor("gpu")
    (hint,) = (each for each in tree["problems"] if each["code"] == "setting")
    assert "variants are switched off, for pip: global.no-variants in " in hint["text"]
    assert hint["command"].endswith("/pip config --user unset global.no-variants")
    shell.type(hint["command"])
    tree = shell.doctor("gpu")
    assert "setting" not in codes(tree)
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
    command = first(tree, "catalog-off", "installed without a variant, and the catalogue describes")
    assert command == "variants doctor --variant-catalog=default torch"
    tree = shell.doctor(*shlex.split(command)[2:])
    command = first(tree, "better-variant", "variant cuda12.6 fits better")
    assert command == "pip install --variant-switch --variant-catalog default torch"
    shell.type(command)
    assert shell.doctor("--variant-catalog=default")["well"]


def test_a_release_without_a_build_for_the_driver(shell: Shell, drive: Drive) -> None:
    drive("12.4")
    with standing_in(published(torch=("2.14.0", "2.15.0"))) as field:
        shell.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_CATALOG": "default",
        }
        shell.type("pip install torch==2.15.0")
        problems = shell.doctor()["problems"]
    (text,) = (each["text"] for each in problems if each["code"] == "choice")
    assert text.startswith("torch 2.14.0 (cuda12.6) rather than 2.15.0: ")


def test_pip_without_the_shim(shell: Shell, drive: Drive, serve: Serve) -> None:
    drive("12.8")
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "2.0"))
    shell.environ |= {"PIP_INDEX_URL": serve(index).url, "PEP_VARIANTS_SHIM": "0"}
    shell.type("pip install gpu")
    command = first(shell.doctor("gpu"), "shim-off", "PEP_VARIANTS_SHIM=0 switches off")
    shell.type(command)
    shell.type(first(shell.doctor("gpu"), "better-variant"))
    assert shell.doctor("gpu")["well"]


def test_both_doctors_say_the_same(shell: Shell, drive: Drive, gpu: Index) -> None:
    """Of the same machine, settings and environment."""
    drive("12.6")
    (shell.reader.work / "uv.toml").write_text('torch-backend = "cpu"\n')
    shell.environ |= {"VARIANTS_EXCLUDE": "amd", "CUDA_VISIBLE_DEVICES": "-1"}
    shell.environ["UV_DEFAULT_INDEX"] = gpu.url
    uv = downloaded_uv(UVS[-1], shell.reader.environments.wheelhouse)
    shell.environ["VARIANTS_UV"] = str(uv)
    shell.type("pip install gpu")
    shell.environ[DRIVER_OVERRIDE] = "12.8"
    one = shell.doctor()
    other = shell.report("uv-variants", "doctor", "--json")
    assert {name: other[name] for name in ("machine", "surroundings")} == {
        name: one[name] for name in ("machine", "surroundings")
    }
    for key in ("settings", "uv"):
        assert one["configuration"][key] == other["configuration"][key]
    said = [
        {each["code"]: (each["text"], each["fails"]) for each in tree["problems"]}
        for tree in (one, other)
    ]
    shared = {"override", "hidden-gpu", "setting", "torch-backend", "better-variant"}
    for code in shared:
        assert said[0][code] == said[1][code]
    (state,), (same,) = one["packages"], other["packages"]
    keys = ("project", "version", "installed", "now", "fits", "verdict")
    assert [state[key] for key in keys] == [same[key] for key in keys]


@pytest.mark.usefixtures("torch")
def test_before_installing(shell: Shell, drive: Drive) -> None:
    """C12: a project that is not there yet: what would be chosen, and why."""
    drive("12.4")
    tree = shell.doctor("--variant-catalog=default", "torch")
    command = first(
        tree,
        "not-installed",
        "variant cuda12.6 of 2.14.0 would be chosen: CUDA driver 12.0 or newer, compute capability",
    )
    assert tree["well"]
    (state,) = tree["packages"]
    assert (state["project"], state["version"], state["installed"]) == ("torch", "2.14.0", None)
    assert state["now"] == "cuda12.6"
    shell.type(command)
    assert "not-installed" not in codes(shell.doctor("--variant-catalog=default", "torch"))


@pytest.mark.usefixtures("torch")
def test_a_place_that_cannot_be_reached(shell: Shell, drive: Drive) -> None:
    """C12: known before anything is installed."""
    drive("12.4")
    shell.environ["VARIANTS_CATALOG_MIRROR"] = "https://download.pytorch.org=http://127.0.0.1:9"
    tree = shell.doctor("--variant-catalog=default", "torch")
    first(tree, "catalog-place", "torch: ", "cannot be had: ")
    assert not tree["well"]


def test_two_names_of_one_build(shell: Shell, serve: Serve) -> None:
    """C1, C12: two distributions with the same files, and what is left when one is removed."""
    index = serve(Index())
    module = {"app/__init__.py": "name = 'app'\n"}
    index.add_wheel(Wheel("app", "1.0", files=module))
    index.add_wheel(Wheel("app-cpu", "1.0", files=module))
    shell.environ["PIP_INDEX_URL"] = index.url
    shell.type("pip install app app-cpu")
    tree = shell.doctor()
    command = first(tree, "shared-files", "app-cpu==1.0 and app==1.0 own the same 1 file")
    assert "warning: app-cpu==1.0 and app==1.0 own" in shell.fails("variants check --no-cache")
    shell.environ["VARIANTS_UV"] = str(downloaded_uv(UVS[-1], shell.reader.environments.wheelhouse))
    other = shell.report("uv-variants", "doctor", "--json", "--offline")
    (problem,) = (each for each in other["problems"] if each["code"] == "shared-files")
    assert problem["command"] == (
        "uv pip uninstall app-cpu app && uv-variants pip install app-cpu==1.0"
    )
    shell.type("pip uninstall --yes app-cpu")
    left = shell.doctor()
    again = first(left, "missing-files", "app==1.0 lacks 1 file, __init__.py for example")
    shell.type(again)
    assert shell.doctor()["well"]
    shell.type("pip install app-cpu")
    shell.type(command)
    assert shell.doctor()["well"]


def test_one_project_twice(shell: Shell, serve: Serve, environment: Environment) -> None:
    """C12: what an install leaves that was interrupted."""
    index = serve(Index())
    for version in ("1.0", "2.0"):
        index.add_wheel(Wheel("app", version, files={"app.py": f"version = '{version}'\n"}))
    shell.environ["PIP_INDEX_URL"] = index.url
    shell.type("pip install app==1.0")
    (info,) = environment.path.glob("lib/python*/site-packages/app-1.0.dist-info")
    kept = shutil.copytree(info, shell.reader.home / "kept")
    shell.type("pip install app==2.0")
    shutil.copytree(kept, info)
    command = first(shell.doctor(), "duplicate-distribution", "has app twice, as 1.0 and as 2.0")
    shell.type(command)
    assert shell.doctor()["well"]

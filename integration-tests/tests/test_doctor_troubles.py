"""Each trouble of a machine: broken at the lowest seam, found by doctor, mended as it says.

One cause is one line, and the command below it is typed; then nothing of it is left. What stands
for hardware is the driver's libraries compiled here, and files in place of the kernel's.
"""

from __future__ import annotations

import grp
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pep_variants._detect.machines import machine_text
from pep_variants._providers.nvidia import CAPABILITY_OVERRIDE, DRIVER_OVERRIDE
from support.doctor_shell import Shell, link_programs
from support.documents import Reader
from support.environments import PIPS
from support.nvidia_drivers import (
    CUDA,
    NVML,
    build_library,
    cuda_library,
    driver_library,
    nvml,
    redirection,
)
from support.published_builds import TORCH, published, standing_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machines with Linux")

DOCKER = {".dockerenv": ""}
WSL = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n"}
JETSON = {"etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081\n"}
ON_BUS = "sys/bus/pci/devices/0000:01:00.0"
NVIDIA = {f"{ON_BUS}/vendor": "0x10de\n", f"{ON_BUS}/class": "0x030200\n"}
AMD = {f"{ON_BUS}/vendor": "0x1002\n", f"{ON_BUS}/class": "0x038000\n"}
DRIVER = 'ln -sf "$DRIVER" "$LIBRARIES"'
SUDO = {"sudo": 'exec "$@"'}
IMAGE = 'case "$*" in *" image") ;; *) exit 1;; esac\n'


def rocm(*versions: int) -> dict[str, str]:
    """Return what the kernel says of AMD's GPUs."""
    nodes = "sys/class/kfd/kfd/topology/nodes"
    return {f"{nodes}/{number}/properties": f"simd_count 96\ngfx_target_version {version}\n"
            for number, version in enumerate(versions, 1)}  # fmt: skip


@dataclass(frozen=True)
class Trouble:
    """What is broken, and what doctor says.

    Attributes:
        code, said, command: of the one problem; ``{}`` stands for the home directory.
        files: of the machine, in place of what this one has there; below ``closed`` those that
            the user may not write.
        driver: CUDA version and compute capabilities, if it is there from the start.
        cuda: what a `libcuda` says that is found first; nothing for none.
        variables: of the shell.
        tools: programs of the machine, by name.
        typed: in place of the command, where a part of it is the user's; empty if it cannot be
            typed here.
        hint: it is one.
    """

    code: str
    said: str
    command: str
    files: Mapping[str, str] = field(default_factory=dict)
    driver: tuple[str, str] | None = None
    cuda: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    typed: str | None = None
    hint: bool = False


H100 = ("12.8", "9.0")
GPUS = "compute,utility"
TROUBLES = {
    "no such GPU": Trouble(
        "hidden-gpu", "CUDA_VISIBLE_DEVICES=7 names 7, which is no GPU here",
        "unset CUDA_VISIBLE_DEVICES",
        driver=H100, variables={"CUDA_VISIBLE_DEVICES": "7"},
    ),
    "a GPU twice": Trouble(
        "hidden-gpu", "CUDA_VISIBLE_DEVICES=0,0 names 0 twice, so programs see no GPU",
        "unset CUDA_VISIBLE_DEVICES",
        driver=H100, variables={"CUDA_VISIBLE_DEVICES": "0,0"},
    ),
    "a slice of another GPU": Trouble(
        "hidden-gpu", "CUDA_VISIBLE_DEVICES=MIG-5bd names MIG-5bd, which is no MIG device here",
        "unset CUDA_VISIBLE_DEVICES",
        driver=H100, variables={"CUDA_VISIBLE_DEVICES": "MIG-5bd"},
        tools={"nvidia-smi": "echo '  MIG 1g.10gb Device 0: (UUID: MIG-c6d4f1ef)'"},
    ),
    "no GPU shown": Trouble(
        "hidden-gpu", "CUDA_VISIBLE_DEVICES= hides every NVIDIA GPU from programs",
        "unset CUDA_VISIBLE_DEVICES",
        driver=H100, variables={"CUDA_VISIBLE_DEVICES": ""}, hint=True,
    ),
    "ROCm GPU hidden": Trouble(
        "hidden-gpu", "ROCR_VISIBLE_DEVICES= hides AMD GPU gfx942", "unset ROCR_VISIBLE_DEVICES",
        rocm(90402), variables={"ROCR_VISIBLE_DEVICES": ""},
    ),
    "an old libcuda": Trouble(
        "driver-library", "compat/libcuda.so.1, of CUDA 11.4, while the driver supports CUDA 12.8",
        "export LD_LIBRARY_PATH={}/lib",
        driver=H100, cuda=cuda_library("11.4", "9.0"),
    ),
    "a stub": Trouble(
        "driver-library", "compat/libcuda.so.1, a stub without a driver, while the driver is 550.5",
        "export LD_LIBRARY_PATH={}/lib",
        {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14"},
        driver=H100, cuda={"FAKE_CUDA_VERSION": "!34"},
    ),
    "a container without compute": Trouble(
        "driver-library", "NVIDIA_DRIVER_CAPABILITIES=utility keeps libcuda.so.1 out of this",
        f"docker run --gpus all --env NVIDIA_DRIVER_CAPABILITIES={GPUS} …", DOCKER,
        driver=H100, variables={"NVIDIA_DRIVER_CAPABILITIES": "utility"}, typed="",
    ),
    "a MIG slice without libcuda": Trouble(
        "driver-library", "there is a MIG slice, and neither NVIDIA's management library nor",
        f"docker run --gpus all --env NVIDIA_DRIVER_CAPABILITIES={GPUS} …",
        {**DOCKER, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""},
        driver=("13.0", "^4"),
        tools={"docker": f'{IMAGE}ln -s "$CUDA" "$LIBRARIES"'}, typed="image",
    ),
    "a driver that was replaced": Trouble(
        "driver", "version mismatch): no NVIDIA variant is considered. Usually fixed by a reboot",
        "sudo reboot",
        NVIDIA, tools={**SUDO, "reboot": f'{DRIVER}'}, variables={"BROKEN": "18"},
    ),
    "the same in a container": Trouble(
        "driver", "version mismatch", "docker run --gpus all …",
        {**DOCKER, **NVIDIA}, tools={"docker": IMAGE + DRIVER}, typed="image",
        variables={"BROKEN": "18"},
    ),
    "no driver": Trouble(
        "driver-missing", "there is a GPU at 0000:01:00.0 and no NVIDIA driver that answers",
        "sudo modprobe nvidia && nvidia-smi",
        NVIDIA, tools={**SUDO, "modprobe": DRIVER, "nvidia-smi": "true"},
    ),
    "no driver of AMD": Trouble(
        "driver-missing", "no AMD driver that answers", "sudo modprobe amdgpu",
        AMD, tools={**SUDO, "modprobe": 'cp -R "$ROOT/later/." "$ROOT"'}, hint=True,
    ),
    "a container beside a GPU": Trouble(
        "container-driver", "this container (Docker) has no NVIDIA driver, although there is a GPU",
        "docker run --gpus all …",
        {**DOCKER, **NVIDIA}, tools={"docker": IMAGE + DRIVER}, typed="image",
    ),
    "a container beside a GPU of AMD": Trouble(
        "container-driver", "this container (Podman) has no AMD driver",
        "podman run --device=/dev/kfd --device=/dev/dri …",
        {"run/.containerenv": "", **AMD}, tools={"podman": f'{IMAGE}cp -R "$ROOT/later/." "$ROOT"'},
        typed="image", hint=True,
    ),
    "a container without a GPU": Trouble(
        "container-without-gpu", "); for image builds use --variant-platform MACHINE",
        "docker run --gpus all …",
        DOCKER, tools={"docker": IMAGE + DRIVER}, typed="image", hint=True,
    ),
    "WSL without a device": Trouble(
        "wsl", "/dev/dxg is missing", "wsl --update; wsl --set-version <distribution> 2",
        WSL, typed="",
    ),
    "WSL without libraries": Trouble(
        "wsl", "/usr/lib/wsl/lib has no libcuda.so.1", "wsl --shutdown",
        {**WSL, "dev/dxg": ""},
        tools={"wsl": 'ln -s "$DRIVER" "$LIBRARIES"'},
    ),
    "AMD in WSL": Trouble(
        "driver", "In WSL, ROCm sees them only with HSA_ENABLE_DXG_DETECTION=1",
        "export HSA_ENABLE_DXG_DETECTION=1",
        {**WSL, "dev/dxg": ""},
        tools={"rocminfo": 'test "$HSA_ENABLE_DXG_DETECTION" = 1 || exit 1\n'
               'printf "Agent 1\\n  Name: gfx1100\\n  Device Type: GPU\\n"'},
    ),
    "a Jetson": Trouble(
        "jetson", "this is a Jetson (L4T 36): PyTorch's builds for aarch64 are made for servers",
        "pip install --index-url https://pypi.jetson-ai-lab.io/jp6/cu126 torch",
        JETSON, driver=("12.6", "8.7"), typed="", hint=True,
    ),
    "a Jetson without libraries": Trouble(
        "driver-missing", "this is a Jetson, and no NVIDIA driver answers",
        "sudo apt-get install nvidia-l4t-cuda",
        {"etc/nv_tegra_release": "# R38 (release)\n"}, tools={**SUDO, "apt-get": DRIVER},
    ),
    "a device file of AMD": Trouble(
        "permissions", "you may not read and write /dev/kfd, so programs find no GPU: join ",
        "sudo usermod -aG {group} $USER",
        {**rocm(90402), "dev/kfd": "", "closed/dev/kfd": ""},
        tools={**SUDO, "usermod": 'rm "$ROOT/closed/dev/kfd"'},
    ),
    "device files of NVIDIA": Trouble(
        "permissions", "you may not read and write /dev/nvidia0 and /dev/nvidiactl",
        "sudo usermod -aG {group} $USER",
        {"dev/nvidia0": "", "dev/nvidiactl": "",
         "closed/dev/nvidia0": "", "closed/dev/nvidiactl": ""},
        tools={**SUDO, "usermod": f'rm -r "$ROOT/closed"\n{DRIVER}'}, variables={"BROKEN": "4"},
    ),
    "a login node": Trouble(
        "login-node", "this is a login node of Slurm",
        "srun --gpus=1 variants detect -o platform.toml",
        tools={"sbatch": "exit 1", "srun": f'{DRIVER}\nshift\nexec "$@"'}, hint=True,
    ),
    "an override of another machine": Trouble(
        "override", f"{DRIVER_OVERRIDE} sets CUDA driver 11.8, but 12.8 was detected",
        f"unset {DRIVER_OVERRIDE}",
        driver=H100, variables={DRIVER_OVERRIDE: "11.8"},
    ),
    "an override for an image": Trouble(
        "override", f"{DRIVER_OVERRIDE} sets CUDA driver 12.4, but none was detected",
        f"unset {DRIVER_OVERRIDE}",
        variables={DRIVER_OVERRIDE: "12.4"}, hint=True,
    ),
    "an override that is none": Trouble(
        "detection", f"{CAPABILITY_OVERRIDE}: 'newest' is not a version",
        f"unset {CAPABILITY_OVERRIDE}",
        driver=H100, variables={CAPABILITY_OVERRIDE: "newest"},
    ),
    "the usual override of ROCm": Trouble(
        "override", "HSA_OVERRIDE_GFX_VERSION sets AMD GPU gfx1030, for gfx1031, as is usual", "",
        rocm(100301), variables={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, hint=True,
    ),
}  # fmt: skip

ELSEWHERE = {
    "a second GPU without code": "troubles::test_a_second_gpu",
    "an index in pip.conf, of the user and of the environment": "troubles::test_a_file_of_pip",
    "the pip of the system first on PATH": "troubles::test_the_pip_of_the_system_comes_first",
    "a pip without the shim": "troubles::test_a_pip_without_the_shim",
    "the shim switched off": "scenarios::test_variants_switched_off_in_pip",
    "an environment of conda": "troubles::test_an_environment_of_conda",
    "an environment that is not active, without pip": "scenarios::test_an_environment_without_pip",
    "an extra index of pip": "scenarios::test_all_indexes_of_pip",
    "no network": "scenarios::test_no_network",
    "a build for CPUs beside a GPU, no catalogue": "scenarios::test_the_gpu_stands_idle",
    "a release of the public index for a newer driver": "scenarios::test_torch_from_pypi",
    "each build on each machine": "switching::test_what_doctor_says",
    "a torchvision for another torch": "scenarios::test_a_torchvision_for_another_torch",
    "two onnxruntimes": "scenarios::test_two_builds_of_one_project",
    "libraries of two CUDAs that own one file": "scenarios::test_two_owners_of_a_file",
    "libraries that nothing requires": "scenarios::test_libraries_that_nothing_requires",
}
"""Troubles that have a test of their own, in one of the modules ``test_doctor_…``. `TROUBLES` and
`SETTINGS` are the others; a pip that is too old and one of the system are beside the module."""


@pytest.fixture
def shell(reader: Reader) -> Shell:
    """The shell of a user whose environment has no pip, with nothing else on ``PATH``."""
    reader.use_variants()
    link_programs(reader.programs)
    environment = reader.home / "env"
    (environment / "bin").mkdir(parents=True)
    python = Path(sys.executable).resolve()
    (environment / "bin/python").symlink_to(python)
    text = f"home = {python.parent}\ninclude-system-site-packages = false\n"
    (environment / "pyvenv.cfg").write_text(text)
    shell = Shell(reader)
    shell.environ |= {"VIRTUAL_ENV": str(environment), "PATH": str(reader.programs)}
    return shell


def break_machine(shell: Shell, trouble: Trouble) -> None:
    """Make the machine of *trouble*; it has a driver library, at first without a driver."""
    reader = shell.reader
    root, libraries = reader.home / "root", reader.home / "lib"
    libraries.mkdir()
    files = {**trouble.files, **{f"later/{path}": text for path, text in rocm(110000).items()}}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        if path.startswith("dev/"):
            os.chown(root / path, -1, _group().gr_gid)
            (root / path).chmod(0o660)
    driver = driver_library(reader.environments) / NVML[1]
    broken = trouble.variables.get("BROKEN")
    if broken:
        library = build_library(reader.home / "broken", NVML, {"FAKE_NVML_INIT": broken})
        (libraries / NVML[1]).symlink_to(library)
    elif trouble.driver:
        (libraries / NVML[1]).symlink_to(driver)
    says = trouble.cuda or cuda_library("13.0", "9.0")
    cuda = build_library(reader.home / "compat", CUDA, says)
    paths = [*([str(cuda.parent)] if trouble.cuda else []), str(libraries)]
    shell.environ |= {
        "LD_PRELOAD": str(redirection(reader.home / "redirection")),
        "REDIRECTED_ROOT": str(root),
        "ROOT": str(root), "LIBRARIES": str(libraries), "DRIVER": str(driver), "CUDA": str(cuda),
        "LD_LIBRARY_PATH": os.pathsep.join(paths),
        **nvml(*(trouble.driver or H100)),
        **trouble.variables,
    }  # fmt: skip
    if ".dockerenv" not in files:  # the tests may run in a container
        shell.environ |= {"REDIRECTED_FROM": "/.dockerenv", "REDIRECTED_TO": "/nowhere"}
    for name, script in trouble.tools.items():
        reader.tool(name, script)


def _group() -> grp.struct_group:
    """Return a group that is not root's, which this user may give a file to."""
    others = (each for each in grp.getgrall() if each.gr_gid)
    return grp.getgrgid(os.getgid()) if os.getgid() else next(others)


def sampled(names: Iterable[str]) -> list[Any]:
    """Return parameters of which ``make test`` takes a third, ``make test-matrix`` all."""
    return [pytest.param(name, marks=[pytest.mark.nightly] if number % 3 else [])
            for number, name in enumerate(names)]  # fmt: skip


def only(tree: dict[str, Any], code: str, said: str, *, fails: bool = True) -> str:
    """Return the command of the one problem, which says this."""
    assert [each["code"] for each in tree["problems"]] == [code], tree["problems"]
    (problem,) = tree["problems"]
    assert said in problem["text"]
    assert problem["fails"] == fails
    command: str = problem["command"]
    return command


@pytest.mark.parametrize("name", sampled(TROUBLES))
def test_a_trouble_of_the_machine(shell: Shell, name: str) -> None:
    trouble = TROUBLES[name]
    break_machine(shell, trouble)
    found = only(shell.doctor("--offline"), trouble.code, trouble.said, fails=not trouble.hint)
    command = trouble.command.replace("{group}", _group().gr_name)
    assert found == command.replace("{}", str(shell.reader.home))
    if command and trouble.typed != "":
        shell.type(found.replace("…", trouble.typed or ""))
        assert shell.doctor("--offline")["problems"] == []


PYTORCH = "https://download.pytorch.org/whl"
CATALOG = "VARIANTS_CATALOG"
USERS = ".config/variants/variants.toml"
UV = f"""\
[[index]]
name = "cpu"
url = "{PYTORCH}/cpu"
"""
PROJECT = f"""\
[project]
name = "a"

[tool.uv]
extra-index-url = ["{PYTORCH}/cu130"]
"""
OLD = machine_text("cuda=12.4,sm=8.0", "test")
SETTINGS: dict[str, tuple[dict[str, str], dict[str, str], str, str, bool, str]] = {
    "an index in uv.toml": (
        {"work/uv.toml": UV}, {}, "index-pin", "uv.toml, line 3 takes packages from", True,
        "${EDITOR:-vi} +3 {}/work/uv.toml",
    ),
    "an index in pyproject.toml": (
        {"work/pyproject.toml": PROJECT}, {}, "index-pin", "supports CUDA 12.8 at most", True,
        "${EDITOR:-vi} +5 {}/work/pyproject.toml",
    ),
    "a backend in uv.toml": (
        {"work/uv.toml": 'torch-backend = "cpu"\n'}, {}, "torch-backend", "line 1 makes", True,
        "${EDITOR:-vi} +1 {}/work/uv.toml",
    ),
    "a backend in a variable": (
        {}, {"UV_TORCH_BACKEND": "cpu"}, "torch-backend", "UV_TORCH_BACKEND=cpu makes", True,
        "unset UV_TORCH_BACKEND",
    ),
    "an index of pip in a variable": (
        {}, {"PIP_EXTRA_INDEX_URL": f"{PYTORCH}/cpu"}, "index-pin", "builds for one", True,
        "unset PIP_EXTRA_INDEX_URL",
    ),
    "a stale platform": (
        {USERS: 'platform = "old.toml"\n', ".config/variants/old.toml": OLD}, {},
        "setting", "detection is overridden by another machine: ", False,
        f"${{EDITOR:-vi}} +1 {{}}/{USERS}",
    ),
    "a platform that is gone": (
        {USERS: 'platform = "old.toml"\n'}, {},
        "configuration", "old.toml: ", True,
        f"${{EDITOR:-vi}} +1 {{}}/{USERS}",
    ),
    "a catalogue that was typed wrong": (
        {}, {CATALOG: "defualt"}, "configuration", "did you mean 'default'?", True,
        f"export {CATALOG}=default",
    ),
    "a catalogue of pip": (
        {}, {"PIP_VARIANT_CATALOG": "defualt"}, "configuration", "did you mean 'default'?", True,
        "export PIP_VARIANT_CATALOG=default",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(SETTINGS))
def test_a_setting(shell: Shell, name: str) -> None:
    """It is removed by hand where doctor opens an editor."""
    files, variables, code, said, fails, command = SETTINGS[name]
    break_machine(shell, Trouble("", "", "", driver=H100, variables=variables))
    for path, text in files.items():
        (shell.reader.home / path).parent.mkdir(parents=True, exist_ok=True)
        (shell.reader.home / path).write_text(text)
    shell.reader.tool("editor", 'sed -i "${1#+}d" "$2"')
    shell.environ["EDITOR"] = "editor"
    found = only(shell.doctor("--offline"), code, said, fails=fails)
    assert found == command.replace(" {}", f" {shell.reader.home}")
    shell.type(found)
    assert shell.doctor("--offline")["problems"] == []


@pytest.fixture
def pip(shell: Shell) -> Callable[[bool], Path]:
    """Give the environment a pip, with the shim or without; return it."""

    def give(shim: bool) -> Path:
        environments, folder = shell.reader.environments, shell.reader.home / "with-pip"
        made = environments.patched if shim else environments.plain
        environment = made("3.12", PIPS[-1]).copied(folder)
        path = folder / "bin/pip"
        path.write_text(f'#!/bin/sh\nexec {environment.python} -m pip "$@"\n')
        path.chmod(0o755)
        shell.environ["VIRTUAL_ENV"] = str(folder)
        shell.environ["PATH"] = f"{folder}/bin{os.pathsep}{shell.environ['PATH']}"
        break_machine(shell, Trouble("", "", "", driver=H100))
        return path

    return give


@pytest.mark.parametrize(
    ("setting", "code", "said", "command"),
    [
        (f"--user set global.index-url {PYTORCH}/cpu", "index-pin", "global.index-url in ",
         "--user unset global.index-url"),
        (f"--site set global.extra-index-url {PYTORCH}/cpu", "index-pin", "which has builds for on",
         "--site unset global.extra-index-url"),
        ("--user set global.variant-catalog defualt", "configuration", "did you mean 'default'?",
         "--user set global.variant-catalog default"),
    ],
)  # fmt: skip
def test_a_file_of_pip(
    shell: Shell, pip: Callable[[bool], Path], setting: str, code: str, said: str, command: str
) -> None:
    path = pip(True)
    shell.type(f"pip config {setting}")
    found = only(shell.doctor("--offline"), code, said)
    assert found == f"{path} config {command}"
    shell.type(found)
    assert shell.doctor("--offline")["problems"] == []


def test_an_environment_of_conda(shell: Shell) -> None:
    """It is found when it is active; the base environment counts after ``.venv``."""
    break_machine(shell, Trouble("", "", "", driver=H100))
    environment = shell.environ.pop("VIRTUAL_ENV")
    shell.environ["CONDA_PREFIX"] = environment
    tree = shell.doctor("--offline")
    assert (tree["environment"], tree["problems"]) == (environment, [])


def offer(shell: Shell) -> None:
    """Put the wheels of the shim and of a pip into ``dist``, and let pip ask nothing else."""
    (shell.reader.work / "dist").mkdir()
    environments = shell.reader.environments
    for wheel in (environments.shim_wheel, environments.pip_wheel(PIPS[-1])):
        (shell.reader.work / "dist" / wheel.name).symlink_to(wheel)
    shell.environ["PIP_NO_INDEX"] = "1"


PLAIN = "pip 24.0 from /usr/lib/python3/dist-packages/pip (python 3.12)"


def test_the_pip_of_the_system_comes_first(shell: Shell, pip: Callable[[bool], Path]) -> None:
    path = pip(True)
    shell.reader.tool("pip", f"echo '{PLAIN}'")
    shell.environ["PATH"] = f"{shell.reader.programs}{os.pathsep}{path.parent}"
    found = only(shell.doctor("--offline"), "plain-pip-first", "does not know variants; ")
    shell.type(found)
    assert shell.doctor("--offline")["problems"] == []
    assert " with pep-variants-shim " in shell.type("pip --version")
    # That of another environment is left alone.
    (shell.reader.programs / "uv-variants").unlink()
    shell.environ["VIRTUAL_ENV"] = str(shell.reader.home / "env")
    only(shell.doctor("--offline"), "plain-pip", "has no pip, and ")


def test_a_pip_without_the_shim(shell: Shell, pip: Callable[[bool], Path]) -> None:
    """It is installed from the wheels of this project, as the README has it."""
    path = pip(False)
    offer(shell)
    found = only(shell.doctor("--offline"), "plain-pip", "-shim: it ignores", fails=False)
    assert found == f"{path} install --upgrade --find-links dist pip pep-variants-shim"
    shell.type(found)
    assert shell.doctor("--offline")["problems"] == []
    shell.environ["PEP_VARIANTS_SHIM"] = "0"
    shell.type(only(shell.doctor("--offline"), "shim-off", "PEP_VARIANTS_SHIM=0 switches off"))
    assert shell.doctor("--offline")["problems"] == []


@pytest.fixture
def torch(shell: Shell, pip: Callable[[bool], Path]) -> Iterator[Shell]:
    """A machine with driver 12.8 and the catalogue, where torch is chosen for an H100."""
    pip(True)
    with standing_in(published(torch=TORCH)) as field:
        shell.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        shell.type("pip config --user set global.variant-catalog default")
        shell.type("pip install --quiet torch")
        yield shell


def codes(tree: dict[str, Any], *, hints: bool = False) -> list[str]:
    """Return the codes of what is wrong."""
    return [each["code"] for each in tree["problems"] if each["fails"] or hints]


def test_a_second_gpu(torch: Shell) -> None:
    """One for which the build that fits the first has no code."""
    torch.environ |= nvml("13.0", "9.0")
    torch.type("pip install --variant-switch torch")
    torch.environ |= nvml("13.0", "9.0,6.1,3.5")
    tree = torch.doctor()
    (hint,) = (each for each in tree["problems"] if each["code"] == "idle-gpu")
    assert "no code for one of the GPUs that are here, cuda=13.0,sm=6.1" in hint["text"]
    assert not hint["fails"]
    assert "compute capability" in torch.type(hint["command"])


def test_a_driver_that_vanishes_keeps_the_build(torch: Shell) -> None:
    """Doctor says so once, and nothing else."""
    library = build_library(torch.reader.home / "broken", NVML, {"FAKE_NVML_INIT": "18"})
    place = Path(torch.environ["LIBRARIES"], NVML[1])
    place.unlink()
    place.symlink_to(library)
    torch.reader.tool("sudo", 'exec "$@"')
    torch.reader.tool("reboot", DRIVER)
    done = subprocess.run(
        ["variants", "doctor"], cwd=torch.reader.work, env=torch.environ,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.count("cannot be queried") == 1
    assert "--variant-switch" not in done.stdout
    torch.type(only(torch.doctor(), "driver", "Usually fixed by a reboot"))
    assert codes(torch.doctor()) == []


@pytest.mark.parametrize("name", ["an old libcuda", "a container without a GPU"])
def test_the_other_doctor(shell: Shell, name: str) -> None:
    """`uv-variants doctor` says the same."""
    trouble = TROUBLES[name]
    break_machine(shell, trouble)
    shell.reader.use_uv()
    shell.environ["PATH"] = shell.reader.variables["PATH"]
    done = subprocess.run(
        ["uv-variants", "doctor", "--json", "--offline"], cwd=shell.reader.work,
        env=shell.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = only(json.loads(done.stdout), trouble.code, trouble.said, fails=not trouble.hint)
    assert found == trouble.command.replace("{}", str(shell.reader.home))


def test_every_trouble_has_a_test() -> None:
    for place in ELSEWHERE.values():
        module, _, name = place.partition("::")
        text = Path(__file__).with_name(f"test_doctor_{module}.py").read_text("utf-8")
        assert f"def {name}(" in text, place
    assert len(TROUBLES) + len(SETTINGS) + len(ELSEWHERE) >= 44

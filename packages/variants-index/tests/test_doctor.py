"""Every cause that both doctors know, on machines made of files and variables."""

import os
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from pep_variants._choose.preferences import Preferences
from pep_variants._detect.detector import Detector
from pep_variants._formats.platform_file import write_platform
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Fact, Platform, Support
from pep_variants._places import Place, Role
from pep_variants._sources import Sources
from pep_variants.selection import rank
from variants_index.doctor import environment_problems, report_schema, uv_commands
from variants_index.doctor._checkup import Checkup
from variants_index.doctor._findings import CODES, Findings, Part, Problem, lines
from variants_index.doctor._installers import installers_part
from variants_index.doctor._machine import Drivers, idle_gpus, machine_part, surroundings_part
from variants_index.doctor._origins import configuration_part, index_pins, settings_of
from variants_index.target import make_target

ROOT = Path(__file__).parents[3]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc, /sys, /dev and shell scripts")
TYPED = uv_commands((), explain="", doctor="")
NONE = Drivers()
NVIDIA = Drivers(("NVIDIA",), (12, 4))
FAILING = Drivers(failing=("NVIDIA",))
AMD = Drivers(("AMD",))
PYTORCH = "https://download.pytorch.org/whl"
DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
GPU = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"
HSA = "HSA_OVERRIDE_GFX_VERSION"
GPUS = [("compute capability", "8.9"), ("compute capability", "6.1")]


@pytest.fixture
def root(tmp_path):
    """Write files below a root folder; return it."""

    def write(files):
        for path, text in files.items():
            (tmp_path / "root" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "root" / path).write_text(text)
        return tmp_path / "root"

    return write


def amd(*versions):
    nodes = "sys/class/kfd/kfd/topology/nodes/{}/properties"
    return {nodes.format(number): f"gfx_target_version {version}\n"
            for number, version in enumerate(versions, 1)}  # fmt: skip


def pci(vendor, kind="0x030200"):
    device = "sys/bus/pci/devices/0000:01:00.0"
    return {f"{device}/vendor": f"{vendor}\n", f"{device}/class": f"{kind}\n"}


@LINUX
@pytest.mark.parametrize(
    ("files", "environ", "code", "cause", "remedy", "fails"),
    [
        (amd(90402), {HSA: "11.0.0"}, "override",
         f"{HSA} sets AMD GPU gfx1100, but gfx942 was detected",
         f"unset {HSA}", True),
        # The usual way to run builds without code for that GPU.
        (amd(100301), {HSA: "10.3.0"}, "override",
         f"{HSA} sets AMD GPU gfx1030, for gfx1031, as is usual", "", False),
        (amd(100301), {HSA: "11.0.0"}, "override", "but gfx1031 was detected", f"unset {HSA}",
         True),
        (amd(90010), {HSA: "9.4.2"}, "override", "but gfx90a was detected", f"unset {HSA}", True),
        ({}, {DRIVER: "12.8"}, "override", "sets CUDA driver 12.8, but none was detected",
         f"unset {DRIVER}", False),
        ({}, {DRIVER: "newest"}, "detection", f"{DRIVER}: 'newest' is not a version",
         f"unset {DRIVER}", True),
        ({}, {DRIVER: "10.2"}, "driver", "10.2 is outside the supported range", "", True),
        (amd(90402, 110000), {"ROCR_VISIBLE_DEVICES": "1"}, "hidden-gpu",
         "ROCR_VISIBLE_DEVICES=1 hides AMD GPU gfx942, so no variant for it is chosen",
         "unset ROCR_VISIBLE_DEVICES", True),
        (amd(90402, 110000), {"ROCR_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "0"},
         "hidden-gpu",
         "HIP_VISIBLE_DEVICES=0 hides AMD GPU gfx1100",
         "unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES", True),
        (amd(90402), {"ROCR_VISIBLE_DEVICES": ""}, "hidden-gpu",
         "ROCR_VISIBLE_DEVICES= hides AMD GPU gfx942", "unset ROCR_VISIBLE_DEVICES", True),
        (amd(90402, 110000), {"ROCR_VISIBLE_DEVICES": "0", HSA: "10.3.0"}, "hidden-gpu", "", "",
         False),
        (amd(90402, 110000), {"HIP_VISIBLE_DEVICES": "0,1"}, "hidden-gpu", "", "", False),
        # NVIDIA's management library shows them all the same.
        ({}, {"CUDA_VISIBLE_DEVICES": "-1", DRIVER: "12.8", GPU: "9.0"}, "hidden-gpu",
         "CUDA_VISIBLE_DEVICES=-1 hides every NVIDIA GPU from programs",
         "unset CUDA_VISIBLE_DEVICES", False),
        ({}, {"CUDA_VISIBLE_DEVICES": "0", DRIVER: "12.8", GPU: "9.0"}, "hidden-gpu", "", "",
         False),
    ],
)  # fmt: skip
def test_the_machine(root, files, environ, code, cause, remedy, fails):
    part, _ = machine_part({"PATH": "", **environ}, root({"etc/x": "", **files}))
    found = [each for each in part.problems if each.code == code]
    assert len(found) == bool(cause)
    for problem in found:
        assert cause in problem.text
        assert (problem.command, problem.fails) == (remedy, fails)


@LINUX
def test_what_detection_found(root):
    part, drivers = machine_part({"PATH": "", DRIVER: "12.8"}, root(amd(90402)))
    assert (drivers.vendors, drivers.cuda) == (("AMD", "NVIDIA"), (12, 8))
    assert ("nvidia", f"CUDA driver 12.8, forced by {DRIVER}") in part.rows
    assert ("amd", "tried sys/class/kfd: lists 1 devices, CPUs included") in [
        (name, text.replace(f"{root({})}/", "").replace("/kfd/topology/nodes", ""))
        for name, text in part.rows
    ]


@pytest.mark.parametrize(
    ("namespace", "facts", "values", "idle"),
    [
        ("nvidia", [("CUDA driver", "12.8"), *GPUS], ["75_real", "80_real"], ["cuda=12.8,sm=6.1"]),
        ("nvidia", [("CUDA driver", "12.8"), *GPUS], ["60_real", "80_real"], []),
        ("nvidia", [("CUDA driver", "12.8"), GPUS[1]], ["90_real"], []),  # it does not fit at all
        ("amd", [("ROCm", "6.4"), ("AMD GPU", "gfx1100"), ("AMD GPU", "gfx1036")],
         ["gfx1030", "gfx1100"], ["rocm=6.4,gfx=gfx1036"]),
        ("amd", [("AMD GPU", "gfx1100"), ("AMD GPU", "gfx1036")], ["gfx1100"], []),
    ],
)  # fmt: skip
def test_a_gpu_without_code(namespace, facts, values, idle):
    feature = {"nvidia": "sm_arch", "amd": "gfx_arch"}[namespace]
    metadata = Metadata((namespace,), {"gpu": {namespace: {feature: tuple(values)}}})
    support = Support({feature: tuple(values)}, facts=tuple(Fact(*fact, "x") for fact in facts))
    assert idle_gpus(rank(metadata, Platform({namespace: support})), "gpu") == idle


DOCKER = {".dockerenv": ""}
WSL = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n"}
EMPTY = {"PATH": "/nowhere"}
ORIN = {"etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic\n"}


@LINUX
@pytest.mark.parametrize(
    ("environ", "files", "drivers", "code", "cause", "remedy", "fails"),
    [
        (EMPTY, {**DOCKER, **pci("0x10de")}, NONE, "container-driver",
         "this container (Docker) has no NVIDIA driver, although there is a GPU at 0000:01:00.0",
         "docker run --gpus all …", True),
        (EMPTY, {"run/.containerenv": "", **pci("0x1002")}, NONE, "container-driver",
         "this container (Podman) has no AMD driver",
         "podman run --device=/dev/kfd --device=/dev/dri …", False),
        (EMPTY, {**DOCKER, **pci("0x1002")}, NONE, "container-driver", "no AMD driver",
         "docker run --device=/dev/kfd --device=/dev/dri …", False),
        (EMPTY, pci("0x10de"), NONE, "driver-missing",
         "a GPU at 0000:01:00.0 and no NVIDIA driver", "sudo modprobe nvidia && nvidia-smi", True),
        (EMPTY, pci("0x1002", "0x120000"), NONE, "driver-missing", "no AMD driver",
         "sudo modprobe amdgpu", True),
        (EMPTY, pci("0x1002"), NVIDIA, "driver-missing", "no AMD driver", "sudo modprobe amdgpu",
         False),
        (EMPTY, pci("0x10de"), NVIDIA, "", "", "", False),
        (EMPTY, DOCKER, NONE, "container-without-gpu", "container (Docker) sees no GPU",
         "docker run --gpus all …", False),
        (EMPTY, DOCKER, NVIDIA, "", "", "", False),
        (EMPTY, DOCKER, FAILING, "", "", "", False),
        *(
            ({name: "oci"}, {}, NONE, "container-without-gpu", "for image builds use --variant-pl",
             command, False)
            for name, command in (
                ("APPTAINER_CONTAINER", "apptainer exec --nv …"),
                ("KUBERNETES_SERVICE_HOST", "kubectl set resources deployment … --limits=nvidia"),
                ("container", "docker run --gpus all …"),
            )
        ),
        (EMPTY, WSL, NONE, "wsl", "/dev/dxg is missing", "wsl --update; wsl --set-version", True),
        (EMPTY, {**WSL, "dev/dxg": ""}, NONE, "wsl", "usr/lib/wsl/lib has no libcuda.so.1",
         "wsl --shutdown", True),
        # of another vendor's GPU
        (EMPTY, {**WSL, "dev/dxg": "", "usr/lib/wsl/lib/libd3d12.so": ""}, NONE, "wsl", "", "wsl",
         False),
        (EMPTY, {**WSL, "dev/dxg": ""}, NVIDIA, "", "", "", False),
        (EMPTY, {**WSL, "dev/dxg": ""}, FAILING, "", "", "", False),
        (EMPTY, ORIN, NVIDIA, "jetson", "this is a Jetson (L4T 36): PyTorch's builds for aarch64",
         "pip install --index-url https://pypi.jetson-ai-lab.io/jp6/cu124 torch", False),
        (EMPTY, ORIN, NONE, "driver-missing", "this is a Jetson, and no NVIDIA driver answers",
         "sudo apt-get install nvidia-l4t-cuda", True),
        (EMPTY, {**DOCKER, "proc/device-tree/tegra-fuse": ""}, NONE, "container-driver", "a Jetson",
         "docker run --runtime nvidia …", True),
        (EMPTY, {"etc/nv_tegra_release": "# R38 (release)"}, NVIDIA, "", "", "", False),
    ],
)  # fmt: skip
def test_surroundings(root, environ, files, drivers, code, cause, remedy, fails):
    part = surroundings_part(environ, root({"etc/x": "", **files}), drivers)
    assert [problem.code for problem in part.problems] == ([code] if code else [])
    for problem in part.problems:
        assert cause in problem.text
        assert problem.command.startswith(remedy)
        assert problem.fails == fails
    if code == "container-without-gpu":
        described = surroundings_part(environ, root(files), drivers, is_described=True)
        assert described.problems == ()


@LINUX
@pytest.mark.parametrize(
    ("tool", "name", "command"),
    [
        ("sbatch", "Slurm", "srun --gpus=1 variants detect -o platform.toml"),
        ("qsub", "PBS", "qsub -I -l select=1:ngpus=1 -- variants detect -o platform.toml"),
        ("bsub", "LSF", "bsub -I -gpu num=1 variants detect -o platform.toml"),
    ],
)
def test_a_login_node(root, tmp_path, tool, name, command):
    path = tmp_path / tool
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    environ = {"PATH": str(tmp_path)}
    (problem,) = surroundings_part(environ, root({"etc/x": ""}), NONE).problems
    assert (problem.code, problem.fails, problem.command) == ("login-node", False, command)
    assert f"this is a login node of {name}" in problem.text
    assert surroundings_part({**environ, "SLURM_JOB_ID": "1"}, root({}), NONE).problems == ()


@LINUX
@pytest.mark.parametrize(
    ("closed", "files", "drivers", "command", "fails"),
    [
        ("kfd", {}, AMD, "sudo usermod -aG {} $USER", True),
        ("renderD", {}, NONE, "sudo usermod -aG {} $USER", True),
        ("renderD", {}, NVIDIA, "sudo usermod -aG {} $USER", False),
        ("nvidia", {}, NONE, "sudo usermod -aG {} $USER", True),
        ("kfd", DOCKER, AMD, "docker run --group-add {} …", True),
    ],
)
def test_device_files_that_are_closed(root, monkeypatch, closed, files, drivers, command, fails):
    """Not by their modes: root may read everything, and access lists do not show there."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: closed not in str(path) and access(path, mode)
    )
    devices = ("dev/dri/renderD128", "dev/kfd", "dev/nvidia0", "dev/nvidiactl")
    here = root({**dict.fromkeys(devices, ""), **files})
    import grp

    group = grp.getgrgid(os.getgid() or next(each.gr_gid for each in grp.getgrall() if each.gr_gid))
    for path in devices:
        os.chown(here / path, -1, group.gr_gid)
        (here / path).chmod(0o660)
    (problem,) = surroundings_part({}, here, drivers).problems
    assert (problem.code, problem.fails) == ("permissions", fails)
    assert "you may not read and write" in problem.text
    assert problem.command == command.format(group.gr_name)
    for path in devices:
        (here / path).chmod(0o600)
    (problem,) = surroundings_part({}, here, drivers).problems
    assert problem.command.startswith("sudo chmod a+rw ")


@pytest.mark.parametrize(
    ("path", "drivers", "said", "fails"),
    [
        ("/cpu", NONE, "", False),
        ("/cpu", NVIDIA, ", while this machine has the driver of NVIDIA", True),
        ("/cu118", NVIDIA, "", False),
        ("/cu128/", NVIDIA, "", False),
        ("/cu130", NVIDIA, ", while the driver here supports CUDA 12.4 at most", True),
        ("/nightly/cu130", NONE, ", while detection finds no driver of NVIDIA here", True),
        ("/cu128", AMD, ", while this machine has the driver of AMD", True),
        ("/rocm6.4", AMD, "", False),
        ("/rocm6.4", NVIDIA, ", while this machine has the driver of NVIDIA", True),
        ("/xpu", NONE, ", while detection finds no driver of Intel here", True),
        ("/variant/", NVIDIA, None, False),
        ("", NVIDIA, None, False),
    ],
)
def test_pins(path, drivers, said, fails):
    found = list(index_pins(["https://a.example/", PYTORCH + path], "x.toml", "", drivers))
    if said is None:
        assert found == []
        return
    (problem,) = found
    assert problem.text == (
        f"x.toml takes packages from {PYTORCH}{path}, which has builds for one backend only{said}: "
        "remove that index there"
    )
    assert (problem.code, problem.fails, problem.command) == ("index-pin", fails, "")


UV = """\
[[index]]
name = "pytorch"
url = "https://me:secret@download.pytorch.org/whl/cu130"

[pip]
torch-backend = "cpu"
extra-index-url = ["https://a.example/simple", "https://b.example/simple"]
"""


@pytest.fixture
def configured(tmp_path):
    """Return the part about settings of a user's variants.toml, uv's files and variables."""
    (tmp_path / "work").mkdir()
    (tmp_path / "user").mkdir()
    home = {
        "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CONFIG_DIRS": str(tmp_path / "etc"),
        "APPDATA": str(tmp_path / "config"), "PROGRAMDATA": str(tmp_path / "etc"),
    }  # fmt: skip

    def configure(environ=(), text="", drivers=NONE, sources=None):
        path = tmp_path / "user" / "variants.toml"
        path.write_text(text)
        candidates, environ = [Place(path, Role.USER)], {**home, **dict(environ)}
        settings, problems = settings_of({}, environ, candidates)
        return configuration_part(
            settings, problems, environ, sources or Sources(), start=tmp_path / "work",
            drivers=drivers, candidates=candidates,
        )  # fmt: skip

    return configure


@pytest.mark.parametrize(
    "place", ["work/uv.toml", "work/pyproject.toml", "config/uv/uv.toml", "etc/uv/uv.toml"]
)
def test_uv_files(tmp_path, configured, place):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    project = UV.replace("[[", "[[tool.uv.").replace("[pip]", "[tool.uv.pip]")
    path.write_text(project if place.endswith("pyproject.toml") else UV)
    part = configured(drivers=NVIDIA)
    found = [text for name, text in part.rows if name.startswith("uv's ")]
    assert found == [
        f"{text}, from {path}"
        for text in ("https://****@download.pytorch.org/whl/cu130", "https://a.example/simple",
                     "https://b.example/simple", "cpu")
    ]  # fmt: skip
    pin, backend = part.problems
    assert pin.text.startswith(f"{path}, line 3 takes packages from https://****@")
    assert pin.text.endswith(": remove that index there")
    assert (pin.command, pin.fails) == (f"${{EDITOR:-vi}} +3 {path}", True)
    assert backend.command == f"${{EDITOR:-vi}} +6 {path}"
    assert backend.text == (
        f'torch-backend = "cpu" in {path}, line 6 makes uv take PyTorch\'s packages from the index '
        "of that backend, builds that are not variants, while this machine has the driver of "
        "NVIDIA: remove that line"
    )
    assert "secret" not in f"{part}"
    assert configured({"UV_NO_CONFIG": "1"}).problems == ()


@pytest.mark.parametrize(
    ("environ", "code", "said", "fails"),
    [
        ({"UV_TORCH_BACKEND": "cpu"}, "torch-backend", "while this machine has the driver of NV",
         True),
        ({"UV_TORCH_BACKEND": "auto"}, "torch-backend", "builds that are not variants", False),
        ({"UV_INDEX": f"x={PYTORCH}/cpu"}, "index-pin", "UV_INDEX takes packages from", True),
        ({"PIP_EXTRA_INDEX_URL": f"https://a.example/ {PYTORCH}/cpu"}, "index-pin",
         "PIP_EXTRA_INDEX_URL takes packages from https://download", True),
        ({"PIP_NO_VARIANTS": "1"}, "setting",
         "variants are switched off, for pip: PIP_NO_VARIANTS=1", False),
        ({"PIP_VARIANT": "a=b"}, "setting", "variants are named, whatever fits, for pip: PIP_VAR",
         False),
        ({"PIP_NO_VARIANTS": "false", "PIP_VARIANT": ""}, "", "", False),
        ({"VARIANTS_NO_VARIANTS": "1"}, "setting",
         "variants are switched off, from VARIANTS_NO_VARIANTS", False),
        ({"VARIANTS_VARIANT": "torch=cu126"}, "setting",
         "variants are named, whatever fits: torch=cu126, from VARIANTS_VARIANT", False),
        ({"VARIANTS_PLATFORM": "h100-zen4"}, "setting",
         "detection is overridden by another machine: h100-zen4, from VARIANTS_PLATFORM",
         False),
    ],
)  # fmt: skip
def test_variables(configured, environ, code, said, fails):
    problems = configured(environ, drivers=NVIDIA).problems
    assert [each.code for each in problems] == ([code] if code else [])
    for problem in problems:
        assert said in problem.text
        assert (problem.command, problem.fails) == (f"unset {next(iter(environ))}", fails)


def test_settings_that_cannot_be_read(configured):
    (problem,) = configured({"VARIANTS_PREFER": "::"}).problems
    assert problem.code == "configuration"
    assert "VARIANTS_PREFER" in problem.text


H100 = {"nvidia": {"sm_arch": ("90_real",)}}


@pytest.mark.parametrize(
    ("here", "said"),
    [
        (H100, ""),
        ({"nvidia": {}}, ", and differs from this machine in nvidia"),
        ({**H100, "amd": {"gfx_arch": ("gfx942",)}}, ", and differs from this machine in amd"),
    ],
)
def test_a_platform_file_that_was_left(tmp_path, configured, here, said):
    file, settings = tmp_path / "user" / "old machine.toml", tmp_path / "user" / "variants.toml"
    platform = Platform({name: Support(features) for name, features in H100.items()})
    file.write_text(write_platform(platform, "test"))
    text = 'platform = "old machine.toml"\n'
    (problem,) = configured((), text, Drivers(features=here)).problems
    assert problem.text == (
        f"detection is overridden by another machine: {file}, from {settings}, line 1{said}: "
        "remove it there"
    )
    assert problem.command == f"${{EDITOR:-vi}} +1 {settings}"
    file.unlink()
    (problem,) = configured((), text).problems
    assert (problem.code, problem.fails) == ("configuration", True)
    assert problem.text.startswith(f"{file}: ")
    assert problem.text.endswith(f", from {settings}, line 1: remove it there")


def test_the_indexes_and_passwords(configured):
    url = "https://user:secret@example.org/simple"
    part = configured({"PIP_INDEX_URL": url}, sources=Sources(url))
    assert ("indexes", "https://****@example.org/simple") in part.rows
    assert "secret" not in f"{part}"
    assert ("indexes", "none") in configured(sources=Sources(no_index=True)).rows


PIP = "pip {} from {} (python 3.12)"
PATCHED = PIP.format("26.3", "/x/pip") + " with pep-variants-shim 0.1.0"


@pytest.fixture
def tool(tmp_path):
    """Write a program that prints *text*, and *debug* as ``pip config debug``; return its path."""

    def write(name, text, debug="", folder="bin"):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"#!/bin/sh\nif [ $1 = config ]; then echo '{debug}'; else echo '{text}'\nfi"
        )
        path.chmod(0o755)
        return path

    return write


def installers(path, **environ):
    return installers_part({"PATH": str(path), **environ}, path / "python", NVIDIA)


@LINUX
@pytest.mark.parametrize(
    ("scope", "setting", "code", "said", "undo"),
    [
        ("user", "global.no-variants: true", "setting",
         "variants are switched off, for pip: global.no-variants = true in /c/pip.conf",
         "config --user unset global.no-variants"),
        ("env", "install.no-variants: true", "setting", "install.no-variants = true", ""),
        ("site", "global.variant: gpu=null", "setting", "whatever fits, for pip: global.variant =",
         "config --site unset global.variant"),
        ("user", f"global.index-url: {PYTORCH}/cu118", "index-pin",
         f"global.index-url in /c/pip.conf takes packages from {PYTORCH}/cu118",
         "config --user unset global.index-url"),
        ("user", "global.no-variants: 0", "", "", ""),
        ("user", "global.timeout: 5", "", "", ""),
        ("user", "global.index-url: https://me:secret@a.example/", "", "", ""),
    ],
)  # fmt: skip
def test_the_files_of_pip(tool, scope, setting, code, said, undo):
    debug = f"env_var:\nenv:\n{scope}:\n  /c/pip.conf, exists: True\n    {setting}"
    pip = tool("pip", PATCHED, debug)
    part = installers(pip.parent)
    assert "secret" not in f"{part}"
    assert [each.code for each in part.problems] == ([code] if code else [])
    for problem in part.problems:
        assert said in problem.text
        assert problem.command == (f"{pip} {undo}" if undo else "")
    assert any(name == "/c/pip.conf" for name, _ in part.rows) == ("timeout" not in setting)


@LINUX
def test_the_first_pip_counts(tool):
    plain, patched = tool("pip", PIP.format("26.3", "/p/pip"), "", "plain"), tool("pip", PATCHED)
    path = f"{plain.parent}{os.pathsep}{patched.parent}"
    (problem,) = installers(patched.parent, PATH=path).problems
    assert (problem.code, problem.fails) == ("plain-pip-first", True)
    assert f"{plain} is first on PATH and does not know variants; {patched} does" in problem.text
    assert problem.command == f"export PATH={patched.parent}:$PATH"
    path = f"{patched.parent}{os.pathsep}{plain.parent}"
    assert installers(patched.parent, PATH=path).problems == ()
    # Not of another environment.
    for path in (str(plain.parent), path):
        (problem,) = installers(plain.parent, PATH=path).problems
        assert (problem.code, problem.fails) == ("plain-pip", True)
        assert problem.text == f"{plain} is pip 26.3 without pep-variants-shim: it ignores variants"
        assert problem.command == (
            f"{plain} install --upgrade --find-links dist pip pep-variants-shim"
        )
    (problem,) = installers(tool("other", "", "", "none").parent, PATH=path).problems
    assert "none/python has no pip, and" in problem.text
    assert problem.command.endswith("none/python -m ensurepip --upgrade")
    tool("uv-variants", "uv-variants 0.1.0", "", "plain")
    (problem,) = installers(plain.parent).problems
    assert not problem.fails


@LINUX
@pytest.mark.parametrize(
    ("version", "environ", "code", "remedy"),
    [
        ("26.3", {"PEP_VARIANTS_SHIM": "0"}, "shim-off", "unset PEP_VARIANTS_SHIM"),
        ("23.2.1", {}, "old-pip", "{} install --upgrade pip"),
    ],
)
def test_a_shim_that_does_nothing(tool, tmp_path, version, environ, code, remedy):
    (tmp_path / "site" / "pep_variants_shim-0.1.0.dist-info").mkdir(parents=True)
    pip = tool("pip", PIP.format(version, tmp_path / "site" / "pip"))
    (problem,) = installers(pip.parent, **environ).problems
    assert (problem.code, problem.command) == (code, remedy.format(pip))


@LINUX
@pytest.mark.parametrize(("version", "module"), [
    ("99.0 from {}/pip (python 3.13) with pep-variants-shim 0.1.0", "pep_variants_shim.trial"),
    ("99.0+variants.1 from {}/pip (python 3.13)", "pip._variants.trial"),
])  # fmt: skip
def test_a_pip_that_is_too_new(tool, version, module):
    """What the toy resolution of the shim says of it; it says nothing of one that is right."""
    pip, python = tool("pip", f"pip {version.format('/p')}"), tool("python", "")
    python.write_text(f'#!/bin/sh\n[ "$2 $3" = "{module} --newer" ] && echo pip 99 does not\n')
    (problem,) = installers(pip.parent).problems
    assert (problem.code, problem.text) == ("new-pip", f"{pip}: pip 99 does not")
    assert problem.command == f"{pip} install --upgrade --find-links dist pep-variants-shim"


@LINUX
def test_the_pip_of_a_managed_python(tool, tmp_path):
    """The system refuses installs there (PEP 668), so an environment is made."""
    python = tool("python", "")
    python.write_text(
        f"#!/bin/sh\n[ $1 = -m ] && echo '{PIP.format('26.3', '/u/pip')}' || echo {tmp_path}"
    )
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    (problem,) = installers(python.parent).problems
    assert "the system refuses to install into its Python" in problem.text
    assert problem.command == (
        "python3 -m venv .venv && . .venv/bin/activate && "
        "python -m pip install --upgrade --find-links dist pip pep-variants-shim"
    )


@LINUX
def test_other_programs(tool):
    pip = tool("pip", "")
    pip.write_text("#!/nowhere/python\n")
    tool("uv", "uv 0.9.0")
    part = installers(pip.parent)
    assert (str(pip), "does not work") in part.rows
    assert (f"{pip.parent}/uv", "uv 0.9.0: does not know variants") in part.rows
    (problem,) = part.problems
    assert (problem.code, problem.fails) == ("plain-uv", False)
    tool("uv-variants", "uv-variants 0.1.0")
    assert installers(pip.parent).problems == ()


def own(folder, name, version, files, *, missing=()):
    """Install *files*, contents by path, as those of a distribution, which lacks some."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    rows = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, contents in files.items():
        if path not in missing:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(contents)
        rows.append(f"{path},sha256=x,{len(contents)}")
    (info / "RECORD").write_text("\n".join([*rows, ""]))


FILES = {"xgboost/__init__.py": "x = 1\n", "xgboost/lib.so": "lib", "../bin/app": "x"}


def test_two_names_of_one_build(tmp_path):
    own(tmp_path / "site", "xgboost", "3.1.3", FILES)
    own(tmp_path / "site", "xgboost-cpu", "3.1.3", {**FILES, "xgboost/more.py": "y"})
    site = str(tmp_path / "site")
    assert list(environment_problems([site, site, str(tmp_path / "none")])) == [
        Problem(
            "shared-files",
            "xgboost-cpu==3.1.3 and xgboost==3.1.3 own the same 3 files, app for example: "
            "installing or removing one overwrites or deletes what belongs to the other",
            "pip uninstall --yes xgboost-cpu xgboost && pip install xgboost==3.1.3",
        )
    ]


@pytest.mark.parametrize(
    ("tag", "capability", "kept"),
    [
        ("manylinux_2_28_x86_64", "8.0", "onnxruntime-gpu==1.31.1"),
        ("manylinux_2_28_aarch64", "8.9", "onnxruntime-gpu==1.31.1"),
        ("manylinux_2_28_aarch64", "8.0", "onnxruntime==1.31.1"),
    ],
)
def test_two_names_of_one_build_by_platform(tmp_path, tag, capability, kept):
    """The build for the GPU stays where its wheels for this platform have code for it."""
    for name in ("onnxruntime-gpu", "onnxruntime"):
        own(tmp_path, name, "1.31.1", {"onnxruntime/__init__.py": "x"})
    detect = Detector.of(Preferences(platform_file=f"cuda=13.0,sm={capability}")).platform
    target = make_target(python_version="3.12", platforms=[tag])
    checkup = Checkup([str(tmp_path)], target, detect, Preferences(), Sources())
    (problem,) = [each for each in checkup.problems() if each.code == "shared-files"]
    assert problem.command.rpartition(" ")[2] == kept


def test_the_module_is_gone(tmp_path):
    """What is left of xgboost after the other was removed; scripts may be elsewhere."""
    own(tmp_path / "site", "xgboost", "3.1.3", FILES, missing=list(FILES))
    paths = [str(tmp_path / "site")]
    assert list(environment_problems(paths, TYPED)) == [
        Problem(
            "missing-files",
            "xgboost==3.1.3 lacks 2 files, __init__.py for example: another project was removed "
            "that had them, or they were deleted",
            "uv-variants pip install --force-reinstall --no-deps xgboost==3.1.3",
        )
    ]


def test_the_order_of_problems():
    hint = Problem("choice", "a hint", fails=False)
    found = Findings({
        "machine": Part(problems=(hint, Problem("driver", "a problem", "sudo x"))),
        "packages": Part(problems=(Problem("choice", "about a package", fails=False), hint)),
    })  # fmt: skip
    assert list(lines(found)) == [
        "1 problem; 2 hints",
        "problem: a problem",
        "    sudo x",
        "hint: about a package",
        "hint: a hint",
    ]
    well = Findings({"machine": Part((("a\x1b", "b\nc"), ("a\x1b", "d")))})
    assert list(lines(well)) == ["Nothing is wrong", "", "machine", "  a?  b c", "      d"]
    assert well.as_tree() == {
        "well": True, "problems": [],
        "machine": [{"subject": "a\x1b", "text": "b\nc"}, {"subject": "a\x1b", "text": "d"}],
    }  # fmt: skip


def test_no_advice_about_packages_for_a_machine_whose_gpu_is_hidden():
    parts = {
        "machine": Part(problems=(Problem("driver", "a mismatch", "sudo reboot"),), is_blind=True),
        "packages": Part(problems=(
            Problem("stale-variant", "take the build for CPUs", "pip install x"),
            Problem("shared-files", "a and b own the same files", "pip install b"),
        )),
    }  # fmt: skip
    found = Findings(parts)
    assert [problem.code for problem in found.problems] == ["driver", "shared-files"]
    parts["machine"] = Part()
    assert [problem.code for problem in found.problems] == ["shared-files", "stale-variant"][::-1]


@LINUX
@pytest.mark.parametrize(
    ("files", "environ", "drivers", "is_blind"),
    [
        ({}, EMPTY, NONE, False),
        (pci("0x10de"), EMPTY, NONE, True),
        (pci("0x1002"), EMPTY, NONE, True),
        (pci("0x1002"), EMPTY, NVIDIA, False),
        (DOCKER, EMPTY, NONE, True),
        (DOCKER, EMPTY, NVIDIA, False),
        (WSL, EMPTY, NONE, True),
    ],
)
def test_where_a_gpu_may_be_hidden(root, files, environ, drivers, is_blind):
    here = root({"etc/x": "", **files})
    assert surroundings_part(environ, here, drivers).is_blind == is_blind
    assert not surroundings_part(environ, here, drivers, is_described=True).is_blind


def test_the_codes():
    """In the schema, in the reference, and in the sources of both commands."""
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]["problem"]["properties"]["code"]["enum"]) == CODES
    text = (ROOT / "docs/reference/doctor.md").read_text("utf-8").partition("## Problems")[2]
    listed = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \|$", text, re.MULTILINE)
    assert sorted(listed) == sorted(CODES)
    places = ("variants-index/src/*/doctor", "variants-cli/src/*", "uv-variants/src/*/doctor")
    files = [path for place in places for path in ROOT.glob(f"packages/{place}/*.py")]
    sources = "".join(path.read_text("utf-8") for path in files if path.name != "findings.py")
    assert {code for code in CODES if f'"{code}"' not in sources} == set()

"""`variants doctor`: scripted wrong choices; each has to name its cause and a remedy."""

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pep_variants.providers.amd import ARCHITECTURE_OVERRIDE
from support.doctor_report import check_report
from support.index import Index, served
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, DRIVER, cuda, gpu_index
from support.wheels import Release, Wheel
from variants_cli.checkup import Environment, examine
from variants_index.doctor.findings import lines

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc, /sys and /dev are Linux's")

PATCHED = "pip 26.3 from /opt/patched/pip (python 3.12) with pep-variants-shim 0.1.0"
FAKES = Path(__file__).parents[2] / "pep-variants" / "tests" / "providers"
PLAIN = "pip 26.3 from /opt/plain/pip (python 3.12)"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


@pytest.fixture
def tool(tmp_path):
    """Write a command that prints *text*; return its folder."""

    def write(name, text, folder="bin"):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{text}'\n")  # without commands: PATH has none
        path.chmod(0o755)
        return path.parent

    return write


@pytest.fixture
def root(tmp_path):
    """Write files below a root folder; return it."""

    def write(**files):
        folder = tmp_path / "root"
        folder.mkdir(exist_ok=True)
        for path, text in files.get("files", {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return write


@pytest.fixture
def found(root, tool, tmp_path):
    """Examine a machine, without indexes; return the findings and the page."""
    folder = tool("pip", PATCHED)

    def run(files=(), environ=(), path=None):
        environment = Environment(Path(sys.executable), "3.12", ())
        variables = {"PATH": str(path or folder), **dict(environ)}
        result = examine(environment, variables, root=root(files=dict(files)))
        check_report(result.as_tree())
        return result, "\n".join(lines(result))

    return run


def pci(vendor):
    device = "sys/bus/pci/devices/0000:01:00.0"
    return {f"{device}/vendor": f"{vendor}\n", f"{device}/class": "0x030200\n"}


NVIDIA, AMD, DOCKER = pci("0x10de"), pci("0x1002"), {".dockerenv": ""}
GFX942 = {"sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90402\n"}
WSL = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n"}


@pytest.mark.parametrize(
    ("files", "environ", "code", "cause", "remedy"),
    [
        ({**DOCKER, **NVIDIA}, {}, "container-driver", "container (Docker) has no NVIDIA driver",
         "docker run --gpus all"),
        ({"run/.containerenv": ""}, {"NVIDIA_VISIBLE_DEVICES": "all"}, "container-driver",
         "container (Podman) has no NVIDIA driver, although there is NVIDIA_VISIBLE_DEVICES=all",
         "--gpus all"),
        (NVIDIA, {}, "driver-missing", "a GPU at 0000:01:00.0 and no NVIDIA driver",
         "sudo modprobe nvidia"),
        ({**DOCKER, **AMD}, {}, "amd-driver", "AMD GPU at 0000:01:00.0 and no /dev/kfd",
         "--device=/dev/kfd"),
        (AMD, {}, "amd-driver", "amdgpu is not loaded", "sudo modprobe amdgpu"),
        (DOCKER, {}, "container-without-gpu", "container (Docker) sees no GPU",
         "--variant-platform platform.toml"),
        (WSL, {}, "wsl", "/dev/dxg is missing", "wsl --update"),
        ({"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""}, {}, "mig", "MIG is on", ""),
        (GFX942, {ARCHITECTURE_OVERRIDE: "gfx1100"}, "override",
         f"{ARCHITECTURE_OVERRIDE} says that AMD GPU is gfx1100, but this machine has gfx942",
         f"unset {ARCHITECTURE_OVERRIDE}"),
        ({}, {DRIVER: "12.8"}, "override", f"{DRIVER} says that CUDA driver is 12.8; without",
         f"unset {DRIVER}"),
        ({}, {DRIVER: "newest"}, "detection", f"{DRIVER}: 'newest' is not a version",
         f"unset {DRIVER}"),
        ({}, {DRIVER: "10.2"}, "driver", "10.2 is outside the supported range", f"Set {DRIVER}"),
        ({}, {"VARIANTS_NO_VARIANTS": "1"}, "setting",
         "variants are switched off", "unset VARIANTS_NO_VARIANTS"),
        ({}, {"VARIANTS_PLATFORM": "h100-zen4"}, "setting",
         "a named machine replaces this one: h100-zen4, from VARIANTS_PLATFORM, and differs from "
         "this machine in ", "unset VARIANTS_PLATFORM"),
        ({}, {"VARIANTS_PLATFORM": "old.toml"}, "configuration", "old.toml: ",
         "unset VARIANTS_PLATFORM"),
        ({}, {"VARIANTS_VARIANT": "torch=cu126"}, "setting",
         "variants are named, whatever fits: torch=cu126", "unset VARIANTS_VARIANT"),
        ({}, {"UV_TORCH_BACKEND": "cpu"}, "torch-backend", "UV_TORCH_BACKEND=cpu makes uv take",
         "unset UV_TORCH_BACKEND"),
        ({}, {"VARIANTS_PREFER": "::"}, "configuration", "VARIANTS_PREFER", ""),
        (GFX942, {"ROCR_VISIBLE_DEVICES": ""}, "hidden-gpu",
         "ROCR_VISIBLE_DEVICES= hides AMD GPU gfx942, so no variant for it is chosen",
         "unset ROCR_VISIBLE_DEVICES"),
        ({**DOCKER, **NVIDIA}, {"NVIDIA_VISIBLE_DEVICES": "void"}, "hidden-gpu",
         "NVIDIA_VISIBLE_DEVICES=void keeps the NVIDIA driver out of this container (Docker)",
         "docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all"),
        ({}, {"PIP_INDEX_URL": "https://download.pytorch.org/whl/cu118"}, "index-pin",
         "which has builds for CUDA 11.8 only, while detection finds no driver of NVIDIA here",
         "unset PIP_INDEX_URL"),
    ],
)  # fmt: skip
def test_machine_and_settings(found, files, environ, code, cause, remedy):
    result, page = found(files, environ)
    problem = next(problem for problem in result.problems if problem.code == code)
    assert cause in problem.text
    assert remedy in f"{problem.text} {problem.command}"
    assert problem.text in page
    assert problem.command.split("  #")[0] in page
    hints = {"amd-driver", "container-without-gpu", "mig", "setting", "torch-backend"}
    assert problem.fails == (code not in hints and environ != {DRIVER: "12.8"})


def test_nothing_is_wrong(found):
    result, page = found(GFX942)
    assert result.is_well
    assert page.startswith("Nothing is wrong\n")
    tried = result.as_tree()["machine"]["amd"]["tried"]
    assert tried[0]["answer"] == "lists 1 devices, CPUs included"
    assert tried[0]["found"]
    assert "AMD GPU gfx942, from " in page
    nvidia = result.as_tree()["machine"]["nvidia"]["tried"]
    assert {"libnvidia-ml.so.1", "libcuda.so.1"} <= {each["place"] for each in nvidia}
    assert all(each["answer"] for each in nvidia)
    json.dumps(result.as_tree())


def test_login_node(found, tool):
    folder = tool("sbatch", "")
    _, page = found(path=folder)
    assert "Slurm is here and no GPU is: a login node" in page
    assert "    srun --gpus=1 variants detect -o platform.toml\n" in page
    _, page = found(environ={"SLURM_JOB_ID": "1"}, path=folder)
    assert "login node" not in page


def test_device_files_that_are_closed(found, monkeypatch):
    """Not by their modes: root may read everything, and access lists do not show there."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: "renderD" not in str(path) and access(path, mode)
    )
    result, page = found({"dev/dri/renderD128": "", **AMD, "dev/kfd": ""})
    (problem,) = (problem for problem in result.problems if problem.code == "permissions")
    assert problem.fails
    assert "you may not read and write" in page
    assert "renderD128 (owner " in page


def test_a_file_of_a_project_that_is_not_trusted(found, tmp_path):
    (tmp_path / "variants.toml").write_text('allow-provider = ["acme-provider"]\n')
    result, page = found()
    assert "allow-provider ignored: a project's file is not trusted before you approve it" in page
    assert f"    variants trust {tmp_path}\n" in page
    assert not result.is_well


def test_plain_pip_in_front(found, tool, tmp_path):
    plain, patched = tool("pip", PLAIN, "plain"), tool("pip", PATCHED, "patched")
    result, page = found(path=f"{plain}{os.pathsep}{patched}")
    assert f"{plain}/pip is first on PATH and does not know variants; {patched}/pip does" in page
    assert f'    export PATH={patched}:"$PATH"\n' in page
    assert not result.is_well
    result, page = found(path=f"{patched}{os.pathsep}{plain}")
    assert result.is_well


def test_no_pip_that_knows_variants(found, tool):
    plain = tool("pip", PLAIN, "plain")
    result, page = found(path=plain)
    assert "is pip 26.3 without pep-variants-shim: it takes the wheel without a variant" in page
    # Not of the interpreter that runs doctor, which may be in an environment of its own.
    assert f"    {plain}/pip install --upgrade pip pep-variants-shim\n" in page
    assert not result.is_well
    tool("uv-variants", "uv-variants 0.1.0", "plain")
    assert found(path=plain)[0].is_well


@pytest.mark.parametrize(
    ("version", "environ", "cause", "remedy"),
    [
        ("26.3", {"PEP_VARIANTS_SHIM": "0"}, "PEP_VARIANTS_SHIM=0 switches off",
         "unset PEP_VARIANTS_SHIM"),
        ("23.2.1", {}, "is pip 23.2.1, which pep-variants-shim beside it does not support",
         "old/pip install --upgrade pip"),
    ],
)  # fmt: skip
def test_a_shim_that_does_nothing(found, tool, tmp_path, version, environ, cause, remedy):
    (tmp_path / "site" / "pep_variants_shim-0.1.0.dist-info").mkdir(parents=True)
    folder = tool("pip", f"pip {version} from {tmp_path}/site/pip (python 3.12)", "old")
    result, page = found(environ=environ, path=folder)
    assert cause in page
    assert remedy in page
    assert not result.is_well


def test_an_index_of_a_configuration_file(found, tool, tmp_path):
    """pip reads it, and variants does not."""
    file = tmp_path / "pip.conf"
    folder = tool("pip", "", "configured")
    (folder / "pip").write_text(
        f"#!/bin/sh\nif [ $1 = config ]; then echo 'env_var:\nenv:\nuser:\n"
        f"  {file}, exists: True\n    global.index-url: https://me:secret@example.org/simple/\n"
        f"    global.timeout: 5'; else echo '{PATCHED}'; fi\n"
    )
    result, page = found(path=folder)
    assert f"@example.org/simple/, which {file} says" in page
    assert "are compared with PyPI" in page
    assert "    variants doctor --index-url " in page
    assert result.is_well
    assert "secret" not in page + json.dumps(result.as_tree())
    _, page = found(environ={"PIP_INDEX_URL": "https://pypi.org/simple"}, path=folder)
    assert "pip takes packages" not in page


def test_a_pip_that_does_not_work(found, tmp_path):
    path = tmp_path / "broken" / "pip"
    path.parent.mkdir()
    path.write_text("#!/nowhere/python\n")
    path.chmod(0o755)
    result, page = found(path=path.parent)
    assert f"{path} does not work" in page
    assert not result.is_well


def test_plain_uv(found, tool):
    folder = tool("uv", "uv 0.9.0")
    _, page = found(path=folder)
    assert "is unmodified uv, which takes no variants by itself" in page
    assert "    python -m pip install uv-variants\n" in page


def test_passwords_are_not_shown(found):
    url = "https://user:secret@example.org/simple"
    result, page = found(environ={"PIP_INDEX_URL": url, "UV_INDEX": url})
    assert "secret" not in page
    assert "secret" not in json.dumps(result.as_tree())


# What is installed: a real environment, a real index, the command.


@pytest.fixture
def installed(tmp_path, monkeypatch, tool):
    """Make an environment with these wheels; return its path."""
    monkeypatch.setenv("PATH", str(tool("pip", PATCHED)))

    def make(*wheels):
        folder = tmp_path / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        for wheel in wheels:
            with zipfile.ZipFile(io.BytesIO(wheel.build())) as archive:
                archive.extractall(packages)
        return folder

    return make


@pytest.fixture
def doctor(variants, monkeypatch):
    def run(folder, index, *arguments, environ=()):
        for name, text in dict(environ).items():
            monkeypatch.setenv(name, text)
        options = ("--python", folder, "--no-cache", "-i", index.url)
        page = variants("doctor", *options, *arguments)
        tree = variants("doctor", *options, *arguments, "--json")
        assert page.code == tree.code == (0 if tree.json["well"] else 1)
        check_report(tree.json)
        for problem in tree.json["problems"]:
            assert problem["text"] in page.out
        return page.out, tree.json

    return run


def gpu(label):
    (wheel,) = (
        each for each in Release("gpu", "2.0", cuda("12.6", "12.8")).wheels() if each.label == label
    )
    return wheel


def of(tree, code):
    (problem,) = (problem for problem in tree["problems"] if problem["code"] == code)
    return problem


@pytest.mark.parametrize(
    ("label", "driver", "code", "cause"),
    [
        ("cu128", "12.6", "stale-variant",
         "gpu 2.0 is installed as variant cu128, which does not fit this machine"),
        ("cu126", "12.8", "better-variant",
         "gpu 2.0 is installed as variant cu126; variant cu128 fits better"),
        ("null", "12.8", "better-variant", "variant cu128 fits better"),
    ],
)  # fmt: skip
def test_a_variant_of_another_driver(installed, doctor, label, driver, code, cause):
    folder = installed(gpu(label))
    with served(gpu_index()) as index:
        page, tree = doctor(folder, index, environ={DRIVER: driver})
        problem = of(tree, code)
        assert cause in problem["text"]
        assert problem["command"] == (
            f"pip --python {folder} install --variant-switch --index-url {index.url} gpu"
        )
        assert problem["fails"]
        (state,) = tree["packages"]
        assert (state["installed"], state["now"]) == (label, f"cu{driver.replace('.', '')}")
        assert f"  gpu 2.0  {label}: " in page


def test_what_fits(installed, doctor):
    folder = installed(gpu("cu128"))
    with served(gpu_index()) as index:
        page, tree = doctor(folder, index, environ=CUDA_12_8)
    assert "gpu 2.0  cu128: what would be chosen now" in page
    assert [problem["code"] for problem in tree["problems"] if "gpu 2.0" in problem["text"]] == []


def test_the_wrong_index(installed, doctor):
    folder = installed(gpu("cu128"))
    with served(Index()) as index:
        _, tree = doctor(folder, index, environ=CUDA_12_8)
        problem = of(tree, "wrong-index")
        assert f"gpu 2.0 is not on {index.url}" in problem["text"]
        assert problem["command"] == "variants doctor --index-url URL"
        assert problem["fails"]


def test_an_index_without_variants(installed, doctor):
    folder = installed(Wheel("plain", "1.0"))
    index = Index()
    index.add_wheel(Wheel("plain", "1.0"))
    with served(index) as index:
        _, tree = doctor(folder, index, "Plain", "absent")
        assert f"plain 1.0 has no variants on {index.url}" in of(tree, "no-variants")["text"]
        assert "absent is not installed in" in of(tree, "not-installed")["text"]
        # Unasked, it takes no page.
        assert doctor(folder, index)[1]["packages"] == []


def test_an_index_that_does_not_answer(installed, doctor, monkeypatch):
    monkeypatch.setattr("variants_index.http.session.LONGEST_PAUSE", 0.0)
    folder = installed(gpu("cu128"))
    with served(gpu_index()) as index:
        pass
    page, tree = doctor(folder, index, environ=CUDA_12_8)
    assert index.url.split("/simple")[0] in of(tree, "lookup")["text"]
    assert "nvidia" in page


def test_a_plugin_that_is_not_allowed(installed, doctor):
    index = acme_index(PLUGIN)
    (null,) = (
        wheel
        for wheel in Release("app", "1.0", json.loads(_metadata(index))).wheels()
        if wheel.label == "null"
    )
    with served(index) as index:
        _, tree = doctor(installed(null), index)
    problem = of(tree, "plugin")
    assert "neither built in nor allowed to run" in problem["text"]
    assert problem["command"] == "export VARIANTS_ALLOW_PROVIDER='acme-provider<2,>=1'"


def _metadata(index):
    (data,) = (
        data
        for files in index.files.values()
        for name, data in files.items()
        if name.endswith("-variants.json")
    )
    return data


def test_metadata_that_is_broken(installed, doctor):
    folder = installed(gpu("cu128"))
    (path,) = folder.glob("lib/python*/site-packages/gpu-2.0.dist-info/variant.json")
    path.write_text("{")
    with served(gpu_index()) as index:
        _, tree = doctor(folder, index, "gpu", environ=CUDA_12_8)
    assert "variant.json of gpu 2.0" in of(tree, "metadata")["text"]


def test_offline(installed, variants):
    folder = installed(gpu("cu128"))
    tree = variants("doctor", "--offline", "--python", folder, "--json").json
    assert "packages" not in tree


def test_no_python(variants, tmp_path):
    done = variants("doctor", "--python", tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "is not a working Python" in done.err


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Build the fake of NVIDIA's library; return its folder."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler to build a fake driver library")
    folder = tmp_path_factory.mktemp("driver")
    name = "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name]
    subprocess.run([*command, FAKES / "fake_nvml.c"], check=True)
    return folder


@pytest.mark.parametrize(
    ("environ", "code", "cause", "remedy"),
    [
        ({DRIVER: "12.8"}, "override",
         f"{DRIVER} says that CUDA driver is 12.8, but this machine has 12.4", f"unset {DRIVER}"),
        ({"FAKE_NVML_INIT": "18"}, "driver", "NVIDIA driver cannot be queried (NVML:", "Repair it"),
        ({"FAKE_NVML_CUDA_V2": "10020"}, "driver", "version 10.2 is outside", f"Set {DRIVER}"),
        ({}, "", "", ""),
    ],
)  # fmt: skip
def test_a_driver(driver, tool, environ, code, cause, remedy):
    """A library that the loader finds, so in a process of its own."""
    variables = {
        "FAKE_NVML_CUDA_V2": "12040", "FAKE_NVML_DEVICES": "9.0",
        "LD_LIBRARY_PATH": str(driver), "PATH": str(tool("pip", PATCHED)), **environ,
    }  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).with_name("variants"), "doctor", "--offline", "--json"],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    tree = json.loads(done.stdout)
    assert done.returncode == (0 if tree["well"] else 1)
    tried = {each["place"]: each["answer"] for each in tree["machine"]["nvidia"]["tried"]}
    if not code:
        assert tried == {"libnvidia-ml.so.1": "reports CUDA 12.4 and 1 GPU"}
        facts = [fact["value"] for fact in tree["machine"]["nvidia"]["facts"]]
        assert facts == ["12.4", "9.0"]
        return
    problem = of(tree, code)
    assert cause in problem["text"]
    assert remedy in f"{problem['text']} {problem['command']}"
    assert problem["fails"]

"""`variants doctor`: what is installed, in a real environment, against an index.

What both doctors find of a machine is tested beside `variants_index.doctor`.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.doctor_report import check_report
from support.index import Index, served
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, DRIVER, cuda, gpu_index
from support.wheels import Release, Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc, /sys and /dev are Linux's")

PATCHED = "pip 26.3 from /opt/patched/pip (python 3.12) with pep-variants-shim 0.1.0"
FAKES = Path(__file__).parents[2] / "pep-variants" / "tests" / "providers"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run there, with a pip that knows variants and no other program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text(f"#!/bin/sh\necho '{PATCHED}'\n")
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", str(pip.parent))


@pytest.fixture
def installed(tmp_path):
    """Make an environment with these wheels; return its path."""

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
        missing = of(tree, "not-installed")
        assert "absent is not installed in" in missing["text"]
        assert missing["command"] == f"variants explain --index-url {index.url} absent"
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
    named = index.files.values()
    (data,) = (files[each] for files in named for each in files if each.endswith("-variants.json"))
    release = Release("app", "1.0", json.loads(data))
    (null,) = (wheel for wheel in release.wheels() if wheel.label == "null")
    with served(index) as index:
        _, tree = doctor(installed(null), index)
    problem = of(tree, "plugin")
    assert "neither built in nor allowed to run" in problem["text"]
    assert problem["command"] == "export VARIANTS_ALLOW_PROVIDER='acme-provider<2,>=1'"


def test_metadata_that_is_broken(installed, doctor):
    folder = installed(gpu("cu128"))
    (path,) = folder.glob("lib/python*/site-packages/gpu-2.0.dist-info/variant.json")
    path.write_text("{")
    with served(gpu_index()) as index:
        _, tree = doctor(folder, index, "gpu", environ=CUDA_12_8)
    assert "variant.json of gpu 2.0" in of(tree, "metadata")["text"]


def test_check_warns_of_shared_files(installed, variants):
    module = {"app/__init__.py": "name = 1"}
    folder = installed(Wheel("app", "1.0", files=module), Wheel("app-cpu", "1.0", files=module))
    with served(Index()) as index:
        done = variants("check", "--no-cache", "-i", index.url, "--python", folder)
    assert done.code == 1
    assert "warning: app-cpu==1.0 and app==1.0 own the same 1 file, __init__.py" in done.err


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
    ("environ", "code", "cause"),
    [
        ({DRIVER: "12.8"}, "override",
         f"{DRIVER} says that CUDA driver is 12.8; without it detection finds 12.4 here"),
        ({"FAKE_NVML_INIT": "18"}, "driver", "NVIDIA driver cannot be queried (NVML:"),
        ({}, "", ""),
    ],
)  # fmt: skip
def test_a_driver(driver, environ, code, cause):
    """A library that the loader finds, so in a process of its own."""
    variables = {
        "FAKE_NVML_CUDA_V2": "12040", "FAKE_NVML_DEVICES": "9.0", "LD_LIBRARY_PATH": str(driver),
    }  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).with_name("variants"), "doctor", "--offline", "--json"],
        env={**os.environ, **variables, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    tree = json.loads(done.stdout)
    assert done.returncode == (0 if tree["well"] else 1)
    if code:
        assert cause in of(tree, code)["text"]
        assert of(tree, code)["fails"]
    else:
        found = [row["text"] for row in tree["machine"] if row["subject"] == "nvidia"]
        assert "tried libnvidia-ml.so.1: reports CUDA 12.4 and 1 GPU" in found
        assert "CUDA driver 12.4, from libnvidia-ml.so.1" in found

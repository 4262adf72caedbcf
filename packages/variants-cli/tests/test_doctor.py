"""`variants doctor`: what is installed, in a real environment, against an index.

What both doctors find of a machine is tested beside `variants_index.doctor`.
"""

import dataclasses
import io
import subprocess
import sys
import zipfile

import pytest

from support.doctor_report import check_report
from support.gpu_libraries import library
from support.index import Index, served
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, DRIVER, GPU, cuda, gpu_index
from support.wheels import Release, Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc, /sys and /dev are Linux's")

PATCHED = "pip 26.3 from /opt/patched/pip (python 3.12) with pep-variants-shim 0.1.0"


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
    """Make an environment with the contents of wheels; return its path."""

    def make(*wheels):
        folder = tmp_path / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        for wheel in wheels:
            with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
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


def gpu(label, **files):
    wheels = Release("gpu", "2.0", cuda("12.6", "12.8")).wheels()
    wheel = next(each for each in wheels if each.label == label)
    return dataclasses.replace(
        wheel, files={f"gpu/{name}.so": files[name] for name in files}
    ).build()


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
        ("cu128", "12.8", "", ""),
    ],
)  # fmt: skip
def test_a_variant_of_another_driver(installed, doctor, label, driver, code, cause):
    folder = installed(gpu(label))
    with served(gpu_index()) as index:
        page, tree = doctor(folder, index, environ={**CUDA_12_8, DRIVER: driver})
    (state,) = tree["packages"]
    assert (state["installed"], state["now"]) == (label, f"cu{driver.replace('.', '')}")
    assert f"  gpu 2.0  {label}: " in page
    if code:
        problem = of(tree, code)
        assert cause in problem["text"]
        assert problem["command"] == (
            f"pip --python {folder} install --variant-switch --index-url {index.url} gpu"
        )
        assert problem["fails"]
    else:
        assert "gpu 2.0  cu128: up to date" in page
        assert not [each for each in tree["problems"] if "gpu 2.0" in each["text"]]


def test_the_wrong_index(installed, doctor, monkeypatch):
    """And one that does not answer."""
    monkeypatch.setattr("variants_index._http.session.LONGEST_PAUSE", 0.0)
    folder = installed(gpu("cu128"))
    with served(Index()) as index:
        problem = of(doctor(folder, index, environ=CUDA_12_8)[1], "wrong-index")
    assert f"gpu 2.0 is not on {index.url}" in problem["text"]
    assert (problem["command"], problem["fails"]) == ("", True)
    page, tree = doctor(folder, index, environ=CUDA_12_8)
    assert index.url.split("/simple")[0] in of(tree, "lookup")["text"]
    assert "nvidia" in page


def test_an_index_without_variants(installed, doctor):
    folder = installed(Wheel("plain", "1.0").build())
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


def test_a_plugin_that_is_not_allowed(installed, doctor):
    with served(acme_index(PLUGIN)) as index:
        folder = installed(index.files["app"]["app-1.0-py3-none-any-null.whl"])
        _, tree = doctor(folder, index)
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
    wheels = [Wheel(name, "1.0", files=module).build() for name in ("app", "app-cpu")]
    with served(Index()) as index:
        done = variants("check", "--no-cache", "-i", index.url, "--python", installed(*wheels))
    assert done.code == 1
    assert "warning: app-cpu==1.0 and app==1.0 own the same 1 file, __init__.py" in done.err


def test_check_and_doctor_agree(installed, variants, doctor):
    """Over releases, and on what no release has."""
    index = gpu_index()
    only = Release(
        "gpu", "3.0", {**cuda("13.0"), "variants": {"cu130": cuda("13.0")["variants"]["cu130"]}}
    )
    index.add_release(only)
    folder = installed(next(each for each in only.wheels()).build())
    with served(index) as index:
        _, tree = doctor(folder, index, environ=CUDA_12_8)
        options = ("--no-cache", "-i", index.url, "--python", folder)
        done = variants("check", *options)
        found = variants("check", *options, "--json").json
    problem = of(tree, "stale-variant")
    assert "which does not fit this machine" in problem["text"]
    (state,) = tree["packages"]
    assert (state["now"], state["release"]) == ("cu128", "2.0")
    assert done.code == 1
    assert "cu128 of 2.0" in done.out
    assert f"To switch: {problem['command']}" in done.out
    ((better),) = found["better"]
    assert (better["version"], better["better"], better["release"]) == ("3.0", "cu128", "2.0")
    # Nothing is known that does.
    del index.files["gpu"]
    with served(Index()) as alone:
        alone.add_release(only)
        _, tree = doctor(folder, alone)
        done = variants("check", "--no-cache", "-i", alone.url, "--python", folder)
    assert (
        of(tree, "stale-variant")["command"] == f"variants explain --index-url {alone.url} gpu==3.0"
    )
    assert done.code == 1
    assert "which does not fit this machine" in done.err


def test_a_gpu_without_code(installed, variants, doctor):
    """The libraries tell, and what metadata says of the same build is not said again."""
    folder = installed(gpu("cu128", kernels=library(cuda=["60"])))
    with served(gpu_index()) as index:
        page, tree = doctor(folder, index, environ={**CUDA_12_8, DRIVER: "12.6"})
        done = variants("check", "--no-cache", "-i", index.url, "--python", folder)
    problem = of(tree, "gpu-code")
    assert problem["text"] == (
        "gpu 2.0 has no code for the GPU that is here, compute capability 9.0: it has CUDA code "
        "for 6.0; variant cu126 fits"
    )
    assert problem["command"] == (
        f"pip --python {folder} install --variant-switch --index-url {index.url} gpu"
    )
    assert not [each for each in tree["problems"] if each["code"] == "stale-variant"]
    assert tree["code"] == [{"subject": "gpu 2.0", "text": "CUDA code for 6.0"}]
    assert "code\n  gpu 2.0  CUDA code for 6.0\n" in page
    assert done.code == 1
    assert "warning: gpu 2.0 has no code for the GPU that is here" in done.err


@pytest.mark.parametrize(
    ("label", "driver", "end"),
    [
        ("cu128", "12.8", "; no build that has it is known"),
        ("cu128", "12.4", "; variant null fits"),
    ],
)
def test_no_build_has_code(installed, doctor, label, driver, end):
    folder = installed(gpu(label, kernels=library(cuda=["60"])))
    with served(gpu_index()) as index:
        _, tree = doctor(folder, index, environ={**CUDA_12_8, DRIVER: driver})
    assert of(tree, "gpu-code")["text"].endswith(f"CUDA code for 6.0{end}")


def test_code_where_the_catalogue_is_off(installed, variants, monkeypatch):
    for name, text in {DRIVER: "12.8", GPU: "6.1"}.items():
        monkeypatch.setenv(name, text)
    files = {"torch/lib/libtorch_cuda.so": library(cuda=["75", "80"])}
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    wheel = Wheel("torch", "2.14.0", tag=tag, files=files, requires=("nvidia-cublas==13.1",))
    folder = installed(
        wheel.build(), Wheel("own", "1.0", files={"own/x.so": library(ptx=["80"])}).build()
    )
    tree = variants("doctor", "--offline", "--python", folder, "--json").json
    own, torch = [each for each in tree["problems"] if each["code"] == "gpu-code"]
    assert own["text"].endswith("compute capability 6.1: it has PTX for 8.0")
    assert own["command"] == f"variants doctor --python {folder} own"
    assert torch["text"].endswith("; the catalogue, which is off, has a build that fits")
    assert torch["command"] == (
        f"pip --python {folder} config set global.variant-catalog default && "
        f"pip --python {folder} install --variant-switch torch"
    )
    assert not [each for each in tree["problems"] if each["code"] == "catalog-off"]
    monkeypatch.setenv(GPU, "8.6")
    tree = variants("doctor", "--offline", "--python", folder, "--json").json
    assert not [each for each in tree["problems"] if each["code"] == "gpu-code"]


def test_offline(installed, variants):
    folder = installed(gpu("cu128"))
    tree = variants("doctor", "--offline", "--python", folder, "--json").json
    assert "packages" not in tree


def test_no_python(variants, tmp_path):
    done = variants("doctor", "--python", tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "is not a working Python" in done.err


def test_a_project_whose_lock_has_groups(installed, variants, monkeypatch):
    """What is advised is a sync, in the environment of the project."""
    for name, text in {DRIVER: "12.8", GPU: "9.0"}.items():
        monkeypatch.setenv(name, text)
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    folder = installed(Wheel("torch", "2.9.0+cpu", tag=tag).build())
    project = folder.parent / "pyproject.toml"
    for groups, fails in (("", True), ("[tool.uv-variants]\naccelerators = ['cpu']\n", False)):
        project.write_text(f"[project]\nname = 'x'\nversion = '1'\n{groups}")
        tree = variants("doctor", "--offline", "--python", folder, "--json").json
        (found,) = [each for each in tree["problems"] if each["code"] == "catalog-off"]
        assert found["fails"] is fails
        assert (found["command"] == "uv-variants sync") is not fails
    assert found["text"].endswith("groups for accelerators, the one that fits may have them")

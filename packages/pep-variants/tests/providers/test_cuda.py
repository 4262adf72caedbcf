"""What keeps CUDA programs from GPUs that the management library shows."""

import multiprocessing
import os
import sys

import pytest

from pep_variants._model.platform import Fact
from pep_variants._providers.cuda import find_troubles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files and libraries of Linux")

UUIDS = ("GPU-8932f937-d72c", "GPU-46123456-0000", "MIG-c6d4f1ef-42e4", "MIG-c6d4f1ef-9999")
UNSET = "unset CUDA_VISIBLE_DEVICES"


def facts(driver="12.8", *gpus):
    found = [Fact("CUDA driver", driver, "libnvidia-ml.so.1")]
    return [*found, *(Fact("compute capability", each, "NVML") for each in gpus)]


@pytest.fixture
def troubles(tmp_path, command):
    """Return the troubles of a machine with two GPUs, one of them in slices."""
    listed = "\n".join(f"GPU 0: A100 (UUID: {uuid})" for uuid in UUIDS)
    command(tmp_path / "bin/nvidia-smi", f"[ $1 = -L ] && echo '{listed}'")

    def find(environ, found=None, files=()):
        for path, text in dict(files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        environ = {"PATH": str(tmp_path / "bin"), **environ}
        container = "Docker" if ".dockerenv" in files else ""
        arguments = environ, tmp_path, found or facts("12.8", "8.0", "8.0"), container
        # A process of its own, as what is loaded once is found from then on.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.apply(_found, arguments)

    return find


def _found(*arguments):
    return list(find_troubles(*arguments))


@pytest.mark.parametrize(
    ("value", "said", "fails"),
    [
        ("7", "CUDA_VISIBLE_DEVICES=7 names 7, which is no GPU here, so programs see no GPU", True),
        ("0,7", "names 7, which is no GPU here, so programs see 1 of 2", False),
        ("7,0", "programs see no GPU", True),
        ("1,1", "names 1 twice, so programs see no GPU", True),
        ("0,", "names nothing, which is no GPU here, so programs see 1 of 2", False),
        ("GPU-0000", "names GPU-0000, which is no GPU device here, so programs see", True),
        ("GPU-8932", None, None),
        (UUIDS[0], None, None),
        (f"{UUIDS[1]},{UUIDS[1]}", "twice", True),
        ("MIG-c6d4f1ef-42e4", None, None),
        ("MIG-c6d4f1ef", "names MIG-c6d4f1ef, which is no MIG device here", True),  # of two
        ("MIG-c6d4f1ee-0000", "programs see no GPU", True),
        (f"MIG-{UUIDS[0]}/1/0", None, None),
        (f"MIG-{UUIDS[0]}/1/0,MIG-{UUIDS[0]}/2/0", None, None),
        ("MIG-GPU-7777/1/0", "programs see no GPU", True),
        ("1,0", None, None),
        (" 1 , 0", None, None),
        # All are hidden, which the doctor says of every vendor.
        ("", None, None),
        ("-1", None, None),
        ("NoDevFiles", None, None),
    ],
)
def test_devices_that_are_not_here(troubles, value, said, fails):
    found = troubles({"CUDA_VISIBLE_DEVICES": value})
    assert len(found) == (said is not None)
    for trouble in found:
        assert said in trouble.text
        assert (trouble.code, trouble.command, trouble.fails) == ("hidden-gpu", UNSET, fails)


def test_devices_that_are_not_known(troubles):
    assert troubles({"CUDA_VISIBLE_DEVICES": "7"}, facts()) == []
    assert troubles({"CUDA_VISIBLE_DEVICES": "GPU-7", "PATH": "/nowhere"}) == []


MODULE = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu "
    "Feb 22 01:44:30 UTC 2024\n"
}
OPEN_MODULE = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
    "570.86.15  Release Build\n"
}


@pytest.mark.parametrize(
    ("version", "file", "files", "said"),
    [
        ("12080", "libcuda.so.1", {}, None),
        ("12090", "libcuda.so.1", {}, None),  # of a compatibility package
        ("11040", "libcuda.so.1", {}, "libcuda.so.1, of CUDA 11.4, while the driver supports CUDA"),
        ("!34", "libcuda.so.1", {}, "libcuda.so.1, a stub without a driver, while"),
        ("11040", "libcuda.so.1", MODULE, "of CUDA 11.4, while the driver is 550.54.14"),
        # The management library takes the version from the same old file.
        ("12080", "libcuda.so.470.82.01", MODULE, "while the driver is 550.54.14"),
        ("12080", "libcuda.so.550.54.14", OPEN_MODULE, "while the driver is 570.86.15"),
        ("12080", "libcuda.so.550.54.14", MODULE, None),
        ("12080", "libcuda.so.575.57.08", MODULE, None),
    ],
)
def test_an_old_library(troubles, build, tmp_path, monkeypatch, version, file, files, said):
    monkeypatch.setenv("FAKE_CUDA_VERSION", version)
    folder = tmp_path / "compat"
    folder.mkdir()
    (folder / file).write_bytes(
        (build("fake_cuda.c", "libcuda.so.1") / "libcuda.so.1").read_bytes()
    )
    if file != "libcuda.so.1":
        (folder / "libcuda.so.1").symlink_to(file)
    environ = {"LD_LIBRARY_PATH": f"{folder}:/usr/lib64"}
    found = troubles(environ, files=files)
    assert len(found) == (said is not None)
    for trouble in found:
        assert said in trouble.text
        assert (trouble.code, trouble.fails) == ("driver-library", True)
        assert trouble.command == "export LD_LIBRARY_PATH=/usr/lib64"
        (trouble,) = troubles({"LD_LIBRARY_PATH": str(folder)}, files=files)
        assert trouble.command == "unset LD_LIBRARY_PATH"


def test_an_old_library_in_a_conda_environment(troubles, build, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_CUDA_VERSION", "11040")
    library = tmp_path / "lib/libcuda.so.1"
    library.parent.mkdir()
    library.write_bytes((build("fake_cuda.c", "libcuda.so.1") / "libcuda.so.1").read_bytes())
    (trouble,) = troubles({"CONDA_PREFIX": str(tmp_path), "LD_LIBRARY_PATH": "/usr/lib64"})
    assert trouble.command == f"mv {library} {library}.unused"
    os.system(trouble.command)
    assert troubles({"CONDA_PREFIX": str(tmp_path)}) == []


START = "docker run --gpus all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility …"


APT = "sudo apt-get install libnvidia-compute-550"
SLICE = {"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""}
DOCKER = {".dockerenv": ""}


@pytest.mark.parametrize(
    ("environ", "gpus", "files", "said", "remedy"),
    [
        ({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, ("9.0",), DOCKER, "=utility keeps lib", START),
        ({"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}, ("9.0",), DOCKER, None, ""),
        ({"NVIDIA_DRIVER_CAPABILITIES": "all"}, ("9.0",), DOCKER, None, ""),
        ({}, (), DOCKER | SLICE, "there is a MIG slice, and neither NVIDIA's management", START),
        ({}, (), DOCKER | {"dev/nvidia0": ""}, "there is a GPU, and neither", START),
        ({}, (), MODULE | SLICE, "so no build with GPU code is chosen: install the whole", APT),
        ({}, (), SLICE, "install the whole driver", ""),
        ({}, ("9.0",), {"dev/nvidia0": ""}, None, ""),
        ({}, (), {}, None, ""),
    ],
)  # fmt: skip
def test_a_library_that_is_missing(troubles, command, tmp_path, environ, gpus, files, said, remedy):
    command(tmp_path / "bin/apt-get", "exit 1")
    found = troubles(environ, facts("13.0", *gpus), files)
    assert len(found) == (said is not None)
    for trouble in found:
        assert said in trouble.text
        assert (trouble.code, trouble.command, trouble.fails) == ("driver-library", remedy, True)

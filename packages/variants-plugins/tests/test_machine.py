"""What makes a kept answer a thing of the past: looked up in a made-up file system."""

import os

import pytest

from variants_plugins.machine import machine_facts


def write(root, path, text=""):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "proc/sys/kernel/random/boot_id", "1111")
    write(tmp_path, "proc/driver/nvidia/version", "NVRM version: 570.1")
    write(tmp_path, "sys/class/kfd/kfd/topology/generation_id", "1")
    write(tmp_path, "opt/rocm/.info/version", "6.4.1")
    write(tmp_path, "etc/ld.so.cache", "libraries")
    write(tmp_path, "dev/nvidia0")
    write(tmp_path, "dev/dri/renderD128")
    return tmp_path


CHANGES = {
    "another boot": lambda root: write(root, "proc/sys/kernel/random/boot_id", "2222"),
    "another driver": lambda root: write(root, "proc/driver/nvidia/version", "NVRM version: 580"),
    "no driver": lambda root: (root / "proc/driver/nvidia/version").unlink(),
    "a GPU more for ROCm": lambda root: write(
        root, "sys/class/kfd/kfd/topology/generation_id", "2"
    ),
    "another ROCm": lambda root: write(root, "opt/rocm/.info/version", "7.0.0"),
    "new libraries": lambda root: os.utime(root / "etc/ld.so.cache", (1, 1)),
    "a device more": lambda root: write(root, "dev/nvidia1"),
    "a device less": lambda root: (root / "dev/nvidia0").unlink(),
    "an NPU": lambda root: write(root, "dev/davinci0"),
    "another GPU to draw with": lambda root: write(root, "dev/dri/renderD129"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_seen(root, name):
    before = machine_facts({}, root)
    CHANGES[name](root)
    assert machine_facts({}, root) != before


def test_the_same_machine_is_the_same(root):
    before = machine_facts({}, root)
    write(root, "dev/tty7")
    write(root, "tmp/file")
    assert machine_facts({}, root) == before
    assert machine_facts({"HOME": "/elsewhere"}, root) == before


def test_a_rocm_elsewhere(root, tmp_path):
    write(tmp_path, "rocm/.info/version", "6.3")
    environ = {"ROCM_PATH": str(tmp_path / "rocm")}
    before = machine_facts(environ, root)
    write(tmp_path, "rocm/.info/version", "6.4")
    assert machine_facts(environ, root) != before


def test_an_empty_machine(tmp_path):
    assert machine_facts({}, tmp_path / "nothing")


def test_huge_files_are_not_read_whole(root):
    write(root, "opt/rocm/.info/version", "6" * 1_000_000)
    assert sum(map(len, machine_facts({}, root))) < 10_000

"""Directories with variants that uv is given with ``--find-links``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.projects import CUDA_12_8, app_index
from support.uvs import Machine, project

PYTHON = sys.executable


def wheels(folder: Path) -> Path:
    """Write the files of the usual index into *folder*."""
    folder.mkdir()
    for files in app_index().files.values():
        for name, data in files.items():
            (folder / name).write_bytes(data)
    return folder


@pytest.mark.everywhere
@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_directory_with_variants(every_machine: Machine, how: str) -> None:
    wheels(every_machine.work / "wheels")
    machine = every_machine.with_environ(CUDA_12_8)
    machine.create_environment(PYTHON)
    if how == "variable":
        machine = machine.with_environ({"UV_FIND_LINKS": "wheels"})
    if how == "file":
        (machine.work / "uv.toml").write_text('find-links = ["wheels"]\n')
    done = machine.run("pip", "install", "--no-index", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}


def test_a_lock_of_a_directory(machine: Machine) -> None:
    machine = machine.with_environ({**CUDA_12_8, "UV_PYTHON": PYTHON})
    project(machine.work, ["app"], '[tool.uv]\nno-index = true\nfind-links = ["wheels"]\n')
    wheels(machine.work / "wheels")
    done = machine.run("sync")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}
    lock = (machine.work / "uv.lock").read_text()
    assert '"http://find-links.localhost/wheels/.variant/cu128/app-1.0-0_cu128-' in lock
    assert str(machine.work) not in lock
    done = machine.run("sync", "--locked")
    assert done.code == 0, done

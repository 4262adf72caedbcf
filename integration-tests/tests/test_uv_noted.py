"""Frozen commands that have nothing to do, again and again: noted, until anything changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.environments import Environment
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, app_index
from support.uvs import Machine, project

pytestmark = pytest.mark.skipif(os.name == "nt", reason="nothing is noted there")

Serve = Callable[[Index], Index]


@pytest.fixture
def index(serve: Serve) -> Index:
    return serve(app_index(metadata_file=True))


@pytest.fixture
def gpu(machine: Machine, index: Index) -> Machine:
    """Return a machine with a project that is locked and installed."""
    project(machine.work, ["app"])
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": f"own={index.url}", "UV_PYTHON": sys.executable, **CUDA_12_8}
    )
    done = machine.run("sync")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}
    return machine


def notes(machine: Machine) -> list[Path]:
    return sorted((machine.home / "variants-cache" / "noted").glob("*"))


def noted(machine: Machine, *arguments: str) -> Path:
    """Run the command until it is noted; return the file."""
    before = notes(machine)
    for _ in range(4):
        done = machine.run(*arguments)
        assert done.code == 0, done
        if found := [path for path in notes(machine) if path not in before]:
            assert found[0].stat().st_mode & 0o077 == 0
            return found[0]
    raise AssertionError(str(done))


def test_a_noted_sync_needs_no_daemon(gpu: Machine) -> None:
    noted(gpu, "sync", "--frozen")
    assert gpu.run("stop").code == 0
    done = gpu.run("sync", "--frozen")
    assert (done.code, done.out) == (0, ""), done
    assert "uv-variants" not in done.err
    assert not list((gpu.home / "variants-state").glob("daemon-*.json"))


def test_a_noted_program_has_the_variables_and_the_exit_code(gpu: Machine) -> None:
    code = "import os; print(*sorted(os.environ.items()), sep='\\n')"
    command = ("run", "--frozen", "python", "-c", code)
    noted(gpu, *command)
    assert gpu.run(*command).out == gpu.plain(*command).out


def test_a_signal_reaches_the_program(gpu: Machine) -> None:
    code = (
        "import pathlib, time\n"
        "if pathlib.Path('wait').exists(): print('waits', flush=True); time.sleep(60)"
    )
    command = ("run", "--frozen", "python", "-c", code)
    noted(gpu, *command)
    (gpu.work / "wait").touch()
    codes = []
    for program in (gpu.program, gpu.uv):
        with subprocess.Popen(
            [program, *command], env=gpu.variables, cwd=gpu.work, stdout=subprocess.PIPE
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"waits\n"
            running.send_signal(signal.SIGTERM)
            codes.append(running.wait(30))
    assert codes[0] == codes[1]


def lose(machine: Machine) -> None:
    """Let uv miss the variant, though all files that a note is about look as before."""
    packages = Environment(machine.work / ".venv").site_packages
    (folder,) = packages.glob("app-*.dist-info")
    status = packages.stat()
    folder.rename(packages / "app-1.0.dist-gone")
    os.utime(packages, ns=(status.st_atime_ns, status.st_mtime_ns))
    for path in machine.home.glob("uv-cache*"):
        shutil.rmtree(path)


@pytest.mark.everywhere
def test_uv_that_asks_after_all_is_answered(gpu: Machine) -> None:
    noted(gpu, "sync", "--frozen")
    lose(gpu)
    done = gpu.run("sync", "--frozen")
    assert done.code == 0, done
    assert gpu.labels() == {"app": "cu128"}
    assert "Variant cu128 for app 1.0: " in done.err


def test_what_fails_after_all_fails(gpu: Machine, index: Index) -> None:
    noted(gpu, "sync", "--frozen")
    lose(gpu)
    for name in list(index.files["app"]):
        index.remove("app", name)
    done = gpu.run("sync", "--frozen")
    assert done.code != 0
    assert "app" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("change", ["lock", "pyproject", "environment", "machine"])
def test_a_change_is_seen(gpu: Machine, change: str) -> None:
    noted(gpu, "sync", "--frozen")
    if change == "lock":
        path = gpu.work / "uv.lock"
        other = gpu.run("--variant", "app=cu126", "lock")
        assert other.code == 0, other
        assert ".variant/cu126/" in path.read_text()
    elif change == "pyproject":
        project(gpu.work, ["app"], "[tool.uv]\nmanaged = true\n")
    elif change == "environment":
        assert gpu.plain("pip", "uninstall", "app").code == 0
    else:
        gpu = gpu.with_environ({DRIVER: "11.8"})
    done = gpu.run("sync", "--frozen")
    assert done.code == 0, done
    assert gpu.labels() == {"app": "cu126" if change == "lock" else "cu128"}
    assert ("does not fit this machine" in done.err) == (change == "machine")


def test_what_is_said_each_time_is_not_noted(gpu: Machine) -> None:
    """A lock of another machine: every command says that its variant does not fit."""
    other = gpu.with_environ({DRIVER: "11.8"})
    for _ in range(3):
        assert "does not fit this machine" in other.run("sync", "--frozen").err
    assert not notes(gpu)

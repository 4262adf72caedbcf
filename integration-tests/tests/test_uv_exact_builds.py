"""A build that requirements name with its local version is taken, whatever would be chosen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import family_entries, pytorch
from support.projects import DRIVER
from support.published_builds import Field, standing_in
from support.uvs import Machine, project
from uv_variants._environments import installed_versions

PYTHON = sys.executable
LINUX, WINDOWS = "py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"
MAC = "py3-none-macosx_11_0_arm64"
CU126 = {"torch": "2.9.0+cu126", "torchvision": "0.9.0+cu126", "cudalib": "126"}


@pytest.fixture
def field() -> Iterator[Field]:
    """PyTorch's places, and the user's own index."""
    with standing_in(pytorch(LINUX, WINDOWS, mac=MAC)) as field:
        yield field


@pytest.fixture
def machine(machine: Machine, field: Field, tmp_path: Path) -> Machine:
    """A machine for which cuda12.8 is chosen."""
    folder = tmp_path / "catalog"
    family_entries(field.builds, folder)
    return machine.with_environ(
        {DRIVER: "12.8", "UV_DEFAULT_INDEX": field.index.url, "VARIANTS_CATALOG": str(folder)}
    )


def versions(machine: Machine) -> dict[str, str]:
    return dict(installed_versions([machine.work / ".venv"]) - {("project", "1.0")})


@pytest.mark.parametrize(
    "command",
    [
        "install torch==2.9.0+cu126 torchvision",
        "install torch===2.9.0+cu126 torchvision==0.9.0",
        "install -r r.txt",
        "install torchvision torch -c r.txt",
        "sync r.txt",
    ],
)
def test_installed(machine: Machine, command: str) -> None:
    """And torchvision is of the same build."""
    freeze = "".join(f"{name}=={version}\n" for name, version in CU126.items())
    (machine.work / "r.txt").write_text(freeze)
    machine.create_environment(PYTHON)
    done = machine.run("pip", *command.split())
    assert done.code == 0, done
    assert versions(machine) == CU126
    assert "Variant cuda12.6 for torch 2.9.0+cu126: " in done.err, done
    again = machine.run("pip", *command.split())
    assert (again.code, versions(machine)) == (0, CU126), again
    assert machine.run("pip", "check").code == 0


@pytest.mark.parametrize("place", ["dependencies", "optional", "group", "constraint"])
def test_locked(machine: Machine, place: str) -> None:
    """A lock has it for all platforms, and stays."""
    pin = '"torch==2.9.0+cu126"'
    more = {
        "dependencies": "",
        "optional": f"[project.optional-dependencies]\ngpu = [{pin}]\n",
        "group": f"[dependency-groups]\ndev = [{pin}]\n",
        "constraint": f"[tool.uv]\nconstraint-dependencies = [{pin}]\n",
    }[place]
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    project(machine.work, ["torchvision", *([eval(pin)] if not more else [])], more)
    for command in (["lock"], ["lock", "--upgrade"], ["add", "--no-sync", "cudalib"], ["sync"]):
        done = machine.run(*command)
        assert done.code == 0, done
        text = (machine.work / "uv.lock").read_text()
        for tag in (LINUX, WINDOWS):
            assert f"torch-2.9.0%2Bcu126-{tag}.whl" in text, text
        assert "cu128" not in text
    expected = CU126 if place != "optional" else {}
    assert expected.items() <= versions(machine).items()
    # Another machine keeps it.
    other = machine.with_environ({DRIVER: "0"})
    assert other.run("lock", "--check").code == 0


BACKEND = """
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/ext-1.0-py3-none-any.whl", "w") as wheel:
        about = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("ext-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("ext-1.0.dist-info/WHEEL", about)
        wheel.writestr("ext-1.0.dist-info/RECORD", "")
    return "ext-1.0-py3-none-any.whl"
build_editable = build_wheel
"""


def directory(folder: Path, requires: str = "", build: str = "", more: str = "") -> None:
    """Write a project that requires and is built with what is given into *folder*."""
    folder.mkdir()
    about = "Metadata-Version: 2.1\\nName: ext\\nVersion: 1.0\\n"
    about += f"Requires-Dist: {requires}\\n" if requires else ""
    (folder / "backend.py").write_text(f'METADATA = "{about}"\n{BACKEND}')
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "ext"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
        f"dependencies = {[requires] if requires else []}\n{more}"
        f'[build-system]\nrequires = {[build] if build else []}\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n'
    )


EXACT = "torch==2.9.0+cu126"


@pytest.mark.parametrize(
    ("command", "variable"),
    [
        ("install ./ext", ""),
        ("install -e ./ext", ""),
        ("install torch", "UV_CONSTRAINT"),
        ("install torch", "UV_OVERRIDE"),
        ("install --group gpu", ""),
        ("install -r pyproject.toml --extra gpu", ""),
        ("install torch --override r.txt", ""),
    ],
)
def test_declared_elsewhere(machine: Machine, command: str, variable: str) -> None:
    (machine.work / "r.txt").write_text(EXACT)
    if "/ext" in command:
        directory(machine.work / "ext", EXACT)
    listed = f'gpu = ["{EXACT}"]\n'
    more = f"[project.optional-dependencies]\n{listed}[dependency-groups]\n{listed}"
    project(machine.work, [], more if "gpu" in command else "")
    machine = machine.with_environ({variable: "r.txt"} if variable else {})
    machine.create_environment(PYTHON)
    done = machine.run("pip", *command.split())
    assert (done.code, versions(machine).get("torch")) == (0, "2.9.0+cu126"), done


@pytest.mark.parametrize("place", ["path", "build", "constraint"])
def test_of_a_path(machine: Machine, place: str) -> None:
    """Of a project that a source names, what it requires and what it is built with."""
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    is_build = place == "build"
    directory(machine.work / "ext", "torch" if is_build else EXACT, EXACT if is_build else "")
    more = '[tool.uv.sources]\next = {path = "ext"}\n'
    more += f'[tool.uv]\nbuild-constraint-dependencies = ["{EXACT}"]\n' * (place == "constraint")
    project(machine.work, ["ext"], more)
    done = machine.run("sync")
    assert (done.code, versions(machine)["torch"]) == (0, "2.9.0+cu126"), done
    assert machine.run("build", "--wheel", "ext").code == 0


def test_another_one(machine: Machine) -> None:
    """What goes with it follows, in a lock that has both."""
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    for build in ("cu126", "cu128", "cu126"):
        project(machine.work, ["torchvision", f"torch==2.9.0+{build}"])
        done = machine.run("sync")
        assert done.code == 0, done
        expected = {"torch": f"2.9.0+{build}", "torchvision": f"0.9.0+{build}"}
        assert versions(machine) == {**expected, "cudalib": build[2:]}, done
    lock = machine.work / "uv.lock"
    text = lock.read_text()
    lock.unlink()
    assert machine.run("lock").code == 0
    assert lock.read_text() == text


def test_added(machine: Machine) -> None:
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    project(machine.work, [])
    done = machine.run("add", "torch==2.9.0+cu126")
    assert done.code == 0, done
    assert versions(machine)["torch"] == "2.9.0+cu126"
    (machine.work / "r.in").write_text("torch==2.9.0+cu126")
    done = machine.run("pip", "compile", "--generate-hashes", "r.in")
    assert "torch==2.9.0+cu126" in done.out, done


def test_of_several_platforms(machine: Machine) -> None:
    """Each is listed, whether or not it fits this machine."""
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    project(
        machine.work,
        [
            "torch==2.9.0+cu126 ; sys_platform == 'linux'",
            "torch==2.9.0+cpu ; sys_platform == 'win32'",
            "torch==2.9.0 ; sys_platform == 'darwin'",
        ],
    )
    done = machine.run("lock")
    assert done.code == 0, done
    text = (machine.work / "uv.lock").read_text()
    for name in (f"2.9.0%2Bcu126-{LINUX}", f"2.9.0%2Bcpu-{WINDOWS}", f"2.9.0-{MAC}"):
        assert f"torch-{name}.whl" in text, text


def test_one_that_does_not_fit(machine: Machine) -> None:
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "torch==2.9.0+cu130")
    assert done.code == 1, done
    assert "None of the variants of torch 2.9.0 fits this machine (there is cuda13.0 alone" in (
        done.err
    )
    assert "needs CUDA driver 13.0 or newer" in done.err
    done = machine.run("pip", "install", "torch==2.9.0+cu999")
    assert (done.code, "None of" in done.err) == (1, False), done


def test_without_a_local_version(machine: Machine) -> None:
    """``===`` admits none: what that leaves out is said."""
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "torch===2.9.0")
    assert (done.code, versions(machine)) == (0, {"torch": "2.9.0"}), done
    assert "left out the builds of torch 2.9.0 with a local version" in done.err

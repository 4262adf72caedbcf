"""The catalogue of existing builds in uv: other indexes, other names, extras; and locks of them."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import add_cupy, family_entries, numbered_entry, page, pytorch
from support.environments import Environment
from support.index import Answer
from support.projects import DRIVER
from support.published_builds import Field, standing_in
from support.uvs import Machine, installed_labels, project
from support.wheels import Wheel
from uv_variants._environments import installed_versions

PYTHON = sys.executable
LINUX, WINDOWS = "py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"
MAC = "py3-none-macosx_11_0_arm64"


@pytest.fixture
def field() -> Iterator[Field]:
    """PyTorch's places, and the user's own index: with builds of cupy, and jax with extras."""
    found = pytorch(LINUX, WINDOWS, mac=MAC)
    add_cupy(found.index, LINUX, WINDOWS, mac=MAC)
    found.index.add_wheel(Wheel("jax", "0.10.2", extras=("cuda12", "cuda13")), metadata_file=True)
    with standing_in(found):
        yield found


@pytest.fixture
def settings(field: Field, tmp_path: Path) -> dict[str, str]:
    """A machine with a GPU, the index, and a directory with entries of all three kinds."""
    folder = tmp_path / "catalog"
    family_entries(field.builds, folder)
    for name, build in (("cupy", "cupy-cuda{}x"), ("jax", "{{name}}[cuda{}]")):
        text = numbered_entry(name, f"{build}=={{{{version}}}}")
        (folder / f"{name}.toml").write_text(text)
    return {DRIVER: "12.8", "UV_DEFAULT_INDEX": field.index.url, "VARIANTS_CATALOG": str(folder)}


def in_project(machine: Machine, settings: dict[str, str], *dependencies: str) -> Machine:
    project(machine.work, dependencies)
    return machine.with_environ({**settings, "UV_PYTHON": PYTHON})


def versions(machine: Machine) -> dict[str, str]:
    return dict(installed_versions([machine.work / ".venv"]) - {("project", "1.0")})


def wheels(lock: str, name: str) -> dict[str, list[str]]:
    """Return the wheels of a project in a lock by version: the paths of their URLs."""
    found = {}
    for match in re.finditer(
        rf'(?ms)^\[\[package\]\]\nname = "{name}"\nversion = "([^"]+)"(.*?)(?=^\[\[|\Z)', lock
    ):
        found[match[1]] = re.findall(r'url = "https?://[^/]+([^"]*\.whl)"', match[2])
    return found


@pytest.mark.everywhere
def test_pip_install(every_machine: Machine, settings: dict[str, str], field: Field) -> None:
    machine = every_machine.with_environ(settings)
    machine.create_environment(PYTHON)
    dry = machine.run("pip", "install", "--dry-run", "torchvision")
    assert dry.code == 0, dry
    assert "Variant cuda12.8 for torchvision 0.9.0+cu128: CUDA driver" in dry.err, dry
    assert "torch==2.9.0+cu128" in dry.err
    assert not [
        path for path in field.builds.requests if path.endswith("x86_64.whl") and "cpu" in path
    ]
    done = machine.run("pip", "install", "torchvision")
    assert done.code == 0, done
    expected = {"torch": "2.9.0+cu128", "torchvision": "0.9.0+cu128", "cudalib": "128"}
    assert versions(machine) == expected
    assert "Variant cuda12.8 for torch 2.9.0+cu128: CUDA driver 12.8 or newer" in done.err, done
    again = machine.run("pip", "install", "torchvision")
    assert again.code == 0, again
    assert "+ torch" not in again.text, again
    # Another driver, and `--no-variants`, for one command.
    done = machine.run("--variant", "torch=cuda12.6", "pip", "install", "torch==2.9.0")
    assert done.code == 0, done
    assert versions(machine)["torch"] == "2.9.0+cu126"


@pytest.mark.everywhere
def test_a_lock(every_machine: Machine, settings: dict[str, str]) -> None:
    """A lock for three platforms, which plain uv installs."""
    machine = in_project(every_machine, settings, "torchvision")
    done = machine.run("lock")
    assert done.code == 0, done
    assert "Variant cuda12.8 for torch 2.9.0+cu128" in done.err, done
    text = (machine.work / "uv.lock").read_text()
    found = wheels(text, "torch")
    assert set(found) == {"2.9.0", "2.9.0+cu128"}, text
    assert {path.rpartition("-")[2] for path in found["2.9.0+cu128"]} == {
        "manylinux_2_17_x86_64.whl",
        "win_amd64.whl",
    }
    start = f"/files{page('cu128')}torch-2.9.0%2Bcu128"
    assert all(path.startswith(start) for path in found["2.9.0+cu128"])
    assert [path.rpartition("-")[2] for path in found["2.9.0"]] == ["macosx_11_0_arm64.whl"], text
    assert text.count("hash = ") == text.count(".whl")
    # Another machine with our command keeps what the lock has.
    other = machine.with_environ({DRIVER: "0"})
    done = other.run("lock", "--upgrade-package", "cudalib")
    assert done.code == 0, done
    assert (machine.work / "uv.lock").read_text() == text
    # Plain uv installs it.
    plain = machine.with_environ({"VARIANTS_CATALOG": ""})
    done = plain.plain("sync", "--frozen")
    assert done.code == 0, done
    assert versions(plain)["torch"] == "2.9.0+cu128"
    assert plain.plain("lock", "--locked").code == 0
    done = machine.run("sync")
    assert done.code == 0, done
    assert "+ torch" not in done.text, done
    # A new choice is made when it is asked for, for the machine of the lock or for another one.
    upgrade = ("lock", "--upgrade-package", "torch", "--upgrade-package", "torchvision")
    done = other.run(*upgrade)
    assert done.code == 0, done
    assert "2.9.0+cu128" in wheels((machine.work / "uv.lock").read_text(), "torch")
    assert "was locked for the machine of uv.variants.toml, which is not this machine" in done.err
    done = other.run("--variant-platform", "native", *upgrade)
    assert done.code == 0, done
    assert "2.9.0+cpu" in wheels((machine.work / "uv.lock").read_text(), "torch")


def cupy(machine: Machine) -> str:
    """Return what is imported as cupy, after a look at who owns its files."""
    environment = Environment(machine.work / ".venv")
    (owner,) = environment.site_packages.glob("cupy*.dist-info")
    assert owner.name.startswith("cupy-")
    return environment.run("-c", "import cupy; print(cupy.BUILD)").out.strip()


def test_another_name(machine: Machine, settings: dict[str, str]) -> None:
    """C5: a lock of it needs uv-variants, and that is said."""
    machine = in_project(machine, settings, "cupy")
    done = machine.run("lock")
    assert done.code == 0, done
    text = (machine.work / "uv.lock").read_text()
    assert re.search(r"/cupy/\.variant/cuda12/cupy-14\.2\.0-0_cuda12-[^\"]*\", hash = ", text), text
    assert "cupy-cuda12x" not in text
    assert "Variant cuda12 for cupy 14.2.0 (published as cupy-cuda12x): " in done.err, done
    (line,) = (line for line in done.err.splitlines() if "plain uv cannot fetch" in line)
    assert line.startswith("uv-variants: uv.lock: plain uv cannot fetch cupy: ")
    done = machine.run("sync")
    assert done.code == 0, done
    assert versions(machine) == {"cupy": "14.2.0"}
    assert installed_labels(machine.work / ".venv") == {"cupy": "cuda12"}
    assert cupy(machine) == "cupy-cuda12x 14.2.0"
    again = machine.run("sync")
    assert "cupy" not in again.text, again


@pytest.mark.everywhere
def test_a_life_of_another_name(every_machine: Machine, settings: dict[str, str]) -> None:
    """C1, C2: install, upgrade, switch and uninstall leave the files of one build."""
    machine = every_machine.with_environ(settings)
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "cupy==14.1.0")
    assert (done.code, cupy(machine)) == (0, "cupy-cuda12x 14.1.0"), done
    done = machine.run("pip", "install", "-U", "cupy")
    assert (done.code, cupy(machine)) == (0, "cupy-cuda12x 14.2.0"), done
    newer = machine.with_environ({DRIVER: "13.0"})
    done = newer.run("--variant-switch", "pip", "install", "cupy")
    assert (done.code, cupy(machine)) == (0, "cupy-cuda13x 14.2.0"), done
    assert machine.labels() == {"cupy": "cuda13"}
    done = machine.plain("pip", "uninstall", "cupy")
    assert done.code == 0, done
    assert not list(Environment(machine.work / ".venv").site_packages.glob("cupy*"))


def test_both_names(machine: Machine, settings: dict[str, str], field: Field) -> None:
    """C14: uv cannot express that one is the other; both are never left without an error."""
    machine = machine.with_environ(settings)
    field.index.add_wheel(Wheel("cudf", "1.0", requires=("cupy-cuda12x",)), metadata_file=True)
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "cupy", "cudf")
    assert done.code == 1, done
    assert "cupy-cuda12x is what its publisher calls a build of cupy, and both are inst" in done.err
    assert "uv-variants pip uninstall cupy cupy-cuda12x" in done.err
    machine = in_project(machine, settings, "cupy", "cudf")
    done = machine.run("lock")
    assert done.code == 1, done
    override = "override-dependencies = [\"cupy ; sys_platform == 'never'\"]"
    assert override in done.err
    project(machine.work, ["cupy", "cudf"], f"[tool.uv]\n{override}\n")
    done = machine.run("sync")
    assert done.code == 0, done
    assert versions(machine) == {"cudf": "1.0", "cupy-cuda12x": "14.2.0"}
    # Nor is it an error where one is never installed beside the other.
    for dependencies, more in (
        (["cupy-cuda12x ; sys_platform == 'linux'", "cupy ; sys_platform == 'darwin'"], ""),
        ([], '[project.optional-dependencies]\nown = ["cupy"]\nother = ["cupy-cuda12x"]\n'),
    ):
        project(machine.work, dependencies, more)
        assert machine.run("lock").code == 0


def test_given_hashes(machine: Machine, settings: dict[str, str], field: Field) -> None:
    """C16: a file with hashes is installed as plain uv installs it, and a line says so."""
    machine = machine.with_environ(settings)
    machine.create_environment(PYTHON)
    data = field.index.files["jax"]["jax-0.10.2-py3-none-any.whl"]
    digest = hashlib.sha256(data).hexdigest()
    (machine.work / "r.txt").write_text(f"jax==0.10.2 \\\n    --hash=sha256:{digest}\n")
    done = machine.run("pip", "install", "--require-hashes", "-r", "r.txt")
    assert done.code == 0, done
    assert versions(machine) == {"jax": "0.10.2"}
    assert machine.labels() == {}
    assert (
        "uv-variants: hashes are given for jax: builds of the catalogue with other hashes"
        in done.err
    )


def test_a_lock_without_a_place(machine: Machine, settings: dict[str, str], field: Field) -> None:
    """C6, C7: it fails, one line names the host, and an option allows it."""
    for name in ("cu128", "cu126"):
        for project_ in ("torch", "torchvision"):
            field.builds.faults[page(name, project_)] = Answer(500)
    machine = in_project(machine, settings, "torchvision")
    done = machine.run("lock")
    assert done.code == 1, done
    assert not (machine.work / "uv.lock").exists()
    (line,) = (line for line in done.err.splitlines() if "Cannot reach" in line)
    assert f"Cannot reach {field.builds.root}: " in line
    assert f"--variant-catalog-mirror {field.builds.root}=URL" in line
    assert line.endswith("; --allow-missing-sources goes on without it")
    (machine.work / "r.in").write_text("torch")
    done = machine.run("pip", "compile", "r.in", "-o", "r.txt")
    assert (done.code, done.out) == (1, ""), done
    assert not (machine.work / "r.txt").exists()
    # Nothing is installed either; with the option it is the next best.
    machine.create_environment(PYTHON)
    install = ("pip", "install", "torch")
    done = machine.with_environ({"UV_PYTHON": ""}).run(*install)
    assert (done.code, versions(machine)) == (1, {}), done
    done = machine.with_environ({"UV_PYTHON": ""}).run("--allow-missing-sources", *install)
    assert (done.code, versions(machine)["torch"]) == (0, "2.9.0+cpu"), done
    assert "Cannot reach" in done.err
    done = machine.with_environ({"VARIANTS_ALLOW_MISSING_SOURCES": "1"}).run("sync")
    assert done.code == 0, done
    assert (machine.work / "uv.lock").exists()
    assert "HTTP status 500" in done.err
    # The doctor compares builds of the catalogue, too, and says what keeps one away.
    tree = json.loads(machine.run("doctor", "--json").out)
    found = [each["text"] for each in tree["problems"] if each["code"] == "catalog-place"]
    assert len(found) == 1, tree["problems"]
    assert f"Cannot reach {field.builds.root}: " in found[0]

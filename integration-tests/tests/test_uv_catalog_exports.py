"""Exports of builds that the catalogue describes: plain uv and plain pip install them."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pep_variants._formats import toml
from support.environments import PIPS, Environments
from support.published_builds import Field, published, standing_in
from support.uvs import Machine, project
from uv_variants._environments import installed_versions

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="what is exported is installed, and the platform file is of Linux on x86_64",
)

VERSIONS = {"torch": "2.11.0", "cupy": "14.2.0", "jax": "0.10.2", "onnxruntime": "1.31.1"}
WITH_NULL = {"tensorflow": "2.21.0", "xgboost": "3.4.0"}
"""Projects with another name for what runs without a GPU."""
UNLIKE_PYPI = tuple(name for name in VERSIONS if name != "torch")
"""Projects whose builds are on the user's own index."""

INSTALLED = {
    "cupy-cuda13x": "14.2.0",
    "jax": "0.10.2",
    "jax-cuda13-plugin": "0.10.2",
    "onnxruntime-gpu": "1.31.1",
}
NOTES = (
    "cupy 14.2.0 is published as cupy-cuda13x, which is exported in its place",
    "onnxruntime 1.31.1 is published as onnxruntime-gpu, which is exported in its place",
)


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    """All there is, on loopback."""
    versions = {name: [text] for name, text in {**VERSIONS, **WITH_NULL}.items()}
    with standing_in(published(**versions)) as found:
        yield found


@pytest.fixture
def h100(field: Field, machine: Machine) -> Machine:
    return on(field, machine, "h100-sapphirerapids")


def on(field: Field, machine: Machine, name: str) -> Machine:
    """Return *machine* as one of the named platforms, with the catalogue."""
    return machine.with_environ(
        {
            "UV_DEFAULT_INDEX": field.index.url,
            "UV_PYTHON": sys.executable,
            "VARIANTS_CATALOG": "default",
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_PLATFORM": name,
        }
    )


def without_project(machine: Machine) -> Machine:
    return machine.with_environ(
        {"VARIANTS_CATALOG": "", "VARIANTS_CATALOG_MIRROR": "", "VARIANTS_PLATFORM": ""}
    )


def installed_by_uv(machine: Machine, *arguments: str) -> dict[str, str]:
    """Return what plain uv installs into a fresh environment."""
    path = machine.work / "fresh"
    machine = without_project(machine)
    machine.create_environment(sys.executable, path)
    where = machine.with_environ({"VIRTUAL_ENV": str(path), "UV_PYTHON": ""})
    done = where.plain("pip", *arguments)
    assert done.code == 0, done
    return dict(installed_versions([path]))


def installed_by_pip(
    environments: Environments, field: Field, path: Path, *arguments: str
) -> dict[str, str]:
    """Return what plain pip installs into a fresh environment."""
    python = "{}.{}".format(*sys.version_info)
    environment = environments.plain(python, PIPS[-1]).copied(path)
    before = installed_versions([environment.path])
    done = environment.pip("install", "--index-url", field.index.url, *arguments)
    assert done.code == 0, done
    return dict(installed_versions([environment.path]) - before)


def requirement(text: str, name: str) -> tuple[str, list[str]]:
    """Return the line of a project in a requirements file, and its hashes."""
    (match,) = re.finditer(rf"(?m)^{name}==.*\n((?:    --hash=.*\n)*)", text)
    return match[0].splitlines()[0].removesuffix(" \\"), re.findall(r"--hash=(\S+)", match[1])


def test_requirements_of_a_lock(
    field: Field, h100: Machine, environments: Environments, tmp_path: Path
) -> None:
    project(h100.work, UNLIKE_PYPI)
    done = h100.run("export", "--no-emit-project", "-o", "req.txt")
    assert done.code == 0, done
    text = (h100.work / "req.txt").read_text()
    assert text == done.out
    for note in NOTES:
        assert done.err.count(note) == 1, done
    assert "no hash" not in done.err
    (own, other) = (requirement(text, name) for name in ("onnxruntime", "onnxruntime-gpu"))
    assert own[0].startswith("onnxruntime==1.31.1 ; ")
    assert other[0].startswith("onnxruntime-gpu==1.31.1 ; sys_platform == 'linux' and ")
    # The publisher's hashes.
    theirs = field.index.files["onnxruntime-gpu"].values()
    assert set(other[1]) <= {f"sha256:{hashlib.sha256(data).hexdigest()}" for data in theirs}
    # The publisher's file, and the wheel as uv-variants installs it.
    (own,) = (data for data in field.index.files["jax"].values())
    line, hashes = requirement(text, "jax")
    assert line == "jax==0.10.2"
    assert f"sha256:{hashlib.sha256(own).hexdigest()}" in hashes
    assert len(hashes) > 1
    arguments = ("--require-hashes", "-r", str(h100.work / "req.txt"))
    assert installed_by_uv(h100, "install", *arguments) == INSTALLED
    assert installed_by_pip(environments, field, tmp_path / "pip", *arguments) == INSTALLED
    done = h100.run("export", "--format", "cyclonedx1.5")
    assert (done.code, done.out) == (2, ""), done
    assert "is locked with variants" in done.err
    # The lock decides, not the machine that exports it.
    other = on(field, h100, "cpu-zen4").run("export", "--no-emit-project", "-o", "req.txt")
    assert (other.code, other.out) == (0, text), other
    # Without the catalogue it cannot be found out what the files are.
    other = without_project(h100).run("export", "--no-emit-project", "-o", "req.txt")
    assert other.code != 0
    assert "or name the catalogue that the lock was made with" in other.err, other
    assert (h100.work / "req.txt").read_text() == text


def test_pylock_of_a_lock(
    field: Field, h100: Machine, environments: Environments, tmp_path: Path
) -> None:
    """A project whose wheel without a GPU has another name, too, has that one in it."""
    project(h100.work, [*VERSIONS, *WITH_NULL])
    done = h100.run("export", "--no-emit-project", "-o", "pylock.toml")
    assert done.code == 0, done
    for note in (*NOTES, "tensorflow 2.21.0 is published as tensorflow-cpu, which"):
        assert done.err.count(note) == 1, done
    tree = toml.read_toml((h100.work / "pylock.toml").read_text())
    found: dict[str, dict[str, Any]] = {item["name"]: item for item in tree["packages"]}
    assert not [item for item in found.values() if "variants-json" in item]
    assert ".variant" not in done.out
    (wheel,) = found["jax"]["wheels"]
    assert wheel["url"].endswith("/jax/jax-0.10.2-py3-none-any.whl")
    assert all(wheel["hashes"] for item in found.values() for wheel in item["wheels"])
    more = {**WITH_NULL, "tensorflow-and-cuda-plugin": "2.21.0"}
    expected = {**INSTALLED, **more, "torch": "2.11.0+cu130"}
    assert installed_by_uv(h100, "sync", "pylock.toml") == expected
    file = str(h100.work / "pylock.toml")
    assert installed_by_pip(environments, field, tmp_path / "pip", "-r", file) == expected


@pytest.mark.everywhere
def test_compiled_requirements(field: Field, every_machine: Machine) -> None:
    h100 = on(field, every_machine, "h100-sapphirerapids")
    (h100.work / "req.in").write_text("\n".join(UNLIKE_PYPI))
    for _ in range(2):  # into a new file, and into one that is there
        done = h100.run("pip", "compile", "req.in", "--no-header", "-o", "req.txt")
        assert done.code == 0, done
        text = (h100.work / "req.txt").read_text()
        lines = [line for line in text.splitlines() if line[0] != " "]
        assert lines == [f"{name}=={version}" for name, version in sorted(INSTALLED.items())]
    assert installed_by_uv(h100, "sync", str(h100.work / "req.txt")) == INSTALLED
    (h100.work / "req.in").write_text("cupy")
    done = h100.run("pip", "compile", "req.in", "--no-header", "--no-deps")
    assert done.out == "cupy-cuda13x==14.2.0\n    # via -r req.in\n", done


def test_compiled_hashes(field: Field, h100: Machine) -> None:
    (h100.work / "req.in").write_text("\n".join(VERSIONS))
    arguments = ["pip", "compile", "req.in", "--universal", "--generate-hashes"]
    done = h100.run(*arguments, "-o", "req.txt")
    assert done.code == 0, done
    # The file of 2.11.0 is not one of 2.11.0+cu130.
    blocks = re.findall(r"(?m)^(torch==\S+).*\n((?:    --hash=.*\n)+)", done.out)
    hashes = {name: set(re.findall(r"--hash=(\S+)", block)) for name, block in blocks}
    assert set(hashes) == {"torch==2.11.0", "torch==2.11.0+cu130"}
    assert not hashes["torch==2.11.0"] & hashes["torch==2.11.0+cu130"]
    links = f"{field.builds.mirrors['https://download.pytorch.org']}/whl/cu130/torch/"
    options = ("--require-hashes", "-r", str(h100.work / "req.txt"), "--find-links", links)
    found = installed_by_uv(h100, "install", *options)
    assert found == {**INSTALLED, "torch": "2.11.0+cu130"}
    done = h100.run("pip", "compile", "req.in", "--format", "pylock.toml")
    assert done.code == 0, done
    assert all(name in done.out for name in found), done
    assert ".variant" not in done.out

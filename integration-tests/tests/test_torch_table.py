"""The newest torch that uses the GPU of each machine, in every client; and what is said of it.

What is expected of our clients follows from the facts of `support.torch_field`; what the others
take is in the table of the page, which ``python -m support.torch_table`` prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from support.choices import Chosen, by_uv_lock
from support.environments import ROOT, Environment, Environments
from support.torch_field import BOXES, Box
from support.torch_table import (
    OURS,
    PROJECTS,
    World,
    pip_with_shim,
    resolved,
    running,
    table,
    verdict,
)
from support.uvs import Machine
from support.wheels import Wheel

FAMILY = PROJECTS[1]
SAMPLE = ("P100, driver 580", "B200, driver 570", "MI300X", "T4, driver 550, Windows")
H100 = next(box for box in BOXES if box.title == "H100, driver 570")
"""The newest torch, 2.15, has no build for its driver."""
NEWEST_BUILD = ", the newest release with a build for this "
Client = Callable[..., Chosen]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a machine on all of them in ``make test-matrix``, else on a few."""
    if "box" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        boxes = [box for box in BOXES if full or box.title in SAMPLE]
        metafunc.parametrize("box", boxes, ids=[box.title for box in boxes])


@pytest.fixture(scope="module")
def indexes(
    tmp_path_factory: pytest.TempPathFactory, environments: Environments
) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("field"), environments) as found:
        yield found


@pytest.fixture
def world(indexes: World, machine: Machine) -> World:
    """The indexes, and a machine without a cache."""
    return replace(indexes, machine=machine)


@pytest.mark.parametrize("projects", PROJECTS[1:], ids=" ".join)
@pytest.mark.parametrize("system", ["linux", "aarch64", "windows", "macos"])
def test_every_machine(system: str, projects: tuple[str, ...], world: World) -> None:
    if "vllm" in projects and system != "linux":
        pytest.skip("vLLM is for Linux on x86_64")
    boxes = [box for box in BOXES if box.system == system]
    for box, picks in zip(boxes, resolved(world, boxes, projects), strict=True):
        assert verdict(picks, box, projects) == "right", f"{box.title}: {picks}"


@pytest.mark.parametrize("client", [*OURS][1:])
def test_every_client(client: str, box: Box, world: World) -> None:
    picks = OURS[client](world, box, FAMILY)
    assert verdict(picks, box, FAMILY) == "right", picks


def test_a_build_that_has_to_agree_with_torch(world: World) -> None:
    """Of the versions of torch, the newest has no build for this GPU, and others no such label."""
    picks = OURS["`uv-variants`"](world, H100, ["vllm"])
    assert verdict(picks, H100, ["vllm"]) == "right", picks


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="uv is shown other machines")
def test_the_page(world: World) -> None:
    page = (ROOT / "docs/explanation/compared.md").read_text("utf-8")
    assert [part for part in table(world).split("\n\n") if part not in page] == []


def pip(world: World, *options: str) -> Chosen:
    found = pip_with_shim(world, H100, ["torch"], *options)
    report = json.loads((world.machine.work / "report.json").read_text("utf-8"))
    (item,) = report["install"]
    is_said = NEWEST_BUILD in found.text or "to take it" in found.text
    assert ("variant_version" in item) is is_said
    return found


def uv(world: World, *options: str) -> Chosen:
    platform = f"--variant-platform={H100.facts}"
    url = world.field.index.url
    return by_uv_lock(world.machine, url, ["torch"], *world.options, platform, *options)


@pytest.mark.parametrize("client", [pip, uv])
def test_what_is_said(client: Client, world: World) -> None:
    """Of the newest release that uses the GPU, and of that one if the newest is wanted."""
    found = client(world)
    assert found.versions == {"torch": "2.14.0+cu126"}
    assert "torch 2.14.0 (" in found.text
    assert NEWEST_BUILD in found.text
    (world.machine.work / "uv.lock").unlink(missing_ok=True)
    found = client(world, "--variant-before-version=:none:")
    assert found.versions["torch"] == "2.15.0+cpu"
    assert "to take it, require torch==2.14.0" in found.text


def test_what_another_project_requires(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command names no torch, and where that requires the newest one."""
    index, options = world.field.index, (*world.options, f"--variant-platform={H100.facts}")
    monkeypatch.setattr(index, "files", {**index.files})
    index.add_wheel(Wheel("training", "1", requires=("torch", "torchvision>=0.20")))
    index.add_wheel(Wheel("pinning", "1", requires=("torch==2.15.0",)))
    for name, version in (("training", "2.14.0+cu126"), ("pinning", "2.15.0+cpu")):
        (world.machine.work / "uv.lock").unlink(missing_ok=True)
        found = by_uv_lock(world.machine, index.url, [name], *options)
        assert found.versions["torch"] == version, found
        assert (NEWEST_BUILD in found.text) == (name == "training"), found
    (world.machine.work / "uv.lock").unlink()


@pytest.mark.parametrize("client", [pip, uv])
def test_a_release_that_is_yanked(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What PyPI says of a release is true of its builds on other indexes, too."""
    index = world.field.index
    for filename in index.files["torch"]:
        if filename.split("-")[1] == "2.14.0":
            monkeypatch.setitem(index.attributes, filename, {"yanked": "unsafe"})
    assert client(world).versions == {"torch": "2.13.0+cu126"}


def test_tool_run(world: World) -> None:
    """The bound is for what the command names; of what only the tool requires a line says it."""
    index = world.field.index
    main = "import importlib.metadata as m\ndef main(): print(m.version('torch'))\n"
    for name, requires in (("alone", ()), ("requiring", ("torch",))):
        entry_points = f"[console_scripts]\n{name} = {name}.cli:main\n"
        files = {f"{name}/cli.py": main, f"{name}-1.dist-info/entry_points.txt": entry_points}
        index.add_wheel(Wheel(name, "1", files=files, requires=requires))
    platform = f"--variant-platform={H100.facts}"
    user = world.machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable})
    for arguments, version, said in (
        (
            ("--with", "torch", "alone"),
            "2.14.0+cu126",
            f"{NEWEST_BUILD}GPU, not 2.15.0: ",
        ),
        (("requiring",), "2.15.0+cpu", "to take it, require torch==2.14.0"),
    ):
        done = user.run(*world.options, platform, "tool", "run", *arguments)
        assert (done.code, done.out.strip()) == (0, version), done
        assert said in done.err


def test_an_upgrade_of_what_is_named(world: World, fresh: Environment) -> None:
    """A newer build for CPUs is installed; what is not named stays, and what goes with that."""
    options = ["-i", world.field.index.url, *world.options]
    for named, installed in (
        ("torchvision", "2.15.0+cpu 0.30.0+cpu"),
        ("torch torchvision", "2.14.0+cu126 0.29.0+cu126"),
    ):
        newest = ["torch==2.15.0", "torchvision==0.30.0", "--variant-platform=cpu-zen4"]
        assert fresh.pip("install", *options, *newest).code == 0
        platform = f"--variant-platform={H100.facts}"
        done = fresh.pip("install", "-U", *options, platform, *named.split())
        assert done.code == 0, done
        frozen = dict(line.split("==") for line in fresh.pip("freeze").out.splitlines())
        assert " ".join(frozen[name] for name in FAMILY) == installed, done

"""What doctor says of each build on each machine, typed: then nothing is wrong.

The cells of `support.switching_table`, with doctor's own command in place of the user's: some in
``make test``, all in ``make test-matrix``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.doctor_report import check_report
from support.doctor_shell import link_programs
from support.environments import Environment, Environments, Result, clean_environ
from support.isolation import places
from support.switching_table import (
    INSTALLED,
    MACHINES,
    Target,
    World,
    environment_for,
    judged,
    put,
    running,
)
from support.uvs import UVS, downloaded_uv

STEP = 27
"""One in so many cells is tried by ``make test``."""
PIP, UV = "pip with the shim", "uv-variants pip"
ADVICE = {"stale-variant", "better-variant", "unrequired", "unmet-requirement", "shared-files"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its share of the cells."""
    if "cell" in metafunc.fixturenames:
        cells = [(client, installed, machine) for client in (PIP, UV)
                 for installed in INSTALLED if installed != "nothing"
                 for machine in MACHINES]  # fmt: skip
        if not metafunc.config.getoption("full_matrix"):
            cells = cells[::STEP]
        metafunc.parametrize("cell", cells, ids=", ".join)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("switching"), environments) as found:
        yield found


class Person:
    """Someone who asks doctor in an active environment, and types what it says."""

    def __init__(self, world: World, client: str, target: Target) -> None:
        self.environment: Environment = environment_for(world, client)
        self.client = client
        home = world.folder / "doctor-home"
        home.mkdir(exist_ok=True)
        scripts = Path(world.environments.programs().python).parent
        uv = downloaded_uv(UVS[-1], world.environments.wheelhouse)
        bin_folder = Path(self.environment.python).parent
        tools = home / f"tools-{client.replace(' ', '-')}"
        tools.mkdir(exist_ok=True)
        names = ["variants", *(["uv-variants"] if client == UV else [])]
        for name in names:
            if not (tools / name).exists():
                (tools / name).symlink_to(scripts / name)
        if client == PIP:
            (tools / "pip").write_text(f'#!/bin/sh\nexec {self.environment.python} -m pip "$@"\n')
            (tools / "pip").chmod(0o755)
        link_programs(tools)
        folders = [bin_folder, tools, *([uv.parent] if client == UV else [])]
        self.variables = {
            **clean_environ(places(home)),
            **world.variables,
            **target.variables,
            "PATH": os.pathsep.join(map(str, folders)),
            "VIRTUAL_ENV": str(self.environment.path),
        }
        self.work = home / "work"
        self.work.mkdir(exist_ok=True)

    def type(self, command: str) -> Result:
        """Run *command* in a shell."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.work, env=self.variables, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def doctor(self) -> dict[str, object]:
        """Return what doctor finds."""
        name = "uv-variants" if self.client == UV else "variants"
        done = self.type(f"{name} doctor --json")
        assert done.out.startswith("{"), done
        tree: dict[str, object] = json.loads(done.out)
        check_report(tree)
        assert done.code == (0 if tree["well"] else 1), done
        return tree


def test_what_doctor_says(cell: tuple[str, str, str], world: World) -> None:
    client, installed, machine = cell
    target = world.targets[machine]
    person = Person(world, client, target)
    put(person.environment, INSTALLED[installed], "uv" if client == UV else "pip")
    done, typed = Result(0, "", ""), []
    for _ in range(3):
        tree = person.doctor()
        found = [each for each in tree["problems"] if each["code"] in ADVICE]  # type: ignore[attr-defined]
        if not found:
            break
        typed.append(found[0]["command"])
        done = person.type(found[0]["command"])
        assert done.code == 0, (found, done)
    assert found == [], (typed, found, done)
    assert len(typed) < 2, typed
    assert bool(tree["well"]) is target.visible or machine == "driver invisible", tree["problems"]
    words = ("install", "--variant-switch", *INSTALLED[installed])
    after = judged(person.environment, installed, target, words, done)
    assert not after.wrong, (typed, after)

"""The transcripts of docs/how-to/uv-locks.md, run in fresh folders.

A prompt names the machine: a home of its own and a known machine. All work on one project, as a
team does with a repository; environments are not shared.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from support.environments import ROOT
from support.index import Index
from support.projects import cuda
from support.proxies import running_proxy
from support.uvs import UVS, Machine, downloaded_uv
from support.wheels import Release, Wheel
from variants_proxy.settings import Settings, Upstream

MACHINES = {
    "laptop": "laptop-alderlake",
    "server": "h100-zen4",
    "mac": "apple-m1",
    "ci": "cpu-haswell",
    "build": "cpu-haswell",
}
PLATFORMS = {"laptop": MACHINES["laptop"], "h100": MACHINES["server"], "mac": MACHINES["mac"]}
"""Those of the indexes of the proxy."""
DOCUMENT = (ROOT / "docs" / "how-to" / "uv-locks.md").read_text("utf-8")


class Step(NamedTuple):
    """A command of a transcript: who types it, and lines of what is printed."""

    machine: str
    command: str
    lines: list[str]


class Scenario(NamedTuple):
    """A section of the document: its project, and what is typed."""

    title: str
    pyproject: str
    steps: list[Step]


def scenarios() -> Iterator[Scenario]:
    """Yield the sections that have a transcript."""
    for section in re.split(r"(?m)^## ", DOCUMENT)[1:]:
        steps: list[Step] = []
        for line in "".join(re.findall(r"(?s)```console\n(.*?)```", section)).splitlines():
            if typed := re.fullmatch(r"([a-z]+)\$ (.*)", line):
                steps.append(Step(typed[1], typed[2], []))
            else:
                steps[-1].lines.append(line)
        pyproject = "\n".join(re.findall(r"(?s)```toml\n(.*?)```", section))
        if steps:
            yield Scenario(section.partition("\n")[0], pyproject, steps)


SCENARIOS = tuple(scenarios())
assert len(SCENARIOS) == 3
WITH_PROXY = SCENARIOS[0]
"""Plain uv, from 0.11 on: older ones read the METADATA of one wheel for the versions of all."""
CASES = [(scenario, UVS[-1]) for scenario in SCENARIOS]
CASES += [(WITH_PROXY, uv) for uv in UVS[:-1] if tuple(map(int, uv.split("."))) >= (0, 11)]


@pytest.fixture
def index(serve: Callable[[Index], Index]) -> Index:
    """An index with torch for CUDA, the CPU and Macs."""
    found = Index()
    requires = (
        "filelock",
        "cudalib==12.8; variant_label == 'cu128'",
        "cudalib==12.6; variant_label == 'cu126'",
    )
    linux, mac = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"
    release = Release("torch", "2.9.0", cuda("12.6", "12.8"), requires, (linux,))
    found.add_release(release, metadata_file=True)
    found.add_wheel(Wheel("torch", "2.9.0", tag=mac, requires=("filelock",)), metadata_file=True)
    for name, version in (("cudalib", "12.6"), ("cudalib", "12.8"), ("filelock", "3.0")):
        found.add_wheel(Wheel(name, version), metadata_file=True)
    return serve(found)


@pytest.fixture
def proxy(index: Index, tmp_path: Path) -> Iterator[str]:
    """The URL of the shared proxy."""
    upstreams = tuple(Upstream(name, index.url) for name in PLATFORMS)
    with running_proxy(Settings(upstreams, tmp_path / "cache", platforms=PLATFORMS)) as url:
        yield url


def matches(line: str, text: str) -> bool:
    """Return whether a line of the document is one of *text*; ``…`` stands for anything."""
    pattern = ".*".join(map(re.escape, line.strip().split("…")))
    return any(re.fullmatch(pattern, found.strip()) for found in text.splitlines())


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        pytest.param(*case, marks=() if case[1] == UVS[-1] else pytest.mark.nightly)
        for case in CASES
    ],
    ids=[f"{scenario.title}-{uv}" for scenario, uv in CASES],
)
def test_what_the_document_shows_happens(
    machine: Machine, index: Index, proxy: str, scenario: Scenario, version: str
) -> None:
    machine = replace(machine, uv=downloaded_uv(version, machine.uv.parents[1]))
    file = machine.work / "pyproject.toml"
    there = rf"http://\1@{proxy.split('/')[2]}"
    file.write_text(re.sub(r"https://(\w+)@variants\.example", there, scenario.pyproject))
    before = file.read_text()
    for step in scenario.steps:
        if step.machine == "proxy":
            assert dict(re.findall(r"--platform (\w+)=(\S+)", step.command)) == PLATFORMS
            continue
        home = machine.home / step.machine
        home.mkdir(exist_ok=True)
        environment = home / "environment"
        if step.machine == "server" and (machine.home / "build" / "environment").is_dir():
            environment = machine.home / "build" / "environment"  # the image is what runs
        elif "sync" in step.command:
            shutil.rmtree(environment, ignore_errors=True)
        program, *arguments = shlex.split(step.command)
        # An option of the machine stands as it is typed, and nothing else.
        named = "--variant-platform" in arguments
        user = replace(machine, home=home).with_environ(
            {
                "UV_PYTHON": sys.executable,
                "UV_DEFAULT_INDEX": index.url,
                "UV_PROJECT_ENVIRONMENT": str(environment),
                "VARIANTS_PLATFORM": "" if named else MACHINES[step.machine],
            }
        )
        if step.machine == "mac" and "sync" in arguments:
            arguments += ["--python-platform", "aarch64-apple-darwin"]
        done = (user.run if program == "uv-variants" else user.plain)(*arguments)
        assert done.code == 0, (step, str(done))
        for line in step.lines:
            assert matches(line, done.text), (line, str(done))
        if "sync" in step.command:  # and nothing else was installed of what has variants
            plus = {line.strip() for line in done.err.splitlines() if line.startswith(" + ")}
            told = {line.strip() for line in step.lines if line.startswith(" + ")}
            assert not told or plus - {"+ filelock==3.0"} == told, str(done)
            if scenario == WITH_PROXY and step.machine != "mac":
                label = "cu128" if "+ cudalib==12.8" in told else "null"
                assert user.labels(environment) == {"torch": label}
    assert file.read_text() == before
    if scenario == WITH_PROXY:
        lock = (machine.work / "uv.lock").read_text()
        assert lock.count('name = "torch"\nversion = "2.9.0"\n') == 3
        assert all("hash = " in wheel for wheel in re.findall(r"\{ url = [^}]*\}", lock))

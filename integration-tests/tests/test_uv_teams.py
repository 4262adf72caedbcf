"""The transcripts of docs/how-to/uv-locks.md, run in fresh folders.

A prompt names the machine: a home of its own and a known machine. All work on one project, as a
team does with a repository; environments are not shared.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from support.environments import ROOT, Environments, Result
from support.index import Index, served
from support.projects import cuda
from support.proxies import running_proxy
from support.uvs import UVS, Machine, downloaded_uv, uv_variants
from support.wheels import X86_64, Release, Wheel, metadata
from variants_proxy import Settings, Upstream

MACHINES = {
    "laptop": "laptop-alderlake",
    "server": "h100-zen4",
    "mac": "apple-m1",
    "ci": "cpu-haswell",
    "build": "cpu-haswell",
}
DOCUMENT = (ROOT / "docs" / "how-to" / "uv-locks.md").read_text("utf-8")
LINUX, MAC = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"


@dataclass(frozen=True)
class Step:
    """A command of a transcript: who types it, and lines of what is printed."""

    machine: str
    command: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """A section of the document: its project, and what is typed."""

    title: str
    pyproject: str
    steps: tuple[Step, ...]


def scenarios() -> Iterator[Scenario]:
    """Yield the sections that have a transcript."""
    for section in re.split(r"(?m)^## ", DOCUMENT)[1:]:
        title = section.partition("\n")[0]
        pyproject = "\n".join(re.findall(r"```toml\n(.*?)```", section, re.DOTALL))
        steps: list[Step] = []
        for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
            for line in block.splitlines():
                typed = re.fullmatch(r"([a-z]+)\$ (.*)", line)
                if typed:
                    steps.append(Step(typed[1], typed[2], ()))
                else:
                    steps[-1] = replace(steps[-1], lines=(*steps[-1].lines, line))
        if steps:
            yield Scenario(title, pyproject, tuple(steps))


SCENARIOS = tuple(scenarios())
assert len(SCENARIOS) == 3


def team_index() -> Index:
    """Return an index with torch for CUDA, the CPU and Macs, and a project for levels of CPUs."""
    index = Index()
    requires = (
        "filelock",
        "cudalib==12.8; variant_label == 'cu128'",
        "cudalib==12.6; variant_label == 'cu126'",
    )
    release = Release("torch", "2.9.0", cuda("12.6", "12.8"), requires, (LINUX,))
    index.add_release(release, metadata_file=True)
    index.add_wheel(Wheel("torch", "2.9.0", tag=MAC, requires=("filelock",)), metadata_file=True)
    levels = {"null": {}, **{f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (2, 3, 4)}}
    tree = metadata(levels, namespaces=["x86_64"], providers={"x86_64": X86_64})
    index.add_release(Release("fast", "1.0", tree), metadata_file=True)
    for name, version in (("cudalib", "12.6"), ("cudalib", "12.8"), ("filelock", "3.0")):
        index.add_wheel(Wheel(name, version), metadata_file=True)
    return index


@pytest.fixture
def index() -> Iterator[Index]:
    with served(team_index()) as found:
        yield found


@dataclass
class Team:
    """Machines that work on one project.

    Attributes:
        folder: of all of them.
        index: what they install from.
        proxy: URL of the shared proxy.
    """

    folder: Path
    uv: Path
    program: Path
    index: Index
    proxy: str

    @property
    def repository(self) -> Path:
        """The files that all share."""
        return self.folder / "repository"

    def filled(self, text: str) -> str:
        """Return what the document shows, with the proxy of the test."""
        return re.sub(
            r"https://(\w+)@variants\.example", rf"http://\1@{self.proxy.split('/')[2]}", text
        )

    def machine(self, name: str) -> Machine:
        """Return a machine; its environment is beside the repository."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        return Machine(
            self.uv,
            self.program,
            home,
            self.repository,
            {
                "UV_PYTHON": sys.executable,
                "UV_DEFAULT_INDEX": self.index.url,
                "UV_PROJECT_ENVIRONMENT": str(home / "environment"),
                "VARIANTS_PLATFORM": MACHINES[name],
            },
        )

    def run(self, step: Step) -> Result:
        """Run what is typed."""
        program, *arguments = shlex.split(step.command)
        machine = self.machine(step.machine)
        if "--variant-platform" in arguments:  # as it is typed, and nothing else
            machine = machine.with_environ({"VARIANTS_PLATFORM": ""})
        if step.machine == "mac" and "sync" in arguments:
            arguments += ["--python-platform", "aarch64-apple-darwin"]
        if step.machine == "server" and (self.folder / "build" / "environment").is_dir():
            # The image that was built is what runs.
            there = str(self.folder / "build" / "environment")
            machine = machine.with_environ({"UV_PROJECT_ENVIRONMENT": there})
        return (machine.run if program == "uv-variants" else machine.plain)(*arguments)


@pytest.fixture
def team(environments: Environments, tmp_path: Path, index: Index) -> Iterator[Team]:
    platforms = {
        name: MACHINES[machine]
        for name, machine in (("laptop", "laptop"), ("h100", "server"), ("mac", "mac"))
    }
    settings = Settings(
        tuple(Upstream(name, index.url) for name in platforms),
        tmp_path / "proxy-cache",
        platforms=platforms,
    )
    uv = downloaded_uv(UVS[-1], environments.wheelhouse)
    (tmp_path / "repository").mkdir()
    with running_proxy(settings) as proxy:
        yield Team(tmp_path, uv, uv_variants(environments.folder), index, proxy)


def matches(line: str, text: str) -> bool:
    """Return whether a line of the document is one of *text*; ``…`` stands for anything."""
    pattern = ".*".join(map(re.escape, line.strip().split("…")))
    return any(re.fullmatch(pattern, found.strip()) for found in text.splitlines())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)
def test_what_the_document_shows_happens(team: Team, scenario: Scenario) -> None:
    file = team.repository / "pyproject.toml"
    file.write_text(team.filled(scenario.pyproject))
    before = file.read_text()
    for step in scenario.steps:
        if step.machine == "proxy":
            options = dict(re.findall(r"--platform (\w+)=(\S+)", step.command))
            assert {name: MACHINES["server" if name == "h100" else name] for name in options} == (
                options
            )
            continue
        home = team.folder / step.machine
        if "sync" in step.command and step.machine != "server":
            shutil.rmtree(home / "environment", ignore_errors=True)
        done = team.run(step)
        assert done.code == 0, (step, str(done))
        for line in step.lines:
            assert matches(line, done.text), (line, str(done))
        if "sync" in step.command:  # and nothing else was installed of what has variants
            plus = {line.strip() for line in done.err.splitlines() if line.startswith(" + ")}
            told = {line.strip() for line in step.lines if line.startswith(" + ")}
            assert not told or plus - {"+ filelock==3.0"} == told, str(done)
    assert file.read_text() == before


@pytest.mark.nightly
@pytest.mark.parametrize("version", [uv for uv in UVS if tuple(map(int, uv.split("."))) >= (0, 11)])
def test_one_lock_for_every_accelerator(
    environments: Environments, team: Team, version: str
) -> None:
    """The extras of the document, with plain uv from 0.11 on.

    Older ones read the METADATA of one wheel for the versions of all three indexes.
    """
    team.uv = downloaded_uv(version, environments.wheelhouse)
    (team.repository / "pyproject.toml").write_text(team.filled(SCENARIOS[0].pyproject))
    done = team.machine("laptop").plain("lock")
    assert done.code == 0, (version, str(done))
    lock = (team.repository / "uv.lock").read_text()
    assert lock.count('name = "torch"\nversion = "2.9.0"\n') == 3
    for wheel in re.findall(r"\{ url = [^}]*\}", lock):
        assert "hash = " in wheel
    for name, machine, label in (("laptop", "laptop", "null"), ("h100", "server", "cu128")):
        there = team.machine(machine)
        done = there.plain("sync", "--locked", "--extra", name)
        assert done.code == 0, (version, str(done))
        assert there.labels(team.folder / machine / "environment") == {"torch": label}
        assert ("+ cudalib==12.8" in done.err) == (label == "cu128")

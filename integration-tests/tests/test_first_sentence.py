"""The README's first sentence as typed: a machine, an empty environment, and one word before it.

What is expected are the publishers' facts, none of the catalogue's: which builds there are, for
which CUDA, and which driver that needs (see `support.torch_field`; the projects' installation
pages; PyPI, for cupy and onnxruntime the wheels of each name).
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.environments import PIPS, Environment, Environments, Result
from support.isolation import places
from support.published_builds import LINUX, Field, published, standing_in
from support.switching_table import Target, box, machines
from support.torch_field import LEAST_DRIVER, standin
from support.uvs import UVS, Machine, downloaded_uv, uv_variants
from support.wheels import SourceDistribution, Wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="machines with Linux")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
BOXES = {
    "driver 470": box("A100, driver 470"),
    "driver 525": box("H100, driver 525"),
    "driver 570": box("H100, driver 570"),
    "driver 580": box("H100, driver 580"),
    "no GPU": box("no GPU"),
    "MI300X": box("MI300X"),
}
BUILDS: Mapping[str, tuple[tuple[str, int | str], ...]] = {
    "torch": (
        ("torch==2.15.0+cu132", 13),
        ("torch==2.14.0+cu126", 12),
        ("torch==2.13.0+rocm7.2", "gfx942"),
        ("torch==2.7.1+cu118", 11),
        ("torch==2.15.0+cpu", 0),
    ),
    "jax": (
        ("jax-cuda13-plugin==0.10.2", 13),
        ("jax-cuda12-plugin==0.10.2", 12),
        ("jax==0.10.2", 0),
    ),
    "onnxruntime": (
        ("onnxruntime-gpu==1.27.0", 13),
        ("onnxruntime-gpu==1.26.0", 12),
        ("onnxruntime==1.27.0", 0),
    ),
    "cupy": (
        ("cupy-cuda13x==14.2.0", 13),
        ("cupy-cuda12x==14.2.0", 12),
        ("cupy-rocm-7-0==14.2.0", "gfx942"),
        ("cupy-cuda11x==13.6.0", 11),
        ("cupy==14.2.0", 0),  # compiled, as there is no build for CPUs
    ),
}
"""What to install, best first: CUDA's major version, AMD's architecture, 0 for every machine."""
PLAIN = {"torch": 13, "jax": 0, "onnxruntime": 0, "cupy": 0}
"""What the newest file under the project's own name on PyPI is for."""
SAMPLE = {("pip", "driver 570", "torch"), ("uv", "MI300X", "torch"), ("uv", "driver 470", "cupy")}
"""What ``make test`` tries; ``make test-matrix`` tries all."""


def field() -> Field:
    """Return PyPI, and the publishers' other indexes."""
    found, more = standin(), published(onnxruntime=("1.26.0", "1.27.0"), jax=("0.10.2",))
    found.index.files |= more.index.files
    for version, names in {
        "14.2.0": ("cuda12x", "cuda13x", "rocm-7-0"),
        "13.6.0": ("cuda11x", "cuda12x", "cuda13x"),
    }.items():
        source = SourceDistribution("cupy", version)
        found.index.add("cupy", source.filename, source.build())
        for name in names:
            extras = ("ctk",) if version == "14.2.0" else ()
            found.index.add_wheel(Wheel(f"cupy-{name}", version, tag=LINUX, extras=extras))
    return found


@dataclass(frozen=True)
class Person:
    """Someone at a machine, with one installer and an empty environment.

    Attributes:
        target: the machine.
        environment: that is installed into.
        run: types a command, as words without the program.
    """

    target: Target
    environment: Environment
    run: Callable[..., Result]

    def type(self, *words: str) -> Result:
        """Run a command that succeeds."""
        done = self.run(*words)
        assert done.code == 0, done
        return done

    def runs(self, needs: int | str) -> bool:
        """Return whether a build of `BUILDS` runs here."""
        if isinstance(needs, str):
            return self.target.box.architecture == needs
        return needs == 0 or self.target.box.driver >= LEAST_DRIVER[needs]

    def check(self, project: str) -> None:
        """Check that the best build that runs here is installed, and no other."""
        names = {text for text, _ in BUILDS[project]}
        found = {text for text in self.installed if text in names}
        best = next(text for text, needs in BUILDS[project] if self.runs(needs))
        # The project itself has the extra that brings the plugin.
        assert found - {"jax==0.10.2"} == {best} - {"jax==0.10.2"}, self.installed
        assert project != "jax" or "jax==0.10.2" in found

    @property
    def installed(self) -> set[str]:
        """What is installed, under the publisher's names, as ``NAME==VERSION``."""
        found = set()
        for info in self.environment.site_packages.glob("*.dist-info"):
            name, _, version = info.name.removesuffix(".dist-info").partition("-")
            origin = info / "variant_origin.json"
            if origin.exists():
                tree = json.loads(origin.read_text())
                name, version = tree["name"], tree["version"]
            found.add(f"{name.replace('_', '-')}=={version}")
        return found


@pytest.fixture(scope="module")
def indexes() -> Iterator[dict[str, str]]:
    """The variables that lead to the indexes."""
    with standing_in(field()) as found:
        yield {
            "PIP_INDEX_URL": found.index.url,
            "UV_DEFAULT_INDEX": found.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(found.mirrors),
        }


@pytest.fixture(scope="module")
def targets(
    tmp_path_factory: pytest.TempPathFactory, environments: Environments
) -> dict[str, Target]:
    return machines(tmp_path_factory.mktemp("machines"), environments, BOXES)


@pytest.fixture
def person(
    case: tuple[str, str, str],
    targets: dict[str, Target],
    indexes: dict[str, str],
    environments: Environments,
    tmp_path: Path,
) -> Person:
    """Someone with a new home."""
    client, name, _ = case
    target, home = targets[name], tmp_path / "home"
    variables = {**indexes, **target.variables}
    home.mkdir()
    if client == "pip":
        made = environments.patched(PYTHON, PIPS[-1]).copied(tmp_path / "environment")
        variables |= {**places(home), "PIP_CONFIG_FILE": str(home / "pip.conf")}

        def pip(*words: str) -> Result:
            return made.run("-m", "pip", *words, env=variables)

        return Person(target, made, pip)
    programs = downloaded_uv(UVS[-1], environments.wheelhouse), uv_variants(environments.folder)
    machine = Machine(*programs, home, tmp_path, variables)
    return Person(target, machine.create_environment(sys.executable), machine.run)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test client, machine and project: a sample in ``make test``."""
    full = metafunc.config.getoption("full_matrix")
    every = [(client, name, each) for client in ("pip", "uv") for name in BOXES for each in BUILDS]
    cases = [case for case in every if full or case in SAMPLE]
    metafunc.parametrize("case", cases, ids=map(" ".join, cases))


def test_as_typed(case: tuple[str, str, str], person: Person) -> None:
    """The first minute: the catalogue is turned on, then the project is installed."""
    client, _, project = case
    if client == "pip":
        person.type("config", "set", "global.variant-catalog", "default")
        assert "takes a build that does" not in person.type("install", project).text
    else:
        person.type("catalog", "enable")
        assert "takes a build that does" not in person.type("pip", "install", project).text
    person.check(project)


def test_without_it_one_line_says_what_to_type(case: tuple[str, str, str], person: Person) -> None:
    """Only where something is wrong; what it says ends in the same state."""
    client, _, project = case
    install = ("install", project) if client == "pip" else ("pip", "install", project)
    lines = [line for line in person.type(*install).text.splitlines() if ", takes a build" in line]
    usable = [needs for _, needs in BUILDS[project] if needs and person.runs(needs)]
    if not usable or PLAIN[project] in usable:
        assert lines == []
        return
    (line,) = lines
    said = re.search(
        r": (?:\S+ -m pip|uv-variants) (.*), then (?:\S+ -m pip|uv-variants) (.*), takes", line
    )
    assert said is not None, line
    for command in said.groups():
        person.type(*shlex.split(command))
    person.check(project)
    assert ", takes a build" not in person.type(*install).text

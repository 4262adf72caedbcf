"""Every attack of the corpus in ``hostile``, against every client of this project."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from hostile.cases import FOLDER, SCHEMA, Case, read_cases
from hostile.clients import Client, Pip, Resolve, Uv
from hostile.measure import Place, run
from hostile.verdict import play
from support.environments import PIPS, Environments
from support.uvs import UVS, downloaded_uv

CASES = read_cases()
LOAD = 5
"""CPU time differs by that much between idle and busy machines."""
CLIENTS = [("resolve", ""), ("pip", PIPS[-1]), ("uv-variants", UVS[-1])]
"""Clients and their versions; the others than the first play by turns in the normal run."""
OLDEST = [("pip", PIPS[0]), ("uv-variants", UVS[0])]
"""With ``--full-matrix`` only."""
PYTHONS = {PIPS[0]: "3.10", PIPS[-1]: "3.13"}
SHARED = (
    "checkout-settings-",
    "document-",
    "page-charset-",
    "plugin-answers-",
    "plugin-cannot-",
    "plugin-api-",
    "plugin-requires-",
    "wheel-metadata-",
    "wheel-path-",
    "wheel-range-",
)
"""What one piece of code decides for every client: all three play these attacks by turns."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places and modes are POSIX's")
Found = Callable[[str, str], tuple[Client, float]]


def players(case: Case) -> set[str]:
    """Return the clients that play *case* in the normal run."""
    names = [name for name, _ in CLIENTS if name in case.clients or not case.clients]
    always = set() if case.id.startswith(SHARED) else {"resolve"} & set(names)
    by_turns = [name for name in names if name not in always]
    if case.slow or not by_turns:
        return set() if case.slow else always
    return always | {by_turns[zlib.crc32(case.id.encode()) % len(by_turns)]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair cases and clients."""
    if "attack" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        values = [
            pytest.param((case, name, version), id=f"{case.id}-{name}{version}")
            for name, version in (*CLIENTS, *(OLDEST if full else ()))
            for case in CASES.values()
            if name in (players(case) if not full else case.clients or dict(CLIENTS))
        ]
        metafunc.parametrize("attack", values)


@pytest.fixture(scope="session")
def clients(environments: Environments, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Clients, and the CPU seconds that each takes for the case without an attack."""
    known: dict[tuple[str, str], tuple[Client, float]] = {}
    scripts = Path(sys.executable).parent

    def make(name: str, version: str) -> Client:
        if name == "resolve":
            return Resolve(str(scripts / "variants"))
        if name == "pip":
            return Pip(environments.patched(PYTHONS[version], version).python)
        uv = downloaded_uv(version, environments.wheelhouse)
        return Uv(str(uv), str(scripts / "uv-variants"))

    def find(name: str, version: str) -> tuple[Client, float]:
        if (name, version) not in known:
            client = make(name, version)
            folder = tmp_path_factory.mktemp("honest")
            outcome = play(CASES["honest"], client, folder / "place", load=100)
            assert not outcome.violations, (outcome.violations, outcome.run)
            known[name, version] = (client, outcome.run.cpu)
        return known[name, version]

    return find


def test_attack(attack: tuple[Case, str, str], clients: Found, tmp_path: Path) -> None:
    case, name, version = attack
    client, idle = clients(name, version)
    outcome = play(case, client, tmp_path / "place", idle_cpu=idle, load=LOAD)
    assert not outcome.violations, f"{outcome.violations}\n{outcome.run.output}"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which processes are left")
def test_a_process_that_is_left_is_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.create()
    assert run(["sh", "-c", "sleep 60 & echo done"], place, {}, 20, patience=0.2).left
    assert not run(["sh", "-c", "sleep 0.1 & echo done"], place, {}, 20).left


def test_cases_follow_the_schema() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    paths = sorted(FOLDER.glob("*.json"))
    wrong = {
        path.stem: error.message
        for path in paths
        for error in validator.iter_errors(json.loads(path.read_text("utf-8")))
    }
    assert (wrong, [path.stem for path in paths]) == ({}, list(CASES))

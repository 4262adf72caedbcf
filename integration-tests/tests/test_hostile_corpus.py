"""Every attack of the corpus in ``hostile``, against every client of this project."""

from __future__ import annotations

import dataclasses
import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from hostile.cases import SCHEMA, Case, read_case, read_cases
from hostile.clients import Client
from hostile.clients.pip import Pip
from hostile.clients.resolve import Resolve
from hostile.clients.uv import Uv
from hostile.measure import Place, run
from hostile.verdict import play
from support.environments import PIPS, Environments
from support.uvs import UVS, downloaded_uv, uv_variants

CASES = read_cases()
FOLDER = Path(__file__).resolve().parents[1] / "hostile" / "cases"
LOAD = 5
"""CPU time differs by that much between idle and busy machines."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places and modes are POSIX's")


@dataclasses.dataclass(frozen=True)
class Combination:
    """A client in one version."""

    client: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.client}{self.version}"


OLDEST = (Combination("pip", PIPS[0]), Combination("uv-variants", UVS[0]))
NEWEST = (
    Combination("pip", PIPS[-1]),
    Combination("resolve"),
    Combination("uv-variants", UVS[-1]),
)
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
"""What one piece of code decides for every client: they play these attacks by turns."""


def concerns(case: Case, combination: Combination, *, full: bool) -> bool:
    """Return whether *case* is played against *combination*, with ``--full-matrix`` or without."""
    clients = case.clients or tuple(item.client for item in NEWEST)
    if combination.client not in clients:
        return False
    if full:
        return True
    turn = clients[zlib.crc32(case.id.encode()) % len(clients)]
    return not case.slow and (not case.id.startswith(SHARED) or combination.client == turn)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair cases and clients."""
    if "attack" not in metafunc.fixturenames:
        return
    full = metafunc.config.getoption("full_matrix")
    values = [
        pytest.param(
            (case, combination),
            id=f"{case.id}-{combination}",
        )
        for combination in (*NEWEST, *(OLDEST if full else ()))
        for case in CASES.values()
        if concerns(case, combination, full=full)
    ]
    metafunc.parametrize("attack", values)


@pytest.fixture(scope="session")
def clients(
    environments: Environments, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Combination], tuple[Client, float]]:
    """Clients, and the CPU seconds that each takes for the case without an attack."""
    known: dict[Combination, tuple[Client, float]] = {}

    def make(combination: Combination) -> Client:
        if combination.client == "pip":
            python = environments.patched(PYTHONS[combination.version], combination.version).python
            return Pip(python)
        if combination.client == "resolve":
            return Resolve([str(Path(sys.executable).with_name("variants"))])
        uv = downloaded_uv(combination.version, environments.wheelhouse)
        return Uv(str(uv), "uv-variants", variants=str(uv_variants(environments.folder)))

    def find(combination: Combination) -> tuple[Client, float]:
        if combination not in known:
            client = make(combination)
            folder = tmp_path_factory.mktemp("honest")
            outcome = play(CASES["honest"], client, folder / "place", load=100)
            assert not outcome.violations, (outcome.violations, outcome.run)
            known[combination] = (client, outcome.run.cpu or 0.0)
        return known[combination]

    return find


def test_attack(
    attack: tuple[Case, Combination],
    clients: Callable[[Combination], tuple[Client, float]],
    tmp_path: Path,
) -> None:
    case, combination = attack
    client, idle = clients(combination)
    outcome = play(case, client, tmp_path / "place", idle_cpu=idle, load=LOAD)
    assert not outcome.violations, f"{outcome.violations}\n{outcome.run.output}"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which processes are left")
def test_a_process_that_is_left_is_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.create()
    assert run(["sh", "-c", "sleep 60 & echo done"], place, {}, 20, patience=0.2).left
    assert not run(["sh", "-c", "sleep 0.1 & echo done"], place, {}, 20).left


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_cases_follow_the_schema(path: Path) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_text("utf-8")))
    read_case(path)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text("utf-8")))

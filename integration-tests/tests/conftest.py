"""Environments and indexes for tests of whole flows."""

from __future__ import annotations

import functools
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.documents import Reader
from support.environments import PIPS, PYTHONS, Environment, Environments, Result, find_python
from support.index import Index, served
from support.pip_commands import PipCommands
from support.uvs import UVS, Machine, downloaded_uv, uv_variants


@dataclass(frozen=True)
class Combination:
    """A Python and a pip, patched by the shim's hook or run by the command of pip-variants."""

    python: str
    pip: str
    command: bool = False

    def __str__(self) -> str:
        return f"pip{self.pip}-python{self.python}{'-command' * self.command}"

    @property
    def by_command(self) -> Combination:
        """The same with pip-variants."""
        return replace(self, command=True)


FULL_MATRIX = [Combination(python, pip) for pip in PIPS for python in PYTHONS]
# The oldest and the newest, and with them both of pip's metadata backends.
LONG_TAIL = [Combination(PYTHONS[0], PIPS[0]), Combination(PYTHONS[-1], PIPS[-1])]
# For what has little to do with the version of either.
ONE = LONG_TAIL[1:]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on the combinations of Python and pip that its mark says."""
    if "combination" in metafunc.fixturenames:
        wanted = _combinations(metafunc)
        metafunc.parametrize("combination", wanted, ids=str, scope="session")
    if "every_machine" in metafunc.fixturenames:
        metafunc.parametrize("every_machine", _uvs(metafunc), indirect=True)


def _combinations(metafunc: pytest.Metafunc) -> list[Combination]:
    """Return where a test runs.

    ``make test`` has to end within minutes: there a test without a mark, or marked 'everywhere',
    runs on one of `LONG_TAIL`, which its name decides. ``make test-matrix`` leaves none out.
    """
    full = metafunc.config.getoption("full_matrix")
    marked = {mark.name for mark in metafunc.definition.iter_markers()}
    if "one" in marked:
        return ONE
    # What is patched, whichever way.
    either = "patched" in metafunc.fixturenames and "hook" not in marked
    if marked & {"matrix", "everywhere"} and full:
        return FULL_MATRIX + [item.by_command for item in FULL_MATRIX if either]
    if "matrix" in marked:
        return [LONG_TAIL[0], LONG_TAIL[1].by_command if either else LONG_TAIL[1]]
    if full:
        return LONG_TAIL
    return [LONG_TAIL[zlib.crc32(metafunc.definition.name.encode()) % 2]]


def _uvs(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    """Return the releases of uv that a test runs with; see `_combinations`."""
    if metafunc.config.getoption("full_matrix"):
        return UVS
    if metafunc.definition.get_closest_marker("matrix"):
        return UVS[0], UVS[-1]
    return (UVS[-(zlib.crc32(metafunc.definition.name.encode()) % 2)],)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test that is for ``make test-matrix`` alone."""
    if item.get_closest_marker("nightly") and not item.config.getoption("full_matrix"):
        pytest.skip("only in make test-matrix")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of ``make test-matrix``."""
    parser.addoption(
        "--full-matrix",
        action="store_true",
        help="run the tests marked 'matrix' and 'everywhere' on every pip with every Python",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    every = "runs on every Python and pip, or on every uv, by make test-matrix"
    config.addinivalue_line("markers", f"matrix: {every}; on a sample by make test")
    config.addinivalue_line("markers", f"everywhere: {every}; on one by make test")
    config.addinivalue_line("markers", "hook: not with pip-variants, which has no start file")
    config.addinivalue_line("markers", "one: runs on one Python and pip")
    config.addinivalue_line("markers", "nightly: only in make test-matrix")
    config.addinivalue_line("markers", "load: does more of it in make test-matrix")


@pytest.fixture(scope="session")
def environments(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Environments:
    """The environments of this run; workers of one run share them."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    assert pytestconfig.cache is not None
    return Environments(folder / "environments", pytestconfig.cache.mkdir("wheelhouse"))


@pytest.fixture
def available(combination: Combination) -> Combination:
    """The combination, if there is such a Python here."""
    if find_python(combination.python) is None:
        pytest.skip(f"there is no Python {combination.python} here")
    return combination


@dataclass(frozen=True)
class ServedEnvironment(Environment):
    """One whose pip no test changes: it is imported once for all commands."""

    commands: Callable[[Environment], PipCommands] = field(kw_only=True)

    def pip(
        self, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Result:
        """Run pip with *args*."""
        at_start = ("PYTHON", "LD_", "_PIP", "PEP_VARIANTS_SHIM")  # what counts at the start
        if any(name.startswith(at_start) for name in env or ()):
            return super().pip(*args, env=env, cwd=cwd)
        return self.commands(Environment(self.path, self.module)).pip(*args, env=env, cwd=cwd)


@pytest.fixture(scope="session")
def commands() -> Iterator[Callable[[Environment], PipCommands]]:
    """Pips that are imported, by environment; the ones used last are kept."""
    running: dict[Environment, PipCommands] = {}

    def find(environment: Environment) -> PipCommands:
        if environment in running:
            running[environment] = running.pop(environment)
        else:
            while len(running) >= 4:
                running.pop(next(iter(running))).close()
            running[environment] = PipCommands(environment)
        return running[environment]

    yield find
    for pip in running.values():
        pip.close()


@pytest.fixture
def patched(
    environments: Environments,
    available: Combination,
    commands: Callable[[Environment], PipCommands],
) -> Environment:
    """An environment with the shim, or pip-variants, shared by tests: do not change it."""
    make = environments.with_command if available.command else environments.patched
    environment = make(available.python, available.pip)
    return ServedEnvironment(environment.path, environment.module, commands=commands)


@pytest.fixture
def plain(
    environments: Environments,
    available: Combination,
    commands: Callable[[Environment], PipCommands],
) -> Environment:
    """The same environment without the shim."""
    environment = environments.plain(available.python, available.pip)
    return ServedEnvironment(environment.path, commands=commands)


@pytest.fixture
def changeable(patched: Environment, tmp_path: Path) -> Environment:
    """An environment with the shim, to do with as one likes."""
    return patched.copied(tmp_path / "environment")


@pytest.fixture
def fresh(patched: Environment, tmp_path: Path) -> Iterator[Environment]:
    """The same for tests that leave pip and the shim alone: they are imported once."""
    copy = patched.copied(tmp_path / "environment")
    with ExitStack() as stack:

        @functools.cache
        def commands(environment: Environment) -> PipCommands:
            return stack.enter_context(PipCommands(environment, of=patched))

        yield ServedEnvironment(copy.path, copy.module, commands=commands)


@pytest.fixture
def serve() -> Iterator[Callable[[Index], Index]]:
    """Serve an index until the test ends."""
    with ExitStack() as stack:
        yield lambda index: stack.enter_context(served(index))


@pytest.fixture
def machine(environments: Environments, tmp_path: Path) -> Machine:
    """A machine with the newest uv."""
    return _machine(environments, tmp_path, UVS[-1])


@pytest.fixture
def every_machine(
    environments: Environments, tmp_path: Path, request: pytest.FixtureRequest
) -> Machine:
    """A machine with one uv after the other: all with the mark 'matrix', else oldest and newest."""
    return _machine(environments, tmp_path, request.param)


def _machine(environments: Environments, folder: Path, uv: str) -> Machine:
    folder = folder / f"machine-{uv}"
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    program = downloaded_uv(uv, environments.wheelhouse)
    return Machine(program, uv_variants(environments.folder), home, work)


@pytest.fixture
def reader(environments: Environments, tmp_path: Path) -> Reader:
    """A person who reads a document, with a home and a folder to work in."""
    home, work = tmp_path / "home", tmp_path / "home" / "work"
    work.mkdir(parents=True)
    return Reader(home, work, environments)

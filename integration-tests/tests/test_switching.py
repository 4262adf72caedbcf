"""From one build to another: what each client leaves of torch and its family on each machine.

The cells of `support.switching_table`: some in ``make test``, all in ``make test-matrix``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.environments import Environments
from support.switching_table import CLIENTS, World, cases, running, tried

STEP = 31
UV_STEP = 151
"""One in so many cells is tried by ``make test``."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its share of the cells; of one client after the other by turns."""
    if "cell" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        known = [(client, *case) for case in cases() for client in CLIENTS]
        tried_always = [each for each in known if each[1] == "nothing"][::STEP]
        tried_always += [each for each in known if each[0].startswith("uv")][::UV_STEP]
        cells = known if full else tried_always
        ids = [
            f"{client}, {before}, {on}, {' '.join(words)}" for client, before, on, words in cells
        ]
        metafunc.parametrize("cell", cells, ids=ids)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("switching"), environments) as found:
        yield found


def test_what_is_left(cell: tuple[str, str, str, tuple[str, ...]], world: World) -> None:
    found = tried(world, *cell)
    assert not found.wrong, f"{dict(found.after)}: {found.wrong}\n{found.result}"

"""An index over real HTTP, and a resolver that looks at it."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[2] / "integration-tests"):  # `world` and `support`
    sys.path.insert(0, str(folder))

from world import World

from support.index_server import served


@pytest.fixture
def world(tmp_path):
    with served() as server:
        yield World(server, tmp_path)

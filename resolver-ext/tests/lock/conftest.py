"""The index and resolver of the tests of resolving."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS / "resolution", TESTS.parents[1] / "integration-tests"):
    sys.path.insert(0, str(folder))

from world import World

from support.index_server import served


@pytest.fixture
def world(tmp_path):
    with served() as server:
        yield World(server, tmp_path)

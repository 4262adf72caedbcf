"""Makes the helpers importable, and has an index over HTTP with a resolver that looks at it."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
for folder in (TESTS, TESTS / "resolution", TESTS.parents[1] / "integration-tests"):
    sys.path.insert(0, str(folder))


@pytest.fixture
def world(tmp_path):
    # Tests of the wrapper alone run without what these need.
    from world import World

    from support.index_server import served

    with served() as server:
        yield World(server, tmp_path)

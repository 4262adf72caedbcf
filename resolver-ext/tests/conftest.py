"""Makes the helpers importable, and has an index over HTTP with a resolver that looks at it."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
for folder in (TESTS, TESTS / "resolution", TESTS.parents[1] / "integration-tests"):
    sys.path.insert(0, str(folder))


def pytest_addoption(parser):
    """Add what `test_resolvelib_releases` says; variables would not outlive the isolation."""
    parser.addoption("--every-universe", action="store_true", help="try all, not two fifths")
    parser.addoption("--resolvelib", help="the release that has to be the one that is tested")


@pytest.fixture
def world(tmp_path):
    # Tests of the wrapper alone run without what these need.
    from world import World

    from support.index import served

    with served() as server:
        yield World(server, tmp_path)

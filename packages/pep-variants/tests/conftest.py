"""What the tests of the engine share: their helpers, hypothesis settings and data."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# Every run tries the same examples: what fails for one fails for all.
settings.register_profile(
    "engine",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("engine")

FIXTURES = Path(__file__).parent / "fixtures"
DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture
def fixtures():
    """The folder with metadata of real releases, told in our own words."""
    return FIXTURES


@pytest.fixture
def data():
    """The folder with files as they were published, and the schemas they name."""
    if not DATA.is_dir():
        pytest.skip("the published files are not here")
    return DATA

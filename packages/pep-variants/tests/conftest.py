"""What the tests of the engine share: their helpers, hypothesis settings and data."""

import os
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


@pytest.fixture(autouse=True)
def _no_overrides(monkeypatch):
    """Keep what the developer's own shell says about this machine out of the tests."""
    for name in list(os.environ):
        if "_VARIANT_PROVIDER_" in name or name.startswith("VARIANTS_"):
            monkeypatch.delenv(name)

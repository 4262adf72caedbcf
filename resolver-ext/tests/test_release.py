"""Which resolvelib these tests run with; `test_resolvelib_releases` runs them with others."""

import os
from importlib.metadata import version

import resolvelib


def test_it_is_the_one_that_was_asked_for():
    expected = os.environ.get("EXPECTED_RESOLVELIB") or version("resolvelib")
    assert resolvelib.__version__ == expected

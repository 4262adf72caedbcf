"""Versions that pip gets of variants keep Python's contract of order, equality and hash."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

from pip._vendor.packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from pep_variants_shim._links import VariantVersion

VERSIONS = [
    *(Version(text) for text in ("1.0", "1.0+cu128", "2.0")),
    *(VariantVersion(text, label) for text in ("1.0", "1", "2.0") for label in ("a", "b")),
    *(VariantVersion(Version("1.0"), label, goes_first=True) for label in ("a", "b")),
]


def test_order():
    for one, two in itertools.product(VERSIONS, repeat=2):
        assert (one < two) + (one == two) + (one > two) == 1, (one, two)
        assert (one <= two, one >= two) == (not one > two, not one < two)
        assert (one != two) is not (one == two)
        assert (one == two) is (two == one)
        if one == two:
            assert hash(one) == hash(two)
    for one, two, three in itertools.product(VERSIONS, repeat=3):
        assert not (one <= two <= three) or one <= three
        assert not (one == two == three) or one == three
    mixed = random.Random(1).sample(VERSIONS, len(VERSIONS))
    assert sorted(mixed) == sorted(VERSIONS)


def test_place():
    """Variants of a version come before it, and differ; one goes before all that are newer."""
    plain, newer, a, b = (*map(Version, ("1.0", "2.0")), *(VariantVersion("1.0", x) for x in "ab"))
    assert len({plain, a, b, VariantVersion("1.0", "a")}) == 3
    assert a < b < plain < newer < VariantVersion("1.0", "a", goes_first=True)
    assert Version("0.9") < a

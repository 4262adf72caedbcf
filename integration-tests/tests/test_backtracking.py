"""What backtracking over versions with variants costs: requests, counted beside those without."""

from __future__ import annotations

import pytest

from support.backtracking import WANTED, backtracking_index
from support.projects import CUDA_12_8


@pytest.mark.everywhere
def test_pip_asks_for_no_more_than_without_variants(patched, plain, serve):
    """The page says that the wheels of a version have the same METADATA."""
    with_variants = serve(backtracking_index())
    without = serve(backtracking_index(variants=False))
    options = ("--variant-before-version", ":all:")
    for pip, index, more in ((patched, with_variants, options), (plain, without, ())):
        done = pip.pip("install", "--dry-run", "-i", index.url, *more, *WANTED, env=CUDA_12_8)
        assert done.code == 0, done
    assert len(with_variants.requests) <= 1.1 * len(without.requests)


def test_pip_downloads_one_wheel_of_each_version_where_there_is_no_metadata(patched, plain, serve):
    with_variants = serve(backtracking_index(core_metadata=False))
    without = serve(backtracking_index(core_metadata=False, variants=False))
    for pip, index in ((patched, with_variants), (plain, without)):
        done = pip.pip("install", "--dry-run", "-i", index.url, *WANTED)
        assert done.code == 0, done
    ours, theirs = (
        [name for name in index.fetched if not name.endswith(".json")]
        for index in (with_variants, without)
    )
    assert len(ours) == len(theirs)

import gc

import pytest

from pep_variants.gc_pause import paused


@pytest.fixture(autouse=True)
def enabled():
    gc.unfreeze()
    gc.enable()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize("when", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_collector_is_left_as_it_was(when, before):
    if not before:
        gc.disable()
    with paused(when):
        assert gc.isenabled() == (before and not when)
    assert gc.isenabled() == before
    assert gc.get_freeze_count() == 0
    with pytest.raises(ZeroDivisionError), paused(when):
        1 / 0
    assert gc.isenabled() == before


def test_what_is_frozen_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with paused(True):
        kept = [[] for _ in range(10_000)]
    assert gc.get_freeze_count() >= frozen - 100 > 0
    assert len(kept) == 10_000

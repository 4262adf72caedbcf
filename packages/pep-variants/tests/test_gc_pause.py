import gc

import pytest

from pep_variants.gc_pause import paused


@pytest.fixture(autouse=True)
def enabled():
    gc.enable()
    yield
    gc.enable()


@pytest.mark.parametrize("when", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_collector_is_left_as_it_was(when, before):
    if not before:
        gc.disable()
    with paused(when):
        assert gc.isenabled() == (before and not when)
    assert gc.isenabled() == before
    with pytest.raises(ZeroDivisionError), paused(when):
        1 / 0
    assert gc.isenabled() == before

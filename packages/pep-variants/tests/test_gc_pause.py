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


def test_garbage_from_inside_is_collected_later():
    class Node:
        pass

    with paused(True):
        node = Node()
        node.itself = node
        del node
    assert gc.collect() > 0
    assert not any(isinstance(each, Node) for each in gc.get_objects())


def test_what_is_new_is_not_walked_when_it_ends():
    walked = []

    def note(phase, info):
        walked.append(info["generation"])

    gc.callbacks.append(note)
    try:
        with paused(True):
            kept = [[] for _ in range(100_000)]
        after = [[] for _ in range(10)]
    finally:
        gc.callbacks.remove(note)
    assert walked == []
    assert len(kept) + len(after) == 100_010

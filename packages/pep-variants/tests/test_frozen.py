"""Frozen dataclasses: the same as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from dataclasses import FrozenInstanceError, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants import frozen


def classes(dataclass):
    class Point:
        """A point."""

        x: int
        y: object = 0
        tags: dict = field(default_factory=dict)
        source: str = field(default="", compare=False)
        secret: str = field(default="", repr=False)

    return dataclass(frozen=True)(Point)


OURS, THEIRS = classes(frozen.dataclass), classes(dataclasses.dataclass)
values = st.tuples(
    st.integers(0, 2),
    st.sampled_from([0, 1, "a", (), None]),
    st.just(()),  # hashable in place of a dictionary
    st.sampled_from(["", "here"]),
    st.sampled_from(["", "s"]),
)


@given(values, values)
def test_comparing_hashing_and_showing(one, other):
    ours, theirs = (OURS(*one), OURS(*other)), (THEIRS(*one), THEIRS(*other))
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    assert (ours[0] != ours[1]) == (theirs[0] != theirs[1])
    assert (hash(ours[0]) == hash(ours[1])) == (hash(theirs[0]) == hash(theirs[1]))
    assert repr(ours[0]) == repr(theirs[0])
    assert dataclasses.asdict(ours[0]) == dataclasses.asdict(theirs[0])
    assert dataclasses.astuple(ours[0]) == dataclasses.astuple(theirs[0])
    assert ours[0] != theirs[0]


@pytest.mark.parametrize("kind", [OURS, THEIRS], ids=["ours", "theirs"])
class TestBoth:
    def test_nothing_can_be_set_or_deleted(self, kind):
        point = kind(1, tags={})
        for name in ("x", "y", "tags", "new"):
            with pytest.raises(FrozenInstanceError, match=f"'{name}'"):
                setattr(point, name, 2)
            with pytest.raises(FrozenInstanceError, match=f"'{name}'"):
                delattr(point, name)
        assert point == kind(1)

    def test_signature_and_fields(self, kind):
        assert list(inspect.signature(kind).parameters) == ["x", "y", "tags", "source", "secret"]
        assert [item.name for item in dataclasses.fields(kind)] == list(kind.__match_args__)
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            kind(1, z=2)

    def test_replacing_and_copying(self, kind):
        point = kind(1, tags={"a": [1]})
        assert dataclasses.replace(point, y=3) == kind(1, 3, {"a": [1]})
        assert copy.copy(point) == copy.deepcopy(point) == point
        assert copy.deepcopy(point).tags["a"] is not point.tags["a"]
        assert kind(1).tags is not kind(1).tags

    def test_a_dictionary_is_not_hashable(self, kind):
        with pytest.raises(TypeError):
            hash(kind(1))


def test_without_comparison_or_representation():
    @frozen.dataclass(frozen=True, eq=False, repr=False)
    class Key:
        name: str

        def __repr__(self):
            return "a key"

    assert Key("a") != Key("a")
    assert repr(Key("a")) == "a key"


def test_a_method_of_the_class_stays():
    @frozen.dataclass(frozen=True)
    class Own:
        name: str

        def __repr__(self):
            return "own"

    assert repr(Own("a")) == "own"


def test_only_for_frozen_ones():
    with pytest.raises(ValueError, match="frozen"):
        frozen.dataclass(frozen=False)

"""Unreachable variants: those that are reported never win, and the plain cases are found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants.choose.ranking import rank
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from variants_cli.checks.document import Offer, unreachable

NAMESPACES = ("aot", "cpu", "gpu")
FEATURES = ("f", "g")
VALUES = ("1", "2", "3")

features = st.dictionaries(
    st.sampled_from(FEATURES),
    st.lists(st.sampled_from(VALUES), min_size=1, unique=True).map(lambda v: tuple(sorted(v))),
    min_size=1,
)
variants = st.dictionaries(
    st.sampled_from("abcd"), st.dictionaries(st.sampled_from(NAMESPACES), features), max_size=4
)
supported = st.dictionaries(
    st.sampled_from(FEATURES), st.lists(st.sampled_from(VALUES), unique=True).map(tuple)
)
AOT = {"f": ("2", "1"), "g": ("1", "2")}


@settings(max_examples=400, deadline=None, derandomize=True)
@given(variants, st.lists(supported, min_size=1, max_size=8), st.booleans())
def test_reported_variants_never_win(variants, machines, priorities):
    metadata = Metadata(
        NAMESPACES,
        {"null": {}, **variants},
        feature_priorities={"aot": ("g", "f")} if priorities else {},
        property_priorities={"aot": {"f": ("1",)}} if priorities else {},
    )
    # Features of cpu have a known order, those of gpu have not.
    offers = {"aot": Offer(("f", "g"), AOT), "cpu": Offer(("f", "g"))}
    found = dict(unreachable(metadata, offers))
    for machine in machines:
        in_order = {name: machine[name] for name in FEATURES if name in machine}
        for gpu in (machine, dict(reversed(machine.items()))):
            platform = Platform(
                {"aot": Support(AOT), "cpu": Support(in_order), "gpu": Support(gpu)}
            )
            chosen = rank(metadata, platform).labels[0]
            assert chosen not in found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # All values of the other one, and the smaller label.
        ({"a": {"gpu": {"f": ("1", "2")}}}, {"b": {"gpu": {"f": ("1",)}}}),
        # The better of two static values.
        ({"z": {"aot": {"f": ("2",)}}}, {"b": {"aot": {"f": ("1",)}}}),
        (
            {"z": {"aot": {"f": ("2",)}, "gpu": {"f": ("1",)}}},
            {"b": {"aot": {"f": ("1",)}, "gpu": {"f": ("1",)}}},
        ),
        # Static properties alone, which every machine has, against nothing.
        ({"z": {"aot": {"f": ("1",)}}}, {"null": {}}),
    ],
)
def test_found(first, second):
    metadata = Metadata(NAMESPACES, {**first, **second})
    offers = {"aot": Offer(("f", "g"), AOT)}
    assert (*second, *first) in set(unreachable(metadata, offers))


@pytest.mark.parametrize(
    "variants",
    [
        {"b": {"gpu": {"f": ("1", "2")}}, "a": {"gpu": {"f": ("1",)}}},
        {"a": {"gpu": {"f": ("1",)}}, "b": {"gpu": {"f": ("2",)}}},
        {"a": {"gpu": {"f": ("1",)}}, "b": {"gpu": {"f": ("1",), "g": ("1",)}}},
        {"a": {"gpu": {"f": ("1",)}}, "b": {"cpu": {"f": ("1",)}}, "null": {}},
        # One that fits nowhere is told elsewhere.
        {"a": {"aot": {"f": ("1",)}}, "b": {"aot": {"f": ("3",)}}},
    ],
)
def test_not_found(variants):
    offers = {"aot": Offer(("f", "g"), AOT)}
    found = [label for label, _ in unreachable(Metadata(NAMESPACES, variants), offers)]
    assert set(found) <= {"null"}
    assert found == (["null"] if "aot" in str(variants) else [])

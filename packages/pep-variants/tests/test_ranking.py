import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from worlds import (
    FEATURES,
    NAMESPACES,
    metadata,
    ordered_features,
    platforms,
    selectors,
    some,
)

from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import Reason, rank
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import Selector


def variant(text):
    """Properties from ``ns.feature=value|value ns.feature=value``."""
    found = {}
    for item in text.split():
        name, values = item.split("=")
        namespace, feature = name.split(".")
        found.setdefault(namespace, {})[feature] = tuple(sorted(values.split("|")))
    return found


def machine(text):
    """A platform from the same, where order is preference."""
    found = {}
    for item in text.split():
        name, values = item.split("=")
        namespace, feature = name.split(".")
        found.setdefault(namespace, {})[feature] = tuple(values.split("|"))
    return Platform({namespace: Support(features) for namespace, features in found.items()})


def ranking(variants, supported, namespaces="a b", preferences=None, **priorities):
    found = Metadata(
        tuple(namespaces.split()),
        {label: variant(text) for label, text in variants.items()},
        **priorities,
    )
    return rank(found, machine(supported), preferences)


MACHINE = "a.f=3|2|1 a.g=on b.f=x|y"


def test_reasons():
    found = ranking(
        {"l": "b.f=z|q a.f=9 a.g=on a.h=1|2 c.f=1", "m": "a.f=3"},
        MACHINE,
        preferences=Preferences(
            exclude=(Selector("b"), Selector("a", "f"), Selector("a", "g", "on"), Selector("d"))
        ),
    )
    assert found.labels == ()
    assert found.reasons("l") == (
        Reason("b", "", (), (), Selector("b")),
        Reason("a", "f", ("9",), (), Selector("a", "f")),
        Reason("a", "g", ("on",), (), Selector("a", "g", "on")),
        Reason("a", "f", ("9",), ("3", "2", "1")),
        Reason("a", "h", ("1", "2"), ()),
        Reason("b", "f", ("q", "z"), ("x", "y")),
        Reason("c", "f", ("1",), ()),
    )
    assert found.reasons("m") == (Reason("a", "f", ("3",), (), Selector("a", "f")),)
    assert found.rejected[0] == ("l", found.metadata.variants["l"], found.reasons("l"))
    assert found.reasons("unknown") == ()
    assert found.reasons("null") == ()


def test_supported_properties():
    found = ranking(
        {"l": "b.f=y|x|q a.g=on a.f=1|3|9", "m": "a.f=9|1"},
        MACHINE,
        preferences=Preferences(prefer=(Selector("b"), Selector("a", "f", "1"))),
    )
    supported = found.supported("l")
    assert [(name, list(features.items())) for name, features in supported.items()] == [
        ("b", [("f", ("x", "y"))]),
        ("a", [("f", ("1", "3")), ("g", ("on",))]),
    ]
    assert found.ranked[0] == ("l", found.metadata.variants["l"], supported)
    assert found.supported("null") == {}
    assert found.supported("unknown") == {}


def test_positions():
    found = ranking({"l": "a.f=1", "null": "", "m": "a.f=9", "n": "a.f=2"}, MACHINE)
    assert found.positions["n"] == 0
    assert found.positions["l"] == 1
    assert found.positions["null"] == 2
    assert "m" not in found.positions
    assert "unknown" not in found.positions


# Any metadata, any machine, any wishes.


@st.composite
def wishes(draw):
    return Preferences(
        prefer=tuple(draw(st.lists(selectors(), max_size=3))),
        namespace_priorities=tuple(draw(some([*NAMESPACES, "unknown"]))),
        feature_priorities=draw(
            st.dictionaries(st.sampled_from(NAMESPACES), some(FEATURES).map(tuple), max_size=2)
        ),
        property_priorities=draw(
            st.dictionaries(st.sampled_from(NAMESPACES), ordered_features(0), max_size=2)
        ),
    )


@st.composite
def old_metadata(draw):
    """Metadata of a generation with priorities for features and properties."""
    found = draw(metadata())
    return Metadata(
        found.namespaces,
        found.variants,
        feature_priorities={
            name: tuple(draw(some(FEATURES))) for name in found.namespaces if draw(st.booleans())
        },
        property_priorities={
            name: draw(ordered_features(0)) for name in found.namespaces if draw(st.booleans())
        },
    )


anything = st.one_of(metadata(), old_metadata())


@given(anything, platforms(), wishes())
def test_order_is_total(found, platform, preferences):
    whole = rank(found, platform, preferences)
    assert sorted((*whole.labels, *whole.rejected_labels)) == sorted(found.variants)
    assert whole.labels == rank(found, platform, preferences).labels
    # What is left out does not change how the others stand to each other.
    for missing in found.variants:
        rest = {label: p for label, p in found.variants.items() if label != missing}
        part = rank(
            Metadata(
                found.namespaces,
                rest,
                feature_priorities=found.feature_priorities,
                property_priorities=found.property_priorities,
            ),
            platform,
            preferences,
        )
        assert part.labels == tuple(label for label in whole.labels if label != missing)
    if "null" in found.variants:
        assert whole.labels[-1] == "null"


@given(anything, platforms(), wishes(), st.lists(selectors(), max_size=3))
def test_wishes_reorder_or_narrow(found, platform, preferences, exclude):
    unbiased = rank(found, platform)
    reordered = rank(found, platform, preferences)
    assert sorted(reordered.labels) == sorted(unbiased.labels)
    assert reordered.rejected_labels == unbiased.rejected_labels
    narrowed = rank(found, platform, Preferences(exclude=tuple(exclude)))
    left = [
        label
        for label in unbiased.labels
        if not any(selector.matches(found.variants[label]) for selector in exclude)
    ]
    assert narrowed.labels == tuple(left)


@given(anything, platforms())
def test_every_reason_is_one(found, platform):
    result = rank(found, platform)
    for item in result.rejected:
        assert item.reasons
        for reason in item.reasons:
            assert reason.wanted == item.properties[reason.namespace][reason.feature]
            supported = platform.support(reason.namespace).features.get(reason.feature, ())
            assert reason.supported == supported
            assert not set(reason.wanted) & set(supported)
    for item in result.ranked:
        assert result.reasons(item.label) == ()
        for namespace, features in item.properties.items():
            for feature, values in features.items():
                kept = item.supported[namespace][feature]
                assert set(kept) == set(values) & set(platform.support(namespace).features[feature])


def test_same_everywhere():
    """Nothing depends on how this interpreter happens to hash."""
    script = Path(__file__).with_name("rank_for_every_hash.py")
    outcomes = {
        subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    (outcome,) = outcomes
    assert outcome.count("\n") > 100

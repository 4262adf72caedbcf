import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from worlds import (
    FEATURES,
    NAMESPACES,
    VALUES,
    metadata,
    ordered_features,
    platforms,
    properties,
    random_world,
    selectors,
    slow_ranking,
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


@pytest.mark.parametrize(
    ("variants", "order", "rejected"),
    [
        # Every feature needs one supported value, any will do.
        ({"l": "a.f=1"}, "l", ""),
        ({"l": "a.f=9"}, "", "l"),
        ({"l": "a.f=1|9"}, "l", ""),
        ({"l": "a.f=1 a.g=on"}, "l", ""),
        ({"l": "a.f=1 a.g=off"}, "", "l"),
        ({"l": "a.f=1 b.f=z"}, "", "l"),
        ({"l": "a.h=1"}, "", "l"),  # a feature that the machine does not have
        ({"l": "c.f=1"}, "", "l"),  # a namespace without support
        ({"null": ""}, "null", ""),
        ({"null": "", "l": "c.f=1"}, "null", "l"),
        # Values: best first.
        ({"l": "a.f=1", "m": "a.f=3", "n": "a.f=2"}, "m n l", ""),
        # Of several values, only the best supported one counts.
        ({"l": "a.f=1|2", "m": "a.f=3|1", "n": "a.f=2"}, "m l n", ""),
        ({"l": "a.f=9|1", "m": "a.f=2"}, "m l", ""),
        ({"l": "a.f=1|2|3", "m": "a.f=3"}, "l m", ""),
        # Features: the provider's first one decides first.
        ({"l": "a.f=1", "m": "a.g=on"}, "l m", ""),
        ({"l": "a.f=2 a.g=on", "m": "a.f=3"}, "m l", ""),
        # Namespaces: the first one decides first, however bad its value is.
        ({"l": "a.g=on", "m": "b.f=x"}, "l m", ""),
        ({"l": "a.f=1", "m": "b.f=x a.f=1", "n": "a.g=on b.f=x"}, "m l n", ""),
        # Where one goes on and the other ends, more is better.
        ({"l": "a.f=1", "m": "a.f=1 b.f=y"}, "m l", ""),
        ({"l": "a.f=1 a.g=on", "m": "a.f=1", "n": "a.f=1 a.g=on b.f=y"}, "n l m", ""),
        ({"l": "a.f=2", "m": "a.f=1 a.g=on b.f=x"}, "l m", ""),
        # Equals: by label, ascending, as text.
        ({"m": "a.f=1", "l": "a.f=1", "l10": "a.f=1", "l9": "a.f=1"}, "l l10 l9 m", ""),
        ({"m": "a.f=3|1", "l": "a.f=3|2"}, "l m", ""),
        ({"_": "a.f=1", "1": "a.f=1", ".": "a.f=1", "a": "a.f=1"}, ". 1 _ a", ""),
        # Null is last, whatever its name sorts like.
        ({"null": "", "z": "b.f=y", "a": "b.f=y"}, "a z null", ""),
        # Rejected ones by label.
        ({"z": "a.f=9", "y": "c.f=1", "null": ""}, "null", "y z"),
    ],
)
def test_rules(variants, order, rejected):
    found = ranking(variants, MACHINE, "a b c")
    assert found.labels == tuple(order.split())
    assert found.rejected_labels == tuple(rejected.split())
    assert [item.label for item in found.ranked] == order.split()
    assert [item.label for item in found.rejected] == rejected.split()
    backwards = ranking(dict(reversed(variants.items())), MACHINE, "a b c")
    assert backwards.labels == found.labels
    assert backwards.rejected_labels == found.rejected_labels


def test_example_of_the_pep():
    """Properties as PEP 825 lists them: all features are needed, of `sm_arch` any value."""
    built_for = (
        "x86_64.level=v3 x86_64.avx512_bf16=on nvidia.cuda_version_lower_bound=12.8 "
        "nvidia.sm_arch=120_real|110_real"
    )
    cpu = "x86_64.level=v4|v3|v2|v1 x86_64.avx512_bf16=on"
    gpu = "nvidia.cuda_version_lower_bound=12.9|12.8|12.7"
    for supported, fits in (
        (f"{cpu} {gpu} nvidia.sm_arch=120_real|120_virtual", True),
        (f"{cpu} {gpu} nvidia.sm_arch=110_real|110_virtual", True),
        (f"{cpu} {gpu} nvidia.sm_arch=90_real|90_virtual", False),
        (f"{cpu} {gpu}", False),
        (f"{gpu} nvidia.sm_arch=120_real", False),
        (f"x86_64.level=v4|v3|v2|v1 {gpu} nvidia.sm_arch=120_real", False),
    ):
        found = ranking({"gpu": built_for, "null": ""}, supported, "x86_64 nvidia")
        assert found.labels == (("gpu", "null") if fits else ("null",))


def test_matrix_of_the_pep():
    """The CPU level decides before the BLAS library, as the order of namespaces says."""
    blas = "blas_lapack.library=mkl|openblas"
    variants = {
        "null": "",
        "x86_64_v3_openblas": "x86_64.level=v3 blas_lapack.library=openblas",
        "x86_64_v4_mkl": "x86_64.level=v4 blas_lapack.library=mkl",
        "x86_64_v3_mkl": "x86_64.level=v3 blas_lapack.library=mkl",
        "openblas": "blas_lapack.library=openblas",
    }
    namespaces = "x86_64 aarch64 blas_lapack"
    newest = ranking(variants, f"x86_64.level=v4|v3|v2|v1 {blas}", namespaces)
    assert newest.labels == (
        "x86_64_v4_mkl", "x86_64_v3_mkl", "x86_64_v3_openblas", "openblas", "null"
    )  # fmt: skip
    older = ranking(variants, f"x86_64.level=v3|v2|v1 {blas}", namespaces)
    assert older.labels == ("x86_64_v3_mkl", "x86_64_v3_openblas", "openblas", "null")
    other = ranking(variants, f"aarch64.version=8a {blas}", namespaces)
    assert other.labels == ("openblas", "null")


def test_priorities_of_the_metadata():
    variants = {"l": "a.f=1 a.g=off", "m": "a.f=2 a.g=on", "n": "a.f=3 a.g=on"}
    supported = "a.f=3|2|1 a.g=on|off"
    assert ranking(variants, supported).labels == ("n", "m", "l")
    features = {"a": ("g",)}
    assert ranking(variants, supported, feature_priorities=features).labels == ("n", "m", "l")
    values = {"a": {"g": ("off",), "f": ("2", "9")}}
    assert ranking(variants, supported, property_priorities=values).labels == ("m", "n", "l")
    assert ranking(
        variants, supported, feature_priorities=features, property_priorities=values
    ).labels == ("l", "m", "n")


def test_wishes_go_before_the_metadata():
    variants = {"l": "a.f=1 b.f=y", "m": "a.f=2", "n": "b.f=x"}
    found = ranking(
        variants,
        MACHINE,
        preferences=Preferences(property_priorities={"a": {"f": ("1",)}}),
        property_priorities={"a": {"f": ("2",)}},
    )
    assert found.labels == ("l", "m", "n")
    found = ranking(variants, MACHINE, preferences=Preferences(namespace_priorities=("b",)))
    assert found.labels == ("n", "l", "m")
    found = ranking(
        {"l": "a.f=1", "m": "a.g=on"},
        MACHINE,
        preferences=Preferences(feature_priorities={"a": ("g",)}),
        feature_priorities={"a": ("f",)},
    )
    assert found.labels == ("m", "l")


def test_abi_dependency_takes_no_part_in_the_order():
    variants = {
        "torch29": "abi_dependency.torch=2.9",
        "cpu": "a.f=1",
        "cpu_torch29": "a.f=1 abi_dependency.torch=2.9",
        "cpu_torch28": "a.f=1 abi_dependency.torch=2.8",
        "b": "b.f=y",
    }
    found = ranking(variants, MACHINE + " abi_dependency.torch=2|2.9|2.9.1")
    assert found.labels == ("cpu", "cpu_torch29", "b", "torch29")
    assert found.rejected_labels == ("cpu_torch28",)
    # Not even where the metadata lists it, but for a user who prefers it.
    listed = ranking(variants, MACHINE + " abi_dependency.torch=2.9", "abi_dependency a b")
    assert listed.labels == ("cpu", "cpu_torch29", "b", "torch29")
    wanted = ranking(
        variants,
        MACHINE + " abi_dependency.torch=2.9",
        preferences=Preferences(prefer=(Selector("abi_dependency"),)),
    )
    assert wanted.labels == ("cpu_torch29", "torch29", "cpu", "b")
    assert ranking(variants, MACHINE).labels == ("cpu", "b")


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


def test_position_of_null_that_is_not_listed():
    found = ranking({"l": "a.f=1", "m": "a.f=9"}, MACHINE)
    assert found.labels == ("l",)
    assert found.positions["null"] == 1


@pytest.mark.parametrize(
    ("schema", "known"),
    [("https://variants-schema.wheelnext.dev/", True), ("https://x/v0.2.0.json", False)],
)
def test_position_of_null_in_zeros(schema, known):
    found = rank(Metadata(("a",), {"null": {}}, schema=schema), Platform())
    assert found.positions["null"] == 0
    assert found.positions.get("00000000") == (0 if known else None)


def test_nothing_to_rank():
    found = rank(Metadata(), Platform())
    assert (found.labels, found.rejected_labels) == ((), ())
    assert found.positions["null"] == 0


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


@given(anything, platforms())
def test_order_is_that_of_the_pep(found, platform):
    expected = slow_ranking(found, platform, Preferences()).labels(found.variants)
    assert rank(found, platform).labels == expected


@given(anything, platforms(), wishes())
def test_order_with_wishes(found, platform, preferences):
    expected = slow_ranking(found, platform, preferences).labels(found.variants)
    assert rank(found, platform, preferences).labels == expected


def test_thousands_of_releases():
    """What hypothesis does above, with worlds that are cheaper to make and larger."""
    chance = random.Random(825)
    orders = set()
    for _ in range(2000):
        found, platform, preferences = random_world(chance)
        expected = slow_ranking(found, platform, preferences).labels(found.variants)
        assert rank(found, platform, preferences).labels == expected
        orders.add(expected)
    assert len(orders) > 1000


@given(anything, platforms(), wishes(), st.randoms(use_true_random=False))
def test_order_of_the_input_means_nothing(found, platform, preferences, chance: random.Random):
    def shuffled(mapping):
        return dict(chance.sample(list(mapping.items()), len(mapping)))

    other = Metadata(
        found.namespaces,
        shuffled(
            {
                label: shuffled({name: shuffled(features) for name, features in p.items()})
                for label, p in found.variants.items()
            }
        ),
        feature_priorities=shuffled(found.feature_priorities),
        property_priorities=shuffled(found.property_priorities),
    )
    one = rank(found, platform, preferences)
    two = rank(other, Platform(shuffled(platform.namespaces)), preferences)
    assert one.labels == two.labels
    assert one.rejected_labels == two.rejected_labels
    assert str(one.ranked) == str(two.ranked) or [
        (item.label, str(item.supported)) for item in one.ranked
    ] == [(item.label, str(item.supported)) for item in two.ranked]
    assert [item.reasons for item in one.rejected] == [item.reasons for item in two.rejected]


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


@given(anything, platforms(), selectors())
@example(
    Metadata(("alpha",), {"a": {"alpha": {"one": ("1",)}}}),
    Platform({"alpha": Support({"one": ("2", "1")})}),
    Selector("alpha", "one", "2"),
)
def test_what_is_preferred_comes_first(found, platform, selector):
    result = rank(found, platform, Preferences(prefer=(selector,)))
    has = [selector.matches(result.supported(label)) for label in result.labels]
    assert has == sorted(has, reverse=True)


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
        for seed in ("0", "1", "2", "4294967295")
    }
    (outcome,) = outcomes
    assert outcome.count("\n") > 100


def test_many_variants():
    """Large inputs take another path through the interpreter, not through the rules."""
    chance = random.Random(0)
    variants = {
        f"v{number}": {
            name: {
                feature: tuple(sorted(chance.sample(VALUES, chance.randint(1, 3))))
                for feature in chance.sample(FEATURES, chance.randint(1, 3))
            }
            for name in chance.sample(NAMESPACES, chance.randint(1, 3))
        }
        for number in range(1500)
    }
    found = Metadata(NAMESPACES, variants)
    platform = Platform({name: Support(dict.fromkeys(FEATURES, VALUES[:4])) for name in NAMESPACES})
    expected = slow_ranking(found, platform, Preferences()).labels(variants)
    assert rank(found, platform).labels == expected
    assert len(expected) > 500


@given(properties())
def test_a_variant_alone_on_its_own_machine(wanted):
    platform = Platform({name: Support(features) for name, features in wanted.items()})
    found = rank(Metadata(NAMESPACES, {"x": wanted}), platform)
    assert found.labels == ("x",)
    assert found.supported("x") == wanted

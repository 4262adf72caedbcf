"""Answers of plugins, as hostile as they come."""

import json

import pytest

from pep_variants.errors import PluginFailed, ProviderError
from pep_variants.limits import PLUGIN_FEATURES, PLUGIN_VALUES
from variants_plugins._answer import read_answer


def feature(name="level", values=("a",), **more):
    return {"name": name, "values": list(values), **more}


def read(tree):
    data = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    return read_answer(data, "acme", "acme==1 (acme)")


def test_order_is_kept_and_empty_features_are_not_there():
    features, fixed = read(
        {
            "namespace": "acme",
            "fixed": True,
            "features": [
                feature("z", ["b", "a"], multi_value=True),
                feature("none", []),
                feature("a", ["1.2"], multi_value=False),
            ],
        }
    )
    assert list(features.items()) == [("z", ("b", "a")), ("a", ("1.2",))]
    assert fixed


LONG = "x" * 1_000_000

WRONG = [
    (b"", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (None, "cannot be used: expected an object, found None"),
    ({}, "supports None, which is not a list of features"),
    ({"features": "<generator>"}, "supports '<generator>', which is not a list of features"),
    (
        {"features": [feature(f"f{n}") for n in range(PLUGIN_FEATURES + 1)]},
        f"features: {PLUGIN_FEATURES + 1} features, at most {PLUGIN_FEATURES} are read",
    ),
    ({"features": ["level"]}, "features[0]: expected an object, found 'level'"),
    ({"features": [feature(1)]}, "features[0].name: 1 is not a valid name"),
    ({"features": [feature("Level")]}, "features[0].name: 'Level' is not a valid name"),
    ({"features": [feature("a\n")]}, "features[0].name: 'a\\n' is not a valid name"),
    ({"features": [feature(LONG + "!")]}, "is not a valid name: it must match"),
    ({"features": [feature("a"), feature("a")]}, "features[1].name: 'a' is listed twice"),
    (
        {"features": [{"name": "a", "values": "abc"}]},
        "features[0] (a).values: expected a list of strings, found 'abc'",
    ),
    ({"features": [feature("a", [1])]}, "features[0] (a).values: 1 is not a valid entry"),
    ({"features": [feature("a", ["B"])]}, "features[0] (a).values: 'B' is not a valid entry"),
    ({"features": [feature("a", ["b", "c", "b"])]}, "features[0] (a).values: 'b' is listed twice"),
    (
        {"features": [feature("a", map(str, range(PLUGIN_VALUES + 1)))]},
        f"{PLUGIN_VALUES + 1} entries, at most {PLUGIN_VALUES} are read",
    ),
    (
        {"features": [feature(f"f{n}", map(str, range(PLUGIN_VALUES // 100))) for n in range(101)]},
        "features[100] (f100).values: 100 entries, at most 0 are read",
    ),
    (
        {"features": [feature("a", multi_value="yes")]},
        "features[0] (a).multi_value: expected true or false, found 'yes'",
    ),
    ({"error": "ValueError: \x1b[31mred\n\nline"}, "failed: ValueError: ?[31mred line"),
    ({"error": LONG}, "failed: …xxx"),
]


@pytest.mark.parametrize(("tree", "problem"), WRONG)
def test_wrong(tree, problem):
    with pytest.raises(ProviderError) as caught:
        read(tree)
    message = str(caught.value)
    assert message.startswith("the provider plugin acme==1 (acme) ")
    assert problem in message
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize("own", [None, "acme", "aarch64", ["x86_64"]])
def test_a_namespace_with_a_built_in_provider_is_claimed_by_the_plugin_only(own):
    """Of another namespace it does not count what the plugin says."""
    data = json.dumps({"namespace": own, "features": []}).encode()
    with pytest.raises(PluginFailed, match="does not say that it is for 'x86_64'"):
        read_answer(data, "x86_64", "acme==1 (acme)")
    named = json.dumps({"namespace": "x86_64", "features": []}).encode()
    assert read_answer(named, "x86_64", "acme==1 (acme)") == ({}, False)
    assert read({"namespace": own, "features": []}) == ({}, False)

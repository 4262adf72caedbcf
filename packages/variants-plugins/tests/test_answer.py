"""Answers of plugins, as hostile as they come."""

import json

import pytest

from pep_variants.errors import PluginFailed, ProviderError
from pep_variants.limits import PLUGIN_FEATURES, PLUGIN_VALUES
from variants_plugins.answer import one_line, read_answer


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


@pytest.mark.parametrize(
    "namespace",
    [{}, {"namespace": None}, {"namespace": "acme"}, {"namespace": "other"}, {"namespace": [5]}],
)
def test_namespace_of_the_plugin_does_not_count(namespace):
    assert read({"features": [], **namespace}) == ({}, False)


LONG = "x" * 1_000_000

WRONG = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    ([], "answered []"),
    (None, "answered None"),
    ({}, "not a list of features"),
    ({"features": None}, "not a list of features"),
    ({"features": {"level": ["a"]}}, "not a list of features"),
    ({"features": "<generator>"}, "not a list of features"),
    (
        {"features": [feature(f"f{n}") for n in range(PLUGIN_FEATURES + 1)]},
        "not a list of features",
    ),
    ({"features": ["level"]}, "not a feature"),
    ({"features": [None]}, "not a feature"),
    ({"features": [{}]}, "names a feature None"),
    ({"features": [feature(1)]}, "names a feature 1"),
    ({"features": [feature("Level")]}, "names a feature 'Level'"),
    ({"features": [feature("")]}, "names a feature ''"),
    ({"features": [feature("a\n")]}, "names a feature 'a\\n'"),
    ({"features": [feature("ä")]}, "names a feature"),
    ({"features": [feature(LONG + "!")]}, "names a feature"),
    ({"features": [feature("a"), feature("a")]}, "the feature 'a' twice"),
    ({"features": [{"name": "a", "values": "abc"}]}, "'abc' as values of 'a'"),
    ({"features": [{"name": "a", "values": {"b": 1}}]}, "as values of 'a'"),
    ({"features": [{"name": "a"}]}, "None as values of 'a'"),
    ({"features": [feature("a", [1])]}, "a value 1 of 'a'"),
    ({"features": [feature("a", [None])]}, "a value None of 'a'"),
    ({"features": [feature("a", [["b"]])]}, "a value ['b'] of 'a'"),
    ({"features": [feature("a", ["B"])]}, "a value 'B' of 'a'"),
    ({"features": [feature("a", [""])]}, "a value '' of 'a'"),
    ({"features": [feature("a", ["b c"])]}, "a value 'b c' of 'a'"),
    ({"features": [feature("a", ["b", "c", "b"])]}, "the value 'b' of 'a' twice"),
    (
        {"features": [feature("a", map(str, range(PLUGIN_VALUES + 1)))]},
        f"more than {PLUGIN_VALUES}",
    ),
    (
        {"features": [feature(f"f{n}", map(str, range(PLUGIN_VALUES // 100))) for n in range(101)]},
        f"more than {PLUGIN_VALUES}",
    ),
    ({"features": [feature("a", multi_value="yes")]}, "multi_value 'yes'"),
    ({"features": [feature("a", multi_value=None)]}, "multi_value None"),
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


def test_as_much_as_is_allowed():
    features, _ = read({"features": [feature("a", map(str, range(PLUGIN_VALUES)))]})
    assert len(features["a"]) == PLUGIN_VALUES


def test_one_line_keeps_the_end():
    assert one_line("  a\n b\tc\x00 ") == "a b c?"
    assert one_line("x" * 50 + "end", 10) == "…xxxxxxend"


@pytest.mark.parametrize("own", [None, "acme", "aarch64", ["x86_64"]])
def test_a_namespace_with_a_built_in_provider_is_claimed_by_the_plugin_only(own):
    data = json.dumps({"namespace": own, "features": []}).encode()
    with pytest.raises(PluginFailed, match="does not say that it is for 'x86_64'"):
        read_answer(data, "x86_64", "acme==1 (acme)")
    named = json.dumps({"namespace": "x86_64", "features": []}).encode()
    assert read_answer(named, "x86_64", "acme==1 (acme)") == ({}, False)

"""Answers of plugins, as hostile as they come."""

import json

import pytest

from pep_variants.errors import ProviderError
from pep_variants.plugins.answer import MAX_FEATURES, MAX_VALUES, one_line, read_answer


def feature(name="level", values=("a",), **more):
    return {"name": name, "values": list(values), **more}


def read(tree):
    data = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    return read_answer(data, "acme", "the plugin")


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


@pytest.mark.parametrize("namespace", [{}, {"namespace": None}, {"namespace": "acme"}])
def test_namespace_may_be_missing(namespace):
    assert read({"features": [], **namespace}) == ({}, False)


LONG = "x" * 1_000_000

WRONG = [
    (b"", "no JSON"),
    (b"{", "no JSON"),
    (b"\xff\xfe{}", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    ([], "answered []"),
    (None, "answered None"),
    ({}, "no list of features"),
    ({"features": None}, "no list of features"),
    ({"features": {"level": ["a"]}}, "no list of features"),
    ({"features": "<generator>"}, "no list of features"),
    ({"features": [feature(f"f{n}") for n in range(MAX_FEATURES + 1)]}, "no list of features"),
    ({"features": ["level"]}, "no feature"),
    ({"features": [None]}, "no feature"),
    ({"features": [{}]}, "names a feature None"),
    ({"features": [feature(1)]}, "names a feature 1"),
    ({"features": [feature("Level")]}, "names a feature 'Level'"),
    ({"features": [feature("")]}, "names a feature ''"),
    ({"features": [feature("a\n")]}, "names a feature 'a\\n'"),
    ({"features": [feature("ä")]}, "names a feature"),
    ({"features": [feature(LONG + "!")]}, "names a feature"),
    ({"features": [feature("a"), feature("a")]}, "the feature 'a' twice"),
    ({"features": [{"name": "a", "values": "abc"}]}, "'abc' for the values of 'a'"),
    ({"features": [{"name": "a", "values": {"b": 1}}]}, "for the values of 'a'"),
    ({"features": [{"name": "a"}]}, "None for the values of 'a'"),
    ({"features": [feature("a", [1])]}, "a value 1 of 'a'"),
    ({"features": [feature("a", [None])]}, "a value None of 'a'"),
    ({"features": [feature("a", [["b"]])]}, "a value ['b'] of 'a'"),
    ({"features": [feature("a", ["B"])]}, "a value 'B' of 'a'"),
    ({"features": [feature("a", [""])]}, "a value '' of 'a'"),
    ({"features": [feature("a", ["b c"])]}, "a value 'b c' of 'a'"),
    ({"features": [feature("a", ["b", "c", "b"])]}, "the value 'b' of 'a' twice"),
    ({"features": [feature("a", map(str, range(MAX_VALUES + 1)))]}, f"more than {MAX_VALUES}"),
    (
        {"features": [feature(f"f{n}", map(str, range(MAX_VALUES // 100))) for n in range(101)]},
        f"more than {MAX_VALUES}",
    ),
    ({"features": [feature("a", multi_value="yes")]}, "multi_value 'yes'"),
    ({"features": [feature("a", multi_value=None)]}, "multi_value None"),
    ({"namespace": "other", "features": []}, "for the namespace 'other', not for 'acme'"),
    ({"namespace": ["acme"], "features": []}, "for the namespace ['acme']"),
    ({"error": "ValueError: \x1b[31mred\n\nline"}, "failed: ValueError: ?[31mred line"),
    ({"error": LONG}, "failed: …xxx"),
]


@pytest.mark.parametrize(("tree", "problem"), WRONG)
def test_wrong(tree, problem):
    with pytest.raises(ProviderError) as caught:
        read(tree)
    message = str(caught.value)
    assert message.startswith("the plugin ")
    assert problem in message
    assert message.isprintable()
    assert len(message) < 500


def test_as_much_as_is_allowed():
    features, _ = read({"features": [feature("a", map(str, range(MAX_VALUES)))]})
    assert len(features["a"]) == MAX_VALUES


def test_one_line_keeps_the_end():
    assert one_line("  a\n b\tc\x00 ") == "a b c?"
    assert one_line("x" * 50 + "end", 10) == "…xxxxxxend"

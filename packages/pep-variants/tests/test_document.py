"""Parsing variant metadata in pieces: the same tree as `json.loads` for every text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.formats.document import Document, load

FEATURES = {"level": ["v3"], "sm": ["90_real", "80_real"]}
TREE = {
    "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
    "default-priorities": {"namespace": ["x", "y"]},
    "variants": {
        "null": {},
        "a": {"x": FEATURES, "y": {"f": ["on"]}},
        "b": {"x": FEATURES},
        "c": {"y": {"f": ["on"]}, "x": FEATURES},
        "d": {"x": FEATURES, "y": {"f": ["on"]}},
    },
    "providers": {"x": {"requires": ['x-provider; python_version >= "3.10"']}},
}
STYLES = [{}, {"indent": 1}, {"indent": "\t"}, {"separators": (",", ":")}]


def compare(text):
    """`load` makes of *text* what `json` makes of it, order and errors included."""
    assert repr(outcome(load, text)) == repr(outcome(json.loads, text))


def outcome(function, text):
    try:
        found = function(text)
    except ValueError as error:
        return error
    return found.tree if isinstance(found, Document) else found


@pytest.mark.parametrize("style", STYLES)
def test_what_repeats_is_one_object(style):
    compare(json.dumps(TREE, **style))
    document = load(json.dumps(TREE, **style))
    variants = document.tree["variants"]
    assert variants["a"]["x"] is variants["b"]["x"] is variants["d"]["x"]
    assert variants["a"]["y"] is variants["d"]["y"]
    assert [item[:2] for item in document.listed] == [
        ("a", "x"),
        ("a", "y"),
        ("c", "y"),
        ("c", "x"),
    ]
    for label, namespace, features in document.listed:
        assert variants[label][namespace] is features


def test_every_key_may_come_last():
    for last in TREE:
        tree = {key: TREE[key] for key in (*(key for key in TREE if key != last), last)}
        compare(json.dumps(tree))
        assert load(json.dumps(tree)).listed is not None


def test_no_variants():
    for text in ('{"variants": {}}', '{"variants": { }, "x": 1}'):
        compare(text)
        assert load(text).listed == []


X = '{"x": {"f": ["v"]}}'


@pytest.mark.parametrize(
    "text",
    [
        # No table of variants, or a key of that name somewhere else.
        "{}",
        "[]",
        '"variants"',
        '{"variants": []}',
        '{"variants": null}',
        '{"a": {"variants": {"l": @}}}',
        '[{"variants": {"l": @}}]',
        '{"a": {"variants": {"l": @}}, "variants": {}}',
        '{"variants": {"l": @}, "variants": {"m": @}}',
        '{"variants": {"l": @}, "vari\\u0061nts": {"m": @}}',
        '{"vari\\u0061nts": {"m": @}, "variants": {"l": @}}',
        '{"vari\\u0061nts": {}, "a\\"variants": {"l": @}}',
        '{"a\\\\"variants": {"l": @}}',
        '{"variants": "variants"}',
        '{"x": "\\"variants\\": {", "variants": {"l": @}}',
        # Labels.
        '{"variants": {"l": @, "l": @}}',
        '{"variants": {"l": @, "l": {}}}',
        '{"variants": {"": @}}',
        '{"variants": {"a b": @, "ä": @, "\u200b": @}}',
        '{"variants": {"a\\"b": @}}',
        '{"variants": {"a\\": @}}',
        '{"variants": {"a\\"b": @, "c\\"d": @}}',
        '{"variants": {"a\\u0062": @}}',
        '{"variants": {"a\tb": @}}',
        '{"variants": {"a\0b": @}}',
        '{"variants": {"a": @\0, "b": @}}',
        '{"variants": {"a{b": @, "a}b": @}}',
        '{"variants": {a: @}}',
        '{"variants": {"a" "b": @}}',
        '{"variants": {"a", "b": @}}',
        '{"variants": {"a": "b": @}}',
        '{"variants": {"a": "b", "c": @}}',
        '{"variants": {"a": 1, "c": @}}',
        '{"variants": {"c": @, "a": 1}}',
        '{"variants": {"c": @, "a": [@]}}',
        # Namespaces.
        '{"variants": {"l": {}}}',
        '{"variants": {"l": {"x": {}}}}',
        '{"variants": {"l": {"x": 1}}}',
        '{"variants": {"l": {"x": []}}}',
        '{"variants": {"l": {"x": {"f": {"v": ["w"]}}}}}',
        '{"variants": {"l": {"x": {"f": [{"v": 1}]}}}}',
        '{"variants": {"l": {"x": {"f": 1}, "x": {"g": 2}}}}',
        '{"variants": {"l": {"x": 1, "x": {"g": 2}}}}',
        '{"variants": {"l": {"x": 1, "y": {"g": 2}}}}',
        '{"variants": {"l": {"x": {"f": "}"}}}}',
        '{"variants": {"l": {"x": {"f": "{"}}, "m": {"x": {"f": "{"}}}}',
        '{"variants": {"l": {"x{": {"f": ["v"]}}}}',
        '{"variants": {"l": {"x": {"f": "}, \\"y\\": {\\"f\\": \\""}}}}',
        '{"variants": {"l": {"x": {"f": "\\""}}}}',
        '{"variants": {"l": {"x": {"f": "\\u0061"}}}}',
        '{"variants": {"l": {"x": {"f": NaN}}}}',
        # Commas and braces.
        '{"variants": {"l": @,}}',
        '{"variants": {,"l": @}}',
        '{"variants": {"l": @ "m": @}}',
        '{"variants": {"l": @,, "m": @}}',
        '{"variants": {"l": {,"x": {"f": ["v"]}}}}',
        '{"variants": {"l": {"x": {"f": ["v"]},}}}',
        '{"variants": {"l": {"x": {"f": ["v"]} "y": {"f": ["v"]}}}}',
        '{"variants": {"l": {"x": {"f": ["v"]}, "y": {"f": ["v"]} "z": {"f": ["v"]}}}}',
        '{"variants": {"k": {"y": {"f": ["v"]}}, "l": {"x": {"f": ["v"]} "y": {"f": ["v"]}}}}',
        '{"variants": {"k": {"x": {}, "y": {"f": ["v"]}}, "l": {, "y": {"f": ["v"]}}}}',
        '{"variants": {"l": {"x": {"f": ["v"]}}}',
        '{"variants": {"l": {"x": {"f": ["v"]}}',
        '{"variants": {"l": {"x": {"f": ["v"]}',
        '{"variants": {"l": {"x": {"f": ["v"',
        '{"variants": {"l": {"x": {"f": ["v"]}}}}}',
        '{"variants": {"l": {"x": {"f": ["v"]}}}} x',
        '{"variants": {"l": {"x": {"f": ["v"]}}} x}',
        '{"variants": {"l": @} "y": 1}',
        '{"variants": {"l": @}, }',
        '{"variants": {"l": {"x": {"f": ["v",]}}}}',
        # White space of Unicode and of Python is none of JSON.
        '{"variants": {"l":\u00a0@}}',
        '{"variants":\u2003{"l": @}}',
        '{"variants": {"l": @\u2028}}',
        '{"variants": {"l": {\x1f"x": {"f": ["v"]}}}}',
        '{"variants": {"l": {"x": {"f": ["v"]}\x1c}}}',
        '{"variants": {\x0b}}',
        '\ufeff{"variants": {"l": @}}',
    ],
)
def test_texts_that_are_not_as_usual(text):
    compare(text.replace("@", X))


def test_too_little_repeats():
    def text(count):
        return json.dumps({"variants": {f"l{n}": {"x": {"f": [f"v{n}"]}} for n in range(count)}})

    for count in (900, 4000):
        compare(text(count))
    assert load(text(900)).listed is not None
    assert load(text(4000)).listed is None


def test_deep_nesting():
    for piece in ("[", '{"x": '):
        with pytest.raises(RecursionError):
            load('{"variants": {"l": {"x": {"f": ' + piece * 200_000)


names = st.sampled_from(["a", "b", "variants", "null", "}", "{", '"', "\\", ",", "é", "\0", ""])
values = st.recursive(
    st.none() | st.integers(0, 9) | names,
    lambda items: st.lists(items, max_size=3) | st.dictionaries(names, items, max_size=3),
    max_leaves=8,
)
features = st.dictionaries(names, st.lists(names, max_size=2), max_size=2)
variants = st.dictionaries(names, st.dictionaries(names, features | values, max_size=3), max_size=4)
trees = st.fixed_dictionaries({}, optional={"variants": variants, "x": values, "y": variants})


@given(trees, st.sampled_from(STYLES), st.booleans())
def test_arbitrary_trees(tree, style, ascii_only):
    compare(json.dumps(tree, ensure_ascii=ascii_only, **style))


@given(
    st.sampled_from(STYLES),
    st.integers(0, 600),
    st.integers(0, 8),
    st.text('{}[]",:\\ \n\0ax', max_size=3),
)
def test_arbitrary_changes(style, place, removed, added):
    """A usual text, with some characters replaced by others."""
    text = json.dumps(TREE, **style)
    compare(text[:place] + added + text[place + removed :])

"""Strict reading of trees: errors name the place and the value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.formats.tree import PropertyTree, Tree, joined
from pep_variants.model.property import NAME, VALUE


class Wrong(Exception):
    """What the tree raises."""


def fail(path, problem):
    return Wrong(f"{path}: {problem}")


TREE = {"a": 1, "t": {"s": "x", "b": True, "l": ["x", "y"]}, "many": [{"s": "x"}]}


def test_values():
    tree = Tree(fail)
    table = tree.table(TREE, "t")
    assert tree.string(table, "s", "t") == "x"
    assert tree.boolean(table, "b", "t", False) is True
    assert tree.strings(table, "l", "t") == ("x", "y")
    assert tree.tables(TREE, "many") == [{"s": "x"}]
    tree.check_keys(TREE, "", TREE)


def test_defaults():
    tree = Tree(fail)
    assert tree.table({}, "t") == {}
    assert tree.string({}, "s") is None
    assert tree.boolean({}, "b", "", True) is True
    assert tree.strings({}, "l") == ()
    assert tree.tables({}, "many") == []


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda tree: tree.table(TREE, "a", "p"), "p.a: expected a table, found 1"),
        (lambda tree: tree.mapping([], ""), ": expected a table, found []"),
        (lambda tree: tree.string(TREE, "a"), "a: expected a string, found 1"),
        (lambda tree: tree.boolean(TREE, "a", "", False), "a: expected true or false, found 1"),
        (lambda tree: tree.strings({"l": [1]}, "l"), "l: expected a list of strings, found [1]"),
        (lambda tree: tree.tables({"m": {}}, "m"), "m: expected tables such as [[m]], found {}"),
        (lambda tree: tree.check_keys({"x": 1}, "p", "ab"), "p.x: unknown key; the keys are a, b"),
        (lambda tree: tree.load_toml("x ="), ": not valid TOML: "),
        (lambda tree: tree.load_toml(b"\xff"), ": not valid TOML: "),
    ],
)
def test_errors(read, message):
    with pytest.raises(Wrong) as raised:
        read(Tree(fail))
    assert str(raised.value).startswith(message)


def test_objects():
    with pytest.raises(Wrong, match="p: expected an object, found 1"):
        Tree(fail, "object").mapping(1, "p")


def test_paths():
    assert joined("", "key") == "key"
    assert joined("a.b", "key") == "a.b.key"


ITEMS = st.one_of(
    st.text("a1_.", max_size=3), st.text(max_size=2),
    st.sampled_from(["a" * 64, "a" * 65, "a" * 129]), st.none(),
    st.lists(st.just("a"), max_size=2), st.integers(), st.just({"a": 1}),
)  # fmt: skip


@given(st.lists(ITEMS, max_size=4), st.sampled_from([NAME, VALUE]))
def test_names_are_read_as_one_after_the_other(items, pattern):
    tree = PropertyTree(fail)

    def plain():
        for item in items:
            tree.name(item, "p", pattern, "entry")
        for number, item in enumerate(items):
            if item in items[:number]:
                raise tree.error("p", f"{item!r} is listed twice")
        return tuple(items)

    def outcome(call):
        try:
            return call()
        except Wrong as error:
            return str(error)

    assert outcome(lambda: tree.names(items, "p", pattern)) == outcome(plain)

import pytest
from hypothesis import given
from worlds import metadata

from pep_variants.errors import InconsistentMetadata, MetadataError
from pep_variants.formats.merging import check_promise, merge, merge_all
from pep_variants.model.metadata import Metadata, ProviderInfo

X = {"a": {"f": ("1",)}}
Y = {"a": {"f": ("2",)}}


def same(one, other):
    """Equal, in the orders too that comparing mappings does not look at."""
    return one == other and all(
        list(one.providers[name].static or ()) == list(other.providers[name].static or ())
        for name in one.providers
    )


@given(metadata(), metadata())
def test_contradictions_are_found_whichever_comes_first(a, b):
    def outcome(first, second):
        try:
            return merge(first, second)
        except InconsistentMetadata as error:
            return error

    one, other = outcome(a, b), outcome(b, a)
    assert type(one) is type(other)
    if isinstance(one, Metadata):
        assert same(one, other)
    else:
        assert one.path == other.path


PROVIDER = ProviderInfo(requires=("p",))
STATIC = ProviderInfo(static={"f": ("1",), "g": ("2",)})


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (Metadata(("a",)), Metadata(("b",)), "default-priorities.namespace"),
        (Metadata(("a", "b")), Metadata(("b", "a")), "default-priorities.namespace"),
        (Metadata(("b",)), Metadata(("a", "b")), "default-priorities.namespace"),
        (Metadata(("a", "b")), Metadata(("a", "c", "b")), "default-priorities.namespace"),
        (Metadata((), {"x": X}), Metadata((), {"x": Y}), "variants.x"),
        (Metadata((), {"x": X, "y": X}), Metadata((), {"y": Y, "x": X}), "variants.y"),
        (
            Metadata(providers={"a": PROVIDER}),
            Metadata(providers={"a": ProviderInfo(requires=("q",))}),
            "providers.a",
        ),
        (
            Metadata(providers={"a": PROVIDER}),
            Metadata(providers={"a": ProviderInfo(requires=("p",), optional=True)}),
            "providers.a",
        ),
        (
            # The same values in another order of preference.
            Metadata(providers={"a": STATIC}),
            Metadata(providers={"a": ProviderInfo(static={"g": ("2",), "f": ("1",)})}),
            "providers.a",
        ),
        (
            Metadata(feature_priorities={"a": ("f", "g")}),
            Metadata(feature_priorities={"a": ("g", "f")}),
            "default-priorities.feature.a",
        ),
        (
            Metadata(property_priorities={"a": {"f": ("1", "2")}}),
            Metadata(property_priorities={"a": {"f": ("2", "1")}}),
            "default-priorities.property.a",
        ),
    ],
)
def test_contradiction(one, other, path):
    from dataclasses import replace

    one = replace(one, source="https://u:secret@one/")
    other = replace(other, source="two.json")
    for first, second in ((one, other), (other, one)):
        with pytest.raises(InconsistentMetadata) as raised:
            merge(first, second)
        assert raised.value.path == path
        assert str(raised.value).startswith(f"{path} differs: ")
        assert "https://****@one/ says" in str(raised.value)
        assert "two.json says" in str(raised.value)
        assert "secret" not in str(raised.value)


def test_merging_one_and_none():
    only = Metadata(("a",), {"x": X})
    assert merge_all([only]) is only
    with pytest.raises(TypeError):
        merge_all([])


# What was promised is what is installed.

PROMISED = Metadata(("a",), {"x": X, "y": Y, "null": {}}, source="https://index/x.json")


def test_broken_promise():
    wheel = Metadata(("a",), {"x": {"a": {"f": ("2", "3")}}}, source="x.whl")
    with pytest.raises(InconsistentMetadata) as raised:
        check_promise(PROMISED, wheel, "x")
    assert str(raised.value) == (
        "variants.x differs: https://index/x.json says a :: f :: 1, "
        "x.whl says a :: f :: 2, a :: f :: 3"
    )


def test_label_that_was_not_promised():
    with pytest.raises(InconsistentMetadata, match=r"says nothing, x\.whl says a :: f :: 1"):
        check_promise(PROMISED, Metadata(("a",), {"z": X}, source="x.whl"), "z")


@pytest.mark.parametrize(
    ("variants", "found"),
    [
        ({"y": X}, "'y'"),
        ({"x": X, "y": Y}, "'x', 'y'"),
        ({}, "none"),
        ({"null": {}}, "'null'"),
        (dict.fromkeys("abcdefg", X), "'a', 'b', 'c', 'd'"),
    ],
)
def test_wheel_with_other_labels(variants, found):
    with pytest.raises(MetadataError) as raised:
        check_promise(PROMISED, Metadata(("a",), variants, source="x.whl"), "x")
    assert str(raised.value) == (
        f"x.whl: variants: the filename has label 'x', the metadata inside lists {found}"
    )


def test_the_two_that_contradict_each_other_are_named():
    files = [
        Metadata(("a",), {label: {"a": {"f": (value,)}}}, source=f"{number}.whl")
        for number, (label, value) in enumerate([("x", "1"), ("y", "2"), ("z", "3"), ("y", "4")])
    ]
    with pytest.raises(InconsistentMetadata) as raised:
        merge_all(files)
    assert raised.value.sources == ("1.whl", "3.whl")

import pytest

from pep_variants._formats.merging import check_promise, merge, merge_all
from pep_variants._model.metadata import Metadata, ProviderInfo
from pep_variants.errors import InconsistentMetadata, MetadataError

X = {"a": {"f": ("1",)}}
Y = {"a": {"f": ("2",)}}
PROVIDER = ProviderInfo(requires=("p",))


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (Metadata(("a", "b")), Metadata(("b", "a")), "default-priorities.namespace"),
        (Metadata((), {"x": X}), Metadata((), {"x": Y}), "variants.x"),
        (
            Metadata(providers={"a": PROVIDER}),
            Metadata(providers={"a": ProviderInfo(requires=("p",), optional=True)}),
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


def test_wheel_with_other_labels():
    found = Metadata(("a",), dict.fromkeys("abcdefg", X), source="x.whl")
    with pytest.raises(MetadataError, match=r"has label 'x', .* lists 'a', 'b', 'c', 'd'$"):
        check_promise(PROMISED, found, "x")


def test_the_two_that_contradict_each_other_are_named():
    files = [
        Metadata(("a",), {label: {"a": {"f": (value,)}}}, source=f"{number}.whl")
        for number, (label, value) in enumerate([("x", "1"), ("y", "2"), ("z", "3"), ("y", "4")])
    ]
    with pytest.raises(InconsistentMetadata) as raised:
        merge_all(files)
    assert raised.value.sources == ("1.whl", "3.whl")

from pep_variants._choose.preferences import Preferences
from pep_variants._choose.ranking import Reason, rank
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants._model.property import Selector

MACHINE = Platform(
    {
        "a": Support({"f": ("3", "2", "1"), "g": ("on",)}),
        "b": Support({"f": ("x", "y")}),
    }
)


def ranking(variants, **preferences):
    return rank(Metadata(("a", "b"), variants), MACHINE, Preferences(**preferences))


def test_reasons():
    variant = {
        "b": {"f": ("q", "z")},
        "a": {"f": ("9",), "g": ("on",), "h": ("1", "2")},
        "c": {"f": ("1",)},
    }
    found = ranking(
        {"l": variant, "m": {"a": {"f": ("3",)}}},
        exclude=(Selector("b"), Selector("a", "f"), Selector("a", "g", "on"), Selector("d")),
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
    assert found.rejected[0] == ("l", variant, found.reasons("l"))
    assert found.reasons("unknown") == found.reasons("null") == ()


def test_supported_properties_and_positions():
    variant = {"b": {"f": ("q", "x", "y")}, "a": {"f": ("1", "3", "9"), "g": ("on",)}}
    found = ranking(
        {"m": {"a": {"f": ("9",)}}, "n": {"a": {"f": ("2",)}}, "l": variant, "null": {}},
        prefer=(Selector("b"), Selector("a", "f", "1")),
    )
    supported = found.supported("l")
    assert [(name, list(features.items())) for name, features in supported.items()] == [
        ("b", [("f", ("x", "y"))]),
        ("a", [("f", ("1", "3")), ("g", ("on",))]),
    ]
    assert found.ranked[0] == ("l", variant, supported)
    assert found.supported("null") == found.supported("unknown") == {}
    assert [found.positions[label] for label in ("l", "n", "null")] == [0, 1, 2]
    assert "m" not in found.positions

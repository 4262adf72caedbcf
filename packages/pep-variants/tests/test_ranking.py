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

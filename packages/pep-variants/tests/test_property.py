import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.errors import InvalidProperty
from pep_variants.model.metadata import natural
from pep_variants.model.property import Property, Selector

PROPERTIES = {
    "nvidia": {"sm_arch": ("90_real", "90_virtual"), "cuda_version_lower_bound": ("12.8",)},
    "x86_64": {"level": ("v3",)},
}


@pytest.mark.parametrize(
    "text",
    [
        "  nvidia ::sm_arch::   90_real\t",
    ],
)
def test_property(text):
    parsed = Property.parse(text)
    assert parsed == ("nvidia", "sm_arch", "90_real")
    assert str(parsed) == "nvidia :: sm_arch :: 90_real"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (" x86_64 ", ("x86_64", None, None)),
        ("x86_64::level", ("x86_64", "level", None)),
        ("x86_64 :: level :: v3", ("x86_64", "level", "v3")),
    ],
)
def test_selector(text, parsed):
    selector = Selector.parse(text)
    assert selector == parsed
    assert Selector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "quoted", "kind"),
    [
        ("", "''", "namespace"),
        ("Nvidia", "'Nvidia'", "namespace"),
        ("a :: b.c", "'b.c'", "feature"),
    ],
)
def test_malformed_part(text, quoted, kind):
    with pytest.raises(InvalidProperty) as raised:
        Selector.parse(text)
    message = f"{quoted} in {text!r} is not a valid {kind}: it must match [a-z"
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("text", ["a", "a :: b"])
def test_no_whole_property(text):
    with pytest.raises(InvalidProperty, match=f"'{text}' is not a property: write 'namespace ::"):
        Property.parse(text)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("amd", False),
        ("nvidia :: other", False),
        ("x86_64 :: sm_arch", False),
        ("nvidia :: sm_arch :: 90_virtual", True),
        ("nvidia :: sm_arch :: 80_real", False),
        ("x86_64 :: level :: v3", True),
    ],
)
def test_matches(text, matches):
    assert Selector.parse(text).matches(PROPERTIES) is matches
    assert not Selector.parse(text).matches({})


def parts(value: str) -> tuple[tuple[int, int | str], ...]:
    """Return numbers, which come first, and texts."""
    found = ("".join(group) for _, group in itertools.groupby(value, str.isdigit))
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in found)


VALUES = st.text("019az_.", max_size=8)


@given(VALUES, VALUES)
def test_natural_order_is_that_of_the_parts(first, second):
    plain = (parts(first), first) < (parts(second), second)
    assert (natural(first) < natural(second)) is plain

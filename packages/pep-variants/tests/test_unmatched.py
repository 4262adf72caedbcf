"""Names on the command line that match nothing."""

import pytest

from pep_variants.choose.preferences import Preferences, unmatched
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Selector

SEEN = [
    Metadata(("nvidia", "x86_64"), {"v3": {"x86_64": {"level": ("v3",)}}}),
    Metadata(("nvidia",), {"cu": {"nvidia": {"sm_arch": ("90_real",)}}}),
]


@pytest.mark.parametrize(
    ("option", "preferences", "name"),
    [
        ("--variant", Preferences(forced={"gppu": "cu"}), "--variant gppu=cu: this command has"),
        (
            "--variant-exclude",
            Preferences(exclude=(Selector.parse("x86_63"), Selector.parse("x86_64"))),
            "--variant-exclude 'x86_63' matches no variant",
        ),
        (
            "--variant-prefer",
            Preferences(prefer=(Selector.parse("nvidia :: sm_arch :: 91"),)),
            "--variant-prefer 'nvidia :: sm_arch :: 91' matches no variant",
        ),
        (
            "--variant-enable",
            Preferences(enable=frozenset(("nope", "nvidia"))),
            "--variant-enable 'nope' matches no variant",
        ),
    ],
)
def test_a_name_that_matches_nothing(option, preferences, name):
    for arguments in (["install", option, "x", "gpu"], ["install", f"{option}=x", "gpu"]):
        (text,) = unmatched(preferences, arguments, ["gpu"], SEEN)
        assert text.startswith(name)
    # From a setting or a variable it is for all commands.
    assert unmatched(preferences, ["install", "gpu"], ["gpu"], SEEN) == ()


def test_what_matches_is_not_mentioned():
    preferences = Preferences(
        forced={"gpu": "cu"},
        prefer=(Selector.parse("nvidia :: sm_arch"),),
        exclude=(Selector.parse("x86_64"),),
        enable=frozenset(("nvidia",)),
    )
    options = ["--variant", "--variant-prefer", "--variant-exclude", "--variant-enable"]
    assert unmatched(preferences, options, ["gpu", "other"], SEEN) == ()
    assert unmatched(preferences, options, ["gpu"], []) == ()

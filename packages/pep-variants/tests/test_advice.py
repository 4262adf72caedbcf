"""Advice about what is installed: only what is better, and why."""

from __future__ import annotations

import pytest

from pep_variants.choose.preferences import Preferences
from pep_variants.choose.rejections import advise
from pep_variants.choose.selection import File, select
from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.platform import Platform, Support

METADATA = Metadata(
    namespaces=("x86_64",),
    variants={"null": {}, **{f"v{n}": {"x86_64": {"level": (f"v{n}",)}} for n in (1, 2, 3)}},
    providers={"x86_64": ProviderInfo(builtin="x86_64")},
    source="page",
)
LABELS = ("null", "v1", "v2", "v3")


def selection(*labels, level="v2"):
    """What is chosen of these labels by a CPU of that level; None is no variant."""
    levels = ("v3", "v2", "v1")
    platform = Platform({"x86_64": Support({"level": levels[levels.index(level) :]})})
    files = [
        File(f"a-1.0-py3-none-any{f'-{label}' if label else ''}.whl", "page", label)
        for label in labels
    ]
    return select(
        files,
        metadata=lambda _: METADATA,
        platform=lambda _: platform,
        preferences=Preferences(),
        project="a",
    )


CASES = {
    "the best": (LABELS, "v2", None),
    "a lesser one": (LABELS, "v1", "as variant v1; variant v2 fits better (x86-64-v2)"),
    "the null variant": (LABELS, "null", "as variant null; variant v2 fits better (x86-64-v2)"),
    "one that does not fit": (
        LABELS,
        "v3",
        "as variant v3, which does not fit this machine (needs x86-64-v3, this CPU has x86-64-v2); "
        "variant v2 does",
    ),
    "no variant": (LABELS, None, "without variant; variant v2 fits better (x86-64-v2)"),
    "no variant where only null fits": (("null", "v3"), None, None),
    "no variant where there are none": ((None,), None, None),
    "one that is not known": (LABELS, "other", None),
    "one that is the best of those that are left": (("null", None), "null", None),
    "one that is not there any more": (("v3", None), "null", None),
    "one that does not fit, and no other": (
        ("v3", None),
        "v3",
        "as variant v3, which does not fit this machine (needs x86-64-v3, this CPU has x86-64-v2); "
        "the non-variant file does",
    ),
    "the only one, which does not fit": (("v3",), "v3", None),
}


@pytest.mark.parametrize(("labels", "installed", "text"), CASES.values(), ids=CASES)
def test_advice(labels, installed, text):
    advice = advise(selection(*labels), installed)
    found = None if advice is None else advice.text("a", "1.0")
    assert found == (text and f"a 1.0 is installed {text}")

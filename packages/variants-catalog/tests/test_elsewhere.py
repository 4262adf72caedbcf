"""What is said about versions without variants."""

import pytest

from pep_variants.model.variant_indexes import VARIANT_INDEXES, indexes_with
from variants_catalog.catalogs import no_variants

PYTORCH = "https://download.pytorch.org/whl/variant/"
COLLECTED = "https://variants-index.wheelnext.dev/"
CATALOG = "the catalogue describes builds of it: add --variant-catalog default"
PAGE = "https://index.example/simple/torch/"


@pytest.mark.parametrize(
    ("project", "options", "said"),
    [
        ("six", {}, f"six 1.0 has no variants on {PAGE}, and none are known elsewhere"),
        ("six", {"places": ()}, "six 1.0 has no variants, and none are known elsewhere"),
        (
            "torch",
            {},
            f"torch 1.0 has no variants on {PAGE}; {CATALOG}; "
            f"indexes with variants of it, for -i: {PYTORCH}, {COLLECTED}",
        ),
        (
            "torch",
            {"places": (f"{PYTORCH}torch/",), "older": "0.9", "asked_catalog": True},
            f"torch 1.0 has no variants on {PYTORCH}torch/; torch==0.9 there has some; "
            f"indexes with variants of it, for -i: {COLLECTED}",
        ),
        (
            "six",
            {"other_platforms": True},
            f"six 1.0 has variants on {PAGE}, but no wheel of them is for the target, "
            "and none are known elsewhere",
        ),
    ],
)
def test_no_variants(project, options, said):
    given = {"places": (PAGE,), **options}
    assert no_variants(project, "1.0", given.pop("places"), **given) == said


def test_indexes():
    """Each is an HTTPS URL of a folder, its projects are in order; the publisher's comes first."""
    for index in VARIANT_INDEXES:
        assert index.url.startswith("https://")
        assert index.url.endswith("/")
        assert list(index.projects) == sorted(set(index.projects))
    assert indexes_with("torch") == (PYTORCH, COLLECTED)
    assert indexes_with("six") == ()

"""What is said about versions without variants."""

import pytest

from variants_catalog.catalogs import no_variants

PYTORCH = "https://download.pytorch.org/whl/variant/"
CATALOG = "the catalogue describes builds of it: add --variant-catalog default"
PAGE = "https://index.example/simple/torch/"


@pytest.mark.parametrize(
    ("project", "options", "said"),
    [
        ("six", {"places": ()}, "six 1.0 has no variants, and none are known elsewhere"),
        (
            "torch",
            {},
            f"torch 1.0 has no variants on {PAGE}; {CATALOG}",
        ),
        (
            "torch",
            {"places": (f"{PYTORCH}torch/",), "older": "0.9", "asked_catalog": True},
            f"torch 1.0 has no variants on {PYTORCH}torch/; torch==0.9 there has some",
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

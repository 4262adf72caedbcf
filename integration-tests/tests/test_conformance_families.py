"""The generated families of the conformance corpus, and the reference that they come from."""

from __future__ import annotations

import pytest

from conformance import FOLDER, reference
from conformance.families import FAMILIES
from conformance.generate import outdated

# The example of PEP 825, "Index-level metadata".
BLAS = {
    "default-priorities": {"namespace": ["x86_64", "aarch64", "blas_lapack"]},
    "variants": {
        "null": {},
        "x86_64_v3_openblas": {
            "blas_lapack": {"library": ["openblas"]},
            "x86_64": {"level": ["v3"]},
        },
        "x86_64_v4_mkl": {"blas_lapack": {"library": ["mkl"]}, "x86_64": {"level": ["v4"]}},
    },
}
LIBRARIES = {"library": ["openblas", "mkl"]}


def test_stored_families_are_what_the_generator_writes():
    assert outdated() == []


def test_readme_has_the_number_of_cases():
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert f" {sum(item.size for item in FAMILIES)} random cases" in readme


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (["v4", "v3"], ["x86_64_v4_mkl", "x86_64_v3_openblas", "null"]),
        (["v3", "v2"], ["x86_64_v3_openblas", "null"]),
        (["v2"], ["null"]),
    ],
)
def test_reference_orders_the_example_of_the_pep(levels, expected):
    machine = {"blas_lapack": LIBRARIES, "x86_64": {"level": levels}}
    assert reference.order(BLAS, machine) == expected


def test_reference_filters_properties_before_markers_see_them():
    # The example of PEP 825, "Environment markers".
    properties = {"nvidia": {"sm_arch": ["110_real", "120_real"]}}
    marker = ("in", "nvidia :: sm_arch :: 110_real", "variant_properties")
    both = {"nvidia": {"sm_arch": ["120_real", "110_real"]}}
    one = {"nvidia": {"sm_arch": ["120_real"]}}
    assert reference.holds(marker, "cuda", properties, both)
    assert not reference.holds(marker, "cuda", properties, one)

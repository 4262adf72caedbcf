"""What is printed of a forced variant that cannot be had."""

import pytest

from uv_variants.choices import VersionChoice, why_missing

MAC = {"torch-2.9.0-py3-none-macosx_11_0_arm64.whl": None}
LINUX = "torch-2.9.0-py3-none-manylinux_2_17_x86_64.whl"
WHY = "torch 2.9.0 has no variant 'cu130', which --variant torch=cu130 asks for"


def version(labels, missing=""):
    return VersionChoice(labels, (), (), (), missing=missing)


@pytest.mark.parametrize(
    ("label", "labels", "missing"),
    [
        ("cu128", {LINUX: "cu128", **MAC}, ""),
        # A wheel for another platform is not what was asked for.
        ("cu128", MAC, WHY),
        ("cu128", {}, WHY),
        ("", {LINUX: "cu128"}, WHY),
        ("", MAC, ""),
    ],
)
def test_why_missing(label, labels, missing):
    found = why_missing("torch", label, {"2.9.0": version(labels, WHY)})
    assert found == (missing or None)


def test_an_older_version_has_it():
    versions = {"2.9.0": version(MAC), "2.8.0": version({LINUX: "cu128"})}
    assert why_missing("torch", "cu128", versions) is None


def test_no_variants_at_all():
    assert why_missing("torch", "cu128", {}) == (
        "torch has no variants, but --variant torch=cu128 asks for one"
    )
    assert why_missing("torch", "", {}) is None

"""What is printed of a forced variant that cannot be had."""

import pytest

from uv_variants.proxy_client import Verdict, VersionChoice
from uv_variants.report import why_missing

MAC = {"torch-2.9.0-py3-none-macosx_11_0_arm64.whl": None}
LINUX = "torch-2.9.0-py3-none-manylinux_2_17_x86_64.whl"
VERDICTS = (
    Verdict("null", "compatible", "always fits"),
    Verdict("cu128", "rejected", "needs CUDA driver 12.8 or newer"),
)


def version(labels):
    return VersionChoice(labels, VERDICTS, (), ())


@pytest.mark.parametrize(
    ("label", "labels", "expected"),
    [
        ("cu128", {LINUX: "cu128", **MAC}, None),
        # A wheel for another platform is not what was asked for.
        ("cu128", MAC, "does not fit: needs CUDA driver 12.8 or newer. Variants that fit: null"),
        ("cu128", {}, "does not fit: needs CUDA driver 12.8 or newer. Variants that fit: null"),
        ("cu130", MAC, "has no variant 'cu130', which --variant torch=cu130 asks for; there are"),
        ("", {LINUX: "cu128"}, "has no non-variant wheel"),
        ("", MAC, None),
    ],
)
def test_why_missing(label, labels, expected):
    found = why_missing("torch", label, {"2.9.0": version(labels)})
    assert found is None if expected is None else expected in found


def test_an_older_version_has_it():
    versions = {"2.9.0": version(MAC), "2.8.0": version({LINUX: "cu128"})}
    assert why_missing("torch", "cu128", versions) is None


def test_no_variants_at_all():
    assert why_missing("torch", "cu128", {}) == (
        "torch has no variants, but --variant torch=cu128 asks for one"
    )
    assert why_missing("torch", "", {}) is None

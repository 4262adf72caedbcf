"""What is printed of variants: those that were taken, and a forced one that cannot be had."""

from dataclasses import replace

import pytest
from packaging.version import Version

from pep_variants.selection import Verdict
from pep_variants.wheel_files import Installed
from uv_variants._choices import Choices, report_variants, systems_with, why_missing
from variants_proxy._choice.reports import LockedLabel, VersionReport

MAC = {"torch-2.9.0-py3-none-macosx_11_0_arm64.whl": None}
LINUX = "torch-2.9.0-py3-none-manylinux_2_17_x86_64.whl"
WHY = "torch 2.9.0 has no variant 'cu130', which --variant torch=cu130 asks for"


def version(labels, missing=""):
    return VersionReport(Version("2.9.0"), labels, missing=missing)


@pytest.mark.parametrize(
    ("label", "labels", "missing"),
    [
        ("cu128", {LINUX: "cu128", **MAC}, ""),
        ("cu128", MAC, WHY),  # a wheel for another platform is not what was asked for
        ("", {LINUX: "cu128"}, WHY),
        ("", MAC, ""),
    ],
)
def test_why_missing(label, labels, missing):
    found = why_missing("torch", label, {"2.9.0": version(labels, WHY)})
    assert found == (missing or None)


def test_why_missing_of_several_versions_or_none():
    versions = {"2.9.0": version(MAC), "2.8.0": version({LINUX: "cu128"})}
    assert why_missing("torch", "cu128", versions) is None
    problem = "torch has no variants, but --variant torch=cu128 asks for one"
    assert why_missing("torch", "cu128", {}) == problem
    assert why_missing("torch", "", {}) is None


AARCH64 = "torch-2.9.0-py3-none-manylinux_2_17_aarch64.whl"


@pytest.mark.parametrize(
    ("labels", "systems"),
    [
        (
            {LINUX: "cu128", "torch-2.9.0-py3-none-win_amd64.whl": "cu128", **MAC},
            {"cu128": "Linux and Windows"},
        ),
        ({LINUX: "cu128", AARCH64: "null"}, {"cu128": "Linux x86_64", "null": "Linux aarch64"}),
        ({"torch-2.9.0-py3-none-any.whl": "cu128"}, {"cu128": ""}),
    ],
)
def test_the_systems_of_a_lock_are_named(capsys, labels, systems):
    taken = [Installed("torch", Version("2.9.0"), label) for label in systems]
    assert {each.label: systems_with(version(labels), each.label) for each in taken} == systems
    report_variants([*taken, *taken], Known(version(labels)), verbose=False)
    for line, label in zip(capsys.readouterr().err.splitlines(), [*systems, *systems], strict=True):
        on = f" on {systems[label]}" if systems[label] else ""
        assert line == f"Variant {label} for torch 2.9.0{on}"


class Known(Choices):
    """The choices for one version of torch, for which no index is asked."""

    def __init__(self, choice):
        self._versions = {"torch": {"2.9.0": choice}}


@pytest.mark.parametrize(
    ("locked", "why"),
    [((), "CUDA 12.8"), ((LockedLabel("cu128", False, "no GPU", "cu126"),), "the lock has it")],
)
def test_why_one_was_taken(capsys, locked, why):
    chosen = Verdict("cu128", "chosen", "CUDA 12.8")
    choice = replace(version({LINUX: "cu128"}), verdicts=(chosen,), why=chosen.why, locked=locked)
    report_variants([Installed("torch", Version("2.9.0"), "cu128")], Known(choice), verbose=False)
    assert capsys.readouterr().err == f"Variant cu128 for torch 2.9.0: {why}\n"
    report_variants([Installed("torch", Version("2.9.0"), "cu128")], Known(choice), verbose=True)
    assert capsys.readouterr().err.startswith("Variants of torch 2.9.0:\n  cu128  chosen")

"""Which build of a project an accelerator takes, and from which versions."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from pep_variants.machines import Detector, load_machine
from pep_variants.preferences import Preferences
from variants_catalog import catalogs
from variants_catalog.entries import CatalogProject
from variants_catalog.listings import Unavailable

HOST = "https://example.org/whl"
ENTRY = f"""\
catalog-version = "1"
[project]
name = "net"
documentation = "https://example.org/start"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda13"
requires = ["net-gpu[cuda]=={{version}}"]
versions = ">=1.27"
properties = ["nvidia :: cuda_version_lower_bound :: 13.0"]
[[variant]]
label = "cuda12"
requires = ["net-gpu[cuda]=={{version}}"]
versions = ">=1.21,<1.27"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0", "nvidia :: sm_arch :: 70_real"]
[[variant]]
label = "cuda12.8"
index = "{HOST}/cu128"
local = "cu128"
versions = "==1.20.*"
properties = ["nvidia :: cuda_version_lower_bound :: 12.8"]
[[variant]]
label = "cuda12.6_other{{other}}"
index = "{HOST}/cu126"
local = "cu126other{{other}}"
properties = [
    "nvidia :: cuda_version_lower_bound :: 12.0", "abi_dependency :: other :: {{other}}",
]
[[variant]]
label = "null"
"""


@pytest.fixture
def entry(tmp_path) -> CatalogProject:
    (tmp_path / "net.toml").write_text(ENTRY)
    found = catalogs.open_catalog(tmp_path).project("net")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("accelerator", "wanted", "label"),
    [
        ("cuda13.0", "", "cuda13"),
        ("cuda13.0", "<1.27", None),
        ("cuda12.6", "", "cuda12"),
        ("cuda12.6", "==1.22", "cuda12"),
        ("cuda12.6", "==1.20.1", None),
        ("cuda12.9", "==1.20.1", "cuda12.8"),
        ("cuda12.8", "", "cuda12.8"),
        ("cuda12", "==1.20.*", "cuda12.8"),
        ("cuda11.8", "", None),
        ("rocm7.2", "", None),
        ("cpu", "", "null"),
        ("cuda12.6_other2.0", "", None),
    ],
)
def test_build_for_an_accelerator(entry, accelerator, wanted, label):
    build = catalogs.build_for(entry, accelerator, SpecifierSet(wanted))
    assert (None if build is None else build.label) == label


@pytest.mark.parametrize(
    ("accelerator", "versions"), [("cuda12.6", "<1.27,>=1.21"), ("cuda13.0", ">=1.21"), ("cpu", "")]
)
def test_versions_of_a_build(entry, accelerator, versions):
    build = catalogs.build_for(entry, accelerator)
    assert str(catalogs.build_versions(entry, build)) == versions


@pytest.mark.parametrize(
    ("machine", "wanted", "accelerator"),
    [
        ("cuda=13.0,sm=9.0,cpu=zen4", "", "cuda13"),
        ("cuda=12.8,sm=7.0,cpu=zen4", "", "cuda12"),
        ("cuda=12.8,sm=9.0,cpu=zen4", "", "cuda12.8"),
        ("cuda=12.8,sm=9.0,cpu=zen4", ">=1.21", "cpu"),
        ("rocm=7.0,gfx=gfx942,cpu=zen4", "", "cpu"),
        ("laptop-alderlake", "", "cpu"),
    ],
)
def test_accelerator_of_a_machine(entry, machine, wanted, accelerator):
    detector = Detector(platform=load_machine(machine))
    found = catalogs.accelerator_of(entry, detector.platform, Preferences(), SpecifierSet(wanted))
    assert found == accelerator


@pytest.mark.parametrize(
    ("requirement", "version", "place", "label"),
    [
        ("net-gpu[cuda]", "1.30", "https://pypi.org/simple", "cuda13"),
        ("net-gpu[cuda,more]", "1.22", "https://pypi.org/simple", "cuda12"),
        ("net-gpu", "1.22", "https://pypi.org/simple", None),
        ("net", "1.20.1+cu128", f"{HOST}/cu128/", "cuda12.8"),
        ("net", "1.20.1+cu128", f"{HOST}/cu999", None),
        ("net", "1.22", "https://pypi.org/simple", "null"),
        ("other", "1.22", "https://pypi.org/simple", None),
    ],
)
def test_build_of_a_lock(entry, requirement, version, place, label):
    found = catalogs.locked_build(entry, Requirement(requirement), Version(version), place)
    assert (None if found is None else found.label) == label


def test_builds_for_other_platforms_are_none_of_the_machine(tmp_path):
    """The shipped torch has other GPU code for aarch64 under the same label."""
    table = """\
[[variant]]
label = "cuda12.6"
index = "https://example.org/whl/cu126"
platforms = ["{}"]
properties = ["nvidia :: sm_arch :: {}_real"]
"""
    head = ENTRY.partition("[[variant]]")[0]
    tables = [table.format("manylinux_2_28_x86_64", 70), table.format("manylinux_2_28_aarch64", 90)]
    (tmp_path / "net.toml").write_text(head + "".join(tables))
    entry = catalogs.open_catalog(tmp_path).project("net")
    platform = Detector(platform=load_machine("cuda=12.8,sm=7.0,cpu=zen4")).platform
    for machine, accelerator in (("linux_x86_64", "cuda12.6"), ("linux_aarch64", "cpu")):
        found = catalogs.accelerator_of(entry, platform, Preferences(), machine=machine)
        assert found == accelerator
        locked = Requirement("net"), Version("1.0"), "https://example.org/whl/cu126"
        build = catalogs.locked_build(entry, *locked, machine)
        assert build.is_for([machine])


@pytest.mark.parametrize(
    ("machine", "forced", "labels"),
    [
        ("cuda=12.8,sm=7.0", "", ("cuda12", "cuda12.8", "cuda12.6_other{other}", "null")),
        ("cuda=13.0,sm=6.1", "", ("cuda13", "cuda12.8", "cuda12.6_other{other}", "null")),
        ("gfx=gfx1100", "", ("null",)),
        ("gfx=gfx1100", "cuda13", ("cuda13", "null")),
    ],
)
def test_what_a_machine_misses(entry: CatalogProject, machine: str, forced: str, labels) -> None:
    """Of builds that cannot be had, those that it could take, and the one that the user names."""
    every = ("cuda13", "cuda12", "cuda12.8", "cuda12.6_other{other}", "null")
    item = Unavailable("net", "https://example.org", "down", every, 5, ("",) * 5)
    variants = Unavailable("net", "https://other.example", "down")
    found = catalogs.missed_here(
        entry,
        [item, variants],
        Detector(platform=load_machine(machine)).platform,
        Preferences(forced={"net": forced} if forced else {}),
    )
    assert [each.labels for each in found] == [labels, ()]

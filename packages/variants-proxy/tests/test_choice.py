"""What is shown, and that an installer without variants takes what one with them would."""

import json
from dataclasses import replace
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from upstream_server import document
from worlds import NVIDIA

from pep_variants._choose.preferences import Preferences, preferences_from_options
from pep_variants._choose.selection import File, select
from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import read_metadata
from pep_variants.errors import MetadataError
from pep_variants.labels import split_label
from variants_index.pages import Page, PageFile
from variants_index.target import covers, make_target
from variants_proxy._choice.choice import Chooser
from variants_proxy._choice.offers import version_in
from variants_proxy._choice.reports import (
    held_back,
    is_notable,
    older_builds,
    refusal,
    version_report,
)
from variants_proxy._key import Machine
from variants_proxy._upstream.releases import plain_releases, releases, versions_of

MACHINE = Machine(NVIDIA, target="linux-x86_64")
METADATA = read_metadata(json.dumps(document("12.6", "12.8", "13.0")), "x")
TAGS = (
    "py3-none-any", "cp312-cp312-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_28_x86_64",
    "cp311-cp311-manylinux_2_28_x86_64", "cp39-abi3-manylinux2014_x86_64",
    "cp312-cp312-musllinux_1_2_x86_64", "cp312-cp312-manylinux_2_28_aarch64",
    "cp312-cp312-win_amd64", "py3-none-manylinux_2_17_x86_64", "py2.py3-none-any",
    "cp312-cp312-manylinux1_x86_64.manylinux_2_5_x86_64", "cp312-cp312-macosx_11_0_arm64",
)  # fmt: skip
LABELS = ("", "-null", "-cu126", "-cu128", "-cu130", "-unknown")
ENVIRONMENTS = [
    make_target(python_version=python, platforms=[f"{libc}_x86_64"]).tags
    for python, libc in (
        ("3.12", "manylinux_2_35"), ("3.12", "manylinux_2_17"), ("3.11", "manylinux_2_28"),
        ("3.12", "musllinux_1_2"), ("3.13", "manylinux_2_35"),
    )
]  # fmt: skip

names = st.lists(
    st.builds(
        lambda tag, label, build: f"app-1.0-{build}{tag}{label}.whl",
        st.sampled_from(TAGS),
        st.sampled_from(LABELS),
        st.sampled_from(["", "", "1-", "2-"]),
    ),
    unique=True,
    max_size=25,
)


def page_of(filenames):
    return Page("app", tuple(PageFile(name, f"https://x.example/{name}") for name in filenames))


def chosen(filenames, machine=MACHINE, metadata=METADATA, limit=10, **options):
    page = page_of(filenames) if not isinstance(filenames, Page) else filenames

    def read(release):
        if isinstance(metadata, Exception):
            raise metadata
        return metadata

    return Chooser(machine, read, limit, **options).choose(page, releases(page))


def installed(plain_names, tags):
    """Return what an installer without variants takes: the best tag, then the highest build."""
    places = {tag: place for place, tag in enumerate(tags)}
    found = [
        # As packaging orders build tags: none is lower than any.
        (-min(fitting), build, name)
        for name in plain_names
        for _, _, build, wheel_tags in [parse_wheel_filename(name)]
        if (fitting := [places[tag] for tag in wheel_tags if tag in places])
    ]
    return max(found, key=itemgetter(0, 1))[2] if found else None


@settings(max_examples=150, deadline=None)
@given(names, st.sampled_from(range(len(ENVIRONMENTS))))
def test_an_installer_without_variants_takes_what_one_with_them_would(filenames, number):
    """And every file shown is of the page, and once, whatever the order of the page is."""
    tags = ENVIRONMENTS[number]
    found = chosen(filenames).offers
    offers = {offer.filename: offer for offer in found}
    assert len(offers) == len(found)
    for offer in found:
        label = f"-{offer.label}" if offer.label else ""
        assert offer.file.filename == f"{offer.filename[:-4]}{label}.whl"
        assert offer.label not in ("cu130", "unknown")
    backwards = {offer.filename: offer.label for offer in chosen(filenames[::-1]).offers}
    assert backwards == {offer.filename: offer.label for offer in found}
    expected = select(
        [File(name, "here", name) for name in filenames],
        metadata=lambda _: METADATA,
        platform=Detector(platform=MACHINE.platform).platform,
        preferences=Preferences(),
        project="app",
        tags=tags,
    )
    taken = installed(offers, tags)
    assert (taken is None) == (expected.chosen is None)
    if taken is not None and offers[taken].label != expected.chosen.label:
        # Only because there are environments that have nothing else: an old libc, say.
        better = split_label(expected.chosen.filename)[0]
        assert not covers(
            "-".join(better[:-4].split("-")[-3:]), "-".join(taken[:-4].split("-")[-3:])
        )


@pytest.mark.parametrize(("forced", "label"), [((), "cu128"), (("app=cu126",), "cu126")])
def test_wheels_for_others_have_no_variant_of_ours(forced, label):
    """A forced variant is forced on this platform only."""
    filenames = [f"app-1.0-cp312-cp312-{tag}-{name}.whl" for name in ("cu126", "cu128", "null")
                 for tag in ("win_amd64", "linux_x86_64", "macosx_11_0_arm64")]  # fmt: skip
    machine = replace(MACHINE, preferences=preferences_from_options({"variant": list(forced)}))
    found = {offer.filename[20:-4]: offer.label for offer in chosen(filenames, machine).offers}
    assert found == {"win_amd64": "null", "linux_x86_64": label, "macosx_11_0_arm64": "null"}


def test_metadata_that_cannot_be_used_costs_one_version_its_variants():
    filenames = ["app-1.0-py3-none-any-cu128.whl", "app-1.0-py3-none-any-null.whl",
                 "app-1.0-py3-none-any.whl", "app-0.9-py3-none-any.whl"]  # fmt: skip
    choice = chosen(filenames, metadata=MetadataError("x", "", "is broken"))
    assert [offer.file.filename for offer in choice.offers] == filenames[2:]
    assert choice.decisions[0].selection.problems


def test_versions_are_told_apart_however_they_are_spelled():
    filenames = ["app-1.0-py3-none-any-cu128.whl", "app-1.0.0-py3-none-any-null.whl",
                 "app-2-py3-none-any-cu126.whl", "app-x.y-py3-none-any-cu126.whl"]  # fmt: skip
    found = releases(page_of([*filenames, "app-1-variants.json", "other-2-variants.json"]))
    assert [(str(item.version), len(item.wheels)) for item in found] == [("2", 1), ("1.0", 2)]
    assert [item.document and item.document.filename for item in found] == [
        None, "app-1-variants.json",
    ]  # fmt: skip


def test_versions_without_variants():
    filenames = ["app-1.0-py3-none-any-cu128.whl", "app-1.0-py3-none-any.whl", "app-0.9.tar.gz",
                 "app-0.9-py3-none-any.whl", "app-0.9.0-1-py3-none-any.whl", "app-2-1.whl",
                 "app-0.10-py3-none-any.whl", "app-x-py3-none-any.whl"]  # fmt: skip
    page = page_of(filenames)
    found = plain_releases(versions_of(page), releases(page))
    assert [(str(item.version), len(item.wheels)) for item in found] == [("0.10", 1), ("0.9", 2)]
    assert [str(item.version) for item in plain_releases(versions_of(page))] == [
        "1.0",
        "0.10",
        "0.9",
    ]


@pytest.mark.parametrize("rest", ["py3-none-any.whl", "py3-none-any-cu128.whl", "variants.json"])
def test_names_beyond_the_limits_are_no_wheels(rest):
    """Versions of thousands of digits, which `int` refuses with an error."""
    hostile, good = f"app-{'9' * 5000}-{rest}", "app-1.0-py3-none-any-cu126.whl"
    (release,) = releases(page_of([hostile, good]))
    assert (release.version, len(release.wheels)) == (Version("1.0"), 1)
    assert plain_releases(versions_of(page_of([hostile]))) == ()


@pytest.mark.parametrize(
    ("python", "tags", "values", "label"),
    [
        ("3.11.2", "py3-none-any", {"cu128": ">=3.12", "cu126": ">=3.9"}, "cu126"),
        ("3.12.0", "py3-none-any", {"cu128": ">=3.12", "cu126": ">=3.9"}, "cu128"),
        # A plain filename stands for one wheel, which all Pythons have to be able to use.
        ("", "py3-none-any", {"cu128": ">=3.12", "cu126": ">=3.9"}, "cu126"),
        ("", "cp312-none-any", {"cu128": ">=3.12", "cu126": ">=3.9"}, "cu128"),
        ("", "cp312-none-any", {"cu128": ">=3.12.4", "cu126": ">=3.13"}, "cu128"),
        ("", "cp311-none-any", {"cu128": ">=3.12", "cu126": ">=3.9"}, "cu126"),
        ("3.11.2", "py3-none-any", {"cu128": "nonsense", "cu126": ">=3.9"}, "cu128"),
        # Nothing is for this Python: the installer says so.
        ("3.8.1", "py3-none-any", {"cu128": ">=3.12", "cu126": ">=3.9", "null": ">=3.10"}, "cu128"),
    ],
)
def test_labels_that_need_other_pythons(python, tags, values, label):
    """K2: the next label that this Python can use is chosen."""
    files = [
        PageFile(name := f"app-1.0-{tags}-{each}.whl", f"https://x.example/{name}", {}, value)
        for each, value in values.items()
    ]
    choice = chosen(Page("app", tuple(files)), replace(MACHINE, python=python))
    assert [(offer.filename, offer.label) for offer in choice.offers] == [
        (f"app-1.0-{tags}.whl", label)
    ]
    assert choice.decisions[0].selection.chosen.label == label


@pytest.mark.parametrize(
    ("others", "refused"),
    [
        (["app-2.0rc1-py3-none-any-cu126.whl"], True),
        (["app-2.0rc1-py3-none-any.whl"], True),
        (["app-2.0rc1.tar.gz"], True),
        (["app-2.0rc1-py3-none-any-cu126.whl", "app-0.9-py3-none-any.whl"], False),
        (["app-2.0rc1-py3-none-any-cu126.whl", "app-0.9.tar.gz"], False),
        ([], False),
    ],
)
def test_a_final_release_that_does_not_fit_stays(others, refused):
    """K5: installers take a pre-release only where they see no final release."""
    unfit = ["app-1.0-py3-none-any-cu130.whl", "app-1.0-cp312-none-any-cu130.whl"]
    choice = chosen([*unfit, *others])
    listed = {offer.filename for offer in choice.offers if offer.refused}
    plain = {"app-1.0-py3-none-any.whl", "app-1.0-cp312-none-any.whl"}
    assert listed == (plain if refused else set())
    text = refusal(choice, "app", "app-1.0-py3-none-any.whl")
    assert bool(text) == refused
    if refused:
        assert "app 1.0 fits" in text
        assert "cu130" in text
        assert "app==2.0rc1" in text
    assert refusal(choice, "app", others[0] if others else "app-3-py3-none-any.whl") == ""


def test_a_version_beyond_the_limit_says_why_it_has_no_variants():
    """V10."""
    names = [f"app-{number}-py3-none-any-{label}.whl"
             for number in (3, 2, 1) for label in ("cu128", "null")]  # fmt: skip
    old = chosen([*names, "app-0-py3-none-any.whl"], limit=2).decisions[-1]
    assert old.release.version == Version("1")
    assert [offer.label for offer in old.offers.values()] == ["null"]
    assert "the 2 newest versions alone" in str(*old.selection.problems.values())


@pytest.mark.parametrize(
    ("unhashed", "label", "left_out"),
    [
        (["cu128"], "cu126", "cu128"),
        (["cu128", "cu126"], "null", "cu128"),
        (["null"], "cu128", ""),
        (["cu128", "cu126", "null"], "cu128", ""),
    ],
)
def test_files_without_a_given_hash_are_not_chosen(unhashed, label, left_out):
    """K1."""
    names = [f"app-1.0-py3-none-any-{each}.whl" for each in ("cu128", "cu126", "null")]
    refused = [f"app-1.0-py3-none-any-{each}.whl" for each in unhashed]
    choice = chosen(names, unhashed=refused)
    assert [offer.label for offer in choice.offers] == [label]
    decision = choice.decisions[0]
    assert decision.unhashed == left_out
    texts = version_report(decision, choice, "app").left_out
    assert [left_out in text and "hashes" in text for text in texts] == [True] * bool(left_out)
    assert is_notable(choice, "app") == bool(left_out)


NEWEST_WITHOUT_A_BUILD = [
    *("app-3.0-py3-none-any.whl", "app-2.0-py3-none-any-cu130.whl"),
    *("app-2.0-py3-none-any-null.whl", "app-2.0.tar.gz"),
    *("app-1.0-py3-none-any-cu128.whl", "app-1.0-py3-none-any-null.whl", "app-0.5.tar.gz"),
]


def yanked(page, python="", **options):
    """Return the versions with a file that is yanked, and why."""
    choice = chosen(page)
    choice = replace(choice, held=held_back(choice, "app", python, **options))
    reasons = {
        str(version_in(each.filename)): choice.yanked(each, each.filename) for each in choice.offers
    }
    return {version: reason for version, reason in reasons.items() if reason is not None}


def test_versions_newer_than_the_newest_build():
    found = yanked(NEWEST_WITHOUT_A_BUILD)
    assert found.keys() == {"3.0", "2.0"}
    assert found["3.0"] == (
        "no build for this GPU, but app 1.0 (cu128) has one; require app==3.0 to take this one"
    )
    choice = chosen(NEWEST_WITHOUT_A_BUILD)
    assert {str(version_in(offer.filename)) for offer in choice.offers} == {
        "3.0", "2.0", "1.0", "0.5",
    }  # fmt: skip
    found = older_builds(chosen(NEWEST_WITHOUT_A_BUILD), "app")
    assert {str(version): build.label for version, build in found.items()} == {
        "3.0": "cu128",
        "2.0": "cu128",
    }


@pytest.mark.parametrize(
    ("names", "broken", "held"),
    [
        # What its publisher yanked goes before nothing, and keeps its reason.
        (["app-3.0-py3-none-any-cu128.whl"], {"3.0": "broken"}, {"3.0", "2.0"}),
        (["app-1.5-py3-none-any-cu128.whl"], {"1.5": "broken"}, {"1.5", "2.0"}),
        (["app-3.0-py3-none-any-cu128.whl"], {}, {"2.0"}),  # for who requires app<3
        (["app-3.0rc1-py3-none-any-cu128.whl"], {}, {"2.0"}),
        (["app-3.0rc1-py3-none-any-null.whl"], {}, {"2.0", "3.0rc1"}),
        (["app-2.1-py3-none-any-cu130.whl"], {}, {"2.0"}),  # it does not fit, nor is it listed
        (["app-2.1.tar.gz"], {}, {"2.0", "2.1"}),
    ],
)
def test_what_goes_before_other_versions(names, broken, held):
    known = ["app-2.0-py3-none-any-null.whl", "app-2.0-py3-none-any-cu130.whl"]
    page = page_of([*names, *known, "app-1.0-py3-none-any-cu128.whl"])
    files = [
        replace(each, yanked=broken.get(str(version_in(each.filename)))) for each in page.files
    ]
    found = yanked(replace(page, files=tuple(files)))
    assert found.keys() == held
    assert {version: found[version] for version in broken} == broken


def test_versions_for_a_python_and_in_a_range():
    names = ["3.0-py3-none-any-cu128", "2.0-py3-none-any-null", "1.0-py3-none-any-cu128"]
    page = page_of([f"app-{name}.whl" for name in names])
    newest, *others = page.files
    page = replace(page, files=(replace(newest, requires_python=">=3.13"), *others))
    assert yanked(page, "3.12").keys() == yanked(page).keys() == {"2.0"}
    assert yanked(page, admits=SpecifierSet("<3").contains).keys() == {"2.0"}
    assert not yanked(page, admits=SpecifierSet(">1").contains)


def test_wheels_for_pythons_that_the_build_is_not_for():
    """Those who have such a Python would get nothing at all."""
    tags = ("cp312-cp312-manylinux_2_28_x86_64", "cp314-cp314-manylinux_2_28_x86_64")
    names = [f"app-2.0-{tag}-null.whl" for tag in tags] + [f"app-1.0-{tags[0]}-cu128.whl"]
    choice = chosen([*names, "app-2.0.tar.gz"])
    choice = replace(choice, held=held_back(choice, "app"))
    found = {each.filename: bool(choice.yanked(each, each.filename)) for each in choice.offers}
    assert found == {
        f"app-2.0-{tags[0]}.whl": True, f"app-2.0-{tags[1]}.whl": False,
        f"app-1.0-{tags[0]}.whl": False, "app-2.0.tar.gz": True,
    }  # fmt: skip

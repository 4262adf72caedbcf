"""The marker reducer: tables of cases, and properties checked against `packaging`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import InvalidMarker as PackagingInvalidMarker
from packaging.markers import Marker
from packaging.requirements import Requirement

from pep_variants.errors import InvalidMarker
from pep_variants.limits import MARKER_NESTING
from pep_variants.markers import (
    VariantContext,
    is_for_extra,
    reduce_requirement,
    split_requirement,
    uses_variant_terms,
    variant_terms,
)
from support.waiting import processor_limit

CUDA = VariantContext(
    "cuda12.8",
    {"nvidia": {"cuda_version_lower_bound": ("12.8",), "sm_arch": ("90_real", "120_real")}},
)
XPU = VariantContext("xpu", {"intel": {"device_ip": ("20.1.0", "20.2.0")}})


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("a;'nvidia' in variant_namespaces", "a"),
        (" a [x, y] >=1 , <2 ; variant_label != '' ", " a [x, y] >=1 , <2"),
        ("a[x](>=1.0)\t;\t os_name=='b' and variant_label != ''", "a[x](>=1.0)\t;\t os_name=='b'"),
        ("a===x@y; variant_label != ''", "a===x@y"),
        (
            "a @ https://h/a;b?c='d' ; os_name == 'b' and variant_label != ''",
            "a @ https://h/a;b?c='d' ; os_name == 'b'",
        ),
        ("a@git+https://h/r@tag\t; variant_label != ''", "a@git+https://h/r@tag"),
        # Semicolons in strings.
        (
            "a; os_name == ';' and ';' != os_name and variant_label != ''",
            "a; os_name == ';' and ';' != os_name",
        ),
        ("a; variant_label == 'x;y'", None),
        # What remains is as it was written, without parentheses that do not matter any more.
        (
            "a; ((os_name == 'a' or variant_label == 'cpu')) and (os_name == 'b')",
            "a; os_name == 'a' and os_name == 'b'",
        ),
        (
            "a; platform.machine=='x86_64' and \"it's\"!=os_name and variant_label != ''",
            "a; platform.machine=='x86_64' and \"it's\"!=os_name",
        ),
        ("a; os_name\t~= '3' and variant_label != ''", "a; os_name\t~= '3'"),
        ("a; os_name == 'variant_label' and variant_label != ''", "a; os_name == 'variant_label'"),
        # Old releases of `packaging` know `not in` with one blank only.
        ("a; 'a'  not\t in os_name and variant_label != ''", "a; 'a' not in os_name"),
    ],
)
def test_requirements(requirement, expected):
    reduced = reduce_requirement(requirement, CUDA)
    assert reduced == expected
    assert uses_variant_terms(requirement)
    if reduced is not None:
        Requirement(reduced)


@pytest.mark.parametrize(
    "text",
    [
        # The words elsewhere than as terms of the marker.
        "variant_label>=1; extra == 'x'",
        "a; extra == \"'variant_label'\"",
        "a @ https://h/;'x'in(variant_namespaces)",
        "a; variant_labels == 'x' or my_variant_label == 'x' or variant_label.x == 'y'",
        # Broken, but not by us to judge.
        ";",
        "a b c 'variant_label'",
    ],
)
def test_without_variant_terms_nothing_changes(text):
    assert reduce_requirement(text, CUDA) == text
    assert variant_terms(text) == frozenset()
    assert not uses_variant_terms(text)


def test_terms_and_parts_of_a_requirement():
    assert variant_terms("(os_name == 'a;b' and 'x'in variant_features)") == {"variant_features"}
    terms = variant_terms(
        "a[b] (>1) ; 'a' in variant_properties or variant_label == 'variant_features'"
    )
    assert terms == {"variant_label", "variant_properties"}
    # Broken ones count: their error has to be reported.
    assert variant_terms("a; os_name == 'x\n' and variant_label == 'y'") == {"variant_label"}
    assert variant_terms("a; os_name == 'x and variant_label") == {"variant_label"}
    assert split_requirement(" a[b] >=1 ; os_name == ';' ") == ("a[b] >=1", "os_name == ';'")
    assert split_requirement("a @ https://h/x;y ; 'x' == a") == ("a @ https://h/x;y", "'x' == a")
    assert split_requirement(" a b c") == ("a b c", "")


# What a publisher should not write, whatever installers take it for (conformance: markers).
@pytest.mark.parametrize(
    ("marker", "problem"),
    [
        ("'foobar' >= variant_label", "variant_label needs ==, !=, in or not in"),
        ("'foobar' ~= variant_label", "variant_label needs ==, !=, in or not in"),
        ("variant_namespaces == 'foo'", "variant_namespaces needs in or not in"),
        ("'foo :: bar' >= variant_features", "variant_features needs in or not in"),
        ("variant_features not in 'x'", "variant_features must be on the right of not in"),
    ],
)
def test_what_publishers_should_not_write(marker, problem):
    reduce_requirement(f"a; {marker}", CUDA)
    with pytest.raises(InvalidMarker, match=problem):
        reduce_requirement(f"a; {marker}", CUDA, publishing=True)


@pytest.mark.parametrize(
    ("marker", "problem"),
    [
        ("variant_label == os_name", "variant_label can only be compared with a quoted string"),
        # Also where the rest of the marker would make it unimportant.
        ("variant_label == 'x' and variant_label < os_name", repr("variant_label < os_name")),
        # Not a marker at all.
        ("variant_label is 'x'", "expected a comparison"),
        ("variant_label == 'x' and", "expected a comparison in its marker, found the end"),
        ("variant_label == 'x' or or os_name == 'x'", "expected a comparison"),
        ("and variant_label == 'x'", "expected a comparison"),
        ("variant_label == 'x' ; os_name == 'x'", "expected 'and', 'or', ')' or the end"),
        ("()  or variant_label == 'x'", "expected a comparison"),
        ("variant_label == 'x')", "')' without '('"),
        ("VARIANT_LABEL == 'x' and variant_label == 'x' and ü == 'x'", "expected a comparison"),
    ],
)
def test_invalid(marker, problem):
    with pytest.raises(InvalidMarker, match=re.escape(problem)) as caught:
        reduce_requirement(f"dep>=1; {marker}", CUDA)
    assert str(caught.value).startswith(f"{f'dep>=1; {marker}'!r}: ")


def test_errors_keep_credentials_to_themselves():
    """The first one has no place for a marker: the semicolon belongs to the URL."""
    for end in (
        "; variant_label == 'x'",
        " ; variant_label < os_name",
        " ; 'a' == variant_label ://u:hush@h",
    ):
        with pytest.raises(InvalidMarker) as caught:
            reduce_requirement(f"a @ https://user:hush@host/x{end}", CUDA)
        assert "hush" not in str(caught.value)
        assert "host/x" in str(caught.value)


def test_nesting_has_a_limit():
    def nested(depth):
        return "(" * depth + "variant_label == 'xpu'" + ")" * depth

    assert reduce_requirement(f"a;{nested(MARKER_NESTING)}", XPU) == "a"
    with pytest.raises(InvalidMarker, match=f"more than {MARKER_NESTING} parentheses"):
        reduce_requirement(f"a;{nested(MARKER_NESTING + 1)}", XPU)
    # Beside one another, not inside: no limit.
    assert reduce_requirement("a;" + " and ".join([nested(1)] * 500), XPU) == "a"


def complaint(text):
    try:
        reduce_requirement(text, CUDA)
    except InvalidMarker as error:
        return str(error)
    return ""


ATOMS = " or ".join(["os_name == 'a'"] * 50_000)


@pytest.mark.parametrize(
    "marker",
    [
        f"{ATOMS} or variant_label == 'cpu'",
        "(" * 1_000_000 + "variant_label == 'x'",
        "variant_label == 'x'" + ")" * 1_000_000,
        " " * 1_000_000 + "variant_label",
        "os_name not" + " " * 1_000_000 + "variant_label",
        "'" + ":: " * 350_000 + "' in variant_features",
        "'" + " " * 1_000_000 + ":' in variant_features",
        "://" * 300_000 + " variant_label",
    ],
    ids=lambda marker: f"{marker[:20]}…",
)
def test_huge_input_ends(marker):
    """Quadratic time would be minutes for a megabyte."""
    with processor_limit():
        for text in (f"dep; {marker}", f"dep {marker}", f"dep[{marker}", marker):
            variant_terms(text)
            assert len(complaint(text)) < 500


TOKENS = ("(", ")", "and", "or", "in", "not", "not in", "==", "===", "os_name", "'x'", '"y;"', "?")


@st.composite
def nearly_markers(draw):
    """The tokens of a marker, some of them taken out or changed."""
    tokens = draw(
        st.sampled_from(["( os_name == 'x' )", "os_name in 'y'", "'x' != os_name"])
    ).split()
    for _ in range(draw(st.integers(0, 4))):
        more = draw(st.sampled_from(["'x' not in os_name", "( ( os_name < 'x' ) )", "'x' == 'x'"]))
        tokens += [draw(st.sampled_from(["and", "or", "and (", ") or"])), more]
    tokens = " ".join(tokens).split(" ")
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(tokens)))
        tokens[place : place + draw(st.integers(0, 1))] = draw(
            st.lists(st.sampled_from(TOKENS), max_size=2)
        )
    return " ".join(tokens)


@settings(deadline=None)
@given(nearly_markers())
def test_grammar_is_that_of_packaging(text):
    """What is a marker for `packaging` is one here, and nothing else is."""
    requirement = f"a;{text} or variant_label == 'z'"
    try:
        Marker(f"{text} or os_name == 'z'")
    except PackagingInvalidMarker:
        with pytest.raises(InvalidMarker):
            reduce_requirement(requirement, XPU)
    else:
        reduced = reduce_requirement(requirement, XPU).removeprefix("a;")
        without = str.maketrans("", "", "()")
        assert str(Marker(reduced)).translate(without) == str(Marker(text)).translate(without)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("a", False),
        ("extra>=1", False),
        ("a; python_version < '4'", False),
        ("a; platform_release == 'extra'", False),
        ("a; extra == 'x'", True),
        ("a>=1 ; python_version < '4' and ('x' == extra or os_name == 'nt')", True),
        ("a; extra in variant_namespaces", True),
    ],
)
def test_requirements_for_extras(requirement, expected):
    assert is_for_extra(requirement) is expected

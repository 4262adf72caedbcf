"""The marker reducer: tables of cases, and properties checked against `packaging`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import InvalidMarker as PackagingInvalidMarker
from packaging.markers import Marker
from packaging.requirements import Requirement

from pep_variants.choose.markers import (
    NON_VARIANT,
    VariantContext,
    reduce_requirement,
    split_requirement,
    uses_variant_terms,
    variant_terms,
)
from pep_variants.errors import InvalidMarker
from pep_variants.limits import MARKER_NESTING
from support.waiting import processor_limit

FOOBAR = VariantContext("foobar", {"foo": {"bar": ("baz",)}})
CUDA = VariantContext(
    "cuda12.8",
    {"nvidia": {"cuda_version_lower_bound": ("12.8",), "sm_arch": ("90_real", "120_real")}},
)
XPU = VariantContext("xpu", {"intel": {"device_ip": ("20.1.0", "20.2.0")}})


def reduce_marker(marker, context):
    """Return the marker that is left of *marker* in a requirement, or its truth."""
    reduced = reduce_requirement(f"a;{marker}", context)
    return False if reduced is None else reduced[2:] or True


def complaint(reduce, text):
    """Return the message of the error that reducing *text* raises, empty when it works."""
    try:
        reduce(text, CUDA)
    except InvalidMarker as error:
        return str(error)
    return ""


def test_context_sets():
    assert CUDA.namespaces == {"nvidia"}
    assert CUDA.features == {"nvidia :: cuda_version_lower_bound", "nvidia :: sm_arch"}
    assert CUDA.triples == {
        "nvidia :: cuda_version_lower_bound :: 12.8",
        "nvidia :: sm_arch :: 90_real",
        "nvidia :: sm_arch :: 120_real",
    }
    assert NON_VARIANT.namespaces == NON_VARIANT.features == NON_VARIANT.triples == frozenset()


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        # Parentheses stay where they are needed, and only there.
        (
            "(os_name == 'a' or os_name == 'b') and (variant_label == 'xpu' and os_name == 'c')",
            "(os_name == 'a' or os_name == 'b') and os_name == 'c'",
        ),
        (
            "(os_name == 'a' and os_name == 'b') or (os_name == 'c' and variant_label == 'xpu')",
            "os_name == 'a' and os_name == 'b' or os_name == 'c'",
        ),
        (
            "((os_name == 'a' or variant_label == 'cpu')) and (os_name == 'b')",
            "os_name == 'a' and os_name == 'b'",
        ),
        # What remains is as it was written.
        (
            "platform.machine=='x86_64' and \"it's\"!=os_name and variant_label == 'xpu'",
            "platform.machine=='x86_64' and \"it's\"!=os_name",
        ),
        ("some_new_name\t~= '3' and variant_label == 'xpu'", "some_new_name\t~= '3'"),
        ("os_name == 'variant_label' and variant_label == 'xpu'", "os_name == 'variant_label'"),
        # Old releases of `packaging` know `not in` with one blank only.
        ("'a'  not\t in os_name and variant_label == 'xpu'", "'a' not in os_name"),
    ],
)
def test_simplification(marker, expected):
    assert reduce_marker(marker, XPU) == expected


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
    ],
)
def test_requirements(requirement, expected):
    reduced = reduce_requirement(requirement, CUDA)
    assert reduced == expected
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


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a; variant_label == 'x'", {"variant_label"}),
        ("(os_name == 'a;b' and 'x'in variant_features)", {"variant_features"}),
        (
            "a[b] (>1) ; 'a::b::c' in variant_properties or variant_label == 'variant_features'",
            {"variant_label", "variant_properties"},
        ),
        # Broken ones count: someone has to say that they are broken.
        ("a; os_name == 'x and variant_label", {"variant_label"}),
        ("a; os_name == 'x\n' and variant_label == 'y'", {"variant_label"}),
    ],
)
def test_variant_terms(text, terms):
    assert variant_terms(text) == terms
    assert uses_variant_terms(text)


@pytest.mark.parametrize(
    ("requirement", "parts"),
    [
        (" a[b] >=1 ; os_name == ';' ", ("a[b] >=1", "os_name == ';'")),
        ("a @ https://h/x;y ; variant_label == 'x'", ("a @ https://h/x;y", "variant_label == 'x'")),
        ("a", ("a", "")),
        (" a b c", ("a b c", "")),
    ],
)
def test_split_requirement(requirement, parts):
    assert split_requirement(requirement) == parts


# Dependency specifiers, "Marker comparison operations": what a publisher should not write, and what
# installers take it for. FOOBAR has the label "foobar".
MEANINGLESS = [
    ("variant_label >= 'foobar'", True, "variant_label needs ==, !=, in or not in"),
    ("'foobar' >= variant_label", True, "variant_label needs ==, !=, in or not in"),
    ("'foobar' ~= variant_label", True, "variant_label needs ==, !=, in or not in"),
    ("variant_namespaces == 'foo'", False, "variant_namespaces needs in or not in"),
    ("variant_namespaces != 'x'", False, "variant_namespaces needs in or not in"),
    ("'foo :: bar' >= variant_features", False, "variant_features needs in or not in"),
    ("variant_namespaces in 'foo'", False, "variant_namespaces must be on the right of in"),
    ("variant_features not in 'x'", False, "variant_features must be on the right of not in"),
]


@pytest.mark.parametrize(("marker", "truth", "problem"), MEANINGLESS)
def test_what_publishers_should_not_write(marker, truth, problem):
    assert reduce_marker(marker, FOOBAR) is truth
    plain = f"{marker} and os_name == 'posix'"
    assert reduce_marker(plain, FOOBAR) == ("os_name == 'posix'" if truth else False)
    with pytest.raises(InvalidMarker) as raised:
        reduce_requirement(f"a; {marker}", FOOBAR, publishing=True)
    assert problem in str(raised.value)


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
    with pytest.raises(InvalidMarker) as caught:
        reduce_requirement(f"dep>=1; {marker}", CUDA)
    message = str(caught.value)
    assert message.startswith(f"{f'dep>=1; {marker}'!r}: ")
    assert problem in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "requirement",
    [
        "a @ https://h/x variant_label == 'x'",
        "'x' in variant_namespaces",
        "a[b; variant_label == 'x'] 'y'",
    ],
)
def test_requirement_without_a_place_for_a_marker(requirement):
    with pytest.raises(InvalidMarker):
        reduce_requirement(requirement, CUDA)


def test_errors_keep_credentials_to_themselves():
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

    assert reduce_marker(nested(MARKER_NESTING), XPU) is True
    with pytest.raises(InvalidMarker, match=f"more than {MARKER_NESTING} parentheses"):
        reduce_marker(nested(MARKER_NESTING + 1), XPU)
    # Beside one another, not inside: no limit.
    assert reduce_marker(" and ".join(["(variant_label == 'xpu')"] * 500), XPU) is True


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
            assert len(complaint(reduce_requirement, text)) < 500


# ---- Properties -------------------------------------------------------------------------------

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
    marker = f"{text} or variant_label == 'z'"
    try:
        Marker(f"{text} or os_name == 'z'")
    except PackagingInvalidMarker:
        with pytest.raises(InvalidMarker):
            reduce_marker(marker, XPU)
    else:
        reduced = reduce_marker(marker, XPU)
        assert isinstance(reduced, str)
        assert _atoms(reduced) == _atoms(text)


def _atoms(marker):
    """Return *marker* as `packaging` understands it, without parentheses."""
    return str(Marker(marker)).replace("(", "").replace(")", "")

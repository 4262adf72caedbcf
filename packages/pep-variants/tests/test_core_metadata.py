"""METADATA made plain, everything else byte for byte."""

import email

import pytest

from pep_variants import limits
from pep_variants._wheelfile.core_metadata import first_field, read_fields, requirements_of
from pep_variants.errors import InvalidWheel
from pep_variants.markers import (
    NON_VARIANT,
    VariantContext,
    conditional_dependencies,
    metadata_terms,
    reduce_metadata,
    reduce_requirements,
)

CU128 = VariantContext("cu128", {"nvidia": {"cuda_version_lower_bound": ("12.8",)}})


@pytest.mark.parametrize(
    ("requirement", "cu128", "plain"),
    [
        ("a", "a", "a"),
        ("a; 'nvidia' in variant_namespaces", "a", None),
        ("a; variant_label == 'cu128' and os_name == 'nt'", "a; os_name == 'nt'", None),
        ("a; variant_label == b", "a; variant_label == b", "a; variant_label == b"),
        ("a; python_version > '3'", "a; python_version > '3'", "a; python_version > '3'"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_reduce(requirement, cu128, plain, line_end):
    def metadata(value):
        lines = ["Name: x"]
        lines += [f"Requires-Dist: {value}"] if value is not None else []
        lines += ["Home-page: http://variant_label", "", "Requires-Dist: d; variant_label == ''"]
        return line_end.join([*lines, ""]).encode()

    assert reduce_metadata(metadata(requirement), CU128) == metadata(cu128)
    assert reduce_metadata(metadata(requirement), NON_VARIANT) == metadata(plain)
    for context, expected in ((CU128, cu128), (NON_VARIANT, plain)):
        assert reduce_requirements(["b", requirement], context) == [
            "b",
            *([] if expected is None else [" ".join(expected.split())]),
        ]


@pytest.mark.parametrize(
    ("metadata", "terms"),
    [
        (
            b"Requires-Dist: a; 'x' in variant_namespaces\nrequires-dist : b; 'x' in\r\n"
            b"  variant_properties",
            {"variant_namespaces", "variant_properties"},
        ),
        (b"Requires-Dist: a\nSummary: variant_label == ''\n", set()),
        (b"Requires-Dist: a\n\nRequires-Dist: b; variant_label == ''\n", set()),
    ],
)
def test_terms(metadata, terms):
    assert metadata_terms(metadata) == terms


@pytest.mark.parametrize(
    "metadata",
    [
        b"Name: x\nRequires-Dist: a\n  ; extra == 'b'\n\nRequires-Dist: c\n",
        b"Name: x\r\nRequires-Dist: a\r\nLicense: MIT\r\nwithout indentation\r\nVersion: 1\r\n",
        b"not a field\nName: x\n",
    ],
)
def test_fields_are_those_that_installers_see(metadata):
    message = email.message_from_string(metadata.decode("utf-8", "replace"))
    expected = {}
    for name, value in message.items():
        expected.setdefault(name.lower(), []).append(" ".join(value.split()))
    assert read_fields(metadata) == expected
    assert first_field(metadata, "name") == expected.get("name", [None])[0]


def test_bytes_that_are_no_text():
    data = b"Author: \xff\xfe\nRequires-Dist: a @ x:\xff ; variant_label == 'cu128'\n"
    assert reduce_metadata(data, CU128) == b"Author: \xff\xfe\nRequires-Dist: a @ x:\xff\n"


def test_many_folded_lines_take_no_long():
    metadata = b"Requires-Dist: a" + b"\n " * 500_000 + b"; variant_label == 'cu128'\n"
    assert reduce_metadata(metadata, CU128) == b"Requires-Dist: a\n"


MARKED = "a; variant_label == 'cu128'"
READERS = (
    requirements_of,
    metadata_terms,
    conditional_dependencies,
    lambda metadata: reduce_metadata(metadata, CU128),
)


@pytest.mark.parametrize(
    ("most", "make", "problem"),
    [
        (limits.CORE_REQUIREMENTS, lambda n: [MARKED] * n, "requirements of"),
        (
            limits.CORE_REQUIREMENTS_CHARACTERS // 1000,
            lambda n: [f"{MARKED} and '{'x' * 955}' == os_name"] * n,
            "requirements of",
        ),
        (limits.REQUIREMENT_LENGTH, lambda n: [f"{'b' * (n - len(MARKED))}{MARKED}"], "characters"),
    ],
    ids=["number", "characters", "length"],
)
def test_markers_beyond_a_limit_are_not_read(most, make, problem):
    at, beyond = (
        b"".join(f"Requires-Dist: {text}\n".encode() for text in make(count))
        for count in (most, most + 1)
    )
    for read in READERS:
        read(at)
        with pytest.raises(InvalidWheel, match=problem):
            read(beyond)


def test_fields_beyond_the_limit_are_not_read():
    marked = f"Requires-Dist: {MARKED}\n".encode()
    for read in READERS:
        read(b"A:\n" * (limits.CORE_METADATA_FIELDS - 1) + marked)
        with pytest.raises(InvalidWheel, match="more than 50000 fields"):
            read(b"A:\n" * limits.CORE_METADATA_FIELDS + marked)
    description = marked + b"\n" + b"A:\n" * limits.CORE_METADATA_FIELDS
    assert metadata_terms(description) == {"variant_label"}

"""The words of the standard: filenames, labels, properties, schemas."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants._model.filename import (
    metadata_filename,
    parse_filename,
    parse_metadata_filename,
    read_version,
)
from pep_variants._model.generation import GENERATIONS, UnknownSchema, generation_of, schema_version
from pep_variants._model.metadata import natural
from pep_variants._model.property import Property, Selector
from pep_variants.errors import InvalidLabel, InvalidProperty, InvalidWheelFilename
from pep_variants.labels import LABEL, check_label, split_label


@pytest.mark.parametrize("filename", ["a-1-py3-none-any-x\n.whl", "../../a-1-py3-none-any-x.whl"])
def test_no_wheel_filename(filename):
    with pytest.raises(InvalidWheelFilename) as raised:
        parse_filename(filename)
    assert raised.value.__cause__ is None
    assert str(raised.value).isprintable()


@given(st.text(alphabet="0az_.9-AZ\n\u00e9\u0661", max_size=4) | st.text(max_size=3))
def test_a_label_is_what_its_pattern_matches(text):
    try:
        check_label(text)
    except InvalidLabel:
        assert not LABEL.fullmatch(text)
    else:
        assert LABEL.fullmatch(text)


@pytest.mark.parametrize(
    ("name", "version", "filename"),
    [
        ("My.Project-x", "1.0", "my_project_x-1.0-variants.json"),
        ("torch", Version("2.8.0+ubuntu-1"), "torch-2.8.0+ubuntu.1-variants.json"),
        ("torch", "2.8.0+ubuntu-1", "torch-2.8.0+ubuntu.1-variants.json"),
        ("torch", "v2.08-1", "torch-2.8.post1-variants.json"),
    ],
)
def test_metadata_filename(name, version, filename):
    assert metadata_filename(name, version) == filename
    read = (canonicalize_name(name), Version(str(version)))
    for spelled in (filename, filename.title(), filename.replace("+ubuntu.", "+ubuntu_")):
        assert parse_metadata_filename(spelled.replace("-Variants.Json", "-variants.json")) == read


@pytest.mark.parametrize(
    "filename",
    [
        "-variants.json",
        "torch-2.8.0-variants.json.metadata",
        "torch-two-variants.json",
        "my-project-1.0-variants.json",  # not escaped: the version would be 'project-1.0'
        "../a-1.0-variants.json",
    ],
)
def test_no_metadata_filename(filename):
    assert parse_metadata_filename(filename) is None


# Names beyond the limits: `int` refuses more than 4,300 digits with an error of its own.
MANY_TAGS = ".".join(f"t{number}" for number in range(11))
UNBOUNDED = [
    f"a-{'9' * 5000}-py3-none-any.whl",
    f"a-1.dev{'9' * 5000}-py3-none-any.whl",
    f"a-1-{'9' * 5000}-py3-none-any.whl",
    f"a-1-{'1' * 255}-py3-none-any.whl",
    f"a-1-{MANY_TAGS}-{MANY_TAGS}-{MANY_TAGS}.whl",
]


@pytest.mark.parametrize("filename", UNBOUNDED)
def test_names_beyond_the_limits_are_typed_errors(filename):
    with pytest.raises(InvalidWheelFilename) as raised:
        parse_filename(filename)
    assert len(str(raised.value)) < 400


def test_names_too_long_have_no_label():
    """A labelled one is an invalid name for stock pip, which skips it: it stays that."""
    filename = f"a-1-{'9' * 5000}-py3-none-any-cu.whl"
    assert split_label(filename) == (filename, None)


@pytest.mark.parametrize("version", ["9" * 5000, "9" * 5000 + "!1", "1.dev" + "9" * 5000, "x"])
def test_versions_that_cannot_be_read(version):
    assert read_version(version) is None
    assert parse_metadata_filename(f"a-{version}-variants.json") is None
    assert metadata_filename("a", version) == f"a-{version}-variants.json"


@pytest.mark.parametrize("text", ["x86_64", "x86_64::level", " x86_64 :: level :: v3"])
def test_selector(text):
    selector = Selector.parse(text)
    given = tuple(part.strip() for part in text.split("::"))
    assert selector == (*given, None, None)[:3]
    assert Selector.parse(str(selector)) == selector


def test_property():
    parsed = Property.parse("  nvidia ::sm_arch::   90_real\t")
    assert parsed == ("nvidia", "sm_arch", "90_real")
    assert str(parsed) == "nvidia :: sm_arch :: 90_real"
    with pytest.raises(InvalidProperty, match="'a :: b' is not a property: write 'namespace ::"):
        Property.parse("a :: b")
    with pytest.raises(InvalidProperty, match=r"^'b\.c' in 'a :: b\.c' is not a valid feature: it"):
        Selector.parse("a :: b.c")


def parts(value: str) -> tuple[tuple[int, int | str], ...]:
    """Return numbers, which come first, and texts."""
    found = ("".join(group) for _, group in itertools.groupby(value, str.isdigit))
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in found)


VALUES = st.text("019az_.", max_size=8)


@given(VALUES, VALUES)
def test_natural_order_is_that_of_the_parts(first, second):
    plain = (parts(first), first) < (parts(second), second)
    assert (natural(first) < natural(second)) is plain


BASE = "https://variants-schema.wheelnext.dev/"


def test_every_generation_is_found_by_its_own_schema():
    assert sorted(GENERATIONS) == [
        (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 0, 0)
    ]  # fmt: skip
    assert schema_version(f"{BASE}v0.2.0.json\n") == (0, 2, 0)
    for version, generation in GENERATIONS.items():
        assert generation.version == version
        if generation.schema:
            assert generation_of(generation.schema) is generation


@pytest.mark.parametrize("version", ["9" * 5000 + ".0.0", "\u0660.2.0", "0." + "9" * 10])
def test_a_version_that_cannot_be_read(version):
    with pytest.raises(UnknownSchema, match="cannot be read"):
        schema_version(f"{BASE}v{version}.json")

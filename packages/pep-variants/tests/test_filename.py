import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag
from packaging.version import Version

from pep_variants.errors import InvalidLabel, InvalidWheelFilename
from pep_variants.model.filename import (
    metadata_filename,
    parse_filename,
    parse_metadata_filename,
    read_version,
)
from pep_variants.model.label import LABEL, check_label, split_label


def test_parse():
    wheel = parse_filename(
        "My.Project-1!2.0rc1+cu128-3b-cp312.cp313-abi3-manylinux_2_28_x86_64-cu12_8.whl"
    )
    assert wheel.name == "my-project"
    assert wheel.version == Version("1!2.0rc1+cu128")
    assert wheel.build == (3, "b")
    assert wheel.tags == {
        Tag("cp312", "abi3", "manylinux_2_28_x86_64"),
        Tag("cp313", "abi3", "manylinux_2_28_x86_64"),
    }
    assert wheel.label == "cu12_8"


@pytest.mark.parametrize(
    "filename",
    [
        "a-1-py3-none.whl",
        "a-1-py3-none-any-x\n.whl",
        "../../a-1-py3-none-any-x.whl",
        "a-one-py3-none-any-x.whl",
    ],
)
def test_no_wheel_filename(filename):
    with pytest.raises(InvalidWheelFilename) as raised:
        parse_filename(filename)
    assert raised.value.__cause__ is None
    assert "\n" not in str(raised.value)
    assert "\0" not in str(raised.value)


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
        ("old", "from-svn", "old-from_svn-variants.json"),
    ],
)
def test_metadata_filename(name, version, filename):
    assert metadata_filename(name, version) == filename


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


@pytest.mark.parametrize(
    ("filename", "name", "version"),
    [
        ("torch-2.8.0-variants.json", "torch", "2.8.0"),
        ("My_Project-1.0-variants.json", "my-project", "1.0"),
        ("torch-2.8.0+ubuntu_1-variants.json", "torch", "2.8.0+ubuntu.1"),
        ("torch-1.0_1-variants.json", "torch", "1.0.post1"),
    ],
)
def test_parse_metadata_filename(filename, name, version):
    assert parse_metadata_filename(filename) == (name, Version(version))


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

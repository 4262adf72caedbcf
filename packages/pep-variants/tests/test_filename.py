import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from pep_variants.errors import InvalidLabel, InvalidWheelFilename
from pep_variants.model.filename import (
    metadata_filename,
    parse_filename,
    parse_metadata_filename,
    read_version,
)
from pep_variants.model.label import LABEL, check_label, split_label


@pytest.mark.parametrize(
    ("filename", "plain", "label"),
    [
        # The three names that PEP 825 gives as examples.
        (
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64.whl",
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64.whl",
            None,
        ),
        (
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64-x86_64_v3.whl",
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64.whl",
            "x86_64_v3",
        ),
        (
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64-null.whl",
            "numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64.whl",
            "null",
        ),
        # Six parts: with a build tag, or with a label.
        ("a-1-1-py3-none-any.whl", "a-1-1-py3-none-any.whl", None),
        ("a-1-1local-py3-none-any.whl", "a-1-1local-py3-none-any.whl", None),
        ("a-1-py3-none-any-1.whl", "a-1-py3-none-any.whl", "1"),
        ("a-1-py3-none-any-12.8.whl", "a-1-py3-none-any.whl", "12.8"),
        ("a-1-py3-none-any-_.whl", "a-1-py3-none-any.whl", "_"),
        ("a-1-py3-none-any-any.whl", "a-1-py3-none-any.whl", "any"),
        # Seven parts: both.
        ("a-1-2-py3-none-any-x.whl", "a-1-2-py3-none-any.whl", "x"),
        ("a-1-2_b-py3-none-any-3.whl", "a-1-2_b-py3-none-any.whl", "3"),
        # No limit to the length, though older formats had one.
        ("a-1-py3-none-any-" + "x" * 128 + ".whl", "a-1-py3-none-any.whl", "x" * 128),
        # Format 0.0.1's spelling of null is a label like any other here.
        ("a-1-py3-none-any-00000000.whl", "a-1-py3-none-any.whl", "00000000"),
    ],
)
def test_split_and_parse(filename, plain, label):
    assert split_label(filename) == (plain, label)
    parsed = parse_filename(filename)
    assert parsed.label == label
    assert (parsed.name, parsed.version, parsed.build, parsed.tags) == parse_wheel_filename(plain)


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
        "",
        ".whl",
        "a.whl",
        "a-1.whl",
        "a-1-py3-none.whl",
        "a-1.tar.gz",
        "a-1-py3-none-any-x.zip",
        "a-1-py3-none-any-x.WHL",
        "a-1-py3-none-any-x.whl.metadata",
        "a-1-1-py3-none-any-x-y.whl",  # eight parts
        "a-1-py3-none-any-.whl",  # empty label
        "a-1-1-py3-none-any-.whl",
        "a-1-py3-none-any-X.whl",
        "a-1-py3-none-any-x+y.whl",
        "a-1-py3-none-any-x y.whl",
        "a-1-py3-none-any-x\n.whl",
        "a-1-py3-none-any-\u00fc.whl",
        "a-1-py3-none-any-\u0661.whl",  # a digit, but not an ASCII one
        "a-1-py3-none-any-x\0.whl",
        "a-1-b1-py3-none-any-x.whl",  # a build tag starts with a digit
        "a-1-1-2py-none-any-x.whl",  # a python tag does not
        "a-1-1-py3.2py-none-any-x.whl",
        "../../a-1-py3-none-any-x.whl",
        "a/b-1-py3-none-any-x.whl",
        "a-one-py3-none-any-x.whl",
        "a--py3-none-any-x.whl",
    ],
)
def test_no_wheel_filename(filename):
    with pytest.raises(InvalidWheelFilename) as raised:
        parse_filename(filename)
    assert raised.value.__cause__ is None
    assert "\n" not in str(raised.value)
    assert "\0" not in str(raised.value)


@pytest.mark.parametrize(
    "filename", ["a-1-py3-none-any-X.whl", "a-1-py3-none-any-.whl", "a-1-1-py3-none-any-\u00fc.whl"]
)
def test_bad_label_is_named(filename):
    label = filename[:-4].rpartition("-")[2]
    with pytest.raises(InvalidWheelFilename, match="not a valid variant label") as raised:
        parse_filename(filename)
    assert repr(filename) in str(raised.value)
    assert repr(label) in str(raised.value)


parts = st.text("ab01._+ !\n-X", max_size=4)
filenames = st.one_of(
    st.text(max_size=60),
    st.lists(parts, min_size=4, max_size=9).map(lambda found: "-".join(found) + ".whl"),
    st.tuples(
        st.sampled_from(["a", "A_b", "a.b"]),
        st.sampled_from(["1", "1.0+x", "one"]),
        st.sampled_from(["", "-1", "-2x", "-b"]),
        st.sampled_from(["py3", "3py", "py2.py3"]),
        st.sampled_from(["", "-null", "-1", "-X", "-", "-a.b_c", "-x-y"]),
    ).map(lambda p: f"{p[0]}-{p[1]}{p[2]}-{p[3]}-none-any{p[4]}.whl"),
)


@given(filenames)
@example("a-1-\u00b2py-none-any-null.whl")  # a digit to `str.isdigit`, none to a build tag
def test_splitting_never_raises_and_agrees_with_parsing(filename):
    plain, label = split_label(filename)
    if label is None:
        assert plain == filename
    else:
        assert LABEL.fullmatch(label)
        assert f"{plain[:-4]}-{label}.whl" == filename
        assert split_label(plain)[1] is None
    try:
        parsed = parse_filename(filename)
    except InvalidWheelFilename:
        return
    assert parsed.label == label
    assert parse_filename(plain).tags == parsed.tags


@given(st.text(alphabet="0az_.9-AZ\n\u00e9\u0661", max_size=4) | st.text(max_size=3))
def test_a_label_is_what_its_pattern_matches(text):
    try:
        check_label(text)
    except InvalidLabel:
        assert not LABEL.fullmatch(text)
    else:
        assert LABEL.fullmatch(text)


@pytest.mark.parametrize("label", ["null", "a", "0", ".", "_", "cu12.8_x86_64_v3", "x" * 128])
def test_labels(label):
    assert check_label(label) == label


@pytest.mark.parametrize("label", ["", "A", "a-b", "a b", "a\n", "\u00e4", "a+b", "a/b"])
def test_no_labels(label):
    with pytest.raises(InvalidLabel, match=re.escape(repr(label))):
        check_label(label)


@pytest.mark.parametrize(
    ("name", "version", "filename"),
    [
        ("torch", "2.8.0", "torch-2.8.0-variants.json"),
        ("My.Project-x", "1.0", "my_project_x-1.0-variants.json"),
        ("a--b__c", "1", "a_b_c-1-variants.json"),
        ("torch", "2.8.0+cu128", "torch-2.8.0+cu128-variants.json"),
        ("torch", Version("2.8.0+ubuntu-1"), "torch-2.8.0+ubuntu.1-variants.json"),
        ("torch", "2.8.0+ubuntu-1", "torch-2.8.0+ubuntu.1-variants.json"),
        ("torch", "v2.08-1", "torch-2.8.post1-variants.json"),
        ("torch", "1!2.0RC1", "torch-1!2.0rc1-variants.json"),
        ("old", "from-svn", "old-from_svn-variants.json"),
    ],
)
def test_metadata_filename(name, version, filename):
    assert metadata_filename(name, version) == filename


@pytest.mark.parametrize(
    "filename",
    [
        "",
        "-variants.json",
        "torch-variants.json",
        "-1.0-variants.json",
        "torch--variants.json",
        "torch-2.8.0-variants.JSON",
        "torch-2.8.0-variants.json.metadata",
        "torch-2.8.0-py3-none-any.whl",
        "torch-2.8.0.tar.gz",
        "torch-two-variants.json",
        "my-project-1.0-variants.json",  # not escaped: the version would be 'project-1.0'
        "a b-1.0-variants.json",
        "../a-1.0-variants.json",
        "_-1.0-variants.json",
    ],
)
def test_no_metadata_filename(filename):
    assert parse_metadata_filename(filename) is None


@pytest.mark.parametrize(
    ("filename", "name", "version"),
    [
        ("torch-2.8.0-variants.json", "torch", "2.8.0"),
        ("My_Project-1.0-variants.json", "my-project", "1.0"),
        ("my.project-1.0-variants.json", "my-project", "1.0"),
        ("torch-2.8.0+ubuntu_1-variants.json", "torch", "2.8.0+ubuntu.1"),
        ("torch-1.0_1-variants.json", "torch", "1.0.post1"),
    ],
)
def test_parse_metadata_filename(filename, name, version):
    assert parse_metadata_filename(filename) == (name, Version(version))


names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
versions = st.from_regex(
    r"([0-9]!)?[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc)[0-9])?(\.post[0-9])?(\.dev[0-9])?"
    r"(\+[a-z0-9]{1,3}([._-][a-z0-9]{1,3})?)?",
    fullmatch=True,
)


@given(names, versions)
def test_metadata_filename_round_trip(name, version):
    filename = metadata_filename(name, version)
    assert parse_metadata_filename(filename) == (canonicalize_name(name), Version(version))
    assert filename.count("-") == 2
    assert filename == metadata_filename(canonicalize_name(name), Version(version))


@given(st.one_of(st.text(max_size=30), st.text(max_size=20).map(lambda t: f"{t}-variants.json")))
def test_parse_metadata_filename_never_raises(filename):
    parsed = parse_metadata_filename(filename)
    assert parsed is None or filename.endswith("-variants.json")


# Names beyond the limits: `int` refuses more than 4,300 digits with an error of its own.
MANY_TAGS = ".".join(f"t{number}" for number in range(11))
UNBOUNDED = [
    f"a-{'9' * 5000}-py3-none-any.whl",
    f"a-{'9' * 5000}!1-py3-none-any.whl",
    f"a-1.dev{'9' * 5000}-py3-none-any.whl",
    f"a-1-{'9' * 5000}-py3-none-any.whl",
    f"a-1-{'9' * 5000}-py3-none-any-cu.whl",
    f"a-{'9' * 5000}-py3-none-any-cu.whl",
    f"a-1-{'1' * 255}-py3-none-any.whl",
    f"a-1-{MANY_TAGS}-{MANY_TAGS}-{MANY_TAGS}.whl",
    f"a-1-{MANY_TAGS}-{MANY_TAGS}-{MANY_TAGS}-cu.whl",
]


@pytest.mark.parametrize("filename", UNBOUNDED)
def test_names_beyond_the_limits_are_typed_errors(filename):
    with pytest.raises(InvalidWheelFilename) as raised:
        parse_filename(filename)
    assert len(str(raised.value)) < 400


def test_names_at_the_limit_are_read():
    digits = 255 - len("a-1--py3-none-any.whl")
    assert parse_filename(f"a-1-{'1' * digits}-py3-none-any.whl").build[0] == int("1" * digits)


def test_names_too_long_have_no_label():
    """A labelled one is an invalid name for stock pip, which skips it: it stays that."""
    filename = f"a-1-{'9' * 5000}-py3-none-any-cu.whl"
    assert split_label(filename) == (filename, None)


@pytest.mark.parametrize("version", ["9" * 5000, "9" * 5000 + "!1", "1.dev" + "9" * 5000, "x"])
def test_versions_that_cannot_be_read(version):
    assert read_version(version) is None
    assert parse_metadata_filename(f"a-{version}-variants.json") is None
    assert metadata_filename("a", version) == f"a-{version}-variants.json"

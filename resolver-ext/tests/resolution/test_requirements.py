"""Requirements, and the files they come in."""

import pytest

from pep_variants import limits
from resolvelib_variants.resolution import (
    RequirementError,
    RequirementSet,
    parse_requirement,
    read_file,
)

DIGEST = "a" * 64


def write(folder, text, name="requirements.txt"):
    path = folder / name
    path.write_text(text)
    return path


def listed(requirement_set):
    return [str(wanted) for wanted in requirement_set.requirements]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("demo", ["demo"]),
        ("# all of it\n\ndemo>=1 # why\nother\n", ["demo>=1", "other"]),
        ("demo \\\n  >=1, \\\n  <2\nother", ["demo<2,>=1", "other"]),
        ("demo#not-a-comment", None),
        ("demo; python_version > '3'", ['demo; python_version > "3"']),
        ("demo[a,b]==1", ["demo[a,b]==1"]),
        ("\ufeffdemo", ["demo"]),
        ("demo @ https://h/demo-1.0-py3-none-any.whl", ["demo @ https://h/demo-1.0-py3-none-any.whl"]),
        ("https://h/demo-1.0-py3-none-any-cu128.whl",
         ["demo @ https://h/demo-1.0-py3-none-any-cu128.whl"]),
        ("https://me:pw@h/demo-1.0.tar.gz", ["demo @ https://****@h/demo-1.0.tar.gz"]),
        ("demo>=${LEAST}", ["demo>=3"]),
        ("demo>=${NONE}", None),
        ("demo==", None),
        ("not a requirement", None),
    ],
)  # fmt: skip
def test_lines(tmp_path, text, expected):
    path = write(tmp_path, text)
    if expected is None:
        with pytest.raises(RequirementError, match=r"requirements\.txt:1: "):
            read_file(path, {"LEAST": "3"})
    else:
        assert listed(read_file(path, {"LEAST": "3"})) == expected


def test_paths_are_relative_to_the_file(tmp_path):
    (tmp_path / "inner").mkdir()
    path = write(tmp_path / "inner", "../demo-1.0-py3-none-any.whl")
    (wanted,) = read_file(path, {}).requirements
    assert wanted.requirement.url == (tmp_path / "inner/../demo-1.0-py3-none-any.whl").as_uri()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (f"--hash=sha256:{DIGEST}", {"sha256": {DIGEST}}),
        (f"--hash sha256:{DIGEST.upper()} --hash=sha512:bb",
         {"sha256": {DIGEST}, "sha512": {"bb"}}),
        (f"\\\n --hash=sha256:{DIGEST} \\\n --hash=sha256:cc", {"sha256": {DIGEST, "cc"}}),
        ("--hash=md5:aa", None),
        ("--hash=aa", None),
        ("--config-settings=x", None),
    ],
)  # fmt: skip
def test_hashes(tmp_path, options, expected):
    path = write(tmp_path, f"demo==1 {options}")
    if expected is None:
        with pytest.raises(RequirementError, match="--hash=sha256:DIGEST"):
            read_file(path, {})
    else:
        (wanted,) = read_file(path, {}).requirements
        assert wanted.hashes == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://[x/a-1-py3-none-any.whl",
        "file://[x/a",
        "a @ https://[x/a-1.tar.gz",
        "git+https://[x",
    ],
)
def test_invalid_urls(tmp_path, text):
    with pytest.raises(RequirementError, match=r"requirements.txt:1: .* is not a valid URL"):
        read_file(write(tmp_path, text), {})


def test_includes_and_options(tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", "third\n--find-links wheels\n", "more.txt")
    write(tmp_path, "second<9\n", "constraints.txt")
    path = write(
        tmp_path,
        "-r more/more.txt\n-c constraints.txt\n-i https://a/\n--extra-index-url=https://b/\n"
        "--no-index\n--pre\n-fhttps://c/\nfirst\n",
    )
    requirement_set = read_file(path, {})
    assert listed(requirement_set) == ["third", "first"]
    assert [str(wanted) for wanted in requirement_set.constraints] == ["second<9"]
    assert requirement_set.index_url == "https://a/"
    assert requirement_set.extra_index_urls == ("https://b/",)
    assert requirement_set.find_links == (str(tmp_path / "more" / "wheels"), "https://c/")
    assert requirement_set.no_index
    assert requirement_set.pre


def test_constraints(tmp_path):
    write(tmp_path, "inner", "inner.txt")
    requirement_set = read_file(write(tmp_path, "demo<2\n-r inner.txt"), {}, constraints=True)
    assert requirement_set.requirements == ()
    assert [str(wanted) for wanted in requirement_set.constraints] == ["demo<2", "inner"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-r requirements.txt", "includes itself"),
        ("-r none.txt", "none.txt: cannot be read"),
        ("-r https://h/x.txt", "download https://h/x.txt first"),
        ("-e .", "needs a build"),
        ("--no-binary demo", "--no-binary is not supported here"),
        ("--no-index=1", "--no-index is not supported here"),
        ("-r", "-r is not supported here"),
        ("-f 'a", "No closing quotation"),
        ("https://h/strange.whl", "strange.whl"),
        ("https://h/strange.zip", "strange"),
    ],
)
def test_errors(tmp_path, text, message):
    with pytest.raises(RequirementError, match=message):
        read_file(write(tmp_path, text), {})


def test_no_text(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RequirementError, match="is not UTF-8"):
        read_file(path, {})


def test_credentials_stay_out_of_messages():
    with pytest.raises(RequirementError) as caught:
        parse_requirement("demo @@ https://me:secret@host/demo.whl")
    assert "secret" not in str(caught.value)


def test_requirement_sets_add_up():
    both = RequirementSet((parse_requirement("a"),), index_url="x") + RequirementSet(
        (parse_requirement("b"),)
    )
    assert listed(both) == ["a", "b"]
    assert both.index_url == "x"


def test_files_beyond_the_limits(tmp_path):
    path = tmp_path / "requirements.txt"
    for text, problem in (
        ("#" * (limits.REQUIREMENTS_BYTES + 1), "larger than 2097152 bytes"),
        ("a\n" * (limits.REQUIREMENT_LINES + 1), "more than 10000 requirements"),
        ("a; " + "x" * limits.REQUIREMENT_LENGTH, "at most 2000 are read"),
        ("-f " + "x" * limits.URL_CHARACTERS, "at most 8192 are read"),
    ):
        path.write_text(text)
        with pytest.raises(RequirementError, match=problem) as raised:
            read_file(path, {})
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize("text", ["a" + " " * 400_000 + "b", "a " + "\\\n" * 400_000 + "b"])
def test_white_space_is_looked_at_once(tmp_path, text):
    """A pattern that began at every blank took hours for this; the test would not end."""
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    with pytest.raises(RequirementError):
        read_file(path, {})

"""Requirements, and the files they come in."""

import pytest

from pep_variants import limits
from resolvelib_variants.resolution import RequirementError, read_file

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
        ("# all of it\n\ndemo>=1 # why\nother\n", ["demo>=1", "other"]),
        ("demo \\\n  >=1, \\\n  <2\nother", ["demo<2,>=1", "other"]),
        ("demo \\\n # why\nother", ["demo", "other"]),
        ("demo; python_version > '3'", ['demo; python_version > "3"']),
        ("demo[a,b]==1", ["demo[a,b]==1"]),
        ("\ufeffdemo", ["demo"]),
        ("https://h/demo-1.0-py3-none-any-cu128.whl",
         ["demo @ https://h/demo-1.0-py3-none-any-cu128.whl"]),
        ("https://me:pw@h/demo-1.0.tar.gz", ["demo @ https://****@h/demo-1.0.tar.gz"]),
        ("demo>=${LEAST}", ["demo>=3"]),
    ],
)  # fmt: skip
def test_lines(tmp_path, text, expected):
    assert listed(read_file(write(tmp_path, text), {"LEAST": "3"})) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (f"--hash sha256:{DIGEST.upper()} --hash=sha512:bb",
         {"sha256": {DIGEST}, "sha512": {"bb"}}),
        (f"\\\n --hash=sha256:{DIGEST} \\\n --hash=sha256:cc", {"sha256": {DIGEST, "cc"}}),
    ],
)  # fmt: skip
def test_hashes(tmp_path, options, expected):
    (wanted,) = read_file(write(tmp_path, f"demo==1 {options}"), {}).requirements
    assert wanted.hashes == expected


def test_includes_and_options(tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", "../demo-1.0-py3-none-any.whl\n--find-links wheels\n", "more.txt")
    write(tmp_path, "second<9\n-r inner.txt", "constraints.txt")
    write(tmp_path, "inner", "inner.txt")
    path = write(
        tmp_path,
        "-r more/more.txt\n-c constraints.txt\n-i https://a/\n--extra-index-url=https://b/\n"
        "--no-index\n--pre\n-fhttps://c/\nfirst\n",
    )
    requirement_set = read_file(path, {})
    wheel = (tmp_path / "more/../demo-1.0-py3-none-any.whl").as_uri()
    assert listed(requirement_set) == [f"demo @ {wheel}", "first"]
    assert [str(wanted) for wanted in requirement_set.constraints] == ["second<9", "inner"]
    assert requirement_set.index_url == "https://a/"
    assert requirement_set.extra_index_urls == ("https://b/",)
    assert requirement_set.find_links == (str(tmp_path / "more" / "wheels"), "https://c/")
    assert requirement_set.no_index
    assert requirement_set.pre


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("demo>=${NONE}", "is not a valid requirement"),
        ("demo @@ https://me:s3cret@host/demo.whl", "is not a valid requirement"),
        ("https://[x/a-1-py3-none-any.whl", "is not a valid URL"),
        ("a @ https://[x/a-1.tar.gz", "is not a valid URL"),
        ("git+https://[x", "is not a valid URL"),
        ("demo==1 --hash=md5:aa", "--hash=sha256:DIGEST"),
        ("demo==1 --config-settings=x", "--hash=sha256:DIGEST"),
        ("-r requirements.txt", "includes itself"),
        ("-r none.txt", "none.txt: cannot be read"),
        ("-r https://h/x.txt", "download https://h/x.txt first"),
        ("./mine", "source code is not built here: run 'pip wheel --no-deps REQUIREMENT -w DIR'"),
        ("src/mine", "source code is not built here"),
        ("-e mine", "source code is not built here"),
        (
            "git+https://me:s3cret@h/demo.git@v1#egg=demo",
            r"git\+https://\*\*\*\*@h/demo.*is not built",
        ),
        ("demo @ hg+https://h/demo", "source code is not built here"),
        ("--no-binary demo", "--no-binary is not supported here"),
        ("--no-index=1", "--no-index is not supported here"),
        ("-r", "-r is not supported here"),
        ("-f 'a", "No closing quotation"),
        ("https://h/strange.whl", "strange.whl"),
        ("https://h/strange.zip", "strange"),
    ],
)
def test_errors(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(RequirementError, match=message) as caught:
        read_file(path, {})
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).startswith((f"{path}:1: ", f"{path}: ", f"{tmp_path}/none.txt"))


def test_no_text(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RequirementError, match="is not UTF-8"):
        read_file(path, {})


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


@pytest.mark.parametrize("text", ["a" + " " * 400_000 + "b", "a " + "\\\n" * 40_000 + "b"])
def test_white_space_is_looked_at_once(tmp_path, text):
    """A pattern that began at every blank took hours for this; the test would not end."""
    with pytest.raises(RequirementError):
        read_file(write(tmp_path, text), {})

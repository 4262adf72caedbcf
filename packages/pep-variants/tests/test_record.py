"""RECORD: rows, edits that keep every other line, and records that are not valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants._wheelfile.record import (
    digest_of,
    read_record,
    record_line,
    with_contents,
    with_file,
    without_files,
    write_record,
)
from pep_variants.errors import InvalidWheel

RECORD = b'pkg/a.py,sha256=abc,1\r\n"b,c.py",,\r\npkg-1.dist-info/RECORD,,\r\n'
NEW = "pkg-1.dist-info/variant.json"


def added(data, before="pkg-1.dist-info/RECORD"):
    return write_record(with_file(read_record(data, "a.whl"), NEW, b"{}", before))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a,,\nR,,\n", b"a,,\nNEW\nR,,\n"),
        (b"a,,\r\nR,,\r\n", b"a,,\r\nNEW\r\nR,,\r\n"),
        (b"R,,\na,,\n", b"NEW\nR,,\na,,\n"),
        (b"a,,\n", b"a,,\nNEW\n"),
        (b"", b"NEW\n"),
    ],
)
def test_place_and_line_ending_of_a_new_row(before, after):
    new = f"{NEW},sha256=RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o,2".encode()
    assert added(before, "R") == after.replace(b"NEW", new)


def test_digest_is_the_one_of_the_specification():
    assert digest_of(b"") == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_other_contents_of_one_file(ending):
    lines = ["x.py,sha256=abc,1", "x-1.dist-info/METADATA,sha256=old,99", "x-1.dist-info/RECORD,,"]
    record = "".join(line + ending for line in lines)
    rows = with_contents(read_record(record.encode(), "x.whl"), "x-1.dist-info/METADATA", b"new")
    lines[1] = record_line("x-1.dist-info/METADATA", b"new", "")
    assert lines[1].endswith(f",{digest_of(b'new')},3")
    assert write_record(rows) == "".join(line + ending for line in lines).encode()


def test_contents_of_a_file_that_is_not_listed():
    rows = with_contents(read_record(b"x.py,,", "x.whl"), "a,b/METADATA", b"")
    assert write_record(rows) == f'x.py,,\n"a,b/METADATA",{digest_of(b"")},0\n'.encode()


lines = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters='",\0\r\n'), min_size=1
    ).map(lambda name: f"{name},,")
    | st.just('"with ""quotes"", comma\nand line",sha256=x,3')
    | st.just(""),
    max_size=8,
)


@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_taking_a_row_out_again_gives_the_original(names, ending, ended):
    text = ending.join([*names, "pkg-1.dist-info/RECORD,,"]) + (ending if ended else "")
    data = text.encode()
    assert write_record(read_record(data, "a.whl")) == data
    with_new = read_record(added(data), "a.whl")
    assert [row.path for row in with_new].count(NEW) == 1
    assert write_record(without_files(with_new, {NEW})) == data


@pytest.mark.parametrize("data", [b"\xff,,\n", b"a,b\n", b"a,,,\n", b'"a,,\n', b"a" * 200_000])
def test_invalid_records(data):
    with pytest.raises(InvalidWheel, match=r"a\.whl: RECORD is not valid: "):
        read_record(data, "a.whl")

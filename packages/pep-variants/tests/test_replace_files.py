"""Archives with two entries replaced: what comes out is what `zipfile` would have written."""

import io
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.errors import InvalidWheel
from pep_variants.wheelfile.zip_rewriting import replace_files

contents = st.binary(max_size=60)
methods = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])


class Unseekable(io.BytesIO):
    """Makes `zipfile` write data descriptors."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError

    def seek(self, *args):
        raise OSError


def archive(entries, *, comment=b"", stream=None):
    buffer = stream or io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, (data, method) in entries.items():
            target.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, method)
        target.comment = comment
    return buffer.getvalue()


def put_together(data, replacements):
    plan = replace_files(io.BytesIO(data), replacements, "x.whl")
    out = b"".join(
        data[piece.start : piece.end] if piece.data is None else piece.data for piece in plan.pieces
    )
    assert (len(out), len(data)) == (plan.size, plan.original)
    return plan, out


def read_all(data):
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        assert found.testzip() is None
        return {info.filename: found.read(info) for info in found.infolist()}, found.comment


@given(
    st.dictionaries(
        st.text("abc/é", min_size=1, max_size=6), st.tuples(contents, methods), min_size=2
    ),
    contents,
    contents,
    st.binary(max_size=20),
    st.booleans(),
    st.data(),
)
def test_everything_else_stays(entries, first, second, comment, descriptors, data):
    names = data.draw(st.permutations(list(entries)))[:2]
    new = dict(zip(names, (first, second), strict=True))
    stream = Unseekable() if descriptors else None
    original = archive(entries, comment=comment if b"PK" not in comment else b"", stream=stream)
    _, out = put_together(original, new)
    found, _ = read_all(out)
    assert found == {name: new.get(name, held) for name, (held, _) in entries.items()}
    # A reader that goes from the front, as uv does, sees the same entries.
    assert list(found) == list(entries)


def broken(change):
    data = bytearray(archive({"a": (b"1", 0), "b": (b"2", 0)}))
    return bytes(change(data) or data)


def set_offset(data):
    # The second record of the directory says that it lies inside the first entry.
    place = data.rfind(b"PK\x01\x02")
    struct.pack_into("<L", data, place + 42, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x05\x06",
        broken(lambda data: data + b"more"),
        broken(set_offset),
        broken(lambda data: data.__setitem__(slice(-12, -8), b"\xff\xff\xff\x7f")),
        broken(lambda data: data.__setitem__(slice(-12, -10), b"\x07\x00")),
        archive({"b": (b"2", 0)}),
    ],
)
def test_what_cannot_be_used(data):
    with pytest.raises(InvalidWheel, match=r"x\.whl"):
        replace_files(io.BytesIO(data), {"a": b"new"}, "x.whl")

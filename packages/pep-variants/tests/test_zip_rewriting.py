"""Raw copies of archives, checked by `zipfile` and byte by byte."""

import io
import mmap
import os
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants import limits
from pep_variants._wheelfile.zip_rewriting import (
    CHUNK,
    Rewriter,
    read_directory,
    replace_files,
    with_local_headers,
)
from pep_variants.errors import InvalidWheel


def directory_of(data, source="a.whl"):
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    return with_local_headers(read_directory(stream, source), stream, source), stream


def copied(data, without=()):
    directory, stream = directory_of(data)
    rewriter = Rewriter(directory)
    for entry in directory.entries:
        if entry.name not in without:
            rewriter.keep(entry)
    return written_by(rewriter, stream)


def written_by(rewriter, stream):
    target = io.BytesIO()
    rewrite = rewriter.finish()
    rewrite.write(stream, target)
    assert len(target.getvalue()) == rewrite.size
    return target.getvalue()


def written(*entries, comment=b"", streaming=False):
    """Return an archive; entries are (ZipInfo or name, data)."""
    target = Unseekable() if streaming else io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in entries:
            archive.writestr(info, data)
        archive.comment = comment
    return target.getvalue()


class Unseekable(io.BytesIO):
    """Makes `zipfile` write data descriptors."""

    def tell(self):
        raise OSError


def same(first, second):
    """Whether two entries agree in all that can be told without their place."""
    keys = (
        "filename orig_filename date_time compress_type comment extra create_system create_version "
        "extract_version flag_bits internal_attr external_attr CRC compress_size file_size"
    )
    return all(getattr(first, key) == getattr(second, key) for key in keys.split())


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@st.composite
def archives(draw):
    """Return files by name, the comment, and an archive of them."""
    files = draw(st.dictionaries(names, st.binary(max_size=2000), min_size=2, max_size=6))
    comment = draw(st.binary(max_size=30).filter(lambda comment: b"PK" not in comment))
    entries = []
    for number, (name, content) in enumerate(files.items()):
        info = zipfile.ZipInfo(name, (1980 + number, 1, 1, 0, 0, 0))
        info.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        info.external_attr = number << 16
        entries.append((info, content))
    return files, comment, written(*entries, comment=comment, streaming=draw(st.booleans()))


@settings(deadline=None)
@given(archives(), st.data())
def test_copy_of_everything_is_identical_and_of_a_part_is_that_part(made, data):
    _, comment, source = made
    assert copied(source) == source

    original = zipfile.ZipFile(io.BytesIO(source))
    gone = data.draw(st.sets(st.sampled_from(original.namelist())))
    part = zipfile.ZipFile(io.BytesIO(copied(source, without=gone)))
    assert part.testzip() is None
    assert part.comment == comment
    kept = [info for info in original.infolist() if info.filename not in gone]
    for before, after in zip(kept, part.infolist(), strict=True):
        assert same(before, after)
        assert part.read(after) == original.read(before)


def replaced(data, replacements):
    plan = replace_files(io.BytesIO(data), replacements, "a.whl")
    out = b"".join(
        data[piece.start : piece.end] if piece.data is None else piece.data for piece in plan.pieces
    )
    assert (len(out), len(data)) == (plan.size, plan.original)
    return out


@given(archives(), st.data())
def test_of_replaced_files_everything_else_stays(made, data):
    files, _, source = made
    new = {name: data.draw(st.binary(max_size=60)) for name in list(files)[:2]}
    with zipfile.ZipFile(io.BytesIO(replaced(source, new))) as found:
        assert found.testzip() is None
        # A reader that goes from the front, as uv does, sees the same entries.
        assert [(name, found.read(name)) for name in found.namelist()] == [
            *{**files, **new}.items()
        ]


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x05\x06", lambda: written(("a", b"1")) + b"more", lambda: written(("b", b"2"))],
)
def test_archives_in_which_nothing_can_be_replaced(data):
    with pytest.raises(InvalidWheel, match=r"a\.whl"):
        replaced(data() if callable(data) else data, {"a": b"new"})


def test_names_in_code_page_437_stay_as_they_are():
    source = bytearray(written(("abc.txt", b"data")))
    source = bytes(source.replace(b"abc.txt", b"\x81bc.txt"))
    assert copied(source) == source
    assert zipfile.ZipFile(io.BytesIO(copied(source))).namelist() == ["übc.txt"]
    directory, stream = directory_of(source)
    rewriter = Rewriter(directory)
    rewriter.keep(directory.entries[0], "other/übc.txt")
    renamed = written_by(rewriter, stream)
    assert b"other/\x81bc.txt" in renamed
    assert zipfile.ZipFile(io.BytesIO(renamed)).namelist() == ["other/übc.txt"]


def test_new_entries_are_like_their_model():
    info = zipfile.ZipInfo("ü/RECORD", (2021, 5, 4, 3, 2, 2))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100664 << 16
    info.create_system = 0
    source = written(("a", b"x"), (info, b"content" * 50))
    directory, stream = directory_of(source)
    rewriter = Rewriter(directory)
    rewriter.keep(directory.entries[0])
    rewriter.add("ü/RECORD", b"content" * 50, like=directory.entries[1], compress=True)
    assert written_by(rewriter, stream) == source


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice():
    with pytest.raises(InvalidWheel, match="'a' is in it twice"):
        directory_of(written(("a", b"1"), ("a", b"2")))


def patched(data, signature, offset, value, occurrence=0):
    start = -1
    for _ in range(occurrence + 1):
        start = data.index(signature, start + 1)
    return data[: start + offset] + value + data[start + offset + len(value) :]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (patched(written(("ab", b"1")), b"PK\3\4", 30, b"x"), "another name in its local header"),
        (patched(written(("ab", b"1")), b"PK\3\4", 0, b"x"), "no local header of 'ab'"),
        (
            patched(written(("a", b"1"), ("b", b"2")), b"PK\1\2", 42, b"\0", 1),
            "'b' overlaps 'a'",
        ),
        (
            patched(written(("a", b"1"), ("b", b"2")), b"PK\1\2", 20, b"\x20", 0),
            "'b' overlaps 'a'",
        ),
        (
            patched(written(("a", b"1")), b"PK\1\2", 20, b"\xff", 0),
            "'a' reaches into the central directory",
        ),
    ],
)
def test_damaged_archives(data, problem):
    with pytest.raises(InvalidWheel, match=problem):
        copied(data)
    with pytest.raises(InvalidWheel):
        replaced(data, {"b" if b"b" in data else "a": b"new"})


@pytest.mark.parametrize("offset", [1000, 2**64 - 1])
def test_offset_outside_of_the_archive(offset):
    central = struct.pack(
        "<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 33, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0xFFFFFFFF
    ) + b"a" + struct.pack("<HHQ", 1, 8, offset)  # fmt: skip
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(central), 0, 0)
    with pytest.raises(InvalidWheel, match="'a' lies outside of it"):
        directory_of(central + end)


class Sparse(mmap.mmap):
    """A file of any size in memory, with one large hole, of which chunks are not copied."""

    def __new__(cls, size):
        more = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
        stream = super().__new__(cls, -1, size, **more)
        stream.hole = range(0)
        return stream

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        super().seek(offset, whence)
        return self.tell()

    def read(self, size=None):
        if size != CHUNK or self.tell() not in self.hole or self.tell() + size not in self.hole:
            return super().read(size)
        self.seek(size, io.SEEK_CUR)
        return ZEROS

    def write(self, data):
        if data is not ZEROS:
            return super().write(data)
        self.hole = range(self.hole.start or self.tell(), self.seek(len(data), io.SEEK_CUR))
        return len(data)


ZEROS = bytes(CHUNK)


def big_archive(size):
    """Return an archive with an entry of *size* zeros, and two after it."""
    local = struct.pack(
        "<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 33, 7, 0xFFFFFFFF, 0xFFFFFFFF, 3, 20
    ) + b"big" + struct.pack("<HHQQ", 1, 16, size, size)  # fmt: skip
    small = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(b"x"), 1, 1, 1, 0)
    after = len(local) + size
    central = (
        struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 33, 7, 0xFFFFFFFF, 0xFFFFFFFF, 3, 20, 0, 0,
            0, 0, 0,
        )
        + b"big"
        + struct.pack("<HHQQ", 1, 16, size, size)
    )  # fmt: skip
    for number, name in enumerate((b"a", b"b")):
        central += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 33, zlib.crc32(b"x"), 1, 1, 1, 12, 0, 0, 0,
            0, 0xFFFFFFFF,
        ) + name + struct.pack("<HHQ", 1, 8, after + 32 * number)  # fmt: skip
    start = after + 64
    end = start + len(central)
    rest = b"".join(
        (
            small + b"a" + b"x" + small + b"b" + b"x" + central,
            struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 3, 3, len(central), start),
            struct.pack("<4sIQI", b"PK\6\7", 0, end, 1),
            struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 3, 3, len(central), 0xFFFFFFFF, 0),
        )
    )
    stream = Sparse(after + len(rest))
    stream.hole = range(len(local), after)
    stream[: len(local)] = local
    stream[after:] = rest
    return stream


def test_archives_beyond_4_gib():
    """Copying keeps, grows and shrinks zip64 offsets."""
    size = 4 * 1024**3 + 12345
    directory, stream = directory_of(big_archive(size))
    assert directory.zip64
    big, a, b = directory.entries
    rewriter = Rewriter(directory)
    rewriter.keep(b)  # its offset fits into 32 bits now, and stays in the zip64 field
    rewriter.add("early", b"1", like=b, compress=True)
    rewriter.keep(big)
    rewriter.keep(a, "renamed")
    rewriter.add("late", b"content", like=big, compress=True)  # its offset outgrows 32 bits
    rewrite = rewriter.finish()
    copy = Sparse(rewrite.size)
    rewrite.write(stream, copy)

    archive = zipfile.ZipFile(copy)
    assert archive.namelist() == ["big", "late", "renamed", "b", "early"]
    assert archive.getinfo("big").file_size == size
    assert archive.getinfo("late").header_offset > 2**32
    expected = {"early": b"1", "renamed": b"x", "late": b"content", "b": b"x"}
    assert {name: archive.read(name) for name in expected} == expected

    directory, stream = directory_of(copy)
    target = io.BytesIO()
    rewriter = Rewriter(directory)
    for entry in directory.entries:
        if entry.name != "big":
            rewriter.keep(entry)
    rewriter.finish().write(stream, target)
    archive = zipfile.ZipFile(target)
    assert {name: archive.read(name) for name in archive.namelist()} == expected


def test_more_entries_than_16_bits_count():
    info = zipfile.ZipInfo("m")
    info.compress_type = zipfile.ZIP_STORED
    directory, stream = directory_of(written((info, b"")))
    rewriter = Rewriter(directory)
    for number in range(66_000):
        rewriter.add(f"{number}", b"", like=directory.entries[0], compress=True)
    data = written_by(rewriter, stream)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert len(archive.infolist()) == 66_000
    assert archive.read("65999") == b""


def end_64(count=0, length=0, signature=b"PK\6\6"):
    """Return an archive of end records alone."""
    numbers = (44, 45, 45, 0, 0, count, count, length, 0)
    return struct.pack("<4sQ2H2I4Q", signature, *numbers) + LOCATOR + written()


LOCATOR = b"PK\6\7" + bytes(16)
ENTRIES, BYTES = limits.WHEEL_ENTRIES, limits.WHEEL_DIRECTORY_BYTES


@pytest.mark.parametrize("data", [written(), end_64()])
def test_empty_archives(data):
    directory, _ = directory_of(data)
    assert not directory.entries


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: end_64(signature=b"PK\0\0"), "its zip64 end record is not where it should be"),
        (lambda _: LOCATOR + written(), "its zip64 end record is not where it should be"),
        (lambda data: data[:-18] + b"\1\0" + data[-16:], "it is split into several files"),
        (lambda _: end_64(count=ENTRIES), f"0 entries, its end record says {ENTRIES}"),
        (lambda _: end_64(count=ENTRIES + 1), f"its directory has {ENTRIES + 1} entries"),
        (lambda _: end_64(length=BYTES), "its central directory is not where"),
        (lambda _: end_64(length=BYTES + 1), f"its directory has 0 entries of {BYTES + 1} bytes"),
        (lambda data: data + b"more", "other data follows its end record"),
        (lambda data: data[1:], "its central directory is not where its end record says"),
        (lambda data: data[:-22], "it has no end record"),
        (lambda data: data[:-12] + b"\7\0" + data[-10:], "1 entries, its end record says 7"),
    ],
)
def test_end_records_that_readers_disagree_about(change, problem):
    with pytest.raises(InvalidWheel, match=f"a.whl: damaged zip archive: .*{problem}"):
        copied(change(written(("a", b"1"))))

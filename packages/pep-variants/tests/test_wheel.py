import io
import json
import struct
import zipfile

import pytest

from pep_variants import limits
from pep_variants._wheelfile.wheel import open_wheel, read_wheel_metadata
from pep_variants._wheelfile.zip_reading import open_zip
from pep_variants.errors import InvalidWheel
from support.waiting import memory_limit

NAME = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
DIST_INFO = "example_pkg-1.0.dist-info"
VARIANT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["x86_64"]},
    "variants": {"x86_64_v3": {"x86_64": {"level": ["v3"]}}},
}


def wheel_bytes(*, files=None, dist_info=DIST_INFO, variant=VARIANT, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("example_pkg/__init__.py", "")
        archive.writestr(f"{dist_info}/METADATA", "Metadata-Version: 2.1\n")
        if variant is not None:
            text = variant if isinstance(variant, (str, bytes)) else json.dumps(variant)
            archive.writestr(f"{dist_info}/variant.json", text)
        for name, data in (files or {}).items():
            archive.writestr(name, data)
    return buffer.getvalue()


def read(data, source="https://user:secret@example.org/a.whl"):
    return read_wheel_metadata(io.BytesIO(data), source)


def test_metadata_of_a_variant_wheel(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(wheel_bytes())
    for given_as in (path, str(path)):
        metadata = read_wheel_metadata(given_as, str(path))
        assert metadata.variants == {"x86_64_v3": {"x86_64": {"level": ("v3",)}}}
        assert metadata.source == f"{path}: {DIST_INFO}/variant.json"
    assert read(wheel_bytes(), str(path)) == metadata
    assert read(wheel_bytes(variant=None)) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not a usable zip archive"),
        (b"PK\x03\x04 and then nothing", "not a usable zip archive"),
        (b"<html>404</html>" * 100, "not a usable zip archive"),
        (wheel_bytes()[:-30], "not a usable zip archive"),
        (wheel_bytes(dist_info="example_pkg-1.0"), "exactly one *.dist-info folder, found none"),
        (
            wheel_bytes(files={"other-2.0.dist-info/METADATA": ""}),
            "found 'example_pkg-1.0.dist-info', 'other-2.0.dist-info'",
        ),
    ],
)
def test_archives_that_are_no_wheels(data, problem):
    with pytest.raises(InvalidWheel) as caught:
        read(data)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith("https://****@example.org/a.whl: ")


@pytest.mark.parametrize(
    ("name", "dist_info", "fits"),
    [
        (NAME, DIST_INFO, True),
        (NAME, "example_pkg-1.0.0.dist-info", True),
        (NAME, "example_pkg-1.1.dist-info", False),
        (NAME, "example-1.0.dist-info", False),
        ("tmpx91l.whl", "anything-3.dist-info", True),
    ],
)
def test_dist_info_belongs_to_the_filename(tmp_path, name, dist_info, fits):
    path = tmp_path / name
    path.write_bytes(wheel_bytes(dist_info=dist_info))
    for file in (path, io.BytesIO(path.read_bytes())):
        if fits:
            with open_wheel(file, name, filename=name) as contents:
                assert contents.variant_metadata() is not None
        else:
            message = r"does not belong to example-pkg 1\.0"
            with (
                pytest.raises(InvalidWheel, match=message),
                open_wheel(file, name, filename=name),
            ):
                pass


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_wheel_metadata(tmp_path / NAME, NAME)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused():
    with pytest.raises(InvalidWheel, match="occurs 2 times in the archive"):
        read(wheel_bytes(files={f"{DIST_INFO}/variant.json": "{}"}))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method):
    with pytest.raises(InvalidWheel, match="something other than deflate"):
        read(wheel_bytes(method=method))


def patched(data, local, central, change):
    """Return an archive with *change* at the offsets *local* and *central* of all its headers."""
    data = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        start = 0
        while (start := data.find(signature, start)) >= 0:
            (value,) = struct.unpack_from("<I", data, start + offset)
            struct.pack_into("<I", data, start + offset, change(value))
            start += 4
    return bytes(data)


def test_encrypted_entry_is_refused():
    with pytest.raises(InvalidWheel, match=r"variant\.json cannot be read"):
        read(patched(wheel_bytes(), 6, 8, lambda flags: flags | 1))


BOMB = 20 * 1000 * 1000
"""Bytes that a compressed variant.json has."""


@pytest.mark.parametrize(
    ("declared", "problem"),
    [(BOMB, "larger than 8388608 bytes"), (1000, "cannot be read: Bad CRC-32")],
)
def test_zip_bombs_are_not_unpacked(declared, problem):
    made = wheel_bytes(variant=b"[" * BOMB)
    data = patched(made, 22, 24, lambda size: declared if size == BOMB else size)
    with memory_limit(2_000_000), pytest.raises(InvalidWheel, match=problem):
        read(data)


def test_limit_of_other_files():
    stream = io.BytesIO(wheel_bytes())
    with open_wheel(stream, "a.whl") as contents:
        assert contents.dist_info == DIST_INFO
        assert contents.read("METADATA") == b"Metadata-Version: 2.1\n"
        assert contents.read("METADATA", limit=22) == b"Metadata-Version: 2.1\n"
        assert contents.read("entry_points.txt") is None
        with pytest.raises(InvalidWheel, match=r"a.whl: .*METADATA is larger than 21 bytes"):
            contents.read("METADATA", limit=21)
    assert not stream.closed


# Central directories: their entries are counted before any is made.

END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR = struct.Struct("<4sLQL")
ENTRY = struct.Struct("<4s4B4HL2L5H2L")


def directory(count, extra=b""):
    """A central directory of *count* entries without a name that matters."""
    record = ENTRY.pack(b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, len(extra), 0, 0, 0, 0, 0)
    return (record + b"x" + extra) * count


def archive(central, count, *, declared=None, zip64=False):
    """An archive without data; *declared* entries are what its end says."""
    said = count if declared is None else declared
    tail = b""
    if zip64:
        tail = END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, said, said, len(central), 0)
        tail += LOCATOR.pack(b"PK\6\7", 0, len(central), 1)
    return (
        central
        + tail
        + END.pack(
            b"PK\5\6", 0, 0, min(said, 65535), min(said, 65535), min(len(central), 2**32 - 1), 0, 0
        )
    )


class Watched(io.BytesIO):
    largest = 0

    def read(self, size=-1):
        data = super().read(size)
        self.largest = max(self.largest, len(data))
        return data


@pytest.mark.parametrize("declared", [None, 1])
@pytest.mark.parametrize("zip64", [False, True])
def test_entries_are_counted_before_they_are_made(declared, zip64):
    count = limits.WHEEL_ENTRIES + 1
    data = archive(directory(count), count, declared=declared, zip64=zip64)
    message = rf"x.whl: .* more than {limits.WHEEL_ENTRIES} entr"
    with memory_limit(2.5 * len(data)), pytest.raises(InvalidWheel, match=message):
        open_zip(io.BytesIO(data), "x.whl")  # it has the file itself in memory


@pytest.mark.parametrize("zip64", [False, True])
def test_large_directories_are_not_read(zip64):
    extra = struct.pack("<2H", 0x7777, 60_000) + bytes(60_000)
    count = limits.WHEEL_DIRECTORY_BYTES // len(extra) + 1
    stream = Watched(archive(directory(count, extra), count, zip64=zip64))
    with pytest.raises(InvalidWheel, match=r"its directory has .* at most 16777216"):
        open_zip(stream, "x.whl")
    assert stream.largest < 100_000

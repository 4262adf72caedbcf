import io
import struct
import tracemalloc
import zipfile

import pytest

from pep_variants import limits
from pep_variants.errors import InvalidWheel
from pep_variants.wheelfile.wheel import open_wheel
from pep_variants.wheelfile.zip_reading import open_zip

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
    tracemalloc.start()
    try:
        with pytest.raises(InvalidWheel, match=rf"x.whl: .* more than {limits.WHEEL_ENTRIES} entr"):
            open_zip(io.BytesIO(data), "x.whl")
        assert tracemalloc.get_traced_memory()[1] < 2.5 * len(data)  # the file itself is in it
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("zip64", [False, True])
def test_large_directories_are_not_read(zip64):
    extra = struct.pack("<2H", 0x7777, 60_000) + bytes(60_000)
    count = limits.WHEEL_DIRECTORY_BYTES // len(extra) + 1
    stream = Watched(archive(directory(count, extra), count, zip64=zip64))
    with pytest.raises(InvalidWheel, match=r"its directory has .* at most 16777216"):
        open_zip(stream, "x.whl")
    assert stream.largest < 100_000


def test_what_fits_is_read():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for number in range(1000):
            made.writestr(f"demo/{number}", "x")
        made.writestr("demo-1.0.dist-info/METADATA", "Name: demo\n")
    with open_wheel(buffer, "demo.whl") as contents:
        assert contents.read("METADATA") == b"Name: demo\n"
        assert len(contents.archive.infolist()) == 1001
    assert not buffer.closed

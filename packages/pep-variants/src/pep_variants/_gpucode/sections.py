"""Sections of shared libraries and object files: ELF, PE and Mach-O.

Files are untrusted: offsets and sizes may be anything. A table is read within limits, sections are
cut at the end of the file, and what makes no sense is left out.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

from ..limits import LIBRARY_READS, LIBRARY_SECTIONS

AMD_GPU, CUDA = 224, 190
"""Machines of ELF files that are GPU code themselves."""

_NOTHING = 8  # SHT_NOBITS
_NAMES = 1 << 20
"""Bytes of the names of sections that are read."""
_WIDEST = 256
"""Bytes of a row of a table of sections."""
_BLOCK = 4096
"""Bytes that count as another read."""
_X86_64H = 0x01000007, 8
"""CPU type and subtype of Mach-O code for Haswell and newer, which is x86-64-v3."""


class Section(NamedTuple):
    """A section of a file.

    Attributes:
        name: e.g. ``.nv_fatbin``; PE keeps the first eight characters.
        start: offset in the file.
        size: in bytes.
    """

    name: str
    start: int
    size: int


class ObjectFile(NamedTuple):
    """An object file.

    Attributes:
        sections: in the order of their offsets.
        machine: number of the machine of an ELF file, 0 for others.
        abi: version of the ABI of an ELF file.
        flags: of the machine of an ELF file.
        isa: level of x86-64 of a Mach-O file, empty for none.
    """

    sections: tuple[Section, ...]
    machine: int = 0
    abi: int = 0
    flags: int = 0
    isa: str = ""


class ByteReader:
    """Reads a file at offsets; goes back in it as seldom as possible, as a zip file unpacks again.

    After `LIBRARY_READS` it reads nothing, so that no file makes a reader work for long.

    Attributes:
        size: of the file.
    """

    def __init__(self, stream: IO[bytes], size: int | None = None) -> None:
        self._stream = stream
        self._last, self._start = b"", 0
        self._left = LIBRARY_READS
        self.size = stream.seek(0, os.SEEK_END) if size is None else size

    def at(self, offset: int, size: int) -> bytes:
        """Return *size* bytes from *offset* on, fewer at the end of the file."""
        size = min(size, self.size - offset)
        self._left -= 1 + size // _BLOCK
        if offset < 0 or size <= 0 or self._left < 0:
            return b""
        known = b""
        if self._start <= offset < self._start + len(self._last):
            known = self._last[offset - self._start :][:size]
        if len(known) < size:
            self._stream.seek(offset + len(known))
            self._last, self._start = known + self._stream.read(size - len(known)), offset
            return self._last
        return known

    def numbers(self, layout: str, offset: int) -> tuple[int, ...]:
        """Return the numbers of *layout* at *offset*, as for `struct`; 0 each outside the file."""
        size = struct.calcsize(layout)
        return struct.unpack(layout, self.at(offset, size).ljust(size, b"\0"))


def read_object(reader: ByteReader) -> ObjectFile | None:
    """Return the object file, None for any other file."""
    start = reader.at(0, 64)
    if start[:4] == b"\x7fELF":
        return _elf(reader, start)
    if start[:2] == b"MZ":
        return _ordered(reader, _pe(reader))
    slices = list(_mach_slices(reader, start))
    if not slices:
        return None
    levels = {reader.numbers(f"{order}II", base + 4) for base, order in slices}
    isa = "v3" if levels == {_X86_64H} else ""
    found = (section for base, order in slices for section in _mach(reader, base, order))
    return _ordered(reader, found)._replace(isa=isa)


def _ordered(reader: ByteReader, sections: Iterator[Section]) -> ObjectFile:
    """Return the object file with *sections*, without those that overlap others."""
    found: list[Section] = []
    end = 0
    for section in sorted(sections, key=lambda each: (each.start, -each.size)):
        size = min(section.size, reader.size - section.start)
        if section.start >= end and size > 0:
            found.append(section._replace(size=size))
            end = section.start + size
    return ObjectFile(tuple(found))


def _elf(reader: ByteReader, header: bytes) -> ObjectFile:
    """Read an ELF file (System V ABI, chapter 4)."""
    order = ">" if header[5:6] == b"\2" else "<"
    is_64 = header[4:5] == b"\2"
    (machine,) = reader.numbers(f"{order}H", 18)
    table, flags, *_, width, count, names = reader.numbers(
        f"{order}QI6H" if is_64 else f"{order}II6H", 40 if is_64 else 32
    )
    layout = f"{order}IIQQQQ" if is_64 else f"{order}IIIIII"
    size = struct.calcsize(layout)
    if count == 0 and table:  # more than there is room for
        count = reader.numbers(layout, table)[5]
    if names == 0xFFFF:
        (names,) = reader.numbers(f"{order}I", table + (40 if is_64 else 24))
    width = width if size <= width <= _WIDEST else size
    data = reader.at(table, width * min(count, LIBRARY_SECTIONS))
    rows = [
        struct.unpack_from(layout, data, offset)
        for offset in range(0, len(data) - size + 1, width)
    ]  # fmt: skip
    start, size = rows[names][4:6] if names < len(rows) else (0, 0)
    texts = reader.at(start, min(size, _NAMES))
    sections = (
        Section(_text(texts[row[0] : row[0] + 64]), row[4], row[5])
        for row in rows
        if row[1] not in (0, _NOTHING)
    )
    found = _ordered(reader, sections)
    return found._replace(machine=machine, abi=header[8], flags=flags)


def _pe(reader: ByteReader) -> Iterator[Section]:
    """Yield the sections of a PE file (PE format, 'Section Table')."""
    (header,) = reader.numbers("<I", 60)
    if reader.at(header, 4) != b"PE\0\0":
        return
    (count,) = reader.numbers("<H", header + 6)
    (optional,) = reader.numbers("<H", header + 20)
    for number in range(min(count, LIBRARY_SECTIONS)):
        row = header + 24 + optional + 40 * number
        size, start = reader.numbers("<II", row + 16)
        yield Section(_text(reader.at(row, 8)), start, size)


def _mach_slices(reader: ByteReader, start: bytes) -> Iterator[tuple[int, str]]:
    """Yield offset and byte order of the Mach-O files in the file, of which each is for one CPU."""
    magic = start[:4]
    if magic in (b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf"):
        yield 0, "<" if magic[0] == 0xCF else ">"
    elif magic == b"\xca\xfe\xba\xbe":
        (count,) = struct.unpack(">I", start[4:8].ljust(4, b"\0"))
        for number in range(min(count, 16)):  # Java has the same magic number
            (offset,) = reader.numbers(">I", 8 + 20 * number + 8)
            inner = reader.at(offset, 4)
            if offset and inner in (b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf"):
                yield offset, "<" if inner[0] == 0xCF else ">"


def _mach(reader: ByteReader, base: int, order: str) -> Iterator[Section]:
    """Yield the sections of the 64-bit Mach-O file at *base* (`mach-o/loader.h`)."""
    (commands,) = reader.numbers(f"{order}I", base + 16)
    place, left = base + 32, LIBRARY_SECTIONS
    for _ in range(min(commands, LIBRARY_SECTIONS)):
        kind, size = reader.numbers(f"{order}II", place)
        if kind == 0x19:  # LC_SEGMENT_64
            (count,) = reader.numbers(f"{order}I", place + 64)
            for row in range(place + 72, place + 72 + 80 * min(count, left), 80):
                length, offset = reader.numbers(f"{order}QI", row + 40)
                yield Section(_text(reader.at(row, 16)), base + offset, length)
            left -= min(count, left)
        if size < 8:
            return
        place += size


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("ascii", "replace")

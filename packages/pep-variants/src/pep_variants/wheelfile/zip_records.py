"""The headers and records of zip archives as bytes: read, renamed, moved, written.

Layout and field offsets: APPNOTE.TXT 6.3, sections 4.3 and 4.5.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

LOCAL_SIGNATURE = b"PK\x03\x04"
CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
END_64_SIGNATURE = b"PK\x06\x06"
LOCATOR_64_SIGNATURE = b"PK\x06\x07"

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END_64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR_64 = struct.Struct("<4sIQI")

UTF8 = 0x800
"""General purpose flag: the name is UTF-8, otherwise code page 437."""

PLAIN_VERSION, ZIP64_VERSION = 20, 45
"""Versions of the format that an extractor has to support."""

_ZIP64_EXTRA = 0x0001
_FULL_16 = 0xFFFF
FULL_32 = 0xFFFFFFFF
"""In a 32 bit field: the value is in the zip64 extra field."""


class LocalHeader(NamedTuple):
    """The fixed part of a local header (APPNOTE.TXT, 4.3.7)."""

    signature: bytes
    needed: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    packed: int
    unpacked: int
    name_size: int
    extra_size: int

    def pack(self) -> bytes:
        """Return the header as bytes."""
        return LOCAL.pack(*self)


class CentralHeader(NamedTuple):
    """The fixed part of a record of the central directory (APPNOTE.TXT, 4.3.12)."""

    signature: bytes
    made_by: int
    needed: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    packed: int
    unpacked: int
    name_size: int
    extra_size: int
    comment_size: int
    disk: int
    internal: int
    external: int
    offset: int

    @classmethod
    def unpack(cls, record: bytes) -> CentralHeader:
        """Return the header at the start of *record*."""
        return cls._make(CENTRAL.unpack_from(record))

    def pack(self) -> bytes:
        """Return the header as bytes."""
        return CENTRAL.pack(*self)


def renamed_record(record: bytes, name: bytes) -> bytes:
    """Return the central directory *record* with another name."""
    header = CentralHeader.unpack(record)
    tail = record[CENTRAL.size + header.name_size :]
    return header._replace(name_size=len(name)).pack() + name + tail


def moved_record(record: bytes, offset: int, *, zip64: bool = False) -> bytes:
    """Return the central directory *record* with another *offset* of its local header.

    The offset is written to the zip64 extra field where it outgrows its own field, was there
    before, or if *zip64* is true. Everything else stays.
    """
    header = CentralHeader.unpack(record)
    tail = record[CENTRAL.size :]
    if header.offset != FULL_32 and offset < FULL_32 and not zip64:
        return header._replace(offset=offset).pack() + tail
    extra_start, extra_end = header.name_size, header.name_size + header.extra_size
    before, body, behind = around_zip64(tail[extra_start:extra_end])
    # The zip64 field holds, in this order, those of sizes and offset whose own field is full.
    slot = 8 * (header.unpacked == FULL_32) + 8 * (header.packed == FULL_32)
    after = slot + 8 if header.offset == FULL_32 else slot
    body = body[:slot] + struct.pack("<Q", offset) + body[after:]
    extra = before + struct.pack("<HH", _ZIP64_EXTRA, len(body)) + body + behind
    needed = max(header.needed & 0xFF, ZIP64_VERSION) | (header.needed & 0xFF00)
    header = header._replace(needed=needed, extra_size=len(extra), offset=FULL_32)
    return header.pack() + tail[:extra_start] + extra + tail[extra_end:]


def end_records(count: int, size: int, start: int, comment: bytes, *, zip64: bool) -> bytes:
    """Return what follows the central directory.

    Args:
        count: entries.
        size: bytes of the central directory.
        start: where it starts.
        comment: of the archive.
        zip64: write a zip64 end record even where the plain one is sufficient.
    """
    large = b""
    if zip64 or count >= _FULL_16 or size >= FULL_32 or start >= FULL_32:
        large = END_64.pack(
            END_64_SIGNATURE, END_64.size - 12, ZIP64_VERSION, ZIP64_VERSION, 0, 0, count, count,
            size, start,
        ) + LOCATOR_64.pack(LOCATOR_64_SIGNATURE, 0, start + size, 1)  # fmt: skip
    end = END.pack(
        END_SIGNATURE, 0, 0, min(count, _FULL_16), min(count, _FULL_16), min(size, FULL_32),
        min(start, FULL_32), len(comment),
    )  # fmt: skip
    return large + end + comment


def around_zip64(extra: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what precedes the zip64 field of *extra*, its body, and what follows it."""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        end = position + 4 + size
        if kind == _ZIP64_EXTRA:
            return extra[:position], extra[position + 4 : end], extra[end:]
        position = end
    return b"", b"", extra

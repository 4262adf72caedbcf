"""Another METADATA and RECORD in a wheel of any size, without touching what is between.

A zip archive is a row of entries and a directory that says where they are (APPNOTE.TXT 6.3). So a
changed archive is: the original up to the first changed entry, the new entry, the original up to
the next one, and so on, then a directory with the new places. `splice` says which pieces these
are; whoever has the bytes passes them on. New entries are not compressed: compressors differ
between machines, and the result is to be the same everywhere.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from pep_variants.errors import shortened

from ..errors import UnusableFile

MAX_DIRECTORY = 64 * 1024 * 1024
"""Bytes of the largest directory that is read: enough for half a million files."""

_CENTRAL = struct.Struct("<4s4B4HL2L5H2L")
_LOCAL = struct.Struct("<4s2B4HL2L2H")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_CENTRAL_SIGNATURE, _LOCAL_SIGNATURE = b"PK\x01\x02", b"PK\x03\x04"
_END_SIGNATURE, _END64_SIGNATURE, _LOCATOR_SIGNATURE = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_MAX_COMMENT = 0xFFFF
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_UTF8 = 0x800
_ZIP64 = 1
_PLAIN, _WITH_ZIP64 = 20, 45
"""Versions of the format that an extractor must know."""


@dataclass(frozen=True)
class Piece:
    """Some bytes of the result: of the original from `start` to `end`, or `data`."""

    start: int = 0
    end: int = 0
    data: bytes | None = None

    def __len__(self) -> int:
        return self.end - self.start if self.data is None else len(self.data)


@dataclass(frozen=True)
class Splice:
    """How a changed archive is put together.

    Attributes:
        pieces: in order.
        original: size of the original.
        size: of the result.
    """

    pieces: tuple[Piece, ...]
    original: int
    size: int

    def between(self, start: int, end: int) -> tuple[Piece, ...]:
        """Return the pieces of the result's bytes from *start* to *end*."""
        found = []
        position = 0
        for piece in self.pieces:
            first, last = max(start - position, 0), min(end - position, len(piece))
            if first < last:
                if piece.data is None:
                    found.append(Piece(piece.start + first, piece.start + last))
                else:
                    found.append(Piece(data=piece.data[first:last]))
            position += len(piece)
        return tuple(found)


@dataclass
class _Entry:
    """One entry of the directory: where its record is, and where its data begins and ends."""

    record: bytes
    name: bytes
    offset: int
    stored: int


def splice(archive: IO[bytes], replacements: Mapping[str, bytes], source: str) -> Splice:
    """Return how to put *replacements* in place of what the archive has.

    Args:
        archive: seekable; only its directory is read.
        replacements: contents by path; every path is in the archive once.
        source: path or URL for messages.

    Raises:
        UnusableFile: no archive of the plain kind: damaged, in several parts, with entries that
            overlap, or without a path that is to be replaced.
    """
    try:
        return _splice(archive, replacements, source)
    except (struct.error, IndexError) as error:
        raise _unusable(source, f"its directory is damaged ({error})") from None


def _splice(archive: IO[bytes], replacements: Mapping[str, bytes], source: str) -> Splice:
    size = archive.seek(0, os.SEEK_END)
    start, length, count, comment = _find_directory(archive, size, source)
    archive.seek(start)
    directory = archive.read(length)
    entries = _read_directory(directory, count, source)
    in_order = sorted(entries, key=lambda entry: entry.offset)
    ends: dict[int, int] = {}
    for number, entry in enumerate(in_order):
        following = in_order[number + 1].offset if number + 1 < len(in_order) else start
        if entry.offset + _LOCAL.size + len(entry.name) + entry.stored > following:
            raise _unusable(source, f"{shortened(entry.name)} overlaps what follows it")
        ends[entry.offset] = following
    wanted = {path.encode(): data for path, data in replacements.items()}
    changed = [entry for entry in in_order if entry.name in wanted]
    if sorted(entry.name for entry in changed) != sorted(wanted):
        raise _unusable(source, f"it does not have {', '.join(sorted(replacements))} just once")

    pieces: list[Piece] = []
    shifts: list[tuple[int, int]] = []  # from which offset on, by how much
    position = shift = 0
    records: dict[int, bytes] = {}
    for entry in changed:
        contents = wanted[entry.name]
        pieces.append(Piece(position, entry.offset))
        local, central = _replaced(entry, contents, entry.offset + shift)
        pieces.append(Piece(data=local + contents))
        records[entry.offset] = central
        position = ends[entry.offset]
        shift += len(local) + len(contents) - (position - entry.offset)
        shifts.append((position, shift))
    pieces.append(Piece(position, start))
    first = shifts[0][0] if shifts else size
    parts = []
    for entry in entries:
        if entry.offset in records:
            parts.append(records[entry.offset])
        elif entry.offset < first:
            parts.append(entry.record)
        else:
            moved = next(by for place, by in reversed(shifts) if place <= entry.offset)
            parts.append(_moved(entry, moved, source))
    new = b"".join(parts)
    pieces.append(Piece(data=new + _end(len(entries), len(new), start + shift, comment)))
    pieces = [piece for piece in pieces if len(piece)]
    return Splice(tuple(pieces), size, sum(map(len, pieces)))


def _find_directory(archive: IO[bytes], size: int, source: str) -> tuple[int, int, int, bytes]:
    """Return where the directory is, its size, how many entries it has, and the comment."""
    start = max(0, size - _MAX_COMMENT - _END.size - _LOCATOR.size - _END64.size)
    archive.seek(start)
    tail = archive.read(size - start)
    place = tail.rfind(_END_SIGNATURE)
    if place < 0:
        raise _unusable(source, "it is no zip archive")
    _, disk, disk2, _, count, length, offset, comment = _END.unpack_from(tail, place)
    if place + _END.size + comment != len(tail):
        raise _unusable(source, "something follows the end of the archive")
    end = start + place
    locator = place - _LOCATOR.size
    if locator >= 0 and tail[locator : locator + 4] == _LOCATOR_SIGNATURE:
        _, _, end, _ = _LOCATOR.unpack_from(tail, locator)
        if not 0 <= end - start <= locator - _END64.size:
            raise _unusable(source, "its end is not where it should be")
        signature, _, _, _, disk, disk2, _, count, length, offset = _END64.unpack_from(
            tail, end - start
        )
        if signature != _END64_SIGNATURE:
            raise _unusable(source, "its end is damaged")
    if disk or disk2:
        raise _unusable(source, "it is one part of several")
    if offset + length != end:
        raise _unusable(source, "its directory is not where its end says")
    if length > MAX_DIRECTORY:
        raise _unusable(source, f"its directory has {length} bytes, which is too much")
    return offset, length, count, tail[len(tail) - comment :] if comment else b""


def _read_directory(directory: bytes, count: int, source: str) -> list[_Entry]:
    entries = []
    position = 0
    while position < len(directory):
        fields = _CENTRAL.unpack_from(directory, position)
        if fields[0] != _CENTRAL_SIGNATURE:
            raise _unusable(source, "its directory is damaged")
        stored, size, name, extra, comment = fields[10:15]
        offset = fields[18]
        end = position + _CENTRAL.size + name + extra + comment
        record = directory[position:end]
        if len(record) < end - position:
            raise _unusable(source, "its directory ends too early")
        if _MAX32 in (stored, size, offset):
            values = _zip64(record, name, extra)
            size, stored, offset = (
                values.pop(0) if value == _MAX32 and values else value
                for value in (size, stored, offset)
            )
        path = record[_CENTRAL.size : _CENTRAL.size + name]
        entries.append(_Entry(record, path, offset, stored))
        position = end
    if len(entries) != count:
        raise _unusable(
            source, f"its directory has {len(entries)} entries, not the {count} it says"
        )
    return entries


def _zip64(record: bytes, name: int, extra: int) -> list[int]:
    """Return the large numbers of a record, in their order: size, stored size, offset."""
    place = _zip64_place(record, name, extra)
    if place is None:
        return []
    start, length = place
    return [value for (value,) in struct.iter_unpack("<Q", record[start : start + length // 8 * 8])]


def _zip64_place(record: bytes | bytearray, name: int, extra: int) -> tuple[int, int] | None:
    position = _CENTRAL.size + name
    end = position + extra
    while position + 4 <= end:
        kind, length = struct.unpack_from("<2H", record, position)
        if kind == _ZIP64:
            return position + 4, min(length, end - position - 4)
        position += 4 + length
    return None


def _replaced(entry: _Entry, contents: bytes, offset: int) -> tuple[bytes, bytes]:
    """Return the local header and the directory's record for new contents."""
    old = _CENTRAL.unpack_from(entry.record)
    flags, time, date = old[5] & _UTF8, old[7], old[8]
    crc = zlib.crc32(contents)
    size = len(contents)
    extra = struct.pack("<2HQ", _ZIP64, 8, offset) if offset >= _MAX32 else b""
    version = _WITH_ZIP64 if extra else _PLAIN
    local = _LOCAL.pack(
        _LOCAL_SIGNATURE, _PLAIN, 0, flags, 0, time, date, crc, size, size, len(entry.name), 0
    )
    central = _CENTRAL.pack(
        _CENTRAL_SIGNATURE, old[1], old[2], version, 0, flags, 0, time, date, crc, size, size,
        len(entry.name), len(extra), 0, 0, old[16], old[17], min(offset, _MAX32),
    )  # fmt: skip
    return local + entry.name, central + entry.name + extra


def _moved(entry: _Entry, shift: int, source: str) -> bytes:
    record = bytearray(entry.record)
    fields = _CENTRAL.unpack_from(record)
    offset = entry.offset + shift
    if fields[18] != _MAX32:
        if offset >= _MAX32:
            raise _unusable(source, f"{shortened(entry.name)} would come to lie beyond 4 GiB")
        struct.pack_into("<L", record, 42, offset)
        return bytes(record)
    place = _zip64_place(record, fields[12], fields[13])
    skipped = (fields[10] == _MAX32) + (fields[11] == _MAX32)
    if place is None or place[1] < 8 * skipped + 8:
        raise _unusable(source, f"{shortened(entry.name)} has no place")
    struct.pack_into("<Q", record, place[0] + 8 * skipped, offset)
    return bytes(record)


def _end(count: int, length: int, offset: int, comment: bytes) -> bytes:
    large = b""
    if count >= _MAX16 or length >= _MAX32 or offset >= _MAX32:
        large = _END64.pack(
            _END64_SIGNATURE, _END64.size - 12, _WITH_ZIP64, _WITH_ZIP64, 0, 0, count, count,
            length, offset,
        ) + _LOCATOR.pack(_LOCATOR_SIGNATURE, 0, offset + length, 1)  # fmt: skip
    return (
        large
        + _END.pack(
            _END_SIGNATURE, 0, 0, min(count, _MAX16), min(count, _MAX16), min(length, _MAX32),
            min(offset, _MAX32), len(comment),
        )
        + comment
    )  # fmt: skip


def _unusable(source: str, problem: str) -> UnusableFile:
    return UnusableFile(f"{source}: {problem}")

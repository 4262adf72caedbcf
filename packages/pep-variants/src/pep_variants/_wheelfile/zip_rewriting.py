"""A changed zip archive, described as ranges of the original and new bytes.

`zipfile` can only write entries by compressing them. To copy them unchanged, an entry is treated as
a range of bytes (local header, data, data descriptor) and a record in the central directory, of
which only the offset and, at most, the name change. Timestamps, attributes, flags, extra fields and
the compressed data stay as they are. Nothing is decompressed or kept in memory: the caller copies
the ranges, to a file or to a client that asked for a part of the result. The bytes depend on the
original, on what changes and, where new entries are compressed, on the zlib in use.

Layout and field offsets: APPNOTE.TXT 6.3, sections 4.3 and 4.5.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, NamedTuple

from ..errors import InvalidWheel, shortened
from ..limits import WHEEL_DIRECTORY_BYTES, WHEEL_ENTRIES

CHUNK = 1024 * 1024
_STORED, _DEFLATED = 0, 8


@dataclass(frozen=True)
class Piece:
    """Some bytes of the result: of the original from `start` to `end`, or `data`."""

    start: int = 0
    end: int = 0
    data: bytes | None = None

    def __len__(self) -> int:
        return self.end - self.start if self.data is None else len(self.data)


class Rewrite(NamedTuple):
    """How a changed archive is put together.

    Attributes:
        pieces: in order.
        original: bytes of the original.
        size: bytes of the result.
    """

    pieces: tuple[Piece, ...]
    original: int
    size: int

    def write(self, original: IO[bytes], target: IO[bytes]) -> None:
        """Write the result to *target*, copying from *original* in chunks.

        Raises:
            InvalidWheel: *original* ends early.
            OSError: reading or writing failed.
        """
        for piece in self.pieces:
            if piece.data is not None:
                target.write(piece.data)
                continue
            original.seek(piece.start)
            left = len(piece)
            while left:
                chunk = original.read(min(CHUNK, left))
                if not chunk:
                    raise InvalidWheel("damaged zip archive: it ends early")
                target.write(chunk)
                left -= len(chunk)


class Rewriter:
    """Collects the entries of a changed archive, in the order of their data."""

    def __init__(self, directory: Directory) -> None:
        """Start with an empty result.

        Args:
            directory: of the original. The records of the result have its order.
        """
        self._directory = directory
        self._pieces: list[Piece] = []
        self._size = 0
        self._records: list[tuple[int, bytes]] = []

    def keep_range(self, start: int, end: int) -> None:
        """Append bytes of the original as they are."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.data is None and last.end == start:
            self._pieces[-1] = Piece(last.start, end)
        elif start < end:
            self._pieces.append(Piece(start, end))
        self._size += end - start

    def keep(self, entry: Entry, name: str = "") -> None:
        """Append *entry* as it is, or under another *name*, which needs its local header."""
        if not name or name == entry.name:
            self._records.append((entry.number, moved_record(entry.record, self._size)))
            self.keep_range(entry.offset, entry.end)
            return
        assert entry.local is not None
        raw_name = name.encode("utf-8" if entry.header.flags & UTF8 else "cp437")
        record = moved_record(renamed_record(entry.record, raw_name), self._size)
        self._records.append((entry.number, record))
        local = entry.local.pack()
        self._add(entry.local._replace(name_size=len(raw_name)).pack() + raw_name)
        self.keep_range(entry.offset + len(local) + entry.local.name_size, entry.end)

    def add(self, name: str, data: bytes, like: Entry, *, compress: bool) -> None:
        """Append a file with the timestamp, attributes and origin of the entry *like*.

        Args:
            name: its path.
            data: less than 4 GiB.
            like: an entry of the original, which it follows in the central directory.
            compress: deflate it if *like* is compressed. Compressors differ between machines.
        """
        model = like.header
        raw_name = name.encode()
        flags = model.flags & UTF8 or (0 if name.isascii() else UTF8)
        method, packed = _STORED, data
        if compress and model.method != _STORED:
            method = _DEFLATED
            compressor = zlib.compressobj(
                zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS
            )
            packed = compressor.compress(data) + compressor.flush()
        local = LocalHeader(
            LOCAL_SIGNATURE, PLAIN_VERSION, flags, method, model.time, model.date,
            zlib.crc32(data), len(packed), len(data), len(raw_name), 0,
        )  # fmt: skip
        header = model._replace(
            signature=CENTRAL_SIGNATURE,
            made_by=(model.made_by & 0xFF00) | min(model.made_by & 0xFF, ZIP64_VERSION),
            needed=min(model.needed, ZIP64_VERSION),
            flags=flags,
            method=method,
            crc=local.crc,
            packed=local.packed,
            unpacked=local.unpacked,
            name_size=local.name_size,
            extra_size=0,
            comment_size=0,
            disk=0,
            offset=0,
        )
        # Some writers use zip64 offsets from 2 GiB on: keep to what this one does.
        zip64 = model.offset == FULL_32
        record = moved_record(header.pack() + raw_name, self._size, zip64=zip64)
        self._records.append((like.number, record))
        self._add(local.pack() + raw_name + packed)

    def finish(self) -> Rewrite:
        """Append the central directory; return the result."""
        start = self._size
        records = [record for _, record in sorted(self._records, key=lambda item: item[0])]
        directory = b"".join(records)
        self._add(
            directory
            + end_records(
                len(records),
                len(directory),
                start,
                self._directory.comment,
                zip64=self._directory.zip64,
            )
        )
        return Rewrite(tuple(self._pieces), self._directory.size, self._size)

    def _add(self, data: bytes) -> None:
        self._pieces.append(Piece(data=data))
        self._size += len(data)


def replace_files(
    archive: IO[bytes],
    contents: Mapping[str, bytes],
    source: str,
    added: Mapping[str, bytes] = MappingProxyType({}),
    renamed: Callable[[str], str] = str,
) -> Rewrite:
    """Return the archive with other *contents* of some files, not compressed.

    Only the central directory is read, and the local headers of entries with another name.
    Everything between the replaced entries stays in place, so that the result can be made while
    the original passes, from its start to its end.

    Args:
        archive: seekable.
        contents: by path; the archive has each of them exactly once.
        source: path or URL for messages, without credentials.
        added: contents of files that the archive does not have, by path. They follow the last
            entry, with the attributes of the last one of *contents*.
        renamed: returns the new path for an old one, *added* included; the same for most.

    Raises:
        InvalidWheel: the archive is damaged, see `read_directory`, lacks one of the paths, or has
            one that is to be added.
    """
    directory = read_directory(archive, source)
    if missing := contents.keys() - {entry.name for entry in directory.entries}:
        raise InvalidWheel(f"has no {', '.join(sorted(missing))}", source)
    if present := added.keys() & {entry.name for entry in directory.entries}:
        raise InvalidWheel(f"has {', '.join(sorted(present))} already", source)
    moved = _moved_entries(directory, archive, source, renamed)
    rewriter = Rewriter(directory)
    replaced: set[str] = set()
    in_order = sorted(directory.entries, key=lambda entry: entry.offset)
    rewriter.keep_range(0, in_order[0].offset if in_order else directory.start)
    for entry in in_order:
        data = contents.get(entry.name)
        if data is None:
            rewriter.keep(moved.get(entry.name, entry), renamed(entry.name))
            continue
        if entry.name in replaced:
            raise InvalidWheel(f"{shortened(entry.name)} is in the archive twice", source)
        replaced.add(entry.name)
        rewriter.add(renamed(entry.name), data, like=entry, compress=False)
    like = next((entry for entry in reversed(in_order) if entry.name in replaced), None)
    for name, data in added.items():
        if like is not None:
            rewriter.add(renamed(name), data, like=like, compress=False)
    return rewriter.finish()


def _moved_entries(
    directory: Directory, archive: IO[bytes], source: str, renamed: Callable[[str], str]
) -> dict[str, Entry]:
    """Return the entries that get another name, with their local headers, by the present one."""
    moved = tuple(entry for entry in directory.entries if renamed(entry.name) != entry.name)
    if not moved:
        return {}
    names = {entry.name for entry in directory.entries}
    for entry in moved:
        if renamed(entry.name) in names:
            raise InvalidWheel(f"has {shortened(renamed(entry.name))} already", source)
    read = with_local_headers(directory._replace(entries=moved), archive, source)
    return {entry.name: entry for entry in read.entries}


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
    """Return the records after the central directory.

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
    """Return the bytes before the zip64 field of *extra*, its body, and the bytes after it."""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        end = position + 4 + size
        if kind == _ZIP64_EXTRA:
            return extra[:position], extra[position + 4 : end], extra[end:]
        position = end
    return b"", b"", extra


_COMMENT_BYTES = 0xFFFF


class Entry(NamedTuple):
    """One entry of an archive, as the bytes that it consists of.

    Attributes:
        name: its path.
        record: its record in the central directory.
        offset: where its local header starts.
        packed: size of its data.
        end: where the next entry or the central directory starts: what lies before it, such as a
            data descriptor, belongs to this one.
        number: its place in the central directory.
        local: its local header, None before `with_local_headers`.
    """

    name: str
    record: bytes
    offset: int
    packed: int
    end: int
    number: int
    local: LocalHeader | None = None

    @property
    def header(self) -> CentralHeader:
        """The fixed part of `record`."""
        return CentralHeader.unpack(self.record)

    @property
    def raw_name(self) -> bytes:
        """The name as it is stored."""
        return self.record[CENTRAL.size : CENTRAL.size + self.header.name_size]


class Directory(NamedTuple):
    """Everything of an archive except its data.

    Attributes:
        entries: in the order of the central directory.
        start: where the central directory starts.
        size: bytes of the whole file.
        comment: the archive comment.
        zip64: whether it has a zip64 end record, needed or not.
    """

    entries: tuple[Entry, ...]
    start: int
    size: int
    comment: bytes
    zip64: bool


class _DamagedError(Exception):
    """Defect of an archive, without its name."""


def read_directory(stream: IO[bytes], source: str) -> Directory:
    """Return the directory of an archive. Reads the end of the file, and nothing else.

    Args:
        stream: seekable.
        source: path or URL for messages, without credentials.

    Raises:
        InvalidWheel: the archive is damaged, split into several files, beyond the limits, followed
            by other data, or its entries overlap.
        OSError: it cannot be read.
    """
    try:
        return _read_directory(stream)
    except (_DamagedError, struct.error) as error:
        raise InvalidWheel(f"damaged zip archive: {error}", source) from None


def with_local_headers(directory: Directory, stream: IO[bytes], source: str) -> Directory:
    """Return *directory* with the local header of each entry.

    Args:
        directory: of the archive in *stream*.
        stream: seekable; a few bytes of each entry are read.
        source: path or URL for messages, without credentials.

    Raises:
        InvalidWheel: local headers and central directory disagree, entries overlap, or a name
            occurs twice: copying such an archive would hide or duplicate what is in it.
        OSError: it cannot be read.
    """
    try:
        names: set[str] = set()
        entries = []
        for entry in directory.entries:
            if entry.name in names:
                raise _DamagedError(f"{shortened(entry.name)} is in it twice")
            names.add(entry.name)
            entries.append(_with_local_header(entry, stream))
        return directory._replace(entries=tuple(entries))
    except _DamagedError as error:
        raise InvalidWheel(f"damaged zip archive: {error}", source) from None


@dataclass(frozen=True)
class _End:
    """The end records: place, size and number of entries of the central directory."""

    start: int
    length: int
    count: int
    comment: bytes
    zip64: bool


def _read_directory(stream: IO[bytes]) -> Directory:
    size = stream.seek(0, os.SEEK_END)
    end = _read_end(stream, size)
    stream.seek(end.start)
    entries = _read_records(stream.read(end.length), end)
    in_order = sorted(entries, key=lambda entry: entry.offset)
    following = [*(entry.offset for entry in in_order[1:]), end.start]
    for number, entry in enumerate(in_order):
        limit = following[number]
        name = shortened(entry.name)
        if not 0 <= entry.offset <= end.start:
            raise _DamagedError(f"{name} lies outside of it")
        if entry.end > limit:
            if number + 1 < len(in_order):
                raise _DamagedError(f"{shortened(in_order[number + 1].name)} overlaps {name}")
            raise _DamagedError(f"{name} reaches into the central directory")
        entries[entry.number] = entry._replace(end=limit)
    return Directory(tuple(entries), end.start, size, end.comment, end.zip64)


def _read_end(stream: IO[bytes], size: int) -> _End:
    tail_start = max(0, size - _COMMENT_BYTES - END.size - LOCATOR_64.size - END_64.size)
    stream.seek(tail_start)
    tail = stream.read(size - tail_start)
    place = tail.rfind(END_SIGNATURE)
    if place < 0:
        raise _DamagedError("it has no end record")
    _, disk, disk_2, _, count, length, offset, comment = END.unpack_from(tail, place)
    if place + END.size + comment != len(tail):
        raise _DamagedError("other data follows its end record")
    locator = place - LOCATOR_64.size
    zip64 = locator >= 0 and tail.startswith(LOCATOR_64_SIGNATURE, locator)
    end = place
    if zip64:
        end = locator - END_64.size
        if end < 0 or not tail.startswith(END_64_SIGNATURE, end):
            raise _DamagedError("its zip64 end record is not where it should be")
        *_, disk, disk_2, _, count, length, offset = END_64.unpack_from(tail, end)
    if disk or disk_2:
        raise _DamagedError("it is split into several files")
    if length > WHEEL_DIRECTORY_BYTES or count > WHEEL_ENTRIES:
        raise _DamagedError(
            f"its directory has {count} entries of {length} bytes, at most {WHEEL_ENTRIES} of "
            f"{WHEEL_DIRECTORY_BYTES} are read"
        )
    start = tail_start + end - length
    if start != offset:
        raise _DamagedError("its central directory is not where its end record says")
    return _End(start, length, count, tail[place + END.size :], zip64)


def _read_records(data: bytes, end: _End) -> list[Entry]:
    entries: list[Entry] = []
    position = 0
    while position < len(data) and len(entries) <= end.count:
        header = CentralHeader.unpack(data[position : position + CENTRAL.size])
        if header.signature != CENTRAL_SIGNATURE:
            raise _DamagedError("no central directory record where one should be")
        name_end = CENTRAL.size + header.name_size
        extra_end = name_end + header.extra_size
        record = data[position : position + extra_end + header.comment_size]
        position += extra_end + header.comment_size
        if position > len(data):
            raise _DamagedError("its central directory ends early")
        raw_name = record[CENTRAL.size : name_end]
        name = raw_name.decode("utf-8" if header.flags & UTF8 else "cp437", "replace")
        packed, offset = header.packed, header.offset
        if FULL_32 in (header.unpacked, packed, offset):
            _, body, _ = around_zip64(record[name_end:extra_end])
            large = [value for (value,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8])]
            _, packed, offset = (
                large.pop(0) if value == FULL_32 and large else value
                for value in (header.unpacked, packed, offset)
            )
        least = offset + LOCAL.size + header.name_size + packed
        entries.append(Entry(name, record, offset, packed, least, len(entries)))
    if len(entries) != end.count:
        raise _DamagedError(
            f"its central directory has {len(entries)} entries, its end record says {end.count}"
        )
    return entries


def _with_local_header(entry: Entry, stream: IO[bytes]) -> Entry:
    name = shortened(entry.name)
    stream.seek(entry.offset)
    local = LocalHeader._make(LOCAL.unpack(_read(stream, LOCAL.size)))
    if local.signature != LOCAL_SIGNATURE:
        raise _DamagedError(f"no local header of {name} where one should be")
    if _read(stream, local.name_size) != entry.raw_name:
        raise _DamagedError(f"{name} has another name in its local header")
    end = entry.offset + LOCAL.size + local.name_size + local.extra_size + entry.packed
    if end > entry.end:
        raise _DamagedError(f"{name} reaches into what follows it")
    return entry._replace(local=local)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise _DamagedError("it ends early")
    return data

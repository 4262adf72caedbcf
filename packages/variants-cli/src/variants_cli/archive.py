"""Copying zip entries as they are: no decompression, no recompression, constant memory.

`zipfile` reads the directory and judges the archive, but it can only write entries by compressing
them. Here an entry is a range of bytes (local header, data, data descriptor) and a record in the
central directory; both are copied verbatim, and only the offset in the record is changed. So
timestamps, attributes, flags, extra fields and the compressed data stay what they were.

Layout and field offsets: APPNOTE.TXT 6.3, sections 4.3 and 4.5.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from pep_variants.errors import InvalidWheel, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK = 1024 * 1024

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")

_LOCAL_NAME_SIZE = 9
_CENTRAL_NAME_SIZE = 10
"""Place of the length of the name among the fields."""

_LOCAL_SIGNATURE = b"PK\x03\x04"
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
_END_SIGNATURE = b"PK\x05\x06"
_END_64_SIGNATURE = b"PK\x06\x06"
_LOCATOR_64_SIGNATURE = b"PK\x06\x07"

_HAS_DESCRIPTOR = 0x08
_UTF8 = 0x800
_ZIP64_EXTRA = 0x0001
_ZIP64_VERSION = 45
_PLAIN_VERSION = 20

_FULL_16 = 0xFFFF
_FULL_32 = 0xFFFFFFFF
"""In a 32 bit field: the value is in the zip64 extra field."""


@dataclass(frozen=True)
class Entry:
    """One entry of an archive, as the bytes it consists of.

    Attributes:
        name: its path.
        info: what `zipfile` read of it.
        record: its record in the central directory.
        offset: where its local header starts.
        size: bytes from there to the end of its data descriptor, or of its data.
    """

    name: str
    info: zipfile.ZipInfo
    record: bytes
    offset: int
    size: int


@dataclass(frozen=True)
class Directory:
    """Everything of an archive but its data.

    Attributes:
        entries: in the order of the central directory.
        comment: the archive comment.
        zip64: it has a zip64 end record, needed or not.
    """

    entries: tuple[Entry, ...]
    comment: bytes
    zip64: bool


def read_directory(archive: zipfile.ZipFile, stream: IO[bytes], source: str) -> Directory:
    """Return the entries of *archive*, which `zipfile` opened from *stream*.

    Raises:
        InvalidWheel: local headers and central directory disagree, entries overlap, or a name is
            there twice: copying such an archive would hide or multiply what is in it.
    """
    try:
        records = _read_records(archive, stream)
        entries = tuple(
            _read_entry(info, record, stream, archive.start_dir)
            for info, record in zip(archive.infolist(), records, strict=True)
        )
        _check_distinct(entries)
        return Directory(entries, archive.comment, _has_zip64_end(archive, stream))
    except _DamagedError as error:
        raise InvalidWheel(f"{source}: damaged zip archive: {error}") from None


class _DamagedError(Exception):
    """What is wrong with an archive, without its name."""


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise _DamagedError("it ends early")
    return data


def _read_records(archive: zipfile.ZipFile, stream: IO[bytes]) -> list[bytes]:
    """Return the records of the central directory, verbatim."""
    records = []
    stream.seek(archive.start_dir)
    for _ in archive.infolist():
        header = _read(stream, _CENTRAL.size)
        signature, *fields = _CENTRAL.unpack(header)
        if signature != _CENTRAL_SIGNATURE:
            raise _DamagedError("no central directory record where one should be")
        records.append(header + _read(stream, sum(fields[9:12])))
    return records


def _read_entry(info: zipfile.ZipInfo, record: bytes, stream: IO[bytes], limit: int) -> Entry:
    """Find out which bytes before *limit* are the entry that *info* and *record* describe."""
    name, offset = shortened(info.filename), info.header_offset
    if not 0 <= offset <= limit:
        raise _DamagedError(f"{name} lies outside of it")
    stream.seek(offset)
    signature, _, flags, *_, name_size, extra_size = _LOCAL.unpack(_read(stream, _LOCAL.size))
    if signature != _LOCAL_SIGNATURE:
        raise _DamagedError(f"no local header of {name} where one should be")
    if _read(stream, name_size) != _record_name(record):
        raise _DamagedError(f"{name} has another name in its local header")
    size = _LOCAL.size + name_size + extra_size + info.compress_size
    if offset + size <= limit and flags & _HAS_DESCRIPTOR:
        stream.seek(offset + size)
        size += _descriptor_size(stream.read(24), info)
    if offset + size > limit:
        raise _DamagedError(f"{name} reaches into the central directory")
    return Entry(info.filename, info, record, offset, size)


def _check_distinct(entries: Sequence[Entry]) -> None:
    names: set[str] = set()
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.name in names:
            raise _DamagedError(f"{shortened(entry.name)} is in it twice")
        if entry.offset < end:
            raise _DamagedError(f"{shortened(entry.name)} overlaps another entry")
        names.add(entry.name)
        end = entry.offset + entry.size


def _has_zip64_end(archive: zipfile.ZipFile, stream: IO[bytes]) -> bool:
    stream.seek(0, 2)
    locator = stream.tell() - len(archive.comment) - _END.size - _LOCATOR_64.size
    if locator < 0:
        return False
    stream.seek(locator)
    return stream.read(4) == _LOCATOR_64_SIGNATURE


class ArchiveWriter:
    """Writes an archive from copied and new entries to a stream, from front to back."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Write to *stream*, from its current position, which counts as the file's start."""
        self._stream = stream
        self._position = 0
        self._records: list[bytes] = []

    def copy(self, entry: Entry, source: IO[bytes], name: str | None = None) -> None:
        """Add *entry* of the archive *source* as it is, or under another *name*.

        Raises:
            OSError: reading or writing failed.
            InvalidWheel: *source* ends early.
        """
        source.seek(entry.offset)
        left = entry.size
        record = entry.record
        if name is not None and name != entry.name:
            header = source.read(_LOCAL.size)
            fields = list(_LOCAL.unpack(header))
            source.seek(fields[_LOCAL_NAME_SIZE], 1)
            left -= _LOCAL.size + fields[_LOCAL_NAME_SIZE]
            start = self._position
            # A name that was ASCII stays so: only the project's name and version change.
            fields[_LOCAL_NAME_SIZE] = len(name.encode())
            self._write(_LOCAL.pack(*fields) + name.encode())
            record = _renamed(record, name.encode())
            self._records.append(_moved(record, start))
        else:
            self._records.append(_moved(record, self._position))
        while left:
            chunk = source.read(min(CHUNK, left))
            if not chunk:
                raise InvalidWheel(f"damaged zip archive: it ends inside {shortened(entry.name)}")
            self._write(chunk)
            left -= len(chunk)

    def add(self, name: str, data: bytes, like: Entry) -> None:
        """Add a file with the timestamp, attributes, origin and compression of the entry *like*.

        *data* has to be smaller than 4 GiB. The bytes written depend on the arguments and on the
        zlib in use, on nothing else.
        """
        raw_name = name.encode()
        flags = like.info.flag_bits & _UTF8 or (0 if name.isascii() else _UTF8)
        method = zipfile.ZIP_STORED
        packed = data
        if like.info.compress_type != zipfile.ZIP_STORED:
            method = zipfile.ZIP_DEFLATED
            compressor = zlib.compressobj(
                zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS
            )
            packed = compressor.compress(data) + compressor.flush()
        model = _CENTRAL.unpack(like.record[: _CENTRAL.size])
        _, made_by, needed, _, _, time, date, *_, internal, external, offset = model
        made_by = (made_by & 0xFF00) | min(made_by & 0xFF, _ZIP64_VERSION)
        common = (flags, method, time, date, zlib.crc32(data), len(packed), len(data))
        record = _CENTRAL.pack(
            _CENTRAL_SIGNATURE, made_by, min(needed, _ZIP64_VERSION), *common,
            len(raw_name), 0, 0, 0, internal, external, 0,
        )  # fmt: skip
        # Some writers use zip64 offsets from 2 GiB on. What they do stays as they do it.
        wide = offset == _FULL_32
        self._records.append(_moved(record + raw_name, self._position, wide=wide))
        self._write(
            _LOCAL.pack(_LOCAL_SIGNATURE, _PLAIN_VERSION, *common, len(raw_name), 0) + raw_name
        )
        self._write(packed)

    def finish(self, comment: bytes = b"", *, zip64: bool = False) -> None:
        """Write the central directory.

        Args:
            comment: the archive comment.
            zip64: write a zip64 end record even where the plain one would do.
        """
        start = self._position
        for record in self._records:
            self._write(record)
        size = self._position - start
        count = len(self._records)
        if zip64 or count >= _FULL_16 or size >= _FULL_32 or start >= _FULL_32:
            end = self._position
            self._write(
                _END_64.pack(
                    _END_64_SIGNATURE, _END_64.size - 12, _ZIP64_VERSION, _ZIP64_VERSION,
                    0, 0, count, count, size, start,
                )
                + _LOCATOR_64.pack(_LOCATOR_64_SIGNATURE, 0, end, 1)
            )  # fmt: skip
        shown = min(count, _FULL_16)
        self._write(
            _END.pack(
                _END_SIGNATURE, 0, 0, shown, shown,
                min(size, _FULL_32), min(start, _FULL_32), len(comment),
            )
            + comment
        )  # fmt: skip

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._position += len(data)


def _record_name(record: bytes) -> bytes:
    size = int.from_bytes(record[28:30], "little")
    return record[_CENTRAL.size : _CENTRAL.size + size]


def _renamed(record: bytes, name: bytes) -> bytes:
    """Return the central directory *record* with another name."""
    fields = list(_CENTRAL.unpack(record[: _CENTRAL.size]))
    tail = record[_CENTRAL.size + fields[_CENTRAL_NAME_SIZE] :]
    fields[_CENTRAL_NAME_SIZE] = len(name)
    return _CENTRAL.pack(*fields) + name + tail


def _descriptor_size(following: bytes, info: zipfile.ZipInfo) -> int:
    """Return how long the data descriptor is with which the bytes *following* the data start.

    Its signature is optional and its sizes have 4 or 8 bytes, which nothing says reliably; but
    what it must contain is known from the central directory. Longer forms are tried first: a
    short one of an empty file is the beginning of a long one, never the other way round.
    """
    for layout in ("<IQQ", "<III"):
        try:
            body = struct.pack(layout, info.CRC, info.compress_size, info.file_size)
        except struct.error:  # too large for this layout
            continue
        for descriptor in (_DESCRIPTOR_SIGNATURE + body, body):
            if following.startswith(descriptor):
                return len(descriptor)
    raise _DamagedError(f"the data descriptor of {shortened(info.filename)} does not fit its entry")


def _moved(record: bytes, offset: int, *, wide: bool = False) -> bytes:
    """Return the central directory *record* with another *offset* of its local header.

    Only the offset changes, unless it outgrows its field, or is to be *wide*: then the zip64
    extra field gets it.
    """
    fields = list(_CENTRAL.unpack(record[: _CENTRAL.size]))
    tail = record[_CENTRAL.size :]
    name_size, extra_size = fields[10], fields[11]
    compressed, unpacked, old = fields[8], fields[9], fields[-1]
    if old != _FULL_32 and offset < _FULL_32 and not wide:
        fields[-1] = offset
        return _CENTRAL.pack(*fields) + tail

    name, extra, comment = (
        tail[:name_size],
        tail[name_size : name_size + extra_size],
        tail[name_size + extra_size :],
    )
    before, body, behind = _around_zip64(extra)
    # The zip64 field holds, in this order, those of the sizes and the offset that are full.
    slot = 8 * (unpacked == _FULL_32) + 8 * (compressed == _FULL_32)
    after = slot + 8 if old == _FULL_32 else slot
    body = body[:slot] + struct.pack("<Q", offset) + body[after:]
    extra = before + struct.pack("<HH", _ZIP64_EXTRA, len(body)) + body + behind
    fields[2] = max(fields[2] & 0xFF, _ZIP64_VERSION) | (fields[2] & 0xFF00)
    fields[11] = len(extra)
    fields[-1] = _FULL_32
    return _CENTRAL.pack(*fields) + name + extra + comment


def _around_zip64(extra: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what is before the zip64 field of *extra*, its body, and what is behind it."""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        end = position + 4 + size
        if kind == _ZIP64_EXTRA:
            return extra[:position], extra[position + 4 : end], extra[end:]
        position = end
    return b"", b"", extra

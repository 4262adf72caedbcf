"""A changed zip archive, described as ranges of the original and new bytes.

Nothing is decompressed or kept in memory: the caller copies the ranges, to a file or to a client
that asked for a part of the result. The bytes depend on the original, on what changes and,
where new entries are compressed, on the zlib in use.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO

from ..errors import InvalidWheel, shortened
from .zip_directory import (
    CENTRAL_SIGNATURE,
    FULL_32,
    LOCAL_SIGNATURE,
    PLAIN_VERSION,
    UTF8,
    ZIP64_VERSION,
    Directory,
    Entry,
    LocalHeader,
    end_records,
    moved_record,
    read_directory,
    renamed_record,
    with_local_headers,
)

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


@dataclass(frozen=True)
class Rewrite:
    """How a changed archive is put together.

    Attributes:
        pieces: in order.
        original: bytes of the original.
        size: bytes of the result.
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
        raw_name = name.encode()  # an ASCII name stays one: only project and version change
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
        raise InvalidWheel(f"{source}: has no {', '.join(sorted(missing))}")
    if present := added.keys() & {entry.name for entry in directory.entries}:
        raise InvalidWheel(f"{source}: has {', '.join(sorted(present))} already")
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
            raise InvalidWheel(f"{source}: {shortened(entry.name)} is in the archive twice")
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
            raise InvalidWheel(f"{source}: has {shortened(renamed(entry.name))} already")
    read = with_local_headers(replace(directory, entries=moved), archive, source)
    return {entry.name: entry for entry in read.entries}

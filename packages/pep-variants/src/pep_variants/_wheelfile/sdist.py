"""``PKG-INFO`` of a source distribution, read from the archive as a stream within limits.

A few kilobytes of gzip can decompress to gigabytes, and `tarfile` keeps an object for every member
it has read. Here memory does not depend on the archive: other members are skipped, and their number
and size are limited (POSIX.1-1988 ustar format, whose names of 100 characters are enough for
PKG-INFO of a project with a name and version of up to 91; PEP 625 for names).
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from typing import IO

from ..errors import InvalidSdist, InvalidWheel, printable, redacted
from ..limits import CORE_METADATA_BYTES, SDIST_MEMBERS, SDIST_UNPACKED, size_in_words
from .zip_reading import open_zip, read_entry, reason

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 256 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_PARTS = 1_000
"""Gzip members in one file: parallel compressors write some hundred."""

_WITHOUT_DATA = (
    tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
)  # fmt: skip


def read_pkg_info(archive: IO[bytes], filename: str, source: str) -> bytes | None:
    """Return ``PKG-INFO`` of a source distribution, None if there is none.

    Args:
        archive: seekable, at its start.
        filename: ``.zip`` for a zip archive, anything else for a gzipped tar archive.
        source: path or URL for messages.

    Raises:
        InvalidSdist: the archive is damaged, or beyond the limits.
        OSError: it cannot be read.
    """
    source = redacted(source)
    try:
        if filename.endswith(".zip"):
            return _from_zip(archive, source)
        return _from_tar(archive)
    except InvalidWheel as error:
        raise InvalidSdist(str(error)) from None
    except (tarfile.TarError, zlib.error, ValueError) as error:
        raise InvalidSdist(f"{source}: not a usable archive: {reason(error)}") from None


def _from_zip(stream: IO[bytes], source: str) -> bytes | None:
    with open_zip(stream, source) as archive:
        for info in archive.infolist():
            if _is_pkg_info(info.filename):
                return read_entry(archive, info, CORE_METADATA_BYTES, source)
    return None


def _from_tar(stream: IO[bytes]) -> bytes | None:
    unpacked = _Decompressed(stream)
    for _ in range(SDIST_MEMBERS):
        block = unpacked.read(_BLOCK)
        if len(block) < _BLOCK or not any(block):
            return None  # end of archive: blocks of zeros, or end of file
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        size = 0 if member.type in _WITHOUT_DATA else member.size
        if size < 0:
            raise ValueError(f"{printable(member.name[:200])} has a negative size")
        # Headers that give the next member a long name are skipped like any other member.
        if member.isreg() and _is_pkg_info(member.name):
            if size > CORE_METADATA_BYTES:
                raise ValueError(
                    f"PKG-INFO is larger than {CORE_METADATA_BYTES} bytes, the most that is read"
                )
            data = unpacked.read(size)
            if len(data) < size:
                raise ValueError("it ends inside PKG-INFO")
            return data
        unpacked.skip(size + -size % _BLOCK)
    raise ValueError(f"it has more than {SDIST_MEMBERS} members")


def _is_pkg_info(path: str) -> bool:
    folder, _, name = path.removeprefix("./").partition("/")
    return bool(folder) and name == "PKG-INFO"


class _Decompressed:
    """The decompressed data of a gzip file as a stream, up to `SDIST_UNPACKED` bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._chunks = _unpacked(stream)
        self._chunk = b""
        self._position = 0
        self._left = SDIST_UNPACKED

    def read(self, size: int) -> bytes:
        """Return the next *size* bytes, fewer at the end of the file."""
        parts = []
        while size > 0 and self._fill():
            part = self._chunk[self._position : self._position + size]
            self._position += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def skip(self, size: int) -> None:
        """Skip *size* bytes, or to the end of the file."""
        while size > 0 and self._fill():
            step = min(size, len(self._chunk) - self._position)
            self._position += step
            size -= step

    def _fill(self) -> bool:
        """Return whether there is more data."""
        if self._position == len(self._chunk):
            self._chunk, self._position = next(self._chunks, b""), 0
            self._left -= len(self._chunk)
            if self._left < 0:
                raise ValueError(f"it unpacks to more than {size_in_words(SDIST_UNPACKED)}")
        return bool(self._chunk)


def _unpacked(stream: IO[bytes]) -> Iterator[bytes]:
    # Not `gzip`: it reads long headers byte by byte, and any number of empty members.
    data = stream.read(_CHUNK)
    for _ in range(_GZIP_PARTS):
        unpacker = zlib.decompressobj(_GZIP)
        while not unpacker.eof:
            if not data and not (data := stream.read(_CHUNK)):
                raise ValueError("it ends early")
            if chunk := unpacker.decompress(data, _CHUNK):
                yield chunk
            data = unpacker.unconsumed_tail
        data = unpacker.unused_data.lstrip(b"\0") or stream.read(_CHUNK).lstrip(b"\0")
        if not data:
            return
    raise ValueError(f"it has more than {_GZIP_PARTS} gzip members")

"""Opening untrusted zip archives: a bounded directory, and bounded entries.

`zipfile` reads the whole central directory into memory and makes an object for each entry before
the number of entries can be checked. So the reads are checked while it opens an archive.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import IO

from ..errors import InvalidWheel, printable
from ..limits import WHEEL_DIRECTORY_BYTES, WHEEL_ENTRIES

ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,  # compression methods and zip versions it does not know
    RuntimeError,  # encrypted entries
    ValueError,  # offsets before the file's start, broken names
    OverflowError,
    OSError,
)
"""Errors of `zipfile` for damaged or hostile archives."""

_ENTRY = b"PK\x01\x02"


def open_zip(stream: IO[bytes], source: str) -> zipfile.ZipFile:
    """Return the archive in *stream*, which has to be seekable and stays open.

    Args:
        stream: the file.
        source: path or URL for messages, without credentials.

    Raises:
        InvalidWheel: it is not a zip archive, or its directory is beyond the limits.
    """
    reader = _DirectoryReader(stream)
    try:
        archive = zipfile.ZipFile(reader)
    except ARCHIVE_ERRORS as error:
        raise InvalidWheel(f"not a usable zip archive: {reason(error)}", source) from None
    # From now on without checks: they are of the directory, and reads of entries are many.
    archive.fp = stream
    return archive


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, source: str) -> bytes:
    """Return the contents of one entry.

    Args:
        archive: opened by `open_zip`.
        info: of the entry.
        limit: the most bytes that are read, as declared and as decompressed.
        source: path or URL for messages, without credentials.

    Raises:
        InvalidWheel: it is larger than *limit*, damaged, encrypted, or compressed with anything
            but deflate.
    """
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # The output of the other decompressors of `zipfile` cannot be limited.
        raise InvalidWheel(f"{_name(info)} is compressed with something other than deflate", source)
    if info.file_size > limit:
        raise InvalidWheel(
            f"{_name(info)} is larger than {limit} bytes, the most that is read", source
        )
    try:
        with archive.open(info) as stream:
            # One more: of an empty entry, too, the checksum is compared when its end is seen.
            return stream.read(info.file_size + 1)
    except ARCHIVE_ERRORS as error:
        raise InvalidWheel(f"{_name(info)} cannot be read: {reason(error)}", source) from None


def _name(info: zipfile.ZipInfo) -> str:
    return printable(info.filename[:200])


def reason(error: Exception) -> str:
    """Return the message of *error*, printable: some contain names from the archive."""
    return printable(str(error)[:200]) or type(error).__name__


class _DirectoryReader:
    """A seekable file that refuses to read more than a directory within the limits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:  # all up to the end of the file, to find the end record
            size = WHEEL_DIRECTORY_BYTES + 1
        if size > WHEEL_DIRECTORY_BYTES + 1:
            raise ValueError(f"its directory has {size} bytes, at most {WHEEL_DIRECTORY_BYTES}")
        data = self._stream.read(size)
        if len(data) > WHEEL_DIRECTORY_BYTES:
            raise ValueError(f"its directory has more than {WHEEL_DIRECTORY_BYTES} bytes")
        # Each entry starts with this signature, or the archive is damaged.
        if data.count(_ENTRY) > WHEEL_ENTRIES:
            raise ValueError(f"it has more than {WHEEL_ENTRIES} entries")
        return data

    def close(self) -> None:
        """Leave the file open, which the caller closes."""

"""What a wheel file says of itself: its dist-info folder and the variant metadata in there.

Wheels come from strangers. Nothing is unpacked to disk, nothing is read beyond a limit, whatever
the archive declares, and everything that is wrong with one is an `InvalidWheel` that names it.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .errors import InvalidWheel, InvalidWheelFilename, redacted, shortened
from .filename import WheelFilename, parse_filename
from .reader import MAX_METADATA_BYTES, read_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .metadata import Metadata

VARIANT_FILE = "variant.json"
"""Name of the variant metadata inside the dist-info folder (PEP 825, "Variant metadata")."""

DIST_INFO_SUFFIX = ".dist-info"

# What `zipfile` raises on archives that are damaged or made to hurt, beside its own error.
_ARCHIVE_ERRORS = (
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

_CHUNK = 64 * 1024


@dataclass(frozen=True)
class WheelContents:
    """An open wheel.

    Attributes:
        archive: the archive; closed when `open_wheel` ends.
        dist_info: name of its one dist-info folder, without a slash.
        source: path or URL, fit for messages.
    """

    archive: zipfile.ZipFile
    dist_info: str
    source: str

    def read(self, name: str, limit: int = MAX_METADATA_BYTES) -> bytes | None:
        """Return the file *name* of the dist-info folder, None if there is none.

        Args:
            name: e.g. ``METADATA``.
            limit: the most bytes that are read. It holds for what the archive declares and for
                what comes out of the decompressor.

        Raises:
            InvalidWheel: it is there twice, larger than *limit*, damaged, encrypted, or
                compressed with anything but deflate.
        """
        path = f"{self.dist_info}/{name}"
        entries = [info for info in self.archive.infolist() if info.filename == path]
        if not entries:
            return None
        if len(entries) > 1:
            raise self._error(f"{path} is in the archive {len(entries)} times")
        info = entries[0]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Not only unusual: the other decompressors of `zipfile` know no limit.
            raise self._error(f"{path} is compressed with something other than deflate")
        too_large = self._error(f"{path} is larger than {limit} bytes, the most that is read")
        if info.file_size > limit:
            raise too_large
        try:
            with self.archive.open(info) as stream:
                parts = []
                size = 0
                while chunk := stream.read(_CHUNK):
                    size += len(chunk)
                    if size > limit:
                        raise too_large
                    parts.append(chunk)
        except _ARCHIVE_ERRORS as error:
            raise self._error(f"{path} cannot be read: {_reason(error)}") from None
        return b"".join(parts)

    def variant_metadata(self) -> Metadata | None:
        """Return the wheel's ``variant.json``, None if it has none (a non-variant wheel).

        Raises:
            InvalidWheel: as `read`.
            MetadataError: the data breaks the format.
        """
        data = self.read(VARIANT_FILE)
        if data is None:
            return None
        return read_metadata(data, f"{self.source}: {self.dist_info}/{VARIANT_FILE}")

    def _error(self, problem: str) -> InvalidWheel:
        return InvalidWheel(f"{self.source}: {problem}")


@contextmanager
def open_wheel(file: str | os.PathLike[str] | IO[bytes], source: str) -> Iterator[WheelContents]:
    """Open a wheel and find its dist-info folder (PEP 427, "File contents").

    Args:
        file: path, or a seekable binary file. The name of a path that is a wheel filename must be
            of the same project and version as the dist-info folder.
        source: path or URL for messages.

    Raises:
        InvalidWheel: not a zip archive; no, several or another project's dist-info folder.
        OSError: the path cannot be opened.
    """
    if not isinstance(file, (str, os.PathLike)):
        with _open_archive(file, source) as contents:
            yield contents
        return
    try:
        expected = parse_filename(os.path.basename(file))  # noqa: PTH119  (may be str)
    except InvalidWheelFilename:
        expected = None  # a temporary name, say: the caller knows what it stands for
    with open(file, "rb") as stream, _open_archive(stream, source, expected) as contents:  # noqa: PTH123
        yield contents


def read_wheel_metadata(file: str | os.PathLike[str] | IO[bytes], source: str) -> Metadata | None:
    """Return the variant metadata inside a wheel, None if it has none.

    Args:
        file: as in `open_wheel`.
        source: path or URL for messages.

    Raises:
        InvalidWheel: as `open_wheel` and `WheelContents.read`.
        MetadataError: the data breaks the format.
        OSError: the path cannot be opened.
    """
    with open_wheel(file, source) as contents:
        return contents.variant_metadata()


@contextmanager
def _open_archive(
    stream: IO[bytes], source: str, expected: WheelFilename | None = None
) -> Iterator[WheelContents]:
    source = redacted(source)
    try:
        archive = zipfile.ZipFile(stream)
    except _ARCHIVE_ERRORS as error:
        raise InvalidWheel(f"{source}: not a usable zip archive: {_reason(error)}") from None
    with archive:
        yield WheelContents(archive, _find_dist_info(archive, source, expected), source)


def _find_dist_info(archive: zipfile.ZipFile, source: str, expected: WheelFilename | None) -> str:
    folders = {
        folder
        for folder, slash, _ in (info.filename.partition("/") for info in archive.infolist())
        if slash and folder.endswith(DIST_INFO_SUFFIX)
    }
    if len(folders) != 1:
        found = ", ".join(map(shortened, sorted(folders)[:3])) or "none"
        raise InvalidWheel(
            f"{source}: a wheel has exactly one *{DIST_INFO_SUFFIX} folder, found {found}"
        )
    folder = folders.pop()
    if expected is not None and not _belongs_to(folder, expected):
        raise InvalidWheel(
            f"{source}: {shortened(folder)} does not belong to {expected.name} {expected.version}"
        )
    return folder


def _reason(error: Exception) -> str:
    # Names from the archive are in some of these messages.
    text = "".join(char if char.isprintable() else "?" for char in str(error)[:200])
    return text or type(error).__name__


def _belongs_to(folder: str, wheel: WheelFilename) -> bool:
    name, _, version = folder[: -len(DIST_INFO_SUFFIX)].rpartition("-")
    try:
        return canonicalize_name(name) == wheel.name and Version(version) == wheel.version
    except InvalidVersion:
        return False

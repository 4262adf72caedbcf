"""Reading wheels: the dist-info folder and the variant metadata in it.

Wheels are untrusted. Nothing is unpacked to disk, nothing is read beyond a limit, whatever the
archive declares, and every problem is an `InvalidWheel` that names the file.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from packaging.utils import canonicalize_name

from .._formats.reader import read_metadata
from .._model.filename import WheelFilename, parse_filename, read_version
from ..errors import InvalidWheel, InvalidWheelFilename, redacted, shortened
from ..labels import VARIANT_FILE
from ..limits import CORE_METADATA_BYTES, DOCUMENT_BYTES
from .core_metadata import METADATA_FILE
from .zip_reading import open_zip, read_entry

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .._model.metadata import Metadata

DIST_INFO_SUFFIX = ".dist-info"
_IN_DIST_INFO = f"{DIST_INFO_SUFFIX}/"


class WheelContents(NamedTuple):
    """An open wheel.

    Attributes:
        archive: the archive, with a directory within the limits; `open_wheel` closes it.
        dist_info: name of its dist-info folder, without a slash.
        entries: those in the folder, and maybe others, by path.
        source: path or URL for messages, without credentials.
    """

    archive: zipfile.ZipFile
    dist_info: str
    entries: Mapping[str, Sequence[zipfile.ZipInfo]]
    source: str

    def read(self, name: str, limit: int = DOCUMENT_BYTES) -> bytes | None:
        """Return the file *name* of the dist-info folder, None if there is none.

        Args:
            name: e.g. ``METADATA``.
            limit: the most bytes that are read, as declared and as decompressed.

        Raises:
            InvalidWheel: the file occurs twice, is larger than *limit*, damaged, encrypted, or
                compressed with anything but deflate.
        """
        path = f"{self.dist_info}/{name}"
        entries = self.entries.get(path)
        if not entries:
            return None
        if len(entries) > 1:
            raise self._error(f"{path} occurs {len(entries)} times in the archive")
        return read_entry(self.archive, entries[0], limit, self.source)

    def core_metadata(self, limit: int = CORE_METADATA_BYTES) -> bytes:
        """Return ``METADATA``, at most *limit* bytes.

        Raises:
            InvalidWheel: as `read`, or there is none.
        """
        data = self.read(METADATA_FILE, limit)
        if data is None:
            raise self._error(f"has no {METADATA_FILE}")
        return data

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
        return InvalidWheel(problem, self.source)


@contextmanager
def open_wheel(
    file: str | os.PathLike[str] | IO[bytes], source: str, *, filename: str = ""
) -> Iterator[WheelContents]:
    """Open a wheel and find its dist-info folder (PEP 427, "File contents").

    Args:
        file: path, or a seekable binary file. The name of a path that is a wheel filename must be
            of the same project and version as the dist-info folder.
        source: path or URL for messages.
        filename: name of a binary file, used as the name of a path would be.

    Raises:
        InvalidWheel: not a zip archive, or without exactly one dist-info folder of its project.
        OSError: the path cannot be opened.
    """
    if isinstance(file, (str, os.PathLike)):
        filename = os.path.basename(file)  # noqa: PTH119  (may be str)
        with (
            open(file, "rb") as stream,  # noqa: PTH123
            open_wheel(stream, source, filename=filename) as contents,
        ):
            yield contents
        return
    try:
        expected = parse_filename(filename)
    except InvalidWheelFilename:
        expected = None  # a temporary file, for example
    source = redacted(source)
    with open_zip(file, source) as archive:
        entries: dict[str, list[zipfile.ZipInfo]] = {}
        for info in archive.infolist():
            if _IN_DIST_INFO in info.filename:
                entries.setdefault(info.filename, []).append(info)
        dist_info = _find_dist_info(entries, source, expected)
        yield WheelContents(archive, dist_info, entries, source)


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


def _find_dist_info(paths: Iterable[str], source: str, expected: WheelFilename | None) -> str:
    folders = {path.partition("/")[0] for path in paths}
    folders = {folder for folder in folders if folder.endswith(DIST_INFO_SUFFIX)}
    if len(folders) != 1:
        listed = ", ".join(map(shortened, sorted(folders)[:3])) or "none"
        raise InvalidWheel(
            f"a wheel has exactly one *{DIST_INFO_SUFFIX} folder, found {listed}", source
        )
    folder = folders.pop()
    if expected is not None and not _belongs_to(folder, expected):
        raise InvalidWheel(
            f"{shortened(folder)} does not belong to {expected.name} {expected.version}", source
        )
    return folder


def _belongs_to(folder: str, wheel: WheelFilename) -> bool:
    name, _, version = folder[: -len(DIST_INFO_SUFFIX)].rpartition("-")
    return canonicalize_name(name) == wheel.name and read_version(version) == wheel.version

"""Wheels as contents by path, written reproducibly: equal files give equal bytes."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pep_variants.safe_files import replacing
from pep_variants.wheel_files import record_line

Files = Mapping[str, bytes]
"""Contents by path in the wheel."""

Date = tuple[int, int, int, int, int, int]

_REGULAR = 0o100644 << 16
_UNIX = 3


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of the wheel at *path*.

    Raises:
        zipfile.BadZipFile: it is not a zip archive.
    """
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()
        }


def release_date(path: Path) -> Date:
    """Return the date for all entries of a wheel that is built from the wheel at *path*.

    That is ``SOURCE_DATE_EPOCH`` if it is set, otherwise the latest date in that wheel.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        year, *rest = time.gmtime(int(epoch))[:6]
        return (year, *rest) if year >= 1980 else (1980, 1, 1, 0, 0, 0)  # type: ignore[return-value]
    with zipfile.ZipFile(path) as archive:
        return max(info.date_time for info in archive.infolist())


def with_record(files: Files, dist_info: str) -> dict[str, bytes]:
    """Return *files* with a new ``RECORD`` in the folder *dist_info*."""
    record = f"{dist_info}/RECORD"
    lines = [record_line(name, files[name]) for name in sorted(files.keys() - {record})]
    return {**files, record: "".join([*lines, record_line(record, None)]).encode()}


def write_wheel(path: Path, files: Files, date: Date) -> None:
    """Write the wheel *path* from *files*, atomically, all entries with the same *date*.

    Entries are sorted, with dist-info last and ``RECORD`` at the very end (PEP 427, "Archiver
    features").
    """
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name in sorted(files, key=_place):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX  # wherever it is built
            entry.external_attr = _REGULAR
            archive.writestr(entry, files[name])


def _place(name: str) -> tuple[bool, bool, str]:
    return ".dist-info/" in name, name.endswith(".dist-info/RECORD"), name

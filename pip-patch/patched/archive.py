"""Wheels as files by path; written so that the same files give the same bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, bytes]
"""Contents by path in the wheel."""

Date = tuple[int, int, int, int, int, int]

_REGULAR = 0o100644 << 16
_UNIX = 3


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of the wheel at *path*.

    Raises:
        zipfile.BadZipFile: it is none.
    """
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()
        }


def release_date(path: Path) -> Date:
    """Return the date for all entries of what is built from the wheel at *path*.

    It is ``SOURCE_DATE_EPOCH`` where that is set, otherwise the latest date in that wheel.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        year, *rest = time.gmtime(int(epoch))[:6]
        return (year, *rest) if year >= 1980 else (1980, 1, 1, 0, 0, 0)  # type: ignore[return-value]
    with zipfile.ZipFile(path) as archive:
        return max(info.date_time for info in archive.infolist())


def with_record(files: Files, info: str) -> dict[str, bytes]:
    """Return *files* with a new ``RECORD`` in the dist-info folder *info*."""
    record = f"{info}/RECORD"
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for name in sorted(files.keys() - {record}):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
        writer.writerow((name, f"sha256={digest.decode()}", len(files[name])))
    writer.writerow((record, "", ""))
    return {**files, record: buffer.getvalue().encode()}


def write_wheel(path: Path, files: Files, date: Date) -> None:
    """Write the wheel *path*, at once, of *files*, all with the same *date*.

    Sorted, dist-info last and ``RECORD`` at the very end, as installers like it.
    """
    unfinished = path.with_name(f"{path.name}.part")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name in sorted(files, key=_place):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX  # wherever it is built
            entry.external_attr = _REGULAR
            archive.writestr(entry, files[name])
    unfinished.replace(path)


def _place(name: str) -> tuple[bool, bool, str]:
    return ".dist-info/" in name, name.endswith(".dist-info/RECORD"), name

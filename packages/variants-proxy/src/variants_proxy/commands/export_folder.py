"""The folder of an export: written beside, then put in place of the one before."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ExportError

RECORD = "variants-export.json"
"""What a folder has at its top if it is an export, and says of what."""


@contextmanager
def replaced_folder(folder: Path, record: dict[str, object]) -> Iterator[Path]:
    """Yield an empty folder that becomes *folder* if the context ends without an error.

    An earlier export is replaced as a whole. Installers that read it meanwhile see the old or
    the new files, on the systems that let a folder be renamed while its files are open.

    Args:
        folder: does not exist, is empty, or is an earlier export.
        record: what the export is of.

    Raises:
        ExportError: it holds something else, or cannot be written.
    """
    folder = folder.absolute()
    try:
        if folder.exists() and not (folder / RECORD).is_file() and any(folder.iterdir()):
            raise ExportError(
                f"{folder}: is neither empty nor an earlier export (it has no {RECORD}): "
                "name another folder"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        yield beside
        write(beside / RECORD, json.dumps(record, indent=2).encode() + b"\n")
        _swap(beside, folder)
    except OSError as error:
        raise ExportError(
            f"{error.filename or folder}: cannot be written: {error.strerror} "
            f"({folder} is as it was)"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write(path: Path, data: bytes) -> None:
    """Write a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _swap(beside: Path, folder: Path) -> None:
    """Put *beside* in place of *folder*."""
    # mkdtemp has made it readable for this user only.
    umask = os.umask(0)
    os.umask(umask)
    beside.chmod(0o777 & ~umask)
    if not folder.exists():
        beside.rename(folder)
        return
    old = beside.with_name(f"{beside.name}-old")
    folder.rename(old)
    try:
        beside.rename(folder)
    except OSError:
        with suppress(OSError):
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)

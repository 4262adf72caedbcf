"""The libraries of a wheel, read one after the other within a time limit."""

from __future__ import annotations

import shutil
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pep_variants.errors import VariantError

from .elf_library import read_elf
from .library import Library
from .other_formats import read_other

SECONDS = 30.0
"""Time for one wheel, by default: for 40 to 70 megabytes of code, at 1.3 to 2.4 a second."""
_HEAD = 512
_MAGICS = frozenset(
    bytes.fromhex(text)
    for text in ["7f454c46", "cffaedfe", "cefaedfe", "feedfacf", "cafebabe", "cafebabf"]
)
"""First bytes of ELF and Mach-O files."""
_LARGEST = 8 << 30
"""Bytes of a library above which it is not unpacked."""
_IN_MEMORY = 64 << 20


class AuditUnavailable(VariantError):
    """What reads libraries is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: pip install 'variants-cli[publish]'")


@dataclass(frozen=True)
class WheelAudit:
    """What was found in the libraries of a wheel.

    Attributes:
        libraries: in the order of the archive.
        left_out: paths of those that there was no time for.
    """

    libraries: tuple[Library, ...]
    left_out: tuple[str, ...] = ()


def audit_wheel(path: Path, seconds: float = SECONDS) -> WheelAudit:
    """Read the libraries in the wheel at *path*.

    Args:
        path: the wheel.
        seconds: after which no more code is looked at; libraries get shares by their size.

    Raises:
        AuditUnavailable: capstone or elftools is not installed.
        OSError: the file cannot be read.
        zipfile.BadZipFile: it is not an archive.
    """
    for name in ("capstone", "elftools"):
        try:
            __import__(name)
        except ImportError:
            raise AuditUnavailable(name) from None
    end = time.monotonic() + seconds
    libraries: list[Library] = []
    left_out: list[str] = []
    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        waiting = [info for info in members if _may_be_library(archive, info)]
        remaining = sum(info.file_size for info in waiting)
        for info in waiting:
            left = end - time.monotonic()
            if left <= 0 or info.file_size > _LARGEST:
                left_out.append(info.filename)
            else:
                deadline = time.monotonic() + left * info.file_size / max(remaining, 1)
                library = _read(archive, info, deadline)
                libraries += [library] if library is not None else []
            remaining -= info.file_size
    return WheelAudit(tuple(libraries), tuple(left_out))


def _may_be_library(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    name = info.filename.rpartition("/")[2]
    if name.endswith((".py", ".pyi", ".txt", ".json", ".h", ".hpp", ".cuh", ".md", ".o", ".a")):
        return False
    try:
        with archive.open(info) as stream:
            head = stream.read(4)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError):
        return False
    return head in _MAGICS or head[:2] == b"MZ"


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, deadline: float) -> Library | None:
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        try:
            with archive.open(info) as stream:
                shutil.copyfileobj(stream, file, 1 << 20)
            file.seek(0)
            head = file.read(_HEAD)
            file.seek(0)
            if head[:4] != b"\x7fELF":
                return read_other(head, file, info.filename)
            return read_elf(file, info.filename, deadline)
        except OSError:
            raise
        except Exception as error:
            problem = f"cannot be read: {type(error).__name__}: {error}"
            return Library(info.filename, "ELF", problem=problem)

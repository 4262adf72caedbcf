"""Limiting the size of a cache directory: least recently used records are removed first.

The bytes written since the last trim are the size of a file, the ledger, to which every writer
appends before it writes: several processes count together, a killed one loses nothing, and the
directory is walked once per tenth of its limit, not per record. The process that finds the ledger
full trims the directory; while another one is doing that, nothing is written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pep_variants.errors import PreferenceError, shortened

logger = logging.getLogger(__name__)

SIZE_VARIABLE = "VARIANTS_CACHE_SIZE"
DAYS_VARIABLE = "VARIANTS_CACHE_DAYS"

LEDGER = "written"
STAMP = "trimmed"
LOCK = "trim.lock"
UNFINISHED = "unfinished"
"""Folder of temporary files."""

_OWN = (LEDGER, STAMP, LOCK)
_BLOCK = 4096
_SHARE = 10
"""The directory is trimmed after a tenth of its limit was written, to nine tenths of it."""

_DAY = 86_400.0
_ABANDONED = 3600.0
"""Seconds after which a temporary file is abandoned."""

_FRESH = 3600.0
"""Seconds before a record that is read is marked as used again."""

_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?:([kmgt])(i?)b?|b)?\s*", re.IGNORECASE)
_DAYS = re.compile(r"\s*[0-9]{1,9}(\.[0-9]{1,9})?\s*")


@dataclass(frozen=True)
class Bounds:
    """Limits of a cache directory.

    Attributes:
        size: bytes on disk; each concurrent writer may exceed it by one record.
        days: after which an unused record is removed.
    """

    size: int = 1024**3
    days: float = 30.0

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Bounds:
        """Return the limits in ``VARIANTS_CACHE_SIZE`` (``500MB``, ``2 GiB``) and ``…_DAYS``.

        Raises:
            PreferenceError: a value is invalid; the message names the variable.
        """
        bounds = cls()
        size, days = bounds.size, bounds.days
        if text := environ.get(SIZE_VARIABLE, "").strip():
            size = _parse_size(text)
        if text := environ.get(DAYS_VARIABLE, "").strip():
            if not _DAYS.fullmatch(text):
                raise PreferenceError(
                    f"{DAYS_VARIABLE}: expected a number such as 30, found {shortened(text)}"
                )
            days = float(text)
        return cls(size, days)


@dataclass(frozen=True)
class Usage:
    """Contents of a folder.

    Attributes:
        records: their number.
        size: bytes on disk.
    """

    records: int = 0
    size: int = 0


def occupied(size: int) -> int:
    """Return the approximate bytes that a file of *size* takes on disk."""
    return -(-size // _BLOCK) * _BLOCK


def admit(root: Path, size: int, bounds: Bounds, *, outdated: bool = False) -> bool:
    """Make room for a record that is about to be written below *root*.

    Args:
        root: the directory.
        size: of the record in bytes.
        bounds: limits of the directory.
        outdated: trim the directory in any case.

    Returns:
        False if it must not be written: another process is trimming the directory.

    Raises:
        OSError: a file cannot be written or locked.
    """
    room = occupied(size)
    written = _append(root, room)
    if not outdated and written * _SHARE <= bounds.size:
        return True
    from filelock import Timeout

    try:
        trim(root, bounds, room)
    except Timeout:
        return outdated and written * _SHARE <= bounds.size
    _append(root, room)
    return True


def _append(root: Path, size: int) -> int:
    """Add *size* to the ledger; return the total."""
    with (root / LEDGER).open("ab", buffering=0) as ledger:
        ledger.write(bytes(size // _BLOCK))
        return ledger.tell() * _BLOCK


def stale(root: Path) -> bool:
    """Return whether *root* was not trimmed for a day."""
    try:
        return abs(time.time() - (root / STAMP).stat().st_mtime) > _DAY
    except OSError:
        return True


def mark_used(path: Path, status: os.stat_result) -> None:
    """Take note that the record at *path* was used, unless that is known well enough."""
    if abs(time.time() - status.st_mtime) > _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)


def trim(root: Path, bounds: Bounds, room: int = 0) -> Usage:
    """Remove what was not used for too long, then what was used longest ago, until the rest fits.

    Of several processes one does it. Whatever is removed can be fetched again.

    Args:
        root: the directory.
        bounds: of what is left.
        room: bytes on disk that have to be free.

    Returns:
        What was removed.

    Raises:
        filelock.Timeout: another process does it right now.
        OSError: nothing can be written, or nothing can be locked.
    """
    from filelock import FileLock  # takes longer to import than the rest of a small command

    try:
        with FileLock(root / LOCK, timeout=0):
            removed = _trim(root, bounds, room)
            # Only now: should this process be killed before, the next one finds the ledger full.
            (root / LEDGER).write_bytes(b"")
            (root / STAMP).write_bytes(b"")
            os.utime(root / STAMP)
    except NotImplementedError as error:
        raise OSError(f"files cannot be locked there: {error}") from None
    logger.debug("%s: %d records of %d bytes removed", root, removed.records, removed.size)
    return removed


def clear_abandoned(root: Path) -> None:
    """Remove temporary files of killed processes below *root*."""
    limit = time.time() - _ABANDONED
    with contextlib.suppress(OSError), os.scandir(root / UNFINISHED) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat().st_mtime < limit:
                    os.unlink(entry.path)  # noqa: PTH108


def usage(root: Path) -> dict[str, Usage]:
    """Return number and size of the records below *root*, by kind."""
    found: dict[str, Usage] = {}
    for _, size, path in _records(root):
        kind = Path(path).relative_to(root).parts[0]
        known = found.get(kind, Usage())
        found[kind] = Usage(known.records + 1, known.size + size)
    return dict(sorted(found.items()))


def clear(root: Path) -> Usage:
    """Remove every record below *root*; return what was removed."""
    return _remove(_records(root))


def _trim(root: Path, bounds: Bounds, room: int) -> Usage:
    clear_abandoned(root)
    records = sorted(_records(root))
    total = sum(size for _, size, _ in records)
    oldest = time.time() - bounds.days * _DAY
    allowed = min(bounds.size * (_SHARE - 1) // _SHARE, bounds.size - room)
    doomed = []
    for used, size, path in records:
        if used >= oldest and total <= allowed:
            break
        total -= size
        doomed.append((used, size, path))
    return _remove(doomed)


def _remove(records: Iterator[tuple[float, int, str]] | list[tuple[float, int, str]]) -> Usage:
    number = total = 0
    for _, size, path in records:
        with contextlib.suppress(OSError):  # Windows: another process reads it
            os.unlink(path)  # noqa: PTH108 - there may be very many
            number, total = number + 1, total + size
    return Usage(number, total)


def _records(root: Path) -> Iterator[tuple[float, int, str]]:
    """Yield time of last use, size on disk and path of every record."""
    pending = [os.fspath(root)]
    while pending:
        folder = pending.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if folder == os.fspath(root) and entry.name in (*_OWN, UNFINISHED):
                    continue
                with contextlib.suppress(OSError):  # another process removed it
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    # On Windows the sizes in a directory may be outdated.
                    status = Path(entry.path).stat() if os.name == "nt" else entry.stat()
                    yield status.st_mtime, occupied(status.st_size), entry.path


def _parse_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise PreferenceError(
            f"{SIZE_VARIABLE}: expected a size such as 500MB or 2GiB, found {shortened(text)}"
        )
    number, unit, binary = found.groups()
    power = "kmgt".index(unit.lower()) + 1 if unit else 0
    return int(float(number) * (1024 if binary else 1000) ** power)

"""A cache directory of records that are written atomically and verified when they are read.

No record is changed in place, so no lock is needed: of several processes that write the same
record, one wins. A killed process leaves a temporary file in a separate folder, which is removed
when it is old.

Cached pages decide which files are installed: a directory that other users can write to is neither
read nor written.

The size is limited; the records that were not used for longest are removed first. The bytes
written since the last trim are the size of a file, the ledger, to which every writer appends
before it writes: several processes count together, a killed one loses nothing, and the directory is
walked once per tenth of its limit, not per record. The process that finds the ledger full trims
the directory; while another one is doing that, nothing is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from pep_variants import safe_files
from pep_variants.safe_files import NotPrivate

logger = logging.getLogger(__name__)

FORMAT = "1"
"""Version of the format of records, a part of the path."""

SIZE = 1024**3
"""Bytes that a cache takes on disk; each concurrent writer may exceed it by one record."""

LEDGER = "written"
LOCK = "trim.lock"
UNFINISHED = "unfinished"
"""Folder of temporary files."""

_MAGIC = b"pep-variants index cache\n"
_DIGEST = hashlib.sha256().digest_size
_BLOCK = 4096
_SHARE = 10
"""The directory is trimmed after a tenth of its limit was written, to nine tenths of it."""
_HOUR = 3600.0
"""Seconds before a record that is read is marked as used again, before a temporary file is
abandoned, and before the directory is checked again."""


class Store:
    """A cache directory; safe to use from several threads.

    Attributes:
        root: the directory, created on the first write.
        size: the most bytes that it takes on disk, see `SIZE`.
        problem: why the cache is no longer used, empty while it is. A full disk disables the
            cache, and is not an error.
    """

    def __init__(self, root: Path, size: int = SIZE) -> None:
        self.root = root / FORMAT
        self.size = size
        self.problem = ""
        self._unfinished = self.root / UNFINISHED
        self._look_again = 0.0
        self._is_private = False

    def get(self, kind: str, name: str) -> bytes | None:
        """Return a record, None if it is missing or damaged.

        Args:
            kind: name of the folder.
            name: identifies the record; only its hash is stored.
        """
        path = self._path(kind, name)
        try:
            if not self._may_be_read():
                return None
            with path.open("rb") as stream:
                used = os.fstat(stream.fileno()).st_mtime
                data = stream.read()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[:start] == _MAGIC + hashlib.sha256(payload).digest():
            if abs(time.time() - used) > _HOUR:
                with contextlib.suppress(OSError):
                    os.utime(path)
            return payload
        logger.debug("%s is damaged: removed", path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, kind: str, name: str, payload: bytes) -> None:
        """Write a record, unless it is larger than the cache or the cache is disabled."""
        room = occupied(len(_MAGIC) + _DIGEST + len(payload))
        if self.problem or room > self.size:
            return
        path = self._path(kind, name)
        try:
            try:
                self._write(path, payload, room)
            except FileNotFoundError:  # another process removed the directory
                self._look_again = 0.0
                self._write(path, payload, room)
        except PermissionError as error:
            # Windows: another process is reading the record that would be replaced.
            if not path.exists():
                self._give_up(error)
        except (OSError, NotPrivate) as error:
            self._give_up(error)

    def temporary_file(self) -> IO[bytes]:
        """Return an empty file that is removed when it is closed.

        It is in the directory if possible: wheels may have gigabytes, and the system's temporary
        files may be in memory (tmpfs).

        Raises:
            OSError: no temporary file can be created.
        """
        if not self.problem:
            with contextlib.suppress(OSError, NotPrivate):
                self._prepare()
                return tempfile.TemporaryFile(dir=self._unfinished)
        return tempfile.TemporaryFile()

    def trim(self, room: int = 0) -> None:
        """Remove what was used longest ago, until the rest leaves *room* bytes on disk.

        Of several processes one does it. Whatever is removed can be fetched again.

        Raises:
            filelock.Timeout: another process does it right now.
            OSError: nothing can be written, or nothing can be locked.
        """
        try:
            with FileLock(self.root / LOCK, timeout=0):
                self._clear_abandoned()
                records = sorted(self._records())
                total = sum(size for _, size, _ in records)
                allowed = min(self.size * (_SHARE - 1) // _SHARE, self.size - room)
                for _, size, path in records:
                    if total <= allowed:
                        break
                    total -= size
                    with contextlib.suppress(OSError):  # Windows: another process reads it
                        path.unlink()
                # Only now: if this process is killed before, the next one finds the ledger full.
                (self.root / LEDGER).write_bytes(b"")
        except NotImplementedError as error:
            raise OSError(f"files cannot be locked there: {error}") from None

    def _path(self, kind: str, name: str) -> Path:
        key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / kind / key[:2] / key[2:40]

    def _write(self, path: Path, payload: bytes, room: int) -> None:
        self._prepare()
        if not self._admit(room):
            return
        safe_files.make_private(path.parent)
        with safe_files.replacing(path, temporaries=self._unfinished) as stream:
            stream.write(_MAGIC + hashlib.sha256(payload).digest())
            stream.write(payload)

    def _admit(self, room: int) -> bool:
        """Make *room* for a record; return False if another process is trimming the directory."""
        if self._count(room) * _SHARE <= self.size:
            return True
        try:
            self.trim(room)
        except Timeout:
            return False
        self._count(room)
        return True

    def _count(self, size: int) -> int:
        """Add *size* to the ledger; return the total."""
        with (self.root / LEDGER).open("ab", buffering=0) as ledger:
            ledger.write(bytes(size // _BLOCK))
            return ledger.tell() * _BLOCK

    def _prepare(self) -> None:
        """Create the directory, unless that was done within an hour."""
        now = time.monotonic()
        if now < self._look_again:
            return
        for folder in (self.root.parent, self.root, self._unfinished):
            safe_files.make_private(folder)
        self._is_private = True
        self._clear_abandoned()
        self._look_again = now + _HOUR

    def _may_be_read(self) -> bool:
        """Return whether the directory is private; raises OSError if it is missing."""
        if not self._is_private and not self.problem:
            try:
                safe_files.check_private(self.root.parent)
                safe_files.check_private(self.root)
                self._is_private = True
            except NotPrivate as error:
                self._give_up(error)
        return self._is_private

    def _clear_abandoned(self) -> None:
        """Remove temporary files of killed processes."""
        with contextlib.suppress(OSError):
            for path in self._unfinished.iterdir():
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < time.time() - _HOUR:
                        path.unlink()

    def _records(self) -> Iterator[tuple[float, int, Path]]:
        """Yield time of last use, size on disk and path of every record."""
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [name for name in folders if name != UNFINISHED]
                names = [name for name in names if name not in (LEDGER, LOCK)]
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):  # another process removed it
                    status = path.lstat()
                    yield status.st_mtime, occupied(status.st_size), path

    def _give_up(self, error: OSError | NotPrivate) -> None:
        if isinstance(error, NotPrivate):
            self.problem = (
                f"the cache is not used: {error}, or set {safe_files.VARIABLE} to a directory that "
                "you own"
            )
        else:
            reason = error.strerror or str(error)
            self.problem = f"{os.fspath(self.root)}: the cache cannot be written: {reason}"
        logger.debug("%s", self.problem)


def temporary_file(store: Store | None) -> IO[bytes]:
    """Return an empty temporary file for a wheel, see `Store.temporary_file`."""
    return tempfile.TemporaryFile() if store is None else store.temporary_file()


def occupied(size: int) -> int:
    """Return the approximate bytes that a file of *size* takes on disk."""
    return -(-size // _BLOCK) * _BLOCK

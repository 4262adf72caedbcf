"""A cache directory of records that are written atomically and verified when they are read.

No record is changed in place, so no lock is needed: of several processes that write the same
record, one wins. A killed process leaves a temporary file in a separate folder, which is removed
when it is old. `eviction` limits the size.

Cached pages decide which files are installed: a directory that other users can write to is neither
read nor written.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import IO

from pep_variants.cache_directory import VARIABLE
from pep_variants.files import replacing
from pep_variants.ownership import NotPrivate, check_private, make_private

from . import eviction
from .eviction import Bounds, Usage

logger = logging.getLogger(__name__)

FORMAT = "1"
"""Version of the format of records, a part of the path."""

_MAGIC = b"pep-variants index cache\n"
_DIGEST = hashlib.sha256().digest_size
_HOUR = 3600.0


class Store:
    """A cache directory; safe to use from several threads.

    Attributes:
        root: the directory, created on the first write.
        bounds: its limits.
        problem: why the cache is no longer used, empty while it is. A full disk disables the
            cache, and is not an error.
    """

    def __init__(self, root: Path, bounds: Bounds | None = None) -> None:
        self.root = root / FORMAT
        self.bounds = bounds or Bounds()
        self.problem = ""
        self._unfinished = self.root / eviction.UNFINISHED
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
                status = os.fstat(stream.fileno())
                data = stream.read()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[:start] == _MAGIC + hashlib.sha256(payload).digest():
            eviction.mark_used(path, status)
            return payload
        logger.debug("%s is damaged: removed", path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, kind: str, name: str, payload: bytes) -> None:
        """Write a record, unless it exceeds the bounds or the cache is disabled."""
        size = len(_MAGIC) + _DIGEST + len(payload)
        if self.problem or eviction.occupied(size) > self.bounds.size:
            return
        path = self._path(kind, name)
        try:
            try:
                self._write(path, payload, size)
            except FileNotFoundError:  # another process removed the directory
                self._look_again = 0.0
                self._write(path, payload, size)
        except PermissionError as error:
            # Windows: another process is reading the record that would be replaced.
            if not path.exists():
                self._give_up(error)
        except (OSError, NotPrivate) as error:
            self._give_up(error)

    def remove(self, kind: str, name: str) -> None:
        """Remove a record."""
        with contextlib.suppress(OSError):
            self._path(kind, name).unlink()

    def usage(self) -> dict[str, Usage]:
        """Return number and size on disk of the records of each kind."""
        return eviction.usage(self.root)

    def clear(self) -> Usage:
        """Remove all records; return what was removed."""
        return eviction.clear(self.root)

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

    def _path(self, kind: str, name: str) -> Path:
        key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / kind / key[:2] / key[2:40]

    def _write(self, path: Path, payload: bytes, size: int) -> None:
        outdated = self._prepare()
        if not eviction.admit(self.root, size, self.bounds, outdated=outdated):
            return
        make_private(path.parent)
        with replacing(path, temporaries=self._unfinished) as stream:
            stream.write(_MAGIC + hashlib.sha256(payload).digest())
            stream.write(payload)

    def _prepare(self) -> bool:
        """Create the directory; return whether it was not trimmed for a day."""
        now = time.monotonic()
        if now < self._look_again:
            return False
        make_private(self.root.parent)
        make_private(self.root)
        make_private(self._unfinished)
        self._is_private = True
        eviction.clear_abandoned(self.root)
        self._look_again = now + _HOUR
        return eviction.stale(self.root)

    def _may_be_read(self) -> bool:
        """Return whether the directory is private; raises OSError if it is missing."""
        if not self._is_private and not self.problem:
            try:
                check_private(self.root.parent)
                check_private(self.root)
                self._is_private = True
            except NotPrivate as error:
                self._give_up(error)
        return self._is_private

    def _give_up(self, error: OSError | NotPrivate) -> None:
        if isinstance(error, NotPrivate):
            self.problem = (
                f"the cache is not used: {error}, or set {VARIABLE} to a directory that you own"
            )
        else:
            reason = error.strerror or str(error)
            self.problem = f"{os.fspath(self.root)}: the cache cannot be written: {reason}"
        logger.debug("%s", self.problem)

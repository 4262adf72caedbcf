"""The folder of a command's own files, which is removed at its end, whatever the end is.

The folder of a command that was killed is removed by the next one: it is the one whose lock is
free. Folders of other users, and links, are left alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


_PREFIX = "uv-variants-"
_LOCK = "in-use"
_NEW_SECONDS = 60.0
"""Age in seconds up to which a folder may not have its lock yet."""


class PrivateFolder:
    """A new folder that only the user can read.

    Attributes:
        path: of it.
    """

    def __init__(self) -> None:
        """Create it, and remove those of commands that were killed.

        Raises:
            OSError: there is no directory for temporary files.
        """
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(self._lock)

    def write(self, name: str, data: bytes) -> Path:
        """Write a new file; return its path.

        Raises:
            OSError: it cannot be written.
        """
        path = self.path / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
        return path

    def remove(self) -> None:
        """Remove the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
            shutil.rmtree(self.path, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what commands that were killed left in *folder*."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_left(path):
                    shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path) -> bool:
    """Return whether *path* is a folder of this user, and the command that made it has ended."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_mtime > time.time() - _NEW_SECONDS:
        return False
    if os.name != "nt" and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        return False
    lock = os.open(path / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        return _lock(lock)
    finally:
        os.close(lock)


def _lock(descriptor: int) -> bool:
    """Take the lock on a file, which ends with the process; return whether it was free."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

"""The lock under which a daemon is started, so that two commands at once start one.

It is the system's lock on a file, which ends with the process that holds it. `filelock` would be
the same, and takes longer to import than everything else here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAUSE = 0.01


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock on the file *path* inside the block.

    Args:
        path: of the file, which stays.
        seconds: to wait for another process that holds it.

    Raises:
        OSError: the file cannot be opened or locked; a `TimeoutError` if the time is over.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + seconds
        while not _taken(descriptor):
            if time.monotonic() > end:
                raise TimeoutError(f"{path}: another process has held the lock for {seconds:g} s")
            time.sleep(PAUSE)
        yield
    finally:
        os.close(descriptor)  # which ends the lock


def _taken(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True

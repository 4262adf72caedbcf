"""Reading untrusted files within a limit, and writing files atomically.

A path in a checkout can lead to a device, a named pipe or a file of many gigabytes. Reading such a
file never waits and never takes more memory than its limit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")

_BUSY_SECONDS = 5.0
"""How long Windows may refuse to replace or read a file that another process has open."""

_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


_LEFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_LEFT_SECONDS = 86_400
"""Seconds after the last write to it when a leftover is removed."""


class Content(NamedTuple):
    """Contents of a file when it was read.

    Attributes:
        data: all of its bytes.
        status: of the very file that was read, whatever is at its path by now.
    """

    data: bytes
    status: os.stat_result


def read_regular(path: str | os.PathLike[str], limit: int) -> Content:
    """Read the regular file at *path*; symbolic links are followed.

    Args:
        path: of the file.
        limit: most bytes it may have, see `limits`.

    Raises:
        OSError: it cannot be opened or read, is not a regular file, or is larger than *limit*;
            ``strerror`` says which.
    """
    with open_regular(path, limit) as stream:
        status = os.fstat(stream.fileno())
        # Files in /proc say that they have no bytes, and others may grow.
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise _too_large(path, limit)
    return Content(data, status)


def open_regular(path: str | os.PathLike[str], limit: int | None = None) -> IO[bytes]:
    """Open the regular file at *path* for reading; symbolic links are followed.

    Args:
        path: of the file.
        limit: most bytes it may have, None for any number.

    Raises:
        OSError: as `read_regular`.
    """
    # Opening a device can have side effects, so look before; a path can be replaced
    # meanwhile, so look again after. Opening a named pipe without O_NONBLOCK waits for a writer.
    _check(os.stat(path), path, limit)  # noqa: PTH116 - bytes and str paths alike
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(path, flags), "rb")
    try:
        _check(os.fstat(stream.fileno()), path, limit)
    except OSError:
        stream.close()
        raise
    return stream


def is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether there is something at *path* of which reading may never end.

    That is a named pipe or a device: neither a regular file nor a directory.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - bytes and str paths alike
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def read_text(path: str | os.PathLike[str], limit: int, *, errors: str = "strict") -> str:
    """Read the regular file at *path* as UTF-8, with universal newlines.

    Args:
        path: of the file.
        limit: most bytes it may have, see `limits`.
        errors: how to handle bytes that are not UTF-8, as for `bytes.decode`.

    Raises:
        OSError: as `read_regular`.
        UnicodeDecodeError: it is not UTF-8.
    """
    text = read_regular(path, limit).data.decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def replacing(
    path: Path, *, mode: int = 0o666, temporaries: Path | None = None, durable: bool = False
) -> Iterator[IO[bytes]]:
    """Yield a new file that replaces *path* when the block ends: readers see no partial file.

    If the block raises, the new file is removed and *path* is unchanged.

    Args:
        path: of the file; its directory exists when the block ends.
        mode: permissions of the new file, less those that the umask takes.
        temporaries: directory of the new file, on the same file system; None for that of *path*.
        durable: have it on the disk when the block ends, in case the machine stops.

    Raises:
        OSError: the file cannot be written; ``filename`` is *path*.
    """
    temporary = (temporaries or path.parent) / f".{path.name[:100]}.{os.urandom(6).hex()}.tmp"
    try:
        # Not `tempfile`: its files are readable by their owner alone, and stay so when renamed.
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        patiently(lambda: temporary.replace(path))
        if durable:
            _sync_directory(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and (
            str(error.filename) == str(temporary) or error.errno in _NO_ROOM
        ):
            error.filename = str(path)
        raise


def leftovers(folder: Path, *, below: bool = False) -> list[Path]:
    """Return the files in *folder* that `replacing` writes before they get their own name.

    They are of processes that run, or that were ended.

    Args:
        folder: that is looked at.
        below: look into all folders in it as well.
    """
    found = folder.rglob(".*.tmp") if below else folder.glob(".*.tmp")
    return [path for path in sorted(found) if _LEFT.fullmatch(path.name)]


def remove_leftovers(folder: Path, *, below: bool = False) -> None:
    """Remove `leftovers` that are older than a day."""
    for left in leftovers(folder, below=below):
        with contextlib.suppress(OSError):
            if left.lstat().st_mtime < time.time() - _LEFT_SECONDS:
                left.unlink()


def patiently(act: Callable[[], _T]) -> _T:
    """Return the result of *act*; on Windows, repeat it while another process has the file open."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return act()
        except PermissionError:
            if os.name != "nt" or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _sync_directory(directory: Path) -> None:
    """Have the names in *directory* on the disk, where directories can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_if_changed(path: Path, data: bytes) -> bool:
    """Make *data* the content of *path*, atomically; return False if it already was.

    An unchanged file keeps its modification time, and with it its place in caches.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pep_variants.safe_files import write_if_changed
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "pylock.toml")
    ...     print([write_if_changed(path, data) for data in (b"old", b"old", b"new")])
    [True, False, True]
    """
    try:
        with path.open("rb") as stream:
            if stream.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(data)
    return True


def _check(status: os.stat_result, path: str | os.PathLike[str], limit: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if limit is not None and status.st_size > limit:
        raise _too_large(path, limit)


def _too_large(path: str | os.PathLike[str], limit: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {limit:,} bytes", os.fspath(path))

"""Writing files so that readers see the old one or the whole new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import secrets
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that becomes *path* when the block ends, replacing what was there.

    If the block raises, nothing is left of it and *path* is as it was. The file has the mode
    that the process gives to new files.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        # Not `tempfile`: its files are readable by their owner alone, and stay so when renamed.
        with temporary.open("xb") as stream:
            yield stream
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and (
            error.filename == str(temporary) or error.errno in _NO_ROOM
        ):
            error.filename = str(path)  # the name that the user knows
        raise


def write_if_changed(path: Path, data: bytes) -> bool:
    """Make *data* the content of *path*; return False if it already was.

    An unchanged file keeps its modification time, and with it its place in caches.
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

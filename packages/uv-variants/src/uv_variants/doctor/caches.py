"""The caches of uv and of uv-variants, with their sizes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.cache_directory import cache_directory
from variants_index.doctor.findings import Part

from .. import uv_directories

if TYPE_CHECKING:
    from ..place import Place

_UNITS = ("B", "KB", "MB", "GB", "TB")
_SECONDS = 2.0
"""For which the size of one directory is counted."""


def caches_part(place: Place, configured: object) -> Part:
    """Return the caches of uv and of this program with their sizes.

    Args:
        place: of the command.
        configured: ``cache-dir`` of uv's files.
    """
    uv = uv_directories.cache_directory(place.environ, None, configured, place.cwd).absolute()
    ours = cache_directory(place.environ, "")
    rows, tree = [], []
    for what, path in (
        ("uv", uv),
        ("uv with variants", uv_directories.variants_caches(uv)),
        ("uv-variants", ours),
    ):
        if path.is_dir():
            size, complete = _size(path)
            rows.append((what, f"{path}, {_shown(size, complete=complete)}"))
            tree.append({"what": what, "path": str(path), "bytes": size, "complete": complete})
    return Part(tuple(rows), tree=tree)


def size_of(folder: Path) -> str:
    """Return the size of all files below *folder* in words."""
    size, complete = _size(folder)
    return _shown(size, complete=complete)


def _shown(size: float, *, complete: bool) -> str:
    unit = _UNITS[0]
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{'' if complete else 'more than '}{size:.{0 if unit == 'B' else 1}f} {unit}"


def _size(folder: Path) -> tuple[int, bool]:
    """Return how many bytes the files below *folder* have, and whether all were counted."""
    end = time.monotonic() + _SECONDS
    total = 0
    for size in _sizes(str(folder)):
        total += size
        if time.monotonic() > end:
            return total, False
    return total, True


def _sizes(folder: str) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        yield from _sizes(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
    except OSError:
        return

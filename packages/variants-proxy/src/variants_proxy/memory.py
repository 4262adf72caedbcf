"""Memory that a long-running process gives back to the system."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameters of glibc's ``mallopt``."""

LARGE_BYTES: Final = 1 << 20
"""Buffers of this size and more are given back as soon as they are free."""

ARENAS: Final = 2
"""Heaps of the C library, which are otherwise eight for each processor."""


def return_memory() -> None:
    """Make the C library return large freed buffers to the system.

    By default glibc keeps up to 32 MiB for each thread: with pages of that size in several threads
    hundreds of megabytes. Other C libraries have no such parameters.
    """
    if sys.platform == "win32":
        return
    import ctypes

    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        library.mallopt(_M_ARENA_MAX, ARENAS)

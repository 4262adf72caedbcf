"""Pausing the garbage collector while large acyclic data is built."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused(when: bool) -> Iterator[None]:
    """Switch the cyclic garbage collector off inside, if *when* holds and it was on.

    Files with thousands of variants become hundreds of thousands of containers, none of which is
    garbage: the collector would walk all of them again and again, for longer than reading takes.
    """
    pause = when and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()

"""Loading the shared libraries of drivers; `timeouts.within` limits how long a call takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .attempts import tried

if TYPE_CHECKING:
    from ctypes import CDLL

TIME_LIMIT = 30.0
"""Seconds that a driver has to answer. That long because a driver without persistent state starts
every GPU when it is asked, which takes seconds for each."""


def load(names: Iterable[str]) -> CDLL | None:
    """Return the first library that can be loaded, None if none can.

    A bare name is looked for where the dynamic loader looks, a path is taken as it is.
    """
    from ctypes import CDLL

    for name in names:
        try:
            library = CDLL(name)
        except OSError as error:
            tried(name, f"cannot be loaded: {str(error).removeprefix(f'{name}: ')}")
        else:
            tried(name, "is loaded", found=True)
            return library
    return None

"""Loading the shared libraries of drivers; `timeouts.within` limits how long a call takes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

logger = logging.getLogger(__name__)

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
            return CDLL(name)
        except OSError as error:
            logger.debug("%s cannot be loaded: %s", name, error)
    return None

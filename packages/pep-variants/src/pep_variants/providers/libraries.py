"""Shared libraries of drivers: loading them, and asking them without waiting for ever."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ctypes import CDLL

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

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


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what *work* returns, or raise what it raises.

    It runs in a daemon thread. Where it does not come back in time the thread is abandoned, which
    does not keep the process from ending. Initializers of a library run when it is loaded, under
    Python's global lock: hanging there is the one thing that no time limit can end.

    Raises:
        TimeoutError: it takes longer than *seconds*.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name="pep-variants driver", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answers[0]

"""Waiting for a call for a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def within(seconds: float, work: Callable[[], _T], late: str = "no answer within") -> _T:
    """Return the result of *work*, or raise its error.

    It runs in a daemon thread. Where it does not come back in time the thread is abandoned, which
    does not keep the process from ending. Initializers of a library run when it is loaded, under
    Python's global lock: hanging there is the one thing that no time limit can end.

    Where no thread can be started (the limit of a container, WebAssembly) it runs in this one, for
    as long as it takes.

    Args:
        seconds: how long to wait.
        work: drivers or servers are asked in it, which may never answer.
        late: first words of the error when the time is up.

    Raises:
        TimeoutError: it takes longer than *seconds*.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name="pep-variants", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return work()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"{late} {seconds:g} s")
    return answers[0]

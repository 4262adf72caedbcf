"""Waiting for a server, but not for ever.

pip's ``--timeout`` is about silence: a server that sends a byte now and then, or says again and
again to come back later, may keep pip waiting for hours. For the file that the user wants that is
pip's business. For metadata of ours it would be worse than without us.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

PATIENCE = 4
"""How many times pip's ``--timeout`` all of the metadata of a version may take: one minute."""

_TIMEOUT = 15
"""pip's default, in seconds."""


def time_limit(timeout: float | None) -> float:
    """Return the limit in seconds where pip's ``--timeout`` is *timeout*."""
    return PATIENCE * (timeout or _TIMEOUT)


def within(seconds: float, task: Callable[[], Result]) -> Result:
    """Return the result of *task*, which runs in a thread of its own, or raise what it raises.

    When the time is up it is left alone, and ends with the process at the latest: nothing that
    waits for a network can be stopped from outside on every platform.

    Raises:
        TimeoutError: it took longer than *seconds*.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(task())
        except BaseException as error:  # all of them go to whoever waits
            errors.append(error)

    thread = threading.Thread(target=run, name="pep-variants", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"it takes longer than {seconds:g} s")
    return results[0]

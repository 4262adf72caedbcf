"""Waiting for what other processes do."""

# Size: unit tests of several distributions import it, without the servers beside it.

import time


def wait_until(condition, seconds=20.0):
    """Return whether *condition* holds within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

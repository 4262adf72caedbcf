"""Waiting for a server, but not for ever.

pip's ``--timeout`` is about silence: a server that sends a byte now and then, or says again and
again to come back later, may keep pip waiting for hours. For the file that the user wants that is
pip's business. For metadata of ours it would be worse than without us.
"""

from __future__ import annotations

PATIENCE = 4
"""How many times pip's ``--timeout`` all of the metadata of a version may take: one minute."""

_TIMEOUT = 15
"""pip's default, in seconds."""


def time_limit(timeout: float | None) -> float:
    """Return the limit in seconds where pip's ``--timeout`` is *timeout*."""
    return PATIENCE * (timeout or _TIMEOUT)

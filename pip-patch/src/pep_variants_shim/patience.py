"""How long pip's network session waits, and how often it tries, for what pip can do without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def impatient(network: Any, *, retries: int = 0, seconds: float | None = None) -> Iterator[None]:
    """Let pip's *network* session ask for no passwords, retry less often, and wait shorter.

    Args:
        network: pip's session.
        retries: at most, after an answer that says to try again; a host that refuses connections
            is not asked again.
        seconds: to wait for an answer, None for pip's own time.
    """
    adapters = [item for item in network.adapters.values() if hasattr(item, "max_retries")]
    before = [adapter.max_retries for adapter in adapters]
    timeout, prompting = network.timeout, network.auth.prompting
    try:
        for adapter in adapters:
            given = adapter.max_retries
            total = min(retries, given.total or 0)
            read = False if retries == 0 else given.read
            adapter.max_retries = given.new(total=total, connect=0, read=read)
        if seconds is not None:
            network.timeout = min(timeout or seconds, seconds)
        network.auth.prompting = False
        yield
    finally:
        for adapter, given in zip(adapters, before, strict=True):
            adapter.max_retries = given
        network.timeout, network.auth.prompting = timeout, prompting

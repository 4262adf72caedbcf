"""Connections of clients, with limits for slow ones and for their number.

uvicorn closes idle connections between requests, but has no timeout for the rest of a request and
for a client that does not read its response.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0
"""Timeout for a request's head, from the first byte of the connection or request."""

WRITE_SECONDS: Final = 60.0
"""Timeout for a client that does not read its response, once the buffers are full."""

CONNECTIONS: Final = 1000
"""Maximum number of client connections; at most half of the open files of the process."""

HEAD_BYTES: Final = 64 * 1024
"""Maximum size of a request's head."""


class LimitedProtocol(H11Protocol):
    """A connection that is closed if its client is too slow or too many are open."""

    @property
    def is_waiting(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the head; above the limit close the oldest idle connection."""
        super().connection_made(transport)
        self._begun = time.monotonic()
        self._head: asyncio.TimerHandle | None = None
        self._write: asyncio.TimerHandle | None = None
        self._start_head()
        if len(self.connections) > connection_limit():
            waiting = [
                each
                for each in self.connections
                if isinstance(each, LimitedProtocol) and each.is_waiting
            ]
            if waiting:
                min(waiting, key=lambda each: each._begun).close()

    def data_received(self, data: bytes) -> None:
        """Process bytes; an unfinished head does not get more time by them."""
        super().data_received(data)
        if self.is_waiting:
            self._start_head()
        else:
            self._head = _stopped(self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._head, self._write = _stopped(self._head), _stopped(self._write)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timeout for reading the response."""
        super().pause_writing()
        self._write = self._write or self.loop.call_later(WRITE_SECONDS, self.close)

    def resume_writing(self) -> None:
        """Cancel the timeout."""
        self._write = _stopped(self._write)
        super().resume_writing()

    def close(self) -> None:
        """Close the connection without sending what is buffered."""
        self.transport.abort()

    def _start_head(self) -> None:
        self._head = self._head or self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head = None
        if self.is_waiting:
            self.close()


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel *timer* if there is one; return None, in place of it."""
    if timer is not None:
        timer.cancel()
    return None


def connection_limit() -> int:
    """Return the maximum number of client connections."""
    try:
        import resource
    except ImportError:  # Windows
        return CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(8, min(CONNECTIONS, soft // 2))

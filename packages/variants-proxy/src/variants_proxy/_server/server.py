"""The HTTP server: uvicorn with limits for clients and for the time a shutdown takes.

uvicorn closes idle connections between requests, but has no timeout for the rest of a request and
for a client that does not read its response. So a connection has limits for slow clients, and there
is one for the number of connections.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from pep_variants import safe_files
from pep_variants.errors import printable
from pep_variants.safe_files import NotPrivate

from ..settings import Settings

if sys.platform != "win32":
    import resource


if TYPE_CHECKING:
    from starlette.types import ASGIApp


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
    if sys.platform == "win32":
        return CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(8, min(CONNECTIONS, soft // 2))


IDLE_SECONDS: Final = 5
"""Keep-alive timeout between two requests; uv and pip send the next one immediately."""

GRACE: Final = 1
"""Seconds for requests in progress when the server shuts down."""

LAST: Final = 1.9
"""Seconds after which a shutdown ends the process, whatever requests wait for."""


class LimitedServer(Server):
    """A server that shuts down within two seconds, whatever its requests wait for."""

    _bounded = False

    def run_until_signal(self, listening: socket.socket) -> None:
        """Serve at *listening* until SIGTERM or SIGINT."""
        # uvicorn raises the signal again when it has shut down.
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)
        self.run(sockets=[listening])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down because of a signal."""
        self.end()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Finish the requests in progress and shut down; safe to call from any thread."""
        self.should_exit = True
        if not self._bounded:
            self._bounded = True
            threading.Thread(target=_end_process, daemon=True).start()


def _end_process() -> None:
    time.sleep(LAST)
    os._exit(0)


def limited_config(application: Callable[..., object], *, access_log: bool = False) -> Config:
    """Return uvicorn's configuration for *application*."""
    return Config(
        application,
        http=LimitedProtocol,
        loop="asyncio",
        log_config=None,
        access_log=access_log,
        lifespan="on",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=IDLE_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws="none",
    )


def _as_logged(record: logging.LogRecord) -> bool:
    """Make a line of uvicorn's access log text, without the query, which may contain secrets.

    The address of the client is what ``X-Forwarded-For`` of a reverse proxy says.
    """
    if isinstance(record.args, tuple):
        client, method, path, *rest = record.args
        path = str(path).partition("?")[0]
        record.args = (*(printable(str(text)) for text in (client, method, path)), *rest)
    return True


def make_server(
    settings: Settings,
    *,
    middleware: Callable[[ASGIApp], ASGIApp] | None = None,
    access_log: bool = False,
) -> LimitedServer:
    """Return the server of the proxy for *settings*; its ``run(sockets=[…])`` serves.

    Args:
        settings: of the proxy.
        middleware: wraps the ASGI application.
        access_log: write one line for each request to stderr, without its query.
    """
    try:
        # Where others can write, the cache itself says that it is not used.
        with suppress(NotPrivate):
            safe_files.make_private(settings.cache)
    except OSError as error:
        print(
            f"{settings.cache}: the cache directory cannot be written ({error.strerror}): "
            "running without a cache",
            file=sys.stderr,
        )
    handler = logging.StreamHandler()
    handler.setLevel("INFO")
    logging.basicConfig(handlers=[handler], level="WARNING", format="%(asctime)s %(message)s")
    access = logging.getLogger("uvicorn.access")
    access.setLevel("INFO")
    access.addFilter(_as_logged)
    from .app import create_app  # 110 ms, which uv-variants does without

    application: ASGIApp = create_app(settings)
    if middleware is not None:
        application = middleware(application)
    return LimitedServer(limited_config(application, access_log=access_log))

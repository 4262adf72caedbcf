"""The HTTP server: uvicorn with limits for clients and for the time a shutdown takes."""

from __future__ import annotations

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

from pep_variants.internal import NotPrivate, make_private

from ..settings import Settings
from .connections import HEAD_BYTES, LimitedProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

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


def limited_config(application: Callable[..., object]) -> Config:
    """Return uvicorn's configuration for *application*."""
    return Config(
        application,
        http=LimitedProtocol,
        loop="asyncio",
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=IDLE_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws="none",
    )


def make_server(
    settings: Settings,
    *,
    middleware: Callable[[ASGIApp], ASGIApp] | None = None,
) -> LimitedServer:
    """Return the server of the proxy for *settings*; its ``run(sockets=[…])`` serves.

    Args:
        settings: of the proxy.
        middleware: wraps the ASGI application.
    """
    from .app import create_app  # what uses `limited_config` may have no application yet

    try:
        # Where others can write, the cache itself says that it is not used.
        with suppress(NotPrivate):
            make_private(settings.cache)
    except OSError as error:
        print(
            f"{settings.cache}: the cache directory cannot be written ({error.strerror}): "
            "running without a cache",
            file=sys.stderr,
        )
    logging.basicConfig(
        stream=sys.stderr,
        level="INFO" if settings.access_log else "WARNING",
        format="%(message)s",
    )
    application: ASGIApp = create_app(settings)
    if middleware is not None:
        application = middleware(application)
    return LimitedServer(limited_config(application))

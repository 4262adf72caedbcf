"""The process of a shim: what it is told comes in on standard input, then it serves.

It ends when standard input ends: whoever started it holds the other side, and cannot leave
without letting go of it, not even when killed. Nobody but this module imports what a server needs.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

GRACE = 3.0
"""Seconds that requests have to end when the shim does."""


def main() -> None:
    """Serve until standard input ends or a signal comes."""
    # What takes longest, while whoever started this finds out what it has to do.
    import uvicorn  # noqa: F401
    from uvicorn.protocols.http import auto  # noqa: F401

    from .shim import app  # noqa: F401

    told = sys.stdin.buffer.readline()
    if told:
        serve(json.loads(told))
    # Threads that still wait for an upstream have nothing left to say.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def serve(told: Mapping[str, Any], ready: Callable[[], None] | None = None) -> None:
    """Serve until a signal comes or, if it is tied to it, standard input ends.

    Args:
        told: settings (see `told`), and ``token``, ``only`` and ``forward`` (see `gate.Rules`),
            ``socket`` and ``tied``.
        ready: called when requests are answered.

    Raises:
        InvalidSetting: one of the settings makes no sense.
    """
    import uvicorn

    from .gate import Gate, Rules
    from .shim import create_app
    from .told import settings_of

    settings = settings_of(told)
    settings.cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    def client() -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(
            follow_redirects=False, timeout=httpx.Timeout(60.0), trust_env=True
        )

    rules = Rules(
        told["token"],
        {name: frozenset(projects) for name, projects in told["only"].items()},
        told["forward"],
    )
    logging.basicConfig(
        stream=sys.stderr,
        level="INFO" if settings.access_log else "WARNING",
        format="%(message)s",
    )
    server = uvicorn.Server(
        uvicorn.Config(
            Gate(create_app(settings), rules, client),
            log_config=None,
            access_log=False,
            lifespan="on",
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=int(GRACE),
            ws="none",
        )
    )
    if told["tied"]:
        threading.Thread(target=_watch, args=(server,), daemon=True).start()
    if ready is not None:
        ready()
    server.run(sockets=[_socket(told["socket"])])


def _socket(listening: object) -> socket.socket:
    if isinstance(listening, int):
        return socket.socket(fileno=listening)
    assert isinstance(listening, str)
    import base64

    # Only Windows has it, where sockets cannot be inherited like files.
    return socket.fromshare(base64.b64decode(listening))  # type: ignore[attr-defined, no-any-return]


def _watch(server: Any) -> None:  # noqa: ANN401
    """Wait for the end of standard input, then stop *server*, gently and soon."""
    while os.read(0, 4096):
        pass
    server.should_exit = True


if __name__ == "__main__":
    main()

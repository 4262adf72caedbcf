"""The proxy process: reads its settings from standard input, then serves.

It ends when standard input ends: the command that started it holds the other end of the pipe,
which the system closes even if the command is killed.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variants_proxy import Settings
    from variants_proxy.server import LimitedServer

    from .http_proxy import Rules


def main() -> None:
    """Serve until standard input ends or a signal comes."""
    # Imports take longest; meanwhile the command finds out the settings.
    from variants_proxy import server  # noqa: F401
    from variants_proxy.log_lines import NOTICES_LOGGER

    from .http_proxy import Rules
    from .proxy_messages import read_settings

    line = sys.stdin.buffer.readline()
    if line:
        message = json.loads(line)
        projects = {name: frozenset(names) for name, names in message["projects"].items()}
        rules = Rules(message["token"], projects, forward=True)
        proxy = proxy_server(read_settings(message), rules)
        logging.getLogger(NOTICES_LOGGER).setLevel("INFO")
        threading.Thread(target=_stop_at_end_of_input, args=(proxy,), daemon=True).start()
        proxy.run(sockets=[_socket(message["socket"])])
    # Threads that still wait for an upstream have no client any more.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def proxy_server(
    settings: Settings, rules: Rules, ended: Callable[[], None] | None = None
) -> LimitedServer:
    """Return the server of an index proxy that uv reaches as an HTTP proxy.

    Args:
        settings: of the index proxy.
        rules: who may send which requests.
        ended: called before the process exits, if requests do not finish in time.
    """
    from variants_proxy.server import make_server

    from .http_proxy import HttpProxyMiddleware

    return make_server(
        settings, middleware=lambda app: HttpProxyMiddleware(app, rules), ended=ended
    )


def _socket(listening: object) -> socket.socket:
    if isinstance(listening, int):
        return socket.socket(fileno=listening)
    assert isinstance(listening, str)
    import base64

    # On Windows, which inherits no sockets.
    return socket.fromshare(base64.b64decode(listening))  # type: ignore[attr-defined, no-any-return]


def _stop_at_end_of_input(server: LimitedServer) -> None:
    while os.read(0, 4096):
        pass
    server.end()


if __name__ == "__main__":
    main()

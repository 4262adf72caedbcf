"""The listening socket, apart from the server: clients bind it before they import a server."""

from __future__ import annotations

import os
import socket

LOOPBACK = "127.0.0.1"
PORT = 4825
"""Default port of a proxy that keeps running."""

_BACKLOG = 512


def listen(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Return a socket that listens at *host* and *port*, by default at a free port.

    Raises:
        OSError: the address is in use, or not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol: asyncio sets TCP_NODELAY only for sockets that have it, and without it
    # each response is 40 ms late.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if os.name != "nt":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def is_wildcard(host: str) -> bool:
    """Return whether *host* stands for all addresses of the machine."""
    return host in ("0.0.0.0", "::")  # noqa: S104

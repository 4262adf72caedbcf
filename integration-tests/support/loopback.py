"""Servers on loopback, in a thread of this process."""

from __future__ import annotations

import http.server
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any


class _Server(http.server.ThreadingHTTPServer):
    """One that says nothing of clients that go away or refuse its certificate."""

    request_queue_size = 128  # of http.server 5: more connections at once wait for a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handler: Callable[..., Any], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer requests with *handler* (as of `http.server`); yield the URL, without a slash.

    With *tls* it is an HTTPS server.
    """
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        # In the thread of the connection: a client that goes away must not end the server.
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served_folder(folder: Path) -> Iterator[str]:
    """Serve the files in *folder*; yield the URL, with a slash."""
    with serving(partial(_Quiet, directory=str(folder))) as url:
        yield f"{url}/"

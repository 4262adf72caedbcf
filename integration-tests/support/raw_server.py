"""A server that sends bytes as they are, for answers that no HTTP library would make."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from contextlib import contextmanager

from .loopback import serving


@contextmanager
def sending(parts):
    """Yield the URL of a server that answers every request with what *parts* (a call) yields."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError):
                self.request.recv(65536)
                for part in parts():
                    if ended.is_set():
                        return
                    self.request.sendall(part)

    with serving(Handler) as url:
        try:
            yield url
        finally:
            ended.set()


def got(asking, url, way):
    """Return what is at *url*, in one of the ways that sessions have."""
    if way == "part":
        part = asking.fetch_range(url, 0, 2**20)
        return part and part.data
    if way == "stream":
        with asking.stream(url) as chunks:
            return b"".join(chunks)
    return asking.fetch(url, limit=2**20).body

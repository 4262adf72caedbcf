"""Servers on loopback, in a thread of this process."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any


@contextmanager
def serving(handler: Callable[..., Any]) -> Iterator[str]:
    """Answer requests with *handler* (as of `http.server`); yield the URL, without a slash."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
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

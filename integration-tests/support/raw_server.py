"""A server that sends bytes as they are, for answers that no HTTP library would make."""

from __future__ import annotations

import contextlib
import socket
import threading
from contextlib import contextmanager


@contextmanager
def sending(parts):
    """Yield the URL of a server that answers every request with what *parts* (a call) yields."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()
    threads = []

    def answer(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for part in parts():
                if ended.is_set():
                    return
                connection.sendall(part)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                if ended.is_set():
                    connection.close()
                    return
                thread = threading.Thread(target=answer, args=(connection,), daemon=True)
                threads.append(thread)
                thread.start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    port = listener.getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        ended.set()
        # Closing a socket does not wake up who waits in accept().
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
        listener.close()
        accepting.join()
        for thread in threads:
            thread.join()


def got(asking, url, way):
    """Return what is at *url*, in one of the ways that sessions have."""
    if way == "part":
        part = asking.fetch_range(url, 0, 2**20)
        return part and part.data
    if way == "stream":
        with asking.stream(url) as chunks:
            return b"".join(chunks)
    return asking.fetch(url, limit=2**20).body

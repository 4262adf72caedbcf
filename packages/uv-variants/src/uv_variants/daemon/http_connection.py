"""Requests to a process of the user on loopback, with nothing imported but sockets.

`http.client` imports `email` and `ssl`, which takes longer than all requests of a command.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress

from variants_proxy.server.listening import LOOPBACK

_LINE = 64 * 1024
_MOST_HEADERS = 100


class HttpConnection:
    """One connection; it is not made again when the other side closes it."""

    def __init__(self, port: int, *, seconds: float, limit: int) -> None:
        """Connect.

        Args:
            port: of loopback.
            seconds: timeout for connecting and for each response.
            limit: the most bytes of the body of a response.

        Raises:
            OSError: nothing listens there.
        """
        self._limit = limit
        # Not `create_connection`: to resolve a name it imports the tables of IDNA.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        try:
            self._socket.connect((LOOPBACK, port))
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")

    def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, bytes]:
        """Return status and body of the response; of a body without length its first chunk.

        Args:
            method: of the request.
            target: path and query.
            headers: of the request, besides those for host and length.
            body: of the request.

        Raises:
            OSError: the connection is lost.
            ValueError: the response is no HTTP, or too long.
        """
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join((*lines, "", "")).encode() + body)
        return self._response()

    def wait_for_end(self) -> None:
        """Return when the other side closes the connection, or `interrupt` is called."""
        self._socket.settimeout(None)
        with suppress(OSError, ValueError):
            while self._file.read(1):
                pass

    def interrupt(self) -> None:
        """End the connection, from any thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def _response(self) -> tuple[int, bytes]:
        version, _, rest = self._line().partition(b" ")
        if not version.startswith(b"HTTP/1.1") or not rest[:3].isdigit():
            raise ValueError("no answer of HTTP")
        headers: dict[bytes, bytes] = {}
        while line := self._line():
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
            if len(headers) > _MOST_HEADERS:
                raise ValueError("the answer has too many headers")
        if headers.get(b"transfer-encoding") == b"chunked":
            size = int(self._line().partition(b";")[0], 16)
        else:
            size = int(headers.get(b"content-length", b"0"))
        if not 0 <= size <= self._limit:
            raise ValueError("the answer is too long")
        body = self._file.read(size)
        if len(body) < size:
            raise ConnectionAbortedError("the connection was closed")
        return int(rest[:3]), body

    def _line(self) -> bytes:
        line = self._file.readline(_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionAbortedError("the connection was closed")
        return line.rstrip(b"\r\n")

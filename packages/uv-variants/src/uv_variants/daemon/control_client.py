"""Requests to the daemon, with nothing imported but sockets.

Before the secret is sent, the other side has to answer a challenge with it: the port may be another
program's by now.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pep_variants.limits import LOCK_BYTES
from variants_proxy.listening import LOOPBACK

from .tokens import is_equal, new_id, proof

_LINE = 64 * 1024


class NoDaemon(Exception):
    """Nothing answers at the port, or something else does."""


class Refused(Exception):
    """The daemon answers that it does not do this.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class ControlClient:
    """One connection to a daemon, which has proved that it is one."""

    def __init__(self, port: int, secret: str, *, seconds: float) -> None:
        """Connect, and challenge the other side.

        Args:
            port: of loopback.
            secret: of the daemon.
            seconds: timeout for connecting and for each answer.

        Raises:
            NoDaemon: it is no daemon with this secret.
        """
        self._secret = secret
        try:
            self._socket = socket.create_connection((LOOPBACK, port), timeout=seconds)
        except OSError as error:
            raise NoDaemon(f"port {port}: {error.strerror or error}") from None
        self._file = self._socket.makefile("rb")
        try:
            nonce = new_id()
            self._send("GET", f"/health?nonce={nonce}", None, with_secret=False)
            status, body = self._answer()
            answer = json.loads(body) if status == 200 else {}
            given = answer.get("proof") if isinstance(answer, dict) else None
            if not isinstance(given, str) or not is_equal(given, proof(secret, nonce)):
                raise NoDaemon(f"port {port}: another program listens there")
        except (OSError, ValueError) as error:
            self.close()
            raise NoDaemon(f"port {port}: {error}") from None
        except NoDaemon:
            self.close()
            raise

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Return the JSON that the daemon answers.

        Raises:
            Refused: it answers with an error.
            NoDaemon: the connection is lost.
        """
        try:
            self._send(method, path, body)
            status, answer = self._answer()
            if status != 200:
                raise Refused(status, answer.decode("utf-8", "replace").strip())
            return json.loads(answer)
        except (OSError, ValueError) as error:
            raise NoDaemon(str(error)) from None

    def wait_for_end(self) -> None:
        """Return when the daemon closes the connection, or `interrupt` is called."""
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

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, with_secret: bool = True
    ) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}"]
        if with_secret:
            lines.append(f"Authorization: Bearer {self._secret}")
        self._socket.sendall("\r\n".join((*lines, "", "")).encode() + data)

    def _answer(self) -> tuple[int, bytes]:
        """Return status and body; of a body without length its first chunk, which stays open."""
        version, _, rest = self._line().partition(b" ")
        if not version.startswith(b"HTTP/1.1") or not rest[:3].isdigit():
            raise ValueError("no answer of HTTP")
        headers = {}
        while line := self._line():
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        if headers.get(b"transfer-encoding") == b"chunked":
            size = int(self._line().partition(b";")[0], 16)
        else:
            size = int(headers.get(b"content-length", b"0"))
        if size > LOCK_BYTES:
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

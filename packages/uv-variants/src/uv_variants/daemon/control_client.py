"""Requests to the daemon.

Before the secret is sent, the other side has to answer a challenge with it: the port may be another
program's by now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pep_variants.limits import LOCK_BYTES

from .http_connection import HttpConnection
from .tokens import is_equal, new_id, proof


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
            self._connection = HttpConnection(port, seconds=seconds, limit=LOCK_BYTES)
        except OSError as error:
            raise NoDaemon(f"port {port}: {error.strerror or error}") from None
        try:
            nonce = new_id()
            status, body = self._connection.request("GET", f"/health?nonce={nonce}", {})
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
            data = b"" if body is None else json.dumps(body).encode()
            secret = {"Authorization": f"Bearer {self._secret}"}
            status, answer = self._connection.request(method, path, secret, data)
            if status != 200:
                raise Refused(status, answer.decode("utf-8", "replace").strip())
            return json.loads(answer)
        except (OSError, ValueError) as error:
            raise NoDaemon(str(error)) from None

    def wait_for_end(self) -> None:
        """Return when the daemon closes the connection, or `interrupt` is called."""
        self._connection.wait_for_end()

    def interrupt(self) -> None:
        """End the connection, from any thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

"""Connections of clients: who asks, and what for."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from .authority import Authority
from .route import Application, Route


class Transport:
    """An HTTP proxy at sockets of loopback; one event loop serves all sessions."""

    def __init__(
        self,
        authority: Authority,
        sessions: Callable[[str, str], Route | None],
        direct: Application,
    ) -> None:
        """Set up.

        Args:
            authority: signs the certificates for hosts of indexes.
            sessions: from id and token to the route of a session, None for wrong ones. Called for
                every request, compares in constant time.
            direct: answers requests for the port itself, as for a web server; it checks
                ``Authorization`` itself.
        """
        self._authority = authority
        self._sessions = sessions
        self._direct = direct

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Serve at *sockets*, which listen, until `close` or cancelled."""
        raise NotImplementedError

    def close(self) -> None:
        """End serving: no new connections; those in progress get a second. From the loop only."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        """Whether no connection is open."""
        raise NotImplementedError

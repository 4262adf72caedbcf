"""What a command has of this package once uv asks for something."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from .authority import Authority
from .forwarding import Forwarder
from .index_application import AnsweredIndex, IndexApplication
from .route import Application, Outbound, Route
from .server import Transport


class Interception:
    """Answers for the indexes of one command, and passes everything else on."""

    def __init__(
        self,
        authority: Authority,
        token: str,
        indexes: Sequence[AnsweredIndex],
        service: Callable[[str, str], Application],
        outbound: Outbound,
        refused: Callable[[str], None],
        may_keep: Callable[[str], bool],
    ) -> None:
        """Set up.

        Args:
            authority: whose certificate uv trusts.
            token: that uv sends as its password.
            indexes: that are answered.
            service, may_keep: see `IndexApplication`.
            outbound: the user's own way to other hosts.
            refused: gets, as one line each, why uv did not get something.
        """
        forwarder = Forwarder()
        self._application = IndexApplication(
            indexes, service, outbound, forwarder, refused, may_keep
        )
        route = Route(self._application.hosts, self._application, outbound, refused)
        self._transport = Transport(authority, token, route, forwarder)

    @property
    def asked(self) -> frozenset[str]:
        """The projects (normalized names) whose pages uv asked for."""
        return frozenset(self._application.asked)

    async def serve(self, listening: socket.socket) -> None:
        """Serve at *listening* until `close`."""
        await self._transport.serve(listening)

    def close(self) -> None:
        """End serving; from the event loop only."""
        self._transport.close()

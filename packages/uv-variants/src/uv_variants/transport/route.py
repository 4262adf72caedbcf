"""What a session's requests lead to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .outbound import Outbound

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Origin = tuple[str, str, int]
"""Scheme, host (lower case, no brackets) and port."""

PORTS = {"http": 80, "https": 443}


def _ignored(_: str) -> None:
    pass


@dataclass(frozen=True)
class Route:
    """The way of a session's requests.

    Attributes:
        hosts: origins that `application` answers.
        application: gets scopes whose scheme, server, path and query are those of the URL that the
            client asked for, and the session's id as ``scope["state"]["session"]``.
        outbound: the way to all other hosts.
        failed: gets, as one line each, what the client could not be said: uv does not show the
            body of a response to CONNECT.
    """

    hosts: frozenset[Origin]
    application: Application
    outbound: Outbound
    failed: Callable[[str], None] = _ignored


def origin(url: str) -> Origin | None:
    """Return the origin of *url*, None if it is not a valid URL of http or https."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").lower()
        host = host.encode("idna").decode() if not host.isascii() else host
    except ValueError:
        return None
    if parts.scheme not in PORTS or not host:
        return None
    return parts.scheme, host, port or PORTS[parts.scheme]

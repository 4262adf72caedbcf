"""The listening side of the daemon: an HTTP proxy that answers for the indexes of a session.

`Transport` takes connections and checks who asks. For the hosts of a session's indexes (`Route`)
it ends TLS itself, with certificates of an `Authority` that only uv's children trust, and has the
requests answered by the session's application (`index_application`); for all other hosts it passes
bytes on, the way that the user's own proxy variables say (`Outbound`).
"""

from __future__ import annotations

from .authority import Authority
from .forwarding import Forwarder
from .index_application import AnsweredIndex, IndexApplication
from .outbound import Outbound
from .route import Application, Origin, Route
from .server import Transport
from .upstream_credentials import with_authorization

__all__ = [
    "AnsweredIndex",
    "Application",
    "Authority",
    "Forwarder",
    "IndexApplication",
    "Origin",
    "Outbound",
    "Route",
    "Transport",
    "with_authorization",
]

"""The daemon that uv talks to: one process per user, with one session per uv command.

`connect` is all that a command needs; it starts the daemon if there is none.

The modules of the proxy that belongs to one command (`connection`, `proxy_process`,
`server_process`, `proxy_messages`, `http_proxy`, `address`) go away with the rewriting of uv's
arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .session import Session, SessionSettings


def connect(
    environ: Mapping[str, str], settings: SessionSettings, *, at_once: bool = True
) -> Session:
    """Return a new session of the user's daemon, which is started if there is none.

    Args:
        environ: environment variables of the user.
        settings: of the session.
        at_once: uv is going to ask an index; otherwise a daemon that does not run yet is started
            only when uv connects, which may be never.

    Raises:
        ProxyFailed: no daemon can be started.
    """
    from .own_process import OwnProcessSession

    return OwnProcessSession(environ, settings, at_once=at_once)

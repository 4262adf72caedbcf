"""The daemon that uv talks to: one process per user, with one session per uv command.

`connect` is all that a command needs; it starts the daemon if there is none. In the command run
`connection` (the session), `place` and `launch` (starting a daemon), `control_client`, `record`,
`tokens` and `identity`: they import no server and no HTTP client. In the daemon run `process`,
`server`, `sessions`, `services` and `control`; `uv_variants.transport` takes its connections.

`background`, `state_file` and `serve_token` are of the proxy of ``uv-variants serve``, for plain
uv. `overview` describes and ends what runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .connection import LiveSession
    from .session import SessionSettings


def connect(
    environ: Mapping[str, str],
    settings: SessionSettings,
    *,
    at_once: bool = True,
    warn: Callable[[str], None] | None = None,
) -> LiveSession:
    """Return a new session of the user's daemon, which is started if there is none.

    Args:
        environ: environment variables of the user.
        settings: of the session.
        at_once: uv is going to ask an index; otherwise a daemon that does not run yet is started
            only when uv connects, which may be never.
        warn: prints that the user's daemon cannot be used, and why; this command then gets one of
            its own.

    Raises:
        ProxyFailed: no daemon can be started, or the settings are not valid.
    """
    from uv_variants.errors import ProxyFailed

    from .connection import LiveSession
    from .control_client import Refused
    from .place import DaemonPlace, OwnPlace
    from .record import VARIABLE, idle_seconds

    if idle_seconds(environ) > 0:
        place = DaemonPlace(environ)
        session = LiveSession(environ, place, settings)
        try:
            session.open(at_once=at_once)
        except OSError as error:
            if warn is not None:
                warn(
                    f"{error.filename or place.folder}: {error.strerror or error}: this command "
                    f"runs an index proxy of its own; set {VARIABLE} to a writable directory"
                )
        except Refused as error:
            if error.status != 429:
                raise ProxyFailed(str(error)) from None
        else:
            return session
    try:
        session = LiveSession(environ, OwnPlace(environ), settings)
        session.open(at_once=True)
    except OSError as error:
        raise ProxyFailed(
            f"{error.filename or 'the index proxy'}: {error.strerror or error}: "
            "the index proxy cannot be started"
        ) from None
    except Refused as error:
        raise ProxyFailed(str(error)) from None
    return session

"""The ASGI application, and connections of its server with limits for slow clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._server.server import LimitedProtocol, connection_limit, limited_config

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .settings import Settings

__all__ = ["LimitedProtocol", "connection_limit", "create_app", "limited_config"]


def create_app(settings: Settings) -> Starlette:
    """Return the ASGI application for *settings* (see `variants_proxy.urls` for its paths).

    It has no state but caches: any number can run beside each other and stop at any time.
    """
    # 110 ms, which a server with an application of its own does without.
    from ._server import app

    return app.create_app(settings)

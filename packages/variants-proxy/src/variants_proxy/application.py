"""The ASGI application and its server."""

from ._server.app import create_app
from ._server.server import LimitedProtocol, connection_limit, limited_config

__all__ = ["LimitedProtocol", "connection_limit", "create_app", "limited_config"]

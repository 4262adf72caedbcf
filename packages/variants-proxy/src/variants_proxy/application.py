"""The ASGI application and its server."""

from ._server.app import create_app
from ._server.server import LimitedProtocol, connection_limit, limited_config
from ._simple_repository import VariantSelected

__all__ = ["LimitedProtocol", "VariantSelected", "connection_limit", "create_app", "limited_config"]

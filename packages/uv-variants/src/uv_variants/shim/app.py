"""The application: which path is answered by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from .settings import Settings


def create_app(settings: Settings) -> Starlette:
    """Return the index shim for *settings*, an ASGI application (see `urls` for its paths).

    It is stateless but for its caches: any number may run beside each other, and stop at any time.
    """

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "upstreams": len(settings.upstreams)})

    return Starlette(routes=[Route("/health", health)])

"""ASGI middleware: refuses invalid requests, adds headers, asks for a token.

Basic authentication carries the platform key as the user name and the token as the password.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from .._headers import SECURITY_HEADERS, for_one_client
from ..settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_METHODS = ("GET", "HEAD")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{0,5})?")


class RequestMiddleware:
    """The middleware of every request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._any_host = "*" in settings.hosts
        self._hosts = frozenset(name.lower() for name in (*_LOOPBACK, *settings.hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                missing = [header for header in SECURITY_HEADERS if header[0] not in own]
                message = {**message, "headers": [*message["headers"], *missing]}
            await send(message)

        is_keyed = scope["path"].startswith(("/simple/", "/i/", "/variants/"))
        answer = varying(sending) if is_keyed else sending
        await (self._refused(scope) or self._app)(scope, receive, answer)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        """Return the response to an invalid request, None for a valid one."""
        headers = Headers(scope=scope)
        host = _HOST.fullmatch(headers.get("host", "").lower())
        if not self._any_host and (host is None or host[1] not in self._hosts):
            # DNS rebinding: a page in a browser must not read this address under another name.
            return _refusal(421, "Unknown host name: add it to the proxy's hosts (--name).\n")
        if scope["method"] not in _METHODS:
            return _refusal(405, "Only GET and HEAD are supported.\n")
        if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
            return _refusal(400, "Requests must not have a body.\n")
        return None


def _refusal(status: int, text: str) -> PlainTextResponse:
    headers = {"Cache-Control": "no-store", "Connection": "close"}
    return PlainTextResponse(text, status, headers)


_AUTHORIZATION = b"authorization"


class TokenMiddleware:
    """ASGI middleware that answers 401 to requests without the token, except for ``/health``.

    The user name of the others is ``scope["state"]["user"]``.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._app(scope, receive, send)
            return
        user, secret = _credentials(scope["headers"])
        if not (self._token and hmac.compare_digest(secret, self._token.encode())):
            refused = unauthorized("401: missing or wrong proxy token\n")
            await refused(scope, receive, send)
            return
        kept = [item for item in scope["headers"] if item[0] != _AUTHORIZATION]
        state = {**scope.get("state", {}), "user": user}
        await self._app({**scope, "headers": kept, "state": state}, receive, varying(send))


def key_of_user(scope: Scope) -> str:
    """Return the platform key that is the user name, empty without one."""
    user: str | None = scope.get("state", {}).get("user")
    return _credentials(scope["headers"])[0] if user is None else user


def _credentials(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, bytes]:
    """Return user name and password, or the bearer token, of a request."""
    for key, value in headers:
        scheme, _, given = value.partition(b" ")
        if key != _AUTHORIZATION:
            continue
        if scheme.lower() == b"bearer":
            return "", given
        if scheme.lower() == b"basic":
            try:
                user, _, password = base64.b64decode(given, validate=True).partition(b":")
            except binascii.Error:
                return "", b""
            return user.decode("utf-8", "replace"), password
    return "", b""


def varying(send: Send) -> Send:
    """Return *send* for responses that depend on ``Authorization``."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": for_one_client(message["headers"])}
        await send(message)

    return sending


def unauthorized(text: str) -> PlainTextResponse:
    """Return the response to a request without the right credentials."""
    response = PlainTextResponse(text, 401, {"Cache-Control": "no-store"})
    response.raw_headers += [
        *SECURITY_HEADERS,
        (b"www-authenticate", b'Basic realm="variants-proxy"'),
    ]
    return response

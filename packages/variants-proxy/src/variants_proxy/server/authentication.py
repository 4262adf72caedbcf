"""Who asks: the token of the proxy, and the machine's key where one URL is for all machines.

Both are in ``Authorization``: a token as the password of HTTP Basic (RFC 7617) or as a bearer token
(RFC 6750), a platform key as the user name. Responses depend on it, see `for_one_client`.

uv removes user name and password from what it writes into a lock, so a lock that one machine makes
is the same on all others, and each gets its own variants when it asks for pages again. The files of
a lock are served for every key: they are what the lock says.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from ..headers import SECURITY_HEADERS, for_one_client

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_AUTHORIZATION = b"authorization"
Headers = Iterable[tuple[bytes, bytes]]


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
        if not _is_token(secret, self._token):
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


def _is_token(secret: bytes, token: str) -> bool:
    return bool(token) and hmac.compare_digest(secret, token.encode())


def _credentials(headers: Headers) -> tuple[str, bytes]:
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

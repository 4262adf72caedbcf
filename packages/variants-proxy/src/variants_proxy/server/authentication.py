"""Authentication by token: HTTP Basic (RFC 7617) with any user name, or Bearer (RFC 6750)."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..headers import SECURITY_HEADERS
from ..upstream.shared_caches import for_one_client

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REALM = "variants-proxy"


class Token:
    """The token that clients send; the empty one is not valid for any request."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def is_in(self, headers: Iterable[tuple[bytes, bytes]], name: bytes = b"authorization") -> bool:
        """Return whether one of the *headers* called *name* has the token."""
        return any(self._matches(value) for key, value in headers if key == name)

    def _matches(self, value: bytes) -> bool:
        scheme, _, given = value.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != b"bearer":
            return False
        return bool(self._token) and hmac.compare_digest(given, self._token)


def user_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the user name of HTTP Basic in ``Authorization``, empty without one."""
    for name, value in headers:
        scheme, _, given = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == b"basic":
            try:
                user = base64.b64decode(given, validate=True).partition(b":")[0]
            except binascii.Error:
                return ""
            return user.decode("utf-8", "replace")
    return ""


class TokenMiddleware:
    """ASGI middleware that answers 401 to requests without the token, except for ``/health``.

    The user name of the others is ``scope["state"]["user"]``.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = Token(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        if not self._token.is_in(headers):
            await send_unauthorized(send)
            return
        kept = [(name, value) for name, value in headers if name != b"authorization"]
        state = {**scope.get("state", {}), "user": user_of(headers)}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": for_one_client(message["headers"])}
            await send(message)

        await self._app({**scope, "headers": kept, "state": state}, receive, sending)


async def send_unauthorized(send: Send, *, proxied: bool = False) -> None:
    """Send the response to a request without the token.

    Args:
        send: of the ASGI connection.
        proxied: the request came to an HTTP proxy (407, not 401).
    """
    status = 407 if proxied else 401
    body = b"%d: missing or wrong proxy token\n" % status
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *SECURITY_HEADERS,
        (
            b"proxy-authenticate" if proxied else b"www-authenticate",
            f'Basic realm="{REALM}"'.encode(),
        ),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

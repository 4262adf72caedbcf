"""Who asks: the token of the proxy, and the machine's key where one URL is for all machines.

Both are in ``Authorization``: a token as the password of HTTP Basic (RFC 7617) or as a bearer token
(RFC 6750), a platform key as the user name. Responses depend on it, see `for_one_client`.

=====================================  ===========================================================
``/simple/``, ``/simple/<project>/``   the merged index
``/i/<index>/simple/…``                one upstream
``/i/<index>/links/``                  a find-links page
``/variants/<project>/``               decisions and their reasons, as JSON
``…/.variant/<label>/<name>``          a file, relative to its page; see `in_place_names`
=====================================  ===========================================================

uv removes user name and password from what it writes into a lock, so a lock that one machine makes
is the same on all others, and each gets its own variants when it asks for pages again. The files of
a lock are served for every key: they are what the lock says.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import PlainTextResponse, RedirectResponse

from pep_variants import Preferences, VariantError

from ..choice.clients import ClientSettings
from ..client.key import Machine, encode
from ..errors import InvalidKey
from ..headers import SECURITY_HEADERS, for_one_client

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..service import Service

HOW = (
    "the user name for this index is the platform key of your machine: use the URL that "
    "'variants-proxy url --keyed' prints on it"
)

_AUTHORIZATION = b"authorization"
Headers = Iterable[tuple[bytes, bytes]]

_PATH = re.compile(
    r"(?P<index>/i/[^/]+)?/(?P<kind>simple|links|variants)"
    r"(?:(?P<root>/?)|/(?P<project>[^/.][^/]*)(?P<slash>/?)"
    r"|(?:/(?P<owner>[^/.][^/]*))?/(?P<file>\.variant/[^/]+/[^/]+))"
)


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
            refused = _unauthorized("401: missing or wrong proxy token\n")
            await refused(scope, receive, send)
            return
        await self._app(_inner_scope(scope, user=user), receive, _varying(send))


class KeyedIndex:
    """ASGI middleware that finds the client in the user name.

    A request is passed on under a path with the name of a registered client, see `clients`. No page
    has such a path in it.
    """

    def __init__(self, app: ASGIApp, service: Service, *, anonymous: bool) -> None:
        """Set up.

        Args:
            app: the application of the proxy.
            service: of the proxy.
            anonymous: clients without a key get non-variant wheels; otherwise 401.
        """
        self._app = app
        self._clients = service.clients
        plain = Machine(preferences=Preferences(use_variants=False))
        self._default = encode(plain) if anonymous else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        match = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if match is None:
            await self._app(scope, receive, send)
            return
        if match["root"] == "" or match["slash"] == "":
            last = scope["path"].rpartition("/")[2]
            redirect = RedirectResponse(f"{quote(last)}/", 301, {"Cache-Control": "no-store"})
            await redirect(scope, receive, send)
            return
        user = scope.get("state", {}).get("user")
        key = (_credentials(scope["headers"])[0] if user is None else user) or self._default
        try:
            if not key:
                raise InvalidKey("there is none")
            client = self._clients.register(ClientSettings(key, shared=True))
        except (InvalidKey, VariantError) as error:
            refused = _unauthorized(f"{HOW} ({error})\n")
            await refused(scope, receive, send)
            return
        path = f"/p/{client}{_inner(match)}"
        inner = {**_inner_scope(scope), "path": path, "raw_path": quote(path).encode()}
        await self._app(inner, receive, _varying(send))


def _inner(match: re.Match[str]) -> str:
    """Return the path of the same page or file below ``/p/<client>``."""
    index = match["index"] or ""
    if match["file"]:
        owner = f"{match['owner']}/" if match["owner"] else ""
        return f"{index}/in-place/{owner}{match['file']}"
    if match["kind"] == "variants":
        return f"{index}/variants/{match['project'] or '-'}/"
    if match["project"]:
        return f"{index}/in-place/{match['project']}/"
    return f"{index}/in-place/" if match["kind"] == "links" else f"{index}/simple/"


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


def _inner_scope(scope: Scope, **state: str) -> Scope:
    """Return *scope* without ``Authorization``."""
    kept = [item for item in scope["headers"] if item[0] != b"authorization"]
    return {**scope, "headers": kept, "state": {**scope.get("state", {}), **state}}


def _varying(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": for_one_client(message["headers"])}
        await send(message)

    return sending


def _unauthorized(text: str) -> PlainTextResponse:
    response = PlainTextResponse(text, 401, {"Cache-Control": "no-store"})
    response.raw_headers += [
        *SECURITY_HEADERS,
        (b"www-authenticate", b'Basic realm="variants-proxy"'),
    ]
    return response

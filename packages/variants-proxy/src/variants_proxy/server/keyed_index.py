"""One index URL for all machines: the platform key is the user name of HTTP Basic.

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

A request is passed on under a path with the name of a registered client, see `clients`. No page has
such a path in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from pep_variants.choose.preferences import Preferences
from pep_variants.errors import VariantError

from ..choice.clients import ClientSettings
from ..client.key import Machine, encode
from ..errors import InvalidKey
from ..headers import SECURITY_HEADERS
from ..upstream.shared_caches import for_one_client
from .authentication import REALM, user_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..service import Service

HOW = (
    "the user name for this index is the platform key of your machine: use the URL that "
    "'uv-variants config --url' prints on it, or 'variants-proxy url --keyed'"
)

_PATH = re.compile(
    r"(?P<index>/i/[^/]+)?/(?P<kind>simple|links|variants)"
    r"(?:(?P<root>/?)|/(?P<project>[^/.][^/]*)(?P<slash>/?)"
    r"|(?:/(?P<owner>[^/.][^/]*))?/(?P<file>\.variant/[^/]+/[^/]+))"
)


class KeyedIndex:
    """ASGI middleware that finds the client in the user name."""

    def __init__(self, app: ASGIApp, service: Service, *, anonymous: bool) -> None:
        """Set up.

        Args:
            app: the application of the proxy.
            service: of the proxy.
            anonymous: clients without a key get non-variant wheels; otherwise 401.
        """
        self._app = app
        self._service = service
        self._anonymous = encode(Machine(preferences=Preferences(use_variants=False)))
        self._admits_anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        match = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if match is None:
            await self._app(scope, receive, send)
            return
        if match["root"] == "" or match["slash"] == "":
            last = scope["path"].rpartition("/")[2]
            await _send(send, 301, b"", (b"location", f"{quote(last)}/".encode()))
            return
        key = scope.get("state", {}).get("user")
        key = user_of(scope["headers"]) if key is None else key
        if not key and self._admits_anonymous:
            key = self._anonymous
        try:
            if not key:
                raise InvalidKey("there is none")
            client = self._service.clients.register(ClientSettings(key, shared=True))
        except (InvalidKey, VariantError) as error:
            challenge = (b"www-authenticate", f'Basic realm="{REALM}"'.encode())
            await _send(send, 401, f"{HOW} ({error})\n".encode(), challenge)
            return
        path = f"/p/{client}{_inner(match)}"
        kept = [item for item in scope["headers"] if item[0] != b"authorization"]
        state = {**scope.get("state", {}), "path": scope["path"]}  # for the access log
        inner = {
            **scope,
            "state": state,
            "path": path,
            "raw_path": quote(path).encode(),
            "headers": kept,
        }
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


def _varying(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": for_one_client(message["headers"])}
        await send(message)

    return sending


async def _send(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    common = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *SECURITY_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": body})

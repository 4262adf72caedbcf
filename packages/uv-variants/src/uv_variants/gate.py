"""Who may come in, and under which name: what stands before the index shim.

uv is told of an index at `RESERVED_HOST`, a name that no network knows, and to reach it through
an HTTP proxy, which is the shim: the URLs that uv caches and locks are the same on every machine
and at every port. Everything is refused that does not come with the token of this shim: another
user of the machine must not read indexes with somebody else's credentials.

A proxy is also asked for what is not the shim's: plain ``http`` URLs of other hosts are fetched
and handed on as they are.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from .address import RESERVED_HOST, USERNAME

if TYPE_CHECKING:
    import httpx

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_PROJECT_PAGE = re.compile(r"/p/[^/]+/i/(?P<index>[^/]+)/simple/(?P<project>[^/]+)/?")
# RFC 9110, 7.6.1; and what is between the client and this proxy alone.
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)


@dataclass(frozen=True)
class Rules:
    """What the gate goes by.

    Attributes:
        token: who comes has to know it; empty lets everybody in.
        only: by the name of an index, the projects it is there for (normalized names): it has no
            others. uv gets explicit indexes that way.
        forward: also be a proxy for other hosts.
    """

    token: str = field(default="", repr=False)
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    forward: bool = False


class Gate:
    """An ASGI application around the shim's."""

    def __init__(
        self,
        application: Application,
        rules: Rules,
        client: Callable[[], httpx.AsyncClient] | None = None,
    ) -> None:
        """Set up.

        Args:
            application: the shim's.
            rules: to go by.
            client: makes what fetches from other hosts.
        """
        self._application = application
        self._rules = rules
        self._make_client = client
        self._client: httpx.AsyncClient | None = None
        secret = f"{USERNAME}:{rules.token}".encode()
        self._accepted = (
            b"Basic " + base64.b64encode(secret),
            b"Bearer " + rules.token.encode(),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = scope["headers"]
        target = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        absolute = target.lower().startswith("http://")
        host = urlsplit(target).hostname if absolute else _host(headers)
        proxied = absolute or host == RESERVED_HOST
        kind = b"proxy-authorization" if proxied else b"authorization"
        if self._rules.token and scope["path"] != "/health" and not self._knows(headers, kind):
            await _refuse(send, proxied=proxied)
            return
        if absolute and host != RESERVED_HOST:
            await self._forward(scope, receive, send, target)
            return
        if absolute:
            path = target[len("http://") :].partition("/")[2]
            raw = "/" + path.partition("?")[0]
            scope = {**scope, "raw_path": raw.encode("latin-1"), "path": unquote(raw)}
        kept = [(name, value) for name, value in headers if name not in _private(proxied)]
        if proxied:
            kept.append((b"host", b"localhost"))
        page = _PROJECT_PAGE.fullmatch(scope["path"])
        only = self._rules.only.get(page["index"]) if page else None
        if page and only is not None and page["project"] not in only:
            await _answer(send, 404, b"this index is not for this project\n")
            return
        await self._application({**scope, "headers": kept}, receive, send)

    def _knows(self, headers: list[tuple[bytes, bytes]], kind: bytes) -> bool:
        given = [value for name, value in headers if name == kind]
        return any(
            hmac.compare_digest(value, accepted) for value in given for accepted in self._accepted
        )

    async def _forward(self, scope: Scope, receive: Receive, send: Send, url: str) -> None:
        """Fetch *url* as it is, and hand the answer on."""
        import httpx

        if not self._rules.forward or self._make_client is None:
            await _answer(send, 403, b"this shim is no proxy\n")
            return
        if self._client is None:
            self._client = self._make_client()

        async def body() -> Any:  # noqa: ANN401
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return
                yield message.get("body", b"")
                if not message.get("more_body", False):
                    return

        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP_BY_HOP]
        has_body = any(
            name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]
        )
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(
                    self._client.stream(
                        scope["method"], url, headers=headers, content=body() if has_body else None
                    )
                )
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                text = f"{urlsplit(url).hostname}: {type(error).__name__}\n"
                await _answer(send, 502, text.encode())
                return
            kept = [
                (name.lower(), value)
                for name, value in answer.headers.raw
                if name.lower() not in _HOP_BY_HOP
            ]
            await send(
                {"type": "http.response.start", "status": answer.status_code, "headers": kept}
            )
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def _private(proxied: bool) -> frozenset[bytes]:
    """Return the headers that were meant for the gate."""
    names = {b"proxy-authorization", b"proxy-connection", b"authorization"}
    return frozenset(names | {b"host"} if proxied else names)


def _host(headers: list[tuple[bytes, bytes]]) -> str:
    value = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
    return urlsplit(f"//{value}").hostname or ""


async def _refuse(send: Send, *, proxied: bool) -> None:
    name = b"proxy-authenticate" if proxied else b"www-authenticate"
    status = 407 if proxied else 401
    text = b"this shim belongs to somebody, and you do not know its token\n"
    await _answer(send, status, text, (name, b'Basic realm="uv-variants"'))


async def _answer(send: Send, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    common = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": text})

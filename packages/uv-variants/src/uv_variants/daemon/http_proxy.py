"""The ASGI middleware through which uv reaches the index proxy: an HTTP proxy with a token.

uv gets indexes at `RESERVED_HOST`, a name that does not resolve, and an HTTP proxy for it: URLs in
uv's cache and lock files are the same at every port and on every machine. All requests need the
token, because another user of the machine must not read indexes with the credentials of this one.

uv sends requests for other plain ``http`` hosts to its HTTP proxy as well: these are forwarded.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from variants_proxy.authentication import Token, send_unauthorized
from variants_proxy.headers import SECURITY_HEADERS

from .address import RESERVED_HOST

if TYPE_CHECKING:
    import httpx

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

FORWARD_SECONDS = 60.0
"""Timeout for each step of a request to another host."""

_PROJECT_PAGE = re.compile(r"/p/[^/]+/i/(?P<index>[^/]+)/simple/(?P<project>[^/]+)/?")
# RFC 9110, 7.6.1, and headers of HTTP proxies.
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
    """Who may send which requests.

    Attributes:
        token: password that clients have to send; empty for a proxy that is open to all.
        projects: projects (normalized names) of explicit indexes, by name; for other projects the
            index has no page.
        forward: forward requests for other hosts.
    """

    token: str = field(default="", repr=False)
    projects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    forward: bool = False


class HttpProxyMiddleware:
    """ASGI middleware around the application of the index proxy."""

    def __init__(
        self,
        application: Application,
        rules: Rules,
    ) -> None:
        """Set up.

        Args:
            application: of the index proxy.
            rules: who may send which requests.
        """
        self._application = application
        self._rules = rules
        self._client: httpx.AsyncClient | None = None
        self._token = Token(rules.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = scope["headers"]
        target = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        absolute = target.lower().startswith("http://")
        host = _host_of(target) if absolute else _host(headers)
        if host is None:
            await _answer(send, 400, b"400: the Host header is not valid\n")
            return
        proxied = absolute or host == RESERVED_HOST
        kind = b"proxy-authorization" if proxied else b"authorization"
        if (
            self._rules.token
            and scope["path"] != "/health"
            and not self._token.is_in(headers, kind)
        ):
            await send_unauthorized(send, proxied=proxied)
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
        projects = self._rules.projects.get(page["index"]) if page else None
        if page and projects is not None and page["project"] not in projects:
            await _answer(send, 404, b"no source of this project names this explicit index\n")
            return
        await self._application({**scope, "headers": kept}, receive, send)

    async def _forward(self, scope: Scope, receive: Receive, send: Send, url: str) -> None:
        """Forward the request to *url* and stream the response."""
        import httpx

        if not self._rules.forward:
            await _answer(send, 403, b"this server is not an HTTP proxy for other hosts\n")
            return
        if self._client is None:
            self._client = httpx.AsyncClient(
                follow_redirects=False, timeout=httpx.Timeout(FORWARD_SECONDS), trust_env=True
            )

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
    """Return the headers that are for this middleware."""
    names = {b"proxy-authorization", b"proxy-connection", b"authorization"}
    return frozenset(names | {b"host"} if proxied else names)


def _host(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Return the host of the ``Host`` header, empty without one, None if it is not valid."""
    value = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
    return _host_of(f"//{value}")


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # for brackets that are not an IPv6 address
        return None


async def _answer(send: Send, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    common = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        *SECURITY_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*common, *headers]})
    await send({"type": "http.response.body", "body": text})

"""ASGI middleware: validates requests, answers from memory, writes the access log.

Most requests are for pages in memory. They are answered before routing, so that one process serves
thousands in a second.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

from ..choice.clients import merges_versions
from ..headers import SECURITY_HEADERS
from ..settings import Settings
from ..upstream.lru import LRUCache
from ..upstream.metrics import Metrics
from ..upstream.responses import AnswerKey, CachedResponse, PageFormat, accepted_formats, wants_new

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

access = logging.getLogger("variants_proxy.access")

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_METHODS = ("GET", "HEAD")


class ProxyMiddleware:
    """The middleware of every request."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        answers: LRUCache[AnswerKey, CachedResponse],
    ) -> None:
        self._app = app
        self._any_host = "*" in settings.hosts
        self._hosts = frozenset(name.lower() for name in (*_LOOPBACK, *settings.hosts))
        self._metrics = metrics
        self._answers = answers
        self._log = settings.access_log
        self._accepts: dict[str, tuple[PageFormat, ...]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """CachedResponse, or have it answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        headers = dict(scope["headers"])
        refused = self._refused(scope, headers)
        if refused is not None:
            status, body = refused
            await _send(send, status, [*_PLAIN, (b"content-length", b"%d" % len(body))], body)
            self._note(scope, status, len(body), begun, begun)
            return
        answer = self._answers.get(
            (
                scope["path"],
                self._forms(headers.get(b"accept", b"").decode("latin-1")),
                merges_versions(headers.get(b"user-agent", b"").decode("latin-1")),
            )
        )
        if answer is not None and answer.expires > begun and not _wants_new(scope, headers):
            status, found, body = answer.response(
                headers.get(b"accept-encoding", b""), headers.get(b"if-none-match", b"")
            )
            if scope["method"] == "HEAD":
                body = b""
            await _send(send, status, found, body)
            self._note(scope, status, len(body), begun, begun)
            return
        await self._pass_on(scope, receive, send, begun)

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, bytes] | None:
        """Return status and body for an invalid request, None for a valid one."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if not self._any_host and name not in self._hosts:
            # DNS rebinding: a page in a browser must not read this address under another name.
            return 421, b"Unknown host name: add it to the proxy's hosts (--name).\n"
        if scope["method"] not in _METHODS:
            return 405, b"Only GET and HEAD are supported.\n"
        if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
            return 400, b"Requests must not have a body.\n"
        return None

    def _forms(self, accept: str) -> tuple[PageFormat, ...]:
        known = self._accepts.get(accept)
        if known is None:
            if len(self._accepts) > 256:  # clients send few different values
                self._accepts.clear()
            known = self._accepts[accept] = accepted_formats(accept)
        return known

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, begun: float) -> None:
        status = size = 0
        answered = begun

        async def noting(message: Message) -> None:
            nonlocal status, size, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], time.monotonic()
                own = {name.lower() for name, _ in message["headers"]}
                missing = [header for header in SECURITY_HEADERS if header[0] not in own]
                message = {**message, "headers": [*message["headers"], *missing]}
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ConnectionAbortedError:
            # The response must not end regularly; the server closes the connection.
            status = 599
        finally:
            self._note(scope, status or 500, size, begun, answered)

    def _note(self, scope: Scope, status: int, size: int, begun: float, answered: float) -> None:
        now = time.monotonic()
        self._metrics.request(status, (answered if answered > begun else now) - begun)
        if not self._log:
            return
        client = scope.get("client")
        access.info(
            json.dumps(
                {
                    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "client": client[0] if client else None,
                    "method": scope["method"],
                    # Without the query, which may contain secrets and is not used for pages.
                    "path": scope.get("state", {}).get("path", scope["path"]),
                    "status": status,
                    "bytes": size,
                    "ms": round((now - begun) * 1000, 2),
                }
            )
        )


def _wants_new(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    # Of in-place pages only, which stand in for an index's own.
    said = headers.get(b"cache-control")
    return said is not None and "/in-place/" in scope["path"] and wants_new(said.decode("latin-1"))


_PLAIN = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
    *SECURITY_HEADERS,
]


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

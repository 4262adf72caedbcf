"""Responses with files that pass through the proxy: streaming, ranges (RFC 9110, 14)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response

from pep_variants.errors import VariantError
from variants_index.errors import PackageIndexError

from ..errors import ANSWERED, ProxyError, UpstreamError
from ..projects.observations import report_abort
from ..upstream.metrics import Metrics
from ..upstream.upstreams import Upstreams
from ..wheels.transfers import Transfer, stream_all, stream_range
from .deliveries import Delivery

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


SHORT_SECONDS = 600
"""Lifetime of redirects and small files, whose URL may mean something else later."""


def transfer_response(
    request: Request, delivery: Delivery, transfer: Transfer, upstreams: Upstreams, metrics: Metrics
) -> Response:
    """Return the response that sends a file through the proxy, whole or the requested range."""
    session = upstreams.session(delivery.upstream)
    stream = partial(upstreams.budget(delivery.upstream).stream, transfer.file.url)
    headers = {
        "Content-Type": "application/octet-stream",
        "Cache-Control": cache_control(delivery, _lifetime(delivery, transfer)),
    }
    if transfer.name:
        headers["ETag"] = f'"{transfer.name}"'
        if _matches(request.headers.get("if-none-match", ""), headers["ETag"]):
            return Response(status_code=304, headers=headers)
    plan = transfer.rewrite
    chunks = stream_all(session, transfer, upstreams.store)
    if plan is None:
        return TransferResponse(stream(chunks), metrics, 200, headers)
    span = None
    if transfer.check is None:  # a range cannot be verified
        headers["Accept-Ranges"] = "bytes"
        span = _range(request, plan.size, headers.get("ETag", ""))
    if span is None:
        headers["Content-Length"] = str(plan.size)
        return TransferResponse(stream(chunks), metrics, 200, headers)
    start, end = span
    if start >= end:
        headers["Content-Range"] = f"bytes */{plan.size}"
        return Response(status_code=416, headers=headers)
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{plan.size}"
    headers["Content-Length"] = str(end - start)
    return TransferResponse(
        stream(stream_range(session, transfer, start, end)), metrics, 206, headers
    )


def _lifetime(delivery: Delivery, transfer: Transfer) -> int:
    if not transfer.name:
        return 0
    return 31536000 if delivery.lasting else SHORT_SECONDS


class TransferResponse(Response):
    """A streamed file.

    If it is not what its index promised, the connection is closed before the last chunk: the
    response is shorter than its ``Content-Length``, and the client discards it.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        metrics: Metrics,
        status: int,
        headers: dict[str, str],
    ) -> None:
        super().__init__(status_code=status, headers=headers)
        if "Content-Length" not in headers:
            del self.headers["content-length"]
        self._chunks = chunks
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the chunks."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        if scope["method"] == "HEAD":
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        problem: Exception | None = None
        begun = False

        async def pass_on() -> None:
            nonlocal problem, begun
            try:
                async with aclosing(self._chunks) as chunks:
                    async for chunk in chunks:
                        if not begun:
                            begun = True
                            await send(start)
                        message = {"type": "http.response.body", "body": chunk, "more_body": True}
                        await send(message)
            except (PackageIndexError, OSError, VariantError, ProxyError) as error:
                problem = error
            else:
                if not begun:
                    begun = True
                    await send(start)
                await send({"type": "http.response.body", "body": b""})
                if self.status_code == 200:
                    self._metrics.count("verified_wheels")
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            # Stop reading from the upstream when the client disconnects.
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()
        if problem is None:
            return
        self._metrics.count("broken_wheels")
        if not begun:
            raise problem if isinstance(problem, ANSWERED) else UpstreamError(str(problem))
        report_abort(scope, f"the transfer was aborted: {problem}")
        raise ConnectionAbortedError(str(problem))


def cache_control(delivery: Delivery, seconds: int) -> str:
    """Return ``Cache-Control`` of a response that may be kept for *seconds*."""
    if delivery.revalidated and (delivery.floating or seconds <= SHORT_SECONDS):
        return "no-cache"
    if delivery.floating:
        return "no-store"
    scope = "private" if delivery.private else "public"
    return f"{scope}, max-age={seconds}" + (", immutable" if seconds > 86400 else "")


def _matches(if_none_match: str, tag: str) -> bool:
    tags = (item.strip().removeprefix("W/") for item in if_none_match.split(","))
    return any(item in (tag, "*") for item in tags)


def _range(request: Request, size: int, tag: str) -> tuple[int, int] | None:
    """Return the requested range (RFC 9110, 14.2), None for the whole file; empty if invalid."""
    text = request.headers.get("range", "")
    unit, _, place = text.partition("=")
    condition = request.headers.get("if-range")
    if unit.strip().lower() != "bytes" or (condition is not None and condition != tag):
        return None
    first, dash, last = (item.strip() for item in place.partition("-"))
    if not dash or not all(
        item == "" or (item.isascii() and item.isdigit()) for item in (first, last)
    ):
        return None  # several ranges, or not a valid one
    if not first:
        return (max(0, size - int(last)), size) if last else None
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < int(first):
        return None
    return int(first), (end if int(first) < size else int(first))

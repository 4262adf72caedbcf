"""Responses with files that pass through the proxy: streaming, ranges (RFC 9110, 14)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from pep_variants import VariantError
from variants_index import PackageIndexError

from ..errors import ProxyError, UpstreamError
from ..headers import is_known
from ..projects.observations import report_abort
from ..upstream.upstreams import Upstreams
from ..wheels.transfers import Transfer, stream_all, stream_range
from .deliveries import Delivery

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


async def transfer_response(
    request: Request, delivery: Delivery, transfer: Transfer, upstreams: Upstreams
) -> Response:
    """Return the response that sends a file through the proxy, whole or the requested range.

    Raises:
        UpstreamError: it cannot be fetched.
        VariantError, UnusableFile: it is not what its index promised.
    """
    session = upstreams.session(delivery.upstream)
    headers = {
        "Content-Type": "application/octet-stream",
        "Cache-Control": delivery.cache_control,
    }
    if transfer.name:
        headers["ETag"] = f'"{transfer.name}"'
        if is_known(request.headers.get("if-none-match", ""), headers["ETag"]):
            return Response(status_code=304, headers=headers)
    plan, status = transfer.rewrite, 200
    chunks = stream_all(session, transfer, upstreams.store)
    if plan is not None:
        headers["Content-Length"] = str(plan.size)
        headers["Accept-Ranges"] = "bytes"
        span = _range(request, plan.size, headers.get("ETag", ""))
        if span is not None:
            start, end = span
            if start >= end:
                headers |= {"Content-Range": f"bytes */{plan.size}", "Content-Length": "0"}
                return Response(status_code=416, headers=headers)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{plan.size}"
            headers["Content-Length"] = str(end - start)
            status, chunks = 206, stream_range(session, transfer, start, end)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    stream = upstreams.budget(delivery.upstream).stream(chunks)
    try:
        first = await anext(stream, b"")
    except (PackageIndexError, OSError) as error:
        raise UpstreamError(str(error)) from None
    return _TransferResponse(_rest(request.scope, first, stream), status, headers)


class _TransferResponse(StreamingResponse):
    """A streamed file, which is not read any more when the client disconnects."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with aclosing(self.body_iterator):
            await super().__call__(scope, receive, send)


async def _rest(
    scope: Scope, first: bytes, stream: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield *first*, then *stream*.

    If the file is not what its index promised, *stream* ends before the last chunk: the response is
    shorter than its ``Content-Length``, and the client discards it.
    """
    async with aclosing(stream):
        try:
            yield first
            async for chunk in stream:
                yield chunk
        except (PackageIndexError, OSError, VariantError, ProxyError) as error:
            report_abort(scope, f"the transfer was aborted: {error}")
            raise ConnectionAbortedError(str(error)) from None


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

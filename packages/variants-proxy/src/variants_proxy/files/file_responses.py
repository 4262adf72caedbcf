"""Responses with files that pass through the proxy, as they are read.

They are sent whole: the hash of a part cannot be verified.
"""

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
from ..wheels.transfers import Transfer, stream_all
from .deliveries import Delivery

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send


async def transfer_response(
    request: Request, delivery: Delivery, transfer: Transfer, upstreams: Upstreams
) -> Response:
    """Return the response that sends a file through the proxy.

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
    if transfer.rewrite is not None:
        headers["Content-Length"] = str(transfer.rewrite.size)
    if request.method == "HEAD":
        return Response(headers=headers)
    chunks = stream_all(session, transfer, upstreams.store)
    stream = upstreams.budget(delivery.upstream).stream(chunks)
    try:
        first = await anext(stream, b"")
    except (PackageIndexError, OSError) as error:
        raise UpstreamError(str(error)) from None
    return _TransferResponse(_rest(request.scope, first, stream), headers=headers)


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

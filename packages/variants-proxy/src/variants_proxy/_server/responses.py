"""Responses with pages and files for a known client, over HTTP or in the same process."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial

from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pep_variants.errors import VariantError
from variants_index.http import PackageIndexError

from .._choice.offers import ProjectView
from .._clients import Client
from .._headers import Document, accepted_formats, format_of, is_known
from .._pages.deliveries import Delivery
from .._service import Service
from .._upstream.transfers import Transfer, stream_all
from ..errors import NoSuchFile, ProxyError, UpstreamError
from ..settings import Upstream

logger = logging.getLogger(__name__)


class Responses:
    """Responses of one service.

    Its methods raise `ANSWERED` before anything is sent.
    """

    def __init__(self, service: Service, aborted: Callable[[str], None] = lambda _: None) -> None:
        """Set up.

        Args:
            service: with the pages and files.
            aborted: gets, as one line each, which transfers broke off, and why.
        """
        self._service = service
        self._upstreams = service.upstreams
        self._aborted = aborted

    async def project(
        self,
        fields: Mapping[str, str],
        client: Client,
        upstream: Upstream | None,
        project: str,
    ) -> Response:
        """Return the page of a project (normalized name)."""
        if upstream is not None:
            self._service.upstream_pages.expire(upstream, project)
            sent = await self._service.plain.unchanged(client, upstream, project)
            forms = accepted_formats(fields.get("accept", ""))
            if sent is not None and format_of(sent.answer.content_type) in forms:
                return await self.document(fields, sent.document)
        view = await self.view(client, upstream, project, expire=upstream is None)
        return await self._page(fields, client, [view])

    async def links(
        self, fields: Mapping[str, str], client: Client, upstream: Upstream
    ) -> Response:
        """Return the page of all files of a find-links upstream."""
        self._service.upstream_pages.expire(upstream, "")
        return await self._page(fields, client, await self._service.views.links(client, upstream))

    async def file(
        self,
        fields: Mapping[str, str],
        client: Client,
        upstream: Upstream | None,
        place: tuple[str, str, str],
        *,
        is_head: bool,
    ) -> Response:
        """Return a redirect to a file, or the file.

        Args:
            fields: accepted formats, and the entity tags that the client has.
            client: that sent it.
            upstream: of the page, None for the first one that has the project.
            place: project (normalized name, empty on a find-links page), folder and filename.
            is_head: the client wants no body.
        """
        if upstream is None:
            upstream = (await self.view(client, None, place[0], expire=False)).upstream
        delivery = await self._service.deliveries.file(client, upstream, *place)
        if delivery.transfer is not None:
            return await self._transferred(fields, delivery, delivery.transfer, is_head=is_head)
        if delivery.redirect:
            # 307: the target may change, the requested URL stays valid.
            headers = {"cache-control": "no-cache", "vary": delivery.vary}
            return RedirectResponse(delivery.redirect, 307, headers)
        kind = "application/octet-stream"
        return await self.document(fields, Document(delivery.data or b"", kind, vary=delivery.vary))

    async def view(
        self, client: Client, upstream: Upstream | None, project: str, *, expire: bool
    ) -> ProjectView:
        """Return the view of a project.

        Args:
            client: of the request.
            upstream: index, None for the first one that has the project.
            project: normalized name.
            expire: whether the client asks for the page: then the upstream is asked again.
        """
        settings = self._service.settings
        for index in settings.upstreams if upstream is None else (upstream,):
            if expire:
                self._service.upstream_pages.expire(index, project)
        view = await self._service.views.view(client, upstream, project)
        if view is None:
            where = f"index {upstream.name} has no" if upstream else "no index has the"
            raise NoSuchFile(f"{where} project {project}")
        return view

    async def _page(
        self, fields: Mapping[str, str], client: Client, shown: Sequence[ProjectView]
    ) -> Response:
        forms = accepted_formats(fields.get("accept", ""))
        return await self.document(fields, await self._service.pages.page(client, shown, forms))

    async def document(self, fields: Mapping[str, str], document: Document) -> Response:
        """Return the response with *document*, unless the client has it."""
        answer = partial(document.answer, fields.get("if-none-match", ""))
        # Without an entity tag it takes as long as the body is large.
        status, headers, body = answer() if document.tag else await self._upstreams.compute(answer)
        return Response(body, status, headers)

    async def _transferred(
        self,
        fields: Mapping[str, str],
        delivery: Delivery,
        transfer: Transfer,
        *,
        is_head: bool,
    ) -> Response:
        """Return the response that sends a file through the proxy.

        Raises:
            UpstreamError: it cannot be fetched.
            VariantError, UnusableFile: it is not what its index promised.
        """
        session = self._upstreams.session(delivery.upstream)
        headers = {
            "Content-Type": "application/octet-stream",
            "Cache-Control": delivery.cache_control,
        }
        if transfer.name:
            headers["ETag"] = f'"{transfer.name}"'
            if is_known(fields.get("if-none-match", ""), headers["ETag"]):
                return Response(status_code=304, headers=headers)
        if transfer.rewrite is not None:
            headers["Content-Length"] = str(transfer.rewrite.size)
        if is_head:
            return Response(headers=headers)
        chunks = stream_all(session, transfer, self._upstreams.store)
        stream = self._upstreams.budget(delivery.upstream).stream(chunks)
        try:
            first = await anext(stream, b"")
        except (PackageIndexError, OSError) as error:
            raise UpstreamError(str(error)) from None
        return _TransferResponse(self._rest(first, stream), headers=headers)

    async def _rest(
        self, first: bytes, stream: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield *first*, then *stream*.

        If the file is not what its index promised, *stream* ends before the last chunk: the
        response is shorter than its ``Content-Length``, and the client discards it.
        """
        async with aclosing(stream):
            try:
                yield first
                async for chunk in stream:
                    yield chunk
            except (PackageIndexError, OSError, VariantError, ProxyError) as error:
                text = f"the transfer was aborted: {error}"
                logger.warning("file not served: %s", text)
                self._aborted(text)
                raise ConnectionAbortedError(str(error)) from None


class _TransferResponse(StreamingResponse):
    """A streamed file, which is not read any more when the client disconnects."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        # Of a response that must not end regularly the server closes the connection.
        with suppress(ConnectionAbortedError):
            async with aclosing(self.body_iterator):
                await super().__call__(scope, receive, send)

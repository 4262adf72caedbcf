"""The ASGI application: routes, handlers, and error responses."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pep_variants import VariantError
from pep_variants.internal import PluginFailed

from ..clients import Client, merging
from ..errors import ANSWERED, NoKey, NoSuchFile, NothingFetched, PassingFailure, UnusableFile
from ..headers import Document, accepted_formats, format_of
from ..service import Service
from ..settings import Settings, Upstream
from ..upstream.upstream_pages import normalized
from .middleware import RequestMiddleware, key_of_user, unauthorized

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..choice.offers import ProjectView
    from ..choice.reports import ProjectReport
    from ..pages.deliveries import Delivery, IndexRelease

logger = logging.getLogger(__name__)


def create_app(settings: Settings) -> Starlette:
    """Return the ASGI application for *settings* (see `urls` for its paths).

    It has no state but caches: any number can run beside each other and stop at any time. Its
    `Service` is ``state.service``, for programs that register clients.
    """
    service = Service(settings)
    pages = Handlers(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            service.upstreams.close()

    file = ".variant/{folder}/{filename}"
    of_all_or_one = {
        "/simple/": pages.projects,
        "/simple/{project}/": pages.project,
        f"/simple/{{project}}/{file}": pages.file,
        "/variants/{project}/": pages.variants,
    }
    of_one = {"/links/": pages.links, f"/links/{file}": pages.file}
    routes = [Route("/", pages.landing), Route("/health", pages.health)]
    for root in ("", "/p/{key}"):
        one = f"{root}/i/{{index}}"
        routes += [Route(root + path, handler) for path, handler in of_all_or_one.items()]
        routes += [Route(one + path, handler) for path, handler in (of_all_or_one | of_one).items()]
    application = Starlette(
        routes=routes,
        middleware=[Middleware(RequestMiddleware, settings=settings)],
        exception_handlers=dict.fromkeys(ANSWERED, _failed),
        lifespan=lifespan,
    )
    application.state.service = service
    return application


async def _failed(_: Request, error: Exception) -> Response:
    """Return the response for an error; installers show its text in their output or log."""
    if isinstance(error, NoKey):
        return unauthorized(f"{error}\n")
    status = _status(error)
    if isinstance(error, PluginFailed):
        logger.warning("%s", error)
    if status >= 500 or status == 409:
        logger.warning("file not served: %s", error)
    again = {"Retry-After": "1"} if isinstance(error, PassingFailure) else {}
    return PlainTextResponse(f"{error}\n", status, headers={"Cache-Control": "no-store", **again})


def _status(error: Exception) -> int:
    """Return the HTTP status of the response for *error*."""
    if isinstance(error, NothingFetched):
        return error.status
    if isinstance(error, PluginFailed):
        return 424  # not 5xx, which clients retry in vain
    if isinstance(error, (UnusableFile, VariantError)):
        return 409  # a retry does not help
    return 404


class Handlers:
    """The request handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._upstreams = service.upstreams

    async def health(self, _: Request) -> Response:
        """Return that the proxy runs; no upstream is involved."""
        return JSONResponse({"status": "ok", "upstreams": len(self._service.settings.upstreams)})

    async def landing(self, request: Request) -> Response:
        """Return a page for people."""
        # Imported here: programs never ask for it.
        from .landing import POLICY, Landing, read_question

        page, error = await Landing(self._service).page(
            read_question(request.query_params),
            request.url.scheme,
            request.headers.get("host", ""),
            token="user" in request.scope.get("state", {}),
        )
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return Response(page, _status(error) if error else 200, headers, "text/html")

    async def projects(self, request: Request) -> Response:
        """Return the page that lists projects."""
        _, upstream = self._asked(request)
        forms = accepted_formats(request.headers.get("accept", ""))
        return await self._sent(request, await self._service.pages.project_list(upstream, forms))

    async def project(self, request: Request) -> Response:
        """Return the page of a project."""
        client, upstream = self._asked(request)
        asked = request.path_params["project"]
        project = _normalized(asked)
        if project != asked:
            return RedirectResponse(f"../{project}/", 301)
        if upstream is not None:
            self._service.upstream_pages.expire(upstream, project)
            sent = await self._service.plain.unchanged(client, upstream, project)
            forms = accepted_formats(request.headers.get("accept", ""))
            if sent is not None and format_of(sent.answer.content_type) in forms:
                return await self._sent(request, sent.document)
        view = await self._view(client, upstream, project, expire=upstream is None)
        return await self._page(request, client, [view])

    async def links(self, request: Request) -> Response:
        """Return the page of all files of a find-links upstream."""
        client, upstream = self._asked(request)
        if upstream is None or upstream.kind != "find-links":
            name = request.path_params["index"]
            raise NoSuchFile(f"{name} is an index, not a find-links page: its root is ../simple/")
        self._service.upstream_pages.expire(upstream, "")
        return await self._page(request, client, await self._service.views.links(client, upstream))

    async def variants(self, request: Request) -> Response:
        """Return the decisions on a project; ``?markers`` adds requirements of variant markers.

        ``?files=VERSION`` returns the files of that version instead, see `Deliveries.files_of`.
        """
        client, upstream = self._asked(request)
        project = _normalized(request.path_params["project"])
        shown = await self._view(client, upstream, project, expire=False)
        query = request.query_params
        found: IndexRelease | ProjectReport
        if "files" in query:
            found = await self._service.deliveries.files_of(
                shown, query["files"], query.getlist("tags"), served="served" in query
            )
        else:
            found = await self._service.report(shown)
        body = await self._upstreams.compute(
            lambda: json.dumps(found.to_tree(), ensure_ascii=False).encode()
        )
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def file(self, request: Request) -> Response:
        """Return a redirect to a file, or the file."""
        client, upstream = self._asked(request)
        parameters = request.path_params
        project = _normalized(parameters["project"]) if "project" in parameters else ""
        if upstream is None:
            upstream = (await self._view(client, None, project, expire=False)).upstream
        delivery = await self._service.deliveries.file(
            client, upstream, project, parameters["folder"], parameters["filename"]
        )
        return await self._delivered(request, delivery)

    def _asked(self, request: Request) -> tuple[Client, Upstream | None]:
        """Return the client, and the upstream that the path names."""
        key, clients = request.path_params.get("key"), self._service.clients
        client = clients.of_user(key_of_user(request.scope)) if key is None else clients.client(key)
        client = merging(client, request.headers.get("user-agent", ""))
        index = request.path_params.get("index")
        return client, None if index is None else self._service.upstream(index)

    async def _view(
        self, client: Client, upstream: Upstream | None, project: str, *, expire: bool = True
    ) -> ProjectView:
        """Return the view of a project.

        Args:
            client: of the request.
            upstream: index, None for the first one that has the project.
            project: normalized name.
            expire: whether the client asks for the page: then the upstream is asked again.
        """
        settings = self._service.settings
        for each in settings.upstreams if upstream is None else (upstream,):
            if expire:
                self._service.upstream_pages.expire(each, project)
        found = await self._service.views.view(client, upstream, project)
        if found is None:
            where = f"index {upstream.name} has no" if upstream else "no index has the"
            raise NoSuchFile(f"{where} project {project}")
        return found

    async def _page(
        self, request: Request, client: Client, shown: Sequence[ProjectView]
    ) -> Response:
        forms = accepted_formats(request.headers.get("accept", ""))
        return await self._sent(request, await self._service.pages.page(client, shown, forms))

    async def _sent(self, request: Request, document: Document) -> Response:
        answer = partial(document.answer, request.headers.get("if-none-match", ""))
        # Without an entity tag it takes as long as the body is large.
        status, headers, body = answer() if document.tag else await self._upstreams.compute(answer)
        return Response(body, status, headers)

    async def _delivered(self, request: Request, delivery: Delivery) -> Response:
        if delivery.transfer is not None:
            from ..pages.deliveries import transfer_response

            return await transfer_response(request, delivery, delivery.transfer, self._upstreams)
        if delivery.redirect:
            # 307: the target may change, the requested URL stays valid.
            headers = {"cache-control": "no-cache", "vary": delivery.vary}
            return RedirectResponse(delivery.redirect, 307, headers)
        kind = "application/octet-stream"
        return await self._sent(request, Document(delivery.data or b"", kind, vary=delivery.vary))


def _normalized(name: str) -> str:
    """Return the normalized name of a project.

    Raises:
        NoSuchFile: it is not a valid name.
    """
    found = normalized(name)
    if not found:
        raise NoSuchFile(f"{name[:80]!r} is not a valid project name")
    return found

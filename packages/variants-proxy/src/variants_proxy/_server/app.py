"""The ASGI application: routes, handlers, and error responses."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from .._choice.reports import IndexRelease, ProjectReport
from .._clients import Client, merging
from .._headers import accepted_formats
from .._service import Service
from .._upstream.upstream_pages import normalized
from ..errors import ANSWERED, NoKey, NoSuchFile, Refusal
from ..settings import Settings, Upstream
from .landing import POLICY, Landing
from .middleware import RequestMiddleware, key_of_user, unauthorized
from .questions import read_question
from .responses import Responses

logger = logging.getLogger(__name__)


def create_app(settings: Settings) -> Starlette:
    """Return the ASGI application for *settings* (see `urls` for its paths).

    It has no state but caches: any number can run beside each other and stop at any time. Its
    `Service` is ``state.service``.
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
    refusal = Refusal.of(error)
    if refusal.status == 424:
        logger.warning("%s", error)
    elif refusal.status >= 500 or refusal.status == 409:
        logger.warning("file not served: %s", error)
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": "1"} if refusal.may_pass else {})
    return PlainTextResponse(f"{refusal.text}\n", refusal.status, headers)


class Handlers:
    """The request handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._responses = Responses(service)

    async def health(self, _: Request) -> Response:
        """Return that the proxy runs, and which upstreams answer; none is asked for it."""
        tree = self._service.upstream_pages.health.to_tree()
        return JSONResponse(tree, headers={"Cache-Control": "no-store"})

    async def landing(self, request: Request) -> Response:
        """Return a page for people."""
        page, error = await Landing(self._service).page(
            read_question(request.query_params),
            request.url.scheme,
            request.headers.get("host", ""),
            token="user" in request.scope.get("state", {}),
        )
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        status = Refusal.of(error).status if error else 200
        return Response(page, status, headers, "text/html")

    async def projects(self, request: Request) -> Response:
        """Return the page that lists projects."""
        _, upstream = self._asked(request)
        forms = accepted_formats(request.headers.get("accept", ""))
        listing = await self._service.pages.project_list(upstream, forms)
        return await self._responses.document(request.headers, listing)

    async def project(self, request: Request) -> Response:
        """Return the page of a project."""
        client, upstream = self._asked(request)
        asked = request.path_params["project"]
        project = _normalized(asked)
        if project != asked:
            return RedirectResponse(f"../{project}/", 301)
        return await self._responses.project(request.headers, client, upstream, project)

    async def links(self, request: Request) -> Response:
        """Return the page of all files of a find-links upstream."""
        client, upstream = self._asked(request)
        if upstream is None or upstream.kind != "find-links":
            name = request.path_params["index"]
            raise NoSuchFile(f"{name} is an index, not a find-links page: its root is ../simple/")
        return await self._responses.links(request.headers, client, upstream)

    async def variants(self, request: Request) -> Response:
        """Return the decisions on a project; ``?markers`` adds requirements of variant markers.

        ``?files=VERSION`` returns the files of that version instead, see `Deliveries.files_of`.
        """
        client, upstream = self._asked(request)
        project = _normalized(request.path_params["project"])
        shown = await self._responses.view(client, upstream, project, expire=False)
        query = request.query_params
        found: IndexRelease | ProjectReport
        if "files" in query:
            found = await self._service.deliveries.files_of(
                shown, query["files"], query.getlist("tags"), served="served" in query
            )
        else:
            found = await self._service.report(shown)
        body = await self._service.upstreams.compute(
            lambda: json.dumps(found.to_tree(), ensure_ascii=False).encode()
        )
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def file(self, request: Request) -> Response:
        """Return a redirect to a file, or the file."""
        client, upstream = self._asked(request)
        parameters = request.path_params
        project = _normalized(parameters["project"]) if "project" in parameters else ""
        place = project, parameters["folder"], parameters["filename"]
        return await self._responses.file(
            request.headers, client, upstream, place, is_head=request.method == "HEAD"
        )

    def _asked(self, request: Request) -> tuple[Client, Upstream | None]:
        """Return the client, and the upstream that the path names."""
        key, clients = request.path_params.get("key"), self._service.clients
        client = clients.of_user(key_of_user(request.scope)) if key is None else clients.client(key)
        client = merging(client, request.headers.get("user-agent", ""))
        index = request.path_params.get("index")
        return client, None if index is None else self._service.upstream(index)


def _normalized(name: str) -> str:
    """Return the normalized name of a project.

    Raises:
        NoSuchFile: it is not a valid name.
    """
    found = normalized(name)
    if not found:
        raise NoSuchFile(f"{name[:80]!r} is not a valid project name")
    return found

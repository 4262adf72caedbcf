"""The ASGI application: routes, handlers, and error responses."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pep_variants.errors import PluginFailed, VariantError

from ..choice.choice import normalized
from ..choice.clients import merges_versions
from ..choice.in_place_names import UNLABELLED
from ..choice.views import Client
from ..errors import (
    ANSWERED,
    NoSuchFile,
    UnknownClient,
    UnusableFile,
    UpstreamError,
)
from ..files.deliveries import Delivery
from ..files.file_responses import SHORT_SECONDS, cache_control, transfer_response
from ..service import Service
from ..settings import Settings, Upstream
from ..upstream.lru import LRUCache
from ..upstream.metrics import Metrics
from ..upstream.responses import AnswerKey, CachedResponse, PageFormat, accepted_formats, wants_new
from ..upstream.shared_caches import MISSING
from ..upstream.single_flight import SingleFlight
from ..urls import PLAIN
from .keyed_index import KeyedIndex
from .middleware import ProxyMiddleware

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger(__name__)


def create_app(settings: Settings) -> Starlette:
    """Return the ASGI application for *settings* (see `urls` for its paths).

    It has no state but caches: any number can run beside each other and stop at any time. Its
    `Service` is ``state.service``, for programs that register clients.
    """
    metrics = Metrics()
    service = Service(settings, metrics)
    pages = Handlers(service, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            service.upstreams.close()

    routes = [
        Route("/", pages.landing),
        Route("/health", pages.health),
        Route("/metrics", pages.metrics),
        Route("/p/{key}/simple/", pages.projects),
        Route("/p/{key}/simple/{project}/", pages.project),
        Route("/p/{key}/i/{index}/simple/", pages.projects),
        Route("/p/{key}/i/{index}/simple/{project}/", pages.project),
        Route("/p/{key}/i/{index}/links/", pages.links),
        Route("/p/{key}/i/{index}/variants/{project}/", pages.variants),
        Route("/p/{key}/variants/{project}/", pages.variants),
        Route("/p/{key}/in-place/{project}/", pages.in_place),
        Route("/p/{key}/in-place/{project}/.variant/{folder}/{filename}", pages.in_place_file),
        Route("/p/{key}/i/{index}/in-place/", pages.in_place),
        Route("/p/{key}/i/{index}/in-place/.variant/{folder}/{filename}", pages.in_place_file),
        Route("/p/{key}/i/{index}/in-place/{project}/", pages.in_place),
        Route(
            "/p/{key}/i/{index}/in-place/{project}/.variant/{folder}/{filename}",
            pages.in_place_file,
        ),
        Route("/p/{key}/files/{index}/{project}/{choice}/{filename}", pages.file),
    ]
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(KeyedIndex, service=service, anonymous=settings.anonymous),
            Middleware(ProxyMiddleware, settings=settings, metrics=metrics, answers=pages.answers),
        ],
        exception_handlers=dict.fromkeys(ANSWERED, _failed),
        lifespan=lifespan,
    )
    application.state.service = service
    return application


async def _failed(_: Request, error: Exception) -> Response:
    """Return the response for an error; installers show its text in their output or log."""
    status = _status(error)
    if isinstance(error, PluginFailed):
        logger.warning("%s", error)
    if status >= 500 or status == 409:
        logger.warning("file not served: %s", error)
    control = MISSING if isinstance(error, NoSuchFile) else "no-store"
    return PlainTextResponse(f"{error}\n", status, headers={"Cache-Control": control})


def _status(error: Exception) -> int:
    """Return the HTTP status of the response for *error*."""
    if isinstance(error, UpstreamError):
        return error.status
    if isinstance(error, UnknownClient):
        return 410
    if isinstance(error, PluginFailed):
        return 424  # not 5xx, which clients retry in vain
    if isinstance(error, (UnusableFile, VariantError)):
        return 409  # a retry does not help
    return 404


class Handlers:
    """The request handlers, and their responses in memory.

    Attributes:
        answers: responses by path and accepted formats.
    """

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service = service
        self._upstreams = service.upstreams
        self._metrics = metrics
        self.answers: LRUCache[AnswerKey, CachedResponse] = LRUCache(
            service.settings.limits.answer_bytes
        )
        self._making: SingleFlight[CachedResponse] = SingleFlight()

    async def health(self, _: Request) -> Response:
        """Return that the proxy runs; no upstream is involved."""
        return JSONResponse({"status": "ok", "upstreams": len(self._service.settings.upstreams)})

    async def landing(self, request: Request) -> Response:
        """Return a page for people."""
        # Imported here: programs never ask for it, and a daemon of uv-variants has only those.
        from ..people.landing import POLICY, Landing, read_question

        page, error = await Landing(self._service).page(
            read_question(request.query_params),
            request.url.scheme,
            request.headers.get("host", ""),
            token="user" in request.scope.get("state", {}),
        )
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return Response(page, _status(error) if error else 200, headers, "text/html")

    async def metrics(self, _: Request) -> Response:
        """Return the metrics."""
        gauges = {
            "answers": ("Responses in memory.", float(len(self.answers))),
            "answer_bytes": ("Size of responses in memory in bytes.", float(self.answers.weight)),
        }
        text = self._metrics.text(gauges, self._upstreams.budgets)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def projects(self, request: Request) -> Response:
        """Return the page that lists projects."""
        _, index = self._asked(request)
        upstream = self._service.upstream(index) if index else None

        async def make() -> CachedResponse:
            return await self._service.pages.project_list(upstream, forms)

        forms = accepted_formats(request.headers.get("accept", ""))
        return await self._answered(request, forms, make)

    async def project(self, request: Request) -> Response:
        """Return the page of a project."""
        client, index = self._asked(request)
        asked = request.path_params["project"]
        project = normalized(asked)
        if project is None:
            raise NoSuchFile(f"{asked[:80]!r} is not a valid project name")
        if project != asked:
            return RedirectResponse(f"../{project}/", 301)
        upstream = self._service.upstream(index) if index else None
        forms = accepted_formats(request.headers.get("accept", ""))

        async def make() -> CachedResponse:
            shown = await self._service.views.view(client, upstream, project)
            if shown is None:
                raise NoSuchFile(f"no index has the project {project}")
            prefix = "../../../../" if index else "../../"
            return await self._service.pages.page(client, [shown], prefix, forms)

        return await self._answered(request, forms, make)

    async def links(self, request: Request) -> Response:
        """Return the page of all files of a find-links upstream."""
        client, index = self._asked(request)
        upstream = self._service.upstream(index)
        if upstream.kind != "find-links":
            raise NoSuchFile(f"{index} is an index, not a find-links page: its root is ../simple/")
        forms = accepted_formats(request.headers.get("accept", ""))

        async def make() -> CachedResponse:
            shown = await self._service.views.links(client, upstream)
            return await self._service.pages.page(client, shown, "../../../", forms)

        return await self._answered(request, forms, make)

    async def variants(self, request: Request) -> Response:
        """Return the decisions on a project; ``?markers`` adds requirements of variant markers.

        ``?files=VERSION`` returns the files of that version instead, see `ReleaseFiles.of`.
        """
        client, index = self._asked(request)
        project = normalized(request.path_params["project"])
        shown = None
        if project is not None:
            upstream = self._service.upstream(index) if index else None
            shown = await self._service.views.view(client, upstream, project)
        if shown is None:
            where = f"index {index} has no" if index else "no index has such a"
            raise NoSuchFile(f"{where} project")
        query = request.query_params
        if "files" in query:
            tree = await self._service.release_files.of(
                shown, query["files"], query.getlist("tags"), served="served" in query
            )
        else:
            tree = await self._service.report.decisions(shown, markers="markers" in query)
        body = await self._upstreams.compute(lambda: json.dumps(tree, ensure_ascii=False).encode())
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def file(self, request: Request) -> Response:
        """Return a redirect to a file, or the file."""
        client, index = self._asked(request)
        parameters = request.path_params
        project = normalized(parameters["project"])
        if project is None or project != parameters["project"]:
            raise NoSuchFile(f"{parameters['project'][:80]!r} is not a normalized project name")
        upstream = self._service.upstream(index)
        delivery = await self._service.deliveries.file(
            client, upstream, project, parameters["choice"], parameters["filename"]
        )
        return await self._delivered(request, delivery)

    async def _delivered(self, request: Request, delivery: Delivery) -> Response:
        asks_again = delivery.revalidated and not (delivery.floating or delivery.private)
        kept = int(self._service.settings.fresh_seconds) if asks_again else 0
        if delivery.redirect:
            # 307: the target may change, the requested URL stays valid.
            return RedirectResponse(
                delivery.redirect,
                307,
                headers={
                    **({"X-Accel-Expires": str(kept)} if kept else {}),
                    "Cache-Control": cache_control(delivery, SHORT_SECONDS),
                    **({"Vary": delivery.vary} if delivery.vary else {}),
                },
            )
        if delivery.data is not None:
            answer = CachedResponse(
                delivery.data,
                "application/octet-stream",
                cache_control(delivery, SHORT_SECONDS),
                vary=delivery.vary,
                packs=self._service.settings.compress,
                kept=kept,
            )
            await self._upstreams.compute(lambda: answer.forms)  # compresses the body
            return _Ready(answer)
        assert delivery.transfer is not None
        return transfer_response(
            request, delivery, delivery.transfer, self._upstreams, self._metrics
        )

    async def in_place(self, request: Request) -> Response:
        """Return a page that stands in for the upstream's own."""
        client, upstream, project = self._asked_in_place(request)
        forms = accepted_formats(request.headers.get("accept", ""))
        if upstream is not None and wants_new(request.headers.get("cache-control", "")):
            self._service.upstream_pages.expire(upstream, project)

        async def make() -> CachedResponse:
            if upstream is None or project:
                view = await self._service.views.view(client, upstream, project)
                shown = [view] if view is not None else []
                if not shown:
                    where = f"index {upstream.name} has no" if upstream else "no index has the"
                    raise NoSuchFile(f"{where} project {project}")
            else:
                shown = await self._service.views.links(client, upstream)
            return await self._service.pages.page(client, shown, "", forms)

        return await self._answered(request, forms, make)

    async def in_place_file(self, request: Request) -> Response:
        """Return a file of an in-place page, or a redirect to it."""
        client, upstream, project = self._asked_in_place(request)
        parameters = request.path_params
        folder, filename = parameters["folder"], parameters["filename"]
        if upstream is None:
            view = await self._service.views.view(client, None, project)
            if view is None:
                raise NoSuchFile(f"no index has the project {project}")
            upstream = view.upstream
        deliveries = self._service.deliveries
        if folder == UNLABELLED and not filename.removesuffix(".metadata").endswith(".whl"):
            delivery = await deliveries.file(client, upstream, project, PLAIN, filename)
        else:
            delivery = await deliveries.in_place(client, upstream, project, folder, filename)
        return await self._delivered(request, delivery)

    def _asked_in_place(self, request: Request) -> tuple[Client, Upstream | None, str]:
        parameters = request.path_params
        client = self._service.clients.in_place(parameters["key"])
        if not client.is_at_index:
            client = replace(client, merges=_merges(request))
        index = parameters.get("index")
        upstream = self._service.upstream(index) if index is not None else None
        asked = parameters.get("project", "")
        project = normalized(asked) if asked else ""
        whole = upstream is not None and upstream.kind == "find-links"
        if project is None or not (project or whole):
            raise NoSuchFile(f"{asked[:80]!r} is not a valid project name")
        return client, upstream, project

    def _asked(self, request: Request) -> tuple[Client, str]:
        client = self._service.clients.client(request.path_params["key"])
        if _merges(request):
            client = replace(client, merges=True)
        return client, request.path_params.get("index", "")

    async def _answered(
        self,
        request: Request,
        forms: tuple[PageFormat, ...],
        make: Callable[[], Awaitable[CachedResponse]],
    ) -> Response:
        key = (request.scope["path"], forms, _merges(request))

        async def work() -> CachedResponse:
            answer = await make()
            await self._upstreams.compute(lambda: answer.forms)  # compresses the body
            if "no-store" not in answer.cache:
                self.answers.put(key, answer, answer.weight)
            return answer

        return _Ready(await self._making.join(key, work))


def _merges(request: Request) -> bool:
    return merges_versions(request.headers.get("user-agent", ""))


class _Ready(Response):
    """A response in memory, sent in the encoding that the client accepts."""

    def __init__(self, answer: CachedResponse) -> None:
        self._answer = answer
        self.background = None
        self.status_code = answer.status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it."""
        await send_answer(self._answer, scope, send)


async def send_answer(answer: CachedResponse, scope: Scope, send: Send) -> int:
    """Send *answer* in the encoding that the request accepts; return the status."""
    encoding = known = b""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            encoding = value
        elif name == b"if-none-match":
            known = value
    status, headers, body = answer.response(encoding, known)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
    return status

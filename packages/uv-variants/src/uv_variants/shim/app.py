"""The application: HTTP on one side, `Service` on the other."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pep_variants.errors import VariantError
from resolvelib_variants.index.errors import IndexProblem

from ..errors import InvalidKey, NoSuchFile, UnusableFile, UpstreamError
from .answers import Answer, Form, accepted_forms
from .choice import normalized
from .flights import Flights
from .front import Front
from .memory import Memory
from .metrics import Metrics
from .service import Delivery, Service
from .settings import Settings
from .showing import Client
from .upstreams import Upstreams
from .wheels import Passage, part, whole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger(__name__)


def create_app(settings: Settings) -> Starlette:
    """Return the index shim for *settings*, an ASGI application (see `urls` for its paths).

    It is stateless but for its caches: any number may run beside each other, and stop at any time.
    """
    metrics = Metrics()
    upstreams = Upstreams(settings, metrics)
    pages = Pages(Service(settings, upstreams, metrics), upstreams, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            upstreams.close()

    routes = [
        Route("/health", pages.health),
        Route("/metrics", pages.metrics),
        Route("/p/{key}/simple/", pages.projects),
        Route("/p/{key}/simple/{project}/", pages.project),
        Route("/p/{key}/i/{index}/simple/", pages.projects),
        Route("/p/{key}/i/{index}/simple/{project}/", pages.project),
        Route("/p/{key}/i/{index}/links/", pages.links),
        Route("/p/{key}/i/{index}/variants/{project}/", pages.variants),
        Route("/p/{key}/files/{index}/{project}/{choice}/{filename}", pages.file),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Front, settings=settings, metrics=metrics, answers=pages.answers)],
        exception_handlers={
            InvalidKey: _failed,
            NoSuchFile: _failed,
            UpstreamError: _failed,
            UnusableFile: _failed,
            VariantError: _failed,
        },
        lifespan=lifespan,
    )


async def _failed(_: Request, error: Exception) -> Response:
    """Say what is wrong; whoever asked sees it in his installer's output or log."""
    status = 404
    if isinstance(error, UpstreamError):
        status = error.status
    elif isinstance(error, (UnusableFile, VariantError)):
        status = 502
    if status >= 500:
        logger.warning("%s", error)
    return PlainTextResponse(f"{error}\n", status, headers={"Cache-Control": "no-store"})


class Pages:
    """The handlers, and the answers that are finished already.

    Attributes:
        answers: by path and the forms that are accepted.
    """

    def __init__(self, service: Service, upstreams: Upstreams, metrics: Metrics) -> None:
        self._service = service
        self._upstreams = upstreams
        self._metrics = metrics
        self.answers: Memory[tuple[str, tuple[Form, ...]], Answer] = Memory(
            service.settings.limits.answer_bytes
        )
        self._making: Flights[Answer] = Flights()

    async def health(self, _: Request) -> Response:
        """Say that the shim is there; upstreams are not asked."""
        return JSONResponse({"status": "ok", "upstreams": len(self._service.settings.upstreams)})

    async def metrics(self, _: Request) -> Response:
        """Return the counters."""
        gauges = {
            "answers": ("Finished answers in memory.", float(len(self.answers))),
            "answer_bytes": ("Bytes of finished answers in memory.", float(self.answers.weight)),
        }
        return Response(self._metrics.text(gauges), media_type="text/plain; version=0.0.4")

    async def projects(self, request: Request) -> Response:
        """Return the page that lists projects."""
        _, index = self._asked(request)
        upstream = self._service.upstream(index) if index else None

        async def make() -> Answer:
            return await self._service.project_list(upstream, forms)

        forms = accepted_forms(request.headers.get("accept", ""))
        return await self._answered(request, forms, make)

    async def project(self, request: Request) -> Response:
        """Return the page of a project."""
        client, index = self._asked(request)
        asked = request.path_params["project"]
        project = normalized(asked)
        if project is None:
            raise NoSuchFile(f"{asked[:80]!r} is no name of a project")
        if project != asked:
            return RedirectResponse(f"../{project}/", 301)
        upstream = self._service.upstream(index) if index else None
        forms = accepted_forms(request.headers.get("accept", ""))

        async def make() -> Answer:
            shown = await self._service.shown(client, upstream, project)
            if shown is None:
                raise NoSuchFile(f"no index has a project {project}")
            prefix = "../../../../" if index else "../../"
            return await self._service.page(client, [shown], prefix, forms)

        return await self._answered(request, forms, make)

    async def links(self, request: Request) -> Response:
        """Return the page of all files of a find-links upstream."""
        client, index = self._asked(request)
        upstream = self._service.upstream(index)
        if upstream.kind != "find-links":
            raise NoSuchFile(f"{index} is an index, not a page of links: its root is ../simple/")
        forms = accepted_forms(request.headers.get("accept", ""))

        async def make() -> Answer:
            shown = await self._service.links(client, upstream)
            return await self._service.page(client, shown, "../../../", forms)

        return await self._answered(request, forms, make)

    async def variants(self, request: Request) -> Response:
        """Return what was decided of a project."""
        client, index = self._asked(request)
        project = normalized(request.path_params["project"])
        shown = None
        if project is not None:
            upstream = self._service.upstream(index)
            shown = await self._service.shown(client, upstream, project)
        if shown is None:
            raise NoSuchFile(f"index {index} has no such project")
        return JSONResponse(self._service.decisions(shown), headers={"Cache-Control": "no-store"})

    async def file(self, request: Request) -> Response:
        """Redirect to a file, or pass it on."""
        client, index = self._asked(request)
        parameters = request.path_params
        project = normalized(parameters["project"])
        if project is None or project != parameters["project"]:
            raise NoSuchFile(f"{parameters['project'][:80]!r} is no normalized name of a project")
        upstream = self._service.upstream(index)
        delivery = await self._service.file(
            client, upstream, project, parameters["choice"], parameters["filename"]
        )
        if delivery.redirect:
            # 307: where it leads may change, what is asked for does not.
            return RedirectResponse(
                delivery.redirect, 307, headers={"Cache-Control": _cache(delivery, 600)}
            )
        if delivery.data is not None:
            answer = Answer(delivery.data, "application/octet-stream", _cache(delivery, 600))
            return _Ready(answer)
        assert delivery.passage is not None
        return self._passed(request, delivery, delivery.passage)

    def _asked(self, request: Request) -> tuple[Client, str]:
        return (
            self._service.client(request.path_params["key"]),
            request.path_params.get("index", ""),
        )

    async def _answered(
        self, request: Request, forms: tuple[Form, ...], make: Callable[[], Awaitable[Answer]]
    ) -> Response:
        key = (request.scope["path"], forms)

        async def work() -> Answer:
            answer = await make()
            await self._upstreams.run(lambda: answer.forms)  # compressing takes a while
            if "no-store" not in answer.cache:
                self.answers.put(key, answer, answer.weight)
            return answer

        return _Ready(await self._making.join(key, work))

    def _passed(self, request: Request, delivery: Delivery, passage: Passage) -> Response:
        session = self._upstreams.session(delivery.upstream)
        headers = {
            "Content-Type": "application/octet-stream",
            "Cache-Control": _cache(delivery, 31536000 if passage.name else 0),
        }
        if passage.name:
            headers["ETag"] = f'"{passage.name}"'
            if _matches(request.headers.get("if-none-match", ""), headers["ETag"]):
                return Response(status_code=304, headers=headers)
        plan = passage.splice
        if plan is None:
            return _Passing(whole(session, passage), self._metrics, 200, headers)
        headers["Accept-Ranges"] = "bytes"
        span = _range(request, plan.size, headers.get("ETag", ""))
        if span is None:
            headers["Content-Length"] = str(plan.size)
            chunks = whole(session, passage, self._upstreams.store)
            return _Passing(chunks, self._metrics, 200, headers)
        start, end = span
        if start >= end:
            headers["Content-Range"] = f"bytes */{plan.size}"
            return Response(status_code=416, headers=headers)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{plan.size}"
        headers["Content-Length"] = str(end - start)
        return _Passing(part(session, passage, start, end), self._metrics, 206, headers)


class _Ready(Response):
    """A finished answer, sent as the client takes it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.background = None
        self.status_code = answer.status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it."""
        await send_answer(self._answer, scope, send)


class _Passing(Response):
    """A file on its way.

    When it turns out not to be what was promised, the connection ends before the file does: the
    length that was announced is not reached, and the client throws away what it has.
    """

    def __init__(
        self, chunks: Iterator[bytes], metrics: Metrics, status: int, headers: dict[str, str]
    ) -> None:
        super().__init__(status_code=status, headers=headers)
        if "Content-Length" not in headers:
            del self.headers["content-length"]
        self._chunks = chunks
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, chunk by chunk as the client takes them."""
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        problem: Exception | None = None

        async def pass_on() -> None:
            nonlocal problem
            try:
                async for chunk in iterate_in_threadpool(self._chunks):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except (IndexProblem, OSError, VariantError) as error:
                problem = error
            else:
                await send({"type": "http.response.body", "body": b""})
                if self.status_code == 200:
                    self._metrics.count("verified_wheels")
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            # Nobody reads gigabytes from an upstream for somebody who has gone.
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()
        if problem is not None:
            self._metrics.count("broken_wheels")
            logger.warning("cut off: %s", problem)
            raise ConnectionAbortedError(str(problem))


async def send_answer(answer: Answer, scope: Scope, send: Send) -> int:
    """Send *answer* in the form that the request asks for; return the status."""
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


def _cache(delivery: Delivery, seconds: int) -> str:
    if delivery.floating:
        return "no-store"
    scope = "private" if delivery.private else "public"
    return f"{scope}, max-age={seconds}" + (", immutable" if seconds > 86400 else "")


def _matches(if_none_match: str, tag: str) -> bool:
    tags = (item.strip().removeprefix("W/") for item in if_none_match.split(","))
    return any(item in (tag, "*") for item in tags)


def _range(request: Request, size: int, tag: str) -> tuple[int, int] | None:
    """Return the part that is asked for (RFC 9110, 14.2), None for all; empty if there is none."""
    text = request.headers.get("range", "")
    unit, _, place = text.partition("=")
    condition = request.headers.get("if-range")
    if unit.strip().lower() != "bytes" or (condition is not None and condition != tag):
        return None
    first, dash, last = (item.strip() for item in place.partition("-"))
    if not dash or not all(
        item == "" or (item.isascii() and item.isdigit()) for item in (first, last)
    ):
        return None  # several parts, or no parts at all
    if not first:
        return (max(0, size - int(last)), size) if last else None
    end = min(int(last) + 1, size) if last else size
    if last and int(last) < int(first):
        return None
    return int(first), (end if int(first) < size else int(first))

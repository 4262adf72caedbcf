"""The application that answers for the indexes of one session.

Below the URL of an index, pages of projects and what is in their ``.variant`` folders come from the
service (`variants_proxy`); everything else on the host is the upstream's own answer. The service
gets the ``Authorization`` of the very request, so that it never knows more than uv does; where the
upstream refuses, uv gets the upstream's own response and decides what to do next.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from pep_variants import limits
from variants_index import http
from variants_proxy import urls as proxy_urls
from variants_proxy.errors import ANSWERED, Refusal

from .._named_projects import normalized
from .forwarding import BadRequest, Forwarder, send_text, while_connected
from .outbound import (
    FAILED,
    Application,
    HostUnreachable,
    Origin,
    Outbound,
    Receive,
    Scope,
    Send,
    address,
    origin,
)

_logger = logging.getLogger(__name__)

_PROJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_CHOSEN = re.compile(rb'"[0-9a-f]{32}"')
"""Entity tag of a page that the service made: see `variants_proxy._headers.Document`."""
_TYPE: Final = b"content-type"
_CREDENTIALS: Final = (b"authorization", b"cookie")
_REFUSED: Final = (409, FAILED)
"""Statuses of the service whose message is for the user, as that of all above 499: uv does not show
the body of a response."""


@dataclass(frozen=True)
class AnsweredIndex:
    """An index whose project pages the service answers.

    Attributes:
        name: of the index in URLs of the service (`UserIndex.proxy_name`).
        url: of the index as the user configured it.
        projects: normalized names of the only projects that it answers, for an explicit index;
            None for all.
        links: whether it is a find-links page.
    """

    name: str
    url: str = field(repr=False)
    projects: frozenset[str] | None = None
    links: bool = False


class IndexRequest(NamedTuple):
    """Page or file of an index.

    Attributes:
        project: normalized name; empty for all of a find-links page.
        folder: of a file, below ``.variant``; empty for the page.
        filename: of the file.
    """

    project: str
    folder: str = ""
    filename: str = ""


Service = Callable[[str, str, IndexRequest, Scope], Awaitable[Application]]
"""Returns the response to a request (its scope): from the name of an index and the
``Authorization`` that the client sent for it, empty without one, and uses just that towards the
index, see `with_authorization`. Raises `ANSWERED`."""


@dataclass(frozen=True)
class _Place:
    """An index by the parts of its URL.

    Attributes:
        index: the index.
        origin: of its URL.
        segments: decoded parts of the path; of a find-links page those of its folder.
        page: last part of the path of a find-links page, empty for a folder.
    """

    index: AnsweredIndex
    origin: Origin
    segments: tuple[str, ...]
    page: str = ""


class IndexApplication:
    """ASGI application: project pages and variants from the service, all else from upstream.

    Attributes:
        asked: normalized names of the projects whose pages the client asked for.
        passing: why the client did not get for now what its index has; no wheels.
    """

    def __init__(
        self,
        indexes: Sequence[AnsweredIndex],
        service: Service,
        outbound: Outbound,
        forwarder: Forwarder,
        refused: Callable[[str], None] = lambda _: None,
        may_keep: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Set up.

        Args:
            indexes: of the session, those on http and https.
            service: answers for the indexes.
            outbound: the way to the upstreams.
            forwarder: sends other requests on.
            refused: gets, as one line each, why the client did not get a page or file.
            may_keep: whether the client may go on using the page of a project that the service
                passed on as the index sent it, as long as the index does not change it.
        """
        self._places = _places(indexes)
        self._may_keep = may_keep
        self._service = service
        self._outbound = outbound
        self._forwarder = forwarder
        self._refused = refused
        self.asked: set[str] = set()
        self.passing: dict[IndexRequest, str] = {}

    @property
    def hosts(self) -> frozenset[Origin]:
        """The origins of the indexes, for `Route`."""
        return frozenset(place.origin for place in self._places)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        target = self._target(scope)
        if target is None:
            path = scope["raw_path"].decode("latin-1")
            _logger.debug("Sending on %s %s", scope["method"], path)
            await self._forwarder.forward(scope, receive, send, self._outbound)
            return
        place, asked = target
        file = asked.filename or "its page"
        _logger.debug("Answering for %s on index %s: %s", asked.project, place.index.name, file)
        before = self.passing.pop(asked, None)
        if not place.index.links and await self._is_kept(scope, receive, send, asked):
            return
        headers = [each for each in scope["headers"] if each[0] not in _CREDENTIALS]
        sent = (value for name, value in scope["headers"] if name == b"authorization")
        authorization = next(sent, b"").decode("latin-1")
        try:
            response = await self._service(
                place.index.name, authorization, asked, {**scope, "headers": headers}
            )
        except ANSWERED as error:
            refusal = Refusal.of(error)
            _logger.debug("Refusing it with status %d: %s", refusal.status, _line(refusal))
        else:
            await response(scope, receive, send)
            return
        if refusal.may_pass and not asked.filename.endswith(".whl"):
            self.passing[asked] = _line(refusal)
        if _is_upstreams(refusal.status) and not asked.folder:
            lasts = before == _line(refusal)
            asking = self._upstreams_refusal(scope, receive, send, refusal, lasts=lasts)
            await while_connected(receive, asking)
        elif refusal.status == 403 and not authorization:
            challenge = (b"www-authenticate", b'Basic realm="index"')
            await send_text(send, 401, _line(refusal), (challenge,))
        else:
            await self._refuse(send, refusal)

    async def _is_kept(
        self, scope: Scope, receive: Receive, send: Send, asked: IndexRequest
    ) -> bool:
        """Say that the client's page of a project is the index's own still; return False if not.

        The service, which would have to be imported, need not choose from it then.
        """
        tag = next((value for name, value in scope["headers"] if name == b"if-none-match"), b"")
        if asked.folder or scope["method"] != "GET" or not tag or _CHOSEN.fullmatch(tag):
            return False
        if not self._may_keep(asked.project):
            return False
        try:
            answer = await self._forwarder.answer(_uncompressed(scope), receive, self._outbound)
        except (HostUnreachable, BadRequest):
            return False
        types = [value.decode("latin-1") for name, value in answer.headers if name == _TYPE]
        body = await answer.read(limits.PAGE_BYTES)
        if answer.status == 200 and body is not None:
            if tag.decode("latin-1") != proxy_urls.tag_as_sent(body, "".join(types), _url(scope)):
                return False
        elif answer.status != 304:
            return False
        # As of the service's page: the index's own lifetime would outlast other settings.
        head = [(b"etag", tag), (b"cache-control", b"no-cache"), (b"vary", b"Accept")]
        await send({"type": "http.response.start", "status": 304, "headers": head})
        await send({"type": "http.response.body", "body": b""})
        return True

    async def _upstreams_refusal(
        self, scope: Scope, receive: Receive, send: Send, refusal: Refusal, *, lasts: bool
    ) -> None:
        """Send the upstream's own response: what uv does with it is uv's to decide.

        A page that the service cannot use is uv's to judge as well, within the limit of pages; the
        user reads why there are no variants.
        """
        try:
            answer = await self._forwarder.answer(_uncompressed(scope), receive, self._outbound)
        except (HostUnreachable, BadRequest) as error:
            self.passing.clear()  # as without us
            if error.status == FAILED:
                refusal = replace(refusal, status=FAILED)
            elif self._outbound.proxy(scope["scheme"], scope["server"][0]) is not None:
                refusal = replace(refusal, text=str(error))  # it names the proxy
            await self._refuse(send, refusal)
            return
        if answer.status >= 400:
            self.passing.clear()
            await answer.send(send)
        elif refusal.may_pass:
            # The service has asked again for what is no page, as often as the client would.
            await self._refuse(send, replace(refusal, status=FAILED) if lasts else refusal)
        elif not await answer.send_whole(
            send, limits.PAGE_BYTES, lambda: self._refused(_line(refusal))
        ):  # a redirect, encoded, or too large, which it will be
            await self._refuse(send, replace(refusal, status=FAILED))

    async def _refuse(self, send: Send, refusal: Refusal) -> None:
        if refusal.status in _REFUSED or refusal.status >= 500:
            self._refused(_line(refusal))
        again = ((b"retry-after", b"1"),) if refusal.may_pass else ()
        await send_text(send, refusal.status, refusal.text, again)

    def _target(self, scope: Scope) -> tuple[_Place, IndexRequest] | None:
        """Return index, and page or file, of a request, None for one that is sent on."""
        if scope["method"] not in ("GET", "HEAD") or scope["query_string"]:
            return None
        segments = path_segments(scope["raw_path"])
        if segments is None:
            return None
        server = (scope["scheme"], *scope["server"])
        for place in self._places:  # the longest path first
            count = len(place.segments)
            if place.origin != server or segments[:count] != place.segments:
                continue
            asked = self._asked(place, segments[count:])
            if asked is None and place.index.links:
                continue  # the folder of the page may have an index in it, too
            return None if asked is None else (place, asked)
        return None

    def _asked(self, place: _Place, segments: tuple[str, ...]) -> IndexRequest | None:
        """Return the page or file with a path below that of an index, None for what is sent on."""
        if place.index.links:
            if segments == (place.page,):
                return IndexRequest("")
            if len(segments) == 3 and segments[0] == proxy_urls.FOLDER and all(segments):
                return IndexRequest("", *segments[1:])
            return None
        if not segments or not _PROJECT.fullmatch(segments[0]):
            return None
        project = normalized(segments[0])
        if place.index.projects is not None and project not in place.index.projects:
            return None
        if segments[1:] == ("",):
            self.asked.add(project)
            return IndexRequest(project)
        if len(segments) == 4 and segments[1] == proxy_urls.FOLDER and all(segments):
            return IndexRequest(project, *segments[2:])
        return None


def _line(refusal: Refusal) -> str:
    """Return the first line of a refusal."""
    return next(iter(refusal.text.strip().splitlines()), f"HTTP status {refusal.status}")


def _is_upstreams(status: int) -> bool:
    """Return whether the upstream itself may say more than the service with *status* does.

    It refused or failed; one that did not answer in time (504) is not made to wait for again.
    """
    return status == 403 or (status >= 500 and status != 504)


def _uncompressed(scope: Scope) -> Scope:
    """Return the same request, for a response that is not compressed."""
    headers = [field for field in scope["headers"] if field[0] != b"accept-encoding"]
    return {**scope, "headers": [*headers, (b"accept-encoding", b"identity")]}


def _url(scope: Scope) -> str:
    """Return the URL of a request as the service has it."""
    scheme, (host, port) = scope["scheme"], scope["server"]
    place = address(host, port)
    if port == http.PORTS[scheme]:
        place = place.rpartition(":")[0]
    return f"{scheme}://{place}{scope['raw_path'].decode('latin-1')}"


def path_segments(raw: bytes) -> tuple[str, ...] | None:
    """Return the decoded parts of a path, None for one that a server could read differently.

    Dots that name other folders, slashes and control characters that were encoded, and empty parts
    but the last one: no rule of ours applies to them.
    """
    parts = []
    pieces = raw[1:].split(b"/")
    for number, piece in enumerate(pieces):
        try:
            text = unquote_to_bytes(piece).decode()
        except UnicodeDecodeError:
            return None
        if (
            text in (".", "..")
            or (not text and number < len(pieces) - 1)
            or "/" in text
            or "\\" in text
            or not text.isprintable()
        ):
            return None
        parts.append(text)
    return tuple(parts)


def _places(indexes: Sequence[AnsweredIndex]) -> tuple[_Place, ...]:
    """Return where the indexes are; the longest path first, of equal ones the first index."""
    found = []
    for index in indexes:
        where = origin(index.url)
        path = urlsplit(index.url).path
        if not index.links:
            path = path.rstrip("/")
        segments = path_segments(path.encode()) if path else ()
        if where is None or segments is None or urlsplit(index.url).query:
            continue  # its pages are the upstream's
        if index.links:
            found.append(_Place(index, where, segments[:-1], segments[-1] if segments else ""))
        else:
            found.append(_Place(index, where, segments))
    return tuple(sorted(found, key=lambda each: -len(each.segments)))

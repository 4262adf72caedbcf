"""The server of a session: what it answers, and with whose credentials.

It takes long to import: a command that asks nothing does without.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from packaging.version import Version

from variants_index.http import Credentials
from variants_proxy.errors import ANSWERED, PassingFailure
from variants_proxy.settings import ClientSettings, Settings, Upstream

from ._session_settings import SessionSettings
from ._transport.forwarding import Forwarder
from ._transport.index_application import AnsweredIndex, IndexApplication, IndexRequest
from ._transport.outbound import Application, Outbound, Route, Scope
from ._transport.proxy_server import Transport

if TYPE_CHECKING:
    from pep_variants.preferences import Preferences
    from pep_variants.wheel_files import Installed
    from variants_index.pages import PageFile
    from variants_proxy.service import (
        Client,
        IndexRelease,
        Judgement,
        ProjectReport,
        ProjectView,
        Responses,
        Service,
    )

    from ._transport.authority import Authority

T = TypeVar("T")
ANSWER_SECONDS = 120.0
"""Seconds that a decision may take: the page has to be fetched first."""
_QUICK_SECONDS = 2.0
"""Seconds up to which the command asks again what failed, so that nothing is waited for twice."""


class Recorder(Protocol):
    """The session, as far as its server knows it.

    Attributes:
        token: password of the proxy.
    """

    token: str

    def started(self, server: SessionServer) -> None:
        """Note that the server is ready."""

    def refused(self, text: str) -> None:
        """Note why uv did not get a page or file."""

    def failed(self, error: Exception) -> None:
        """Note why nothing can be answered."""


def with_authorization(settings: Settings, index: str, authorization: str) -> Settings:
    """Return *settings* with the credentials of a request for one index, and no others.

    Places of a catalogue, which uv does not know of, keep those of netrc and keyring.

    Args:
        settings: of the service.
        index: name of the upstream that the request is for.
        authorization: value of the header, empty without one.
    """
    upstreams = tuple(
        _authorized(each, authorization if each.name == index else "")
        for each in settings.upstreams
    )
    environ = {**settings.environ, "NETRC": os.devnull}
    return replace(
        settings,
        upstreams=upstreams,
        environ=environ,
        keyring=False,
        catalog_environ=settings.environ,
        catalog_keyring=settings.keyring,
    )


def _authorized(upstream: Upstream, authorization: str) -> Upstream:
    scheme, _, given = authorization.partition(" ")
    given = given.strip()
    if scheme.lower() == "bearer":
        return replace(upstream, credentials=None, token=given)
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return replace(upstream, credentials=None, token="")
        return replace(upstream, credentials=Credentials(user, password), token="")
    return replace(upstream, credentials=None, token="")


class _Served(NamedTuple):
    """A service, its responses, and the client of the command."""

    responses: Responses
    service: Service
    client: Client


class IndexServices:
    """The services of one session, one for each ``Authorization`` that uv sends."""

    def __init__(self, settings: SessionSettings, roots: Path, session: Recorder) -> None:
        """Set up.

        Args:
            settings: of the session.
            roots: file of certificates that upstreams may have.
            session: records transfers that break off.
        """
        self._settings = settings
        self._proxy = replace(settings.proxy, ca_bundle=roots)
        self._session = session
        self._sent: dict[str, str] = {}
        # Of all questions of the command.
        self._pauses = [] if settings.proxy.offline else [1.0, 0.5, 0.25]
        self._made: dict[tuple[str, str] | None, _Served] = {}

    async def response(
        self, index: str, authorization: str, asked: IndexRequest, scope: Scope
    ) -> Application:
        """Return the response to a request of uv's, see `index_application.Service`."""
        self._sent[index] = authorization
        responses, service, client = self._for(index, authorization)
        upstream = service.upstream(index)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        if asked.folder:
            is_head = scope["method"] == "HEAD"
            return await responses.file(headers, client, upstream, asked, is_head=is_head)
        if asked.project:
            return await responses.project(headers, client, upstream, asked.project)
        return await responses.links(headers, client, upstream)

    def _for(self, index: str, sent: str | None) -> _Served:
        """Return the service that asks an index with what uv *sent*.

        None stands for credentials that we find ourselves, before uv has asked.
        """
        # Without credentials it is the same for all indexes.
        key = None if sent is None else (index if sent else "", sent)
        if key not in self._made:
            proxy = self._proxy if key is None else with_authorization(self._proxy, *key)
            try:
                # 110 ms; where uv has all pages, and there is nothing to choose, it is not needed.
                from variants_proxy.service import Responses, Service

                service = Service(proxy)
                responses = Responses(service, self._session.refused)
                client = service.clients.in_place(self._settings.client)
                self._made[key] = _Served(responses, service, client)
            except Exception as error:
                self._session.failed(error)
                raise
        return self._made[key]

    def has_notices(self, project: str) -> bool:
        """Return whether there are notices about *project*, a normalized name."""
        return any(made.service.noted.has(made.client, project) for made in self._made.values())

    def is_plain(self, project: str) -> bool:
        """Return whether nothing was chosen for *project*, whichever index it is from."""
        return all(
            made.service.plain.is_plain(made.client, project) is not False
            for made in self._made.values()
        )

    async def report(self, index: str, project: str) -> ProjectReport | None:
        """Return the decisions on a project of an index, None if it has no such project.

        The index is asked with the credentials that uv sent, if it did.
        """
        service, view = await self._view(index, project)
        return None if view is None else await service.report(view, self._settings.python)

    async def judge(
        self,
        index: str,
        project: str,
        installed: Mapping[str, Installed],
        admits: Callable[[Version], bool],
        preferences: Preferences,
        key: str,
    ) -> Judgement | None:
        """Return the judgement on a project, None if the index has none that has variants."""
        service, view = await self._view(index, project, key)
        if view is None or (view.choice is None and view.found.entry is None):
            return None
        return await service.judge(view, installed, admits, preferences, self._settings.python)

    async def labels_like(
        self, index: str, project: str, installed: Installed
    ) -> dict[str, tuple[str, ...]] | None:
        """Return the labels that go with a build, None if the index has no such project."""
        service, view = await self._view(index, project)
        return None if view is None else await service.labels_like(view, installed)

    def keep(self, client: ClientSettings) -> None:
        """Choose for *client* from now on, in place of `SessionSettings.client`."""
        self._settings = self._settings._replace(client=client)
        for key, made in [*self._made.items()]:
            self._made[key] = made._replace(client=made.service.clients.in_place(client))

    async def release_files(
        self, index: str, project: str, version: str, tags: Sequence[str], *, served: bool
    ) -> IndexRelease | None:
        """Return the files of a version, see `Deliveries.files_of`."""
        service, view = await self._view(index, project)
        if view is None:
            return None
        return await service.deliveries.files_of(view, version, tags, served=served)

    async def hashed(
        self, index: str, project: str, version: Version, names: Collection[str] | None
    ) -> Sequence[PageFile] | None:
        """Return the files of a version with their hashes, None without the project."""
        service, view = await self._view(index, project)
        if view is None:
            return None
        client = self._for(index, self._sent.get(index)).client
        return await service.pages.hashed(client, view, version, names)

    async def _view(
        self, index: str, project: str, key: str = ""
    ) -> tuple[Service, ProjectView | None]:
        _, service, client = self._for(index, self._sent.get(index))
        if key:
            client = service.clients.client(key)
        upstream = service.upstream(index)
        start = time.monotonic()
        while True:
            try:
                return service, await service.views.view(client, upstream, project)
            except ANSWERED as error:
                # There is less to report, and uv is not affected: it asks for the page itself.
                is_late = time.monotonic() - start > _QUICK_SECONDS
                if is_late or not isinstance(error, PassingFailure) or not self._pauses:
                    return service, None
            await asyncio.sleep(self._pauses.pop())

    def close(self) -> None:
        """Close the connections to the upstreams."""
        for made in self._made.values():
            made.service.upstreams.close()


class SessionServer:
    """Server of one session, in a thread of its own.

    Attributes:
        application: answers uv's requests for the indexes.
        services: that choose the answers.
    """

    def __init__(
        self, settings: SessionSettings, roots: Path, authority: Authority | None, session: Recorder
    ) -> None:
        """Set up, within the loop of the thread.

        Args:
            settings: of the session.
            roots: file of certificates that upstreams may have.
            authority: signs certificates for the indexes, None without TLS.
            session: records what fails.
        """
        forwarder, proxy = Forwarder(), settings.proxy
        self.services = IndexServices(settings, roots, session)
        outbound = Outbound(proxy.environ, roots, proxy.insecure_hosts)
        self.application = IndexApplication(
            [
                AnsweredIndex(
                    index.proxy_name,
                    index.shown or index.url,
                    settings.projects.get(index.proxy_name),
                    index.links,
                )
                for index in settings.indexes
                if (index.shown or index.url).startswith(("http://", "https://"))
            ],
            self.services.response,
            outbound,
            forwarder,
            session.refused,
            settings.may_keep,
        )
        route = Route(self.application.hosts, self.application, outbound, session.refused)
        self._transport = Transport(authority, session.token, route, forwarder)
        self._loop = asyncio.get_running_loop()

    async def serve(self, listening: socket.socket) -> None:
        """Serve at *listening* until `close`."""
        try:
            await self._transport.serve(listening)
        finally:
            self.services.close()

    def answer(
        self, work: Callable[[IndexServices, str], Awaitable[T | None]], index: str
    ) -> T | None:
        """Return the result of *work* for an index, None if it takes too long.

        From other threads.
        """

        async def working() -> T | None:
            return await asyncio.wait_for(work(self.services, index), ANSWER_SECONDS)

        try:
            return asyncio.run_coroutine_threadsafe(working(), self._loop).result()
        except asyncio.TimeoutError:
            return None

    def close(self) -> None:
        """End serving; from other threads."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._transport.close)


def serve(
    settings: SessionSettings,
    roots: Path,
    authority: Authority | None,
    session: Recorder,
    listening: socket.socket,
) -> None:
    """Serve *session* at *listening* until it ends; arguments as of `SessionServer`."""

    async def serving() -> None:
        server = SessionServer(settings, roots, authority, session)
        session.started(server)
        await server.serve(listening)

    asyncio.run(serving())

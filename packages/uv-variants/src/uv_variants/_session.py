"""The session of one uv command: it listens before uv starts, and answers what uv asks for.

A command that is known to ask nothing never opens its session.

uv may connect at once: its first connection waits while a thread imports the server, which begins
with that connection, or with the first question of the command itself. A command that asks no index
imports no server.

What an index shows with credentials goes to requests that have them: uv finds credentials itself
(``uv auth``, keyring, netrc, variables, URLs), and there is one service of `variants_proxy` for
each ``Authorization`` that it sent. It is made, and imported, for the first page that it has to
choose from: a command that meets no variants has none.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ._errors import ProxyFailed

if TYPE_CHECKING:
    import asyncio

    from packaging.version import Version

    from pep_variants.preferences import Preferences
    from pep_variants.wheel_files import Installed
    from variants_index.pages import PageFile
    from variants_proxy.service import (
        Client,
        IndexRelease,
        Judgement,
        ProjectReport,
        ProjectView,
        Service,
        ShownHashes,
    )
    from variants_proxy.settings import Settings, Upstream

    from ._indexes import UserIndex
    from ._transport.authority import Authority
    from ._transport.index_application import Asked, IndexApplication
    from ._transport.outbound import Application, Scope
    from ._transport.proxy_server import Transport


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
    import base64
    import binascii

    from variants_index.http import Credentials

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


T = TypeVar("T")


class SessionSettings(NamedTuple):
    """What one uv command needs of its session.

    Attributes:
        proxy: settings of the service, whose upstreams are the indexes.
        indexes: of the user, in the order in which uv asks them.
        key: platform key of the machine, or name of one of the service's platforms.
        projects: for explicit indexes, by `UserIndex.proxy_name`, the projects (normalized names)
            that they are used for.
        locked: labels that an existing lock file has, by project and version: they stay.
        exact: versions by project of which requirements name the very build.
        hashes: whether pages need hashes of all wheels, for a lock file.
        shown_hashes: see `variants_proxy._clients.ShownHashes`.
        forced: projects (normalized names) whose variant the user names.
        system_certs: whether the command line or a file asks for the system's certificates.
        python: oldest version of Python that is installed for, empty for an unknown one.
    """

    proxy: Settings
    indexes: tuple[UserIndex, ...]
    key: str
    projects: Mapping[str, frozenset[str]] = MappingProxyType({})
    locked: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    exact: Mapping[str, frozenset[Version]] = MappingProxyType({})
    hashes: bool = True
    shown_hashes: ShownHashes = "served"
    forced: frozenset[str] = frozenset()
    system_certs: bool = False
    python: str = ""

    def may_keep(self, project: str) -> bool:
        """Return whether a page without variants stays as it is while its index does not change it.

        The catalogue, find-links and variants that are asked for by name change it.
        """
        is_simple = all(each.kind == "simple" for each in self.proxy.upstreams)
        return is_simple and self.proxy.catalog is None and project not in self.forced


class _Served(NamedTuple):
    """A service, and the client of the command."""

    service: Service
    client: Client


class IndexServices:
    """The services of one session, one for each ``Authorization`` that uv sends."""

    def __init__(self, settings: SessionSettings, roots: Path, session: Session) -> None:
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
        self, index: str, authorization: str, asked: Asked, scope: Scope
    ) -> Application:
        """Return the response to a request of uv's, see `index_application.Service`."""
        from starlette.requests import Request

        from variants_proxy.service import Responses

        self._sent[index] = authorization
        service, client = self._for(index, authorization)
        responses, request = Responses(service, self._session.refused), Request(scope)
        upstream = service.upstream(index)
        if asked.folder:
            return await responses.file(request, client, upstream, asked)
        if asked.project:
            return await responses.project(request, client, upstream, asked.project)
        return await responses.links(request, client, upstream)

    def _for(self, index: str, sent: str | None) -> _Served:
        """Return the service that asks an index with what uv *sent*.

        None stands for credentials that we find ourselves, before uv has asked.
        """
        # Without credentials it is the same for all indexes.
        key = None if sent is None else (index if sent else "", sent)
        if key not in self._made:
            proxy = self._proxy if key is None else with_authorization(self._proxy, *key)
            try:
                from variants_proxy.service import Service

                service = Service(proxy)
                self._made[key] = _Served(service, self._client(service))
            except Exception as error:
                self._session.failed(error)
                raise
        return self._made[key]

    def _client(self, service: Service) -> Client:
        from variants_proxy.service import ClientSettings

        own = self._settings
        return service.clients.in_place(
            ClientSettings(
                own.key,
                own.locked,
                own.exact,
                hashes=own.hashes,
                shown_hashes=own.shown_hashes,
            )
        )

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
        """Return the judgement on a project, None if the index has no such project."""
        service, view = await self._view(index, project, key)
        if view is None:
            return None
        return await service.judge(view, installed, admits, preferences, self._settings.python)

    async def labels_like(
        self, index: str, project: str, installed: Installed
    ) -> dict[str, tuple[str, ...]] | None:
        """Return the labels that go with a build, None if the index has no such project."""
        service, view = await self._view(index, project)
        return None if view is None else await service.labels_like(view, installed)

    def keep(self, locked: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Have *locked* in place of `SessionSettings.locked` from now on."""
        self._settings = self._settings._replace(locked=locked)
        for key, (service, _) in [*self._made.items()]:
            self._made[key] = _Served(service, self._client(service))

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
        import asyncio

        from variants_proxy.errors import ANSWERED, PassingFailure

        service, client = self._for(index, self._sent.get(index))
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


ANSWER_SECONDS = 120.0
"""Seconds that a decision may take: the page has to be fetched first."""
_QUICK_SECONDS = 2.0
"""Seconds up to which the command asks again what failed, so that nothing is waited for twice."""
END_SECONDS = 2.0
MOST_REFUSALS = 3
"""Refusals that are reported, the last ones."""


class Session:
    """What answers the requests of one uv, from before it starts until after it has ended.

    Attributes:
        token: password of the proxy.
        proxy_url: the HTTP proxy for uv.
        ca_file: the certificates that uv has to trust.
    """

    def __init__(self, settings: Callable[[], SessionSettings]) -> None:
        """Set up; `open` opens it, and so does the first question of the command.

        Args:
            settings: called once, when it is opened.
        """
        self._make_settings = settings
        self._is_open = False
        self._closed = False
        self._problem: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._application: IndexApplication | None = None
        self._transport: Transport | None = None
        self._services: IndexServices | None = None
        self._authority: Authority | None = None  # none without TLS
        self._refusals: dict[str, None] = {}

    def open(self) -> None:
        """Listen, and write the certificates that uv has to trust, if that was not done.

        Raises:
            ProxyFailed: that is not possible.
            NoCertificates: the user's own certificates cannot be read.
            UvVariantsError, ProxyError, VariantError: a setting is not valid.
        """
        if self._is_open:
            return
        import secrets
        import socket

        from variants_proxy import urls as proxy_urls

        from ._private_folder import PrivateFolder
        from ._transport.trust_bundle import trusted_roots

        self._settings = settings = self._make_settings()
        parts = (urlsplit(index.shown or index.url) for index in settings.indexes)
        hosts = [each.hostname for each in parts if each.scheme == "https" and each.hostname]
        if hosts:
            from ._transport.authority import Authority

            self._authority = Authority(hosts)
        roots = trusted_roots(settings.proxy.environ, system=settings.system_certs)
        try:
            self._folder = PrivateFolder()
            self._roots = self._folder.write("trusted.pem", roots)
            own = self._authority.certificate if self._authority is not None else b""
            self.ca_file = self._folder.write("for-uv.pem", own + roots)
            self._listening = proxy_urls.listen()
        except OSError as error:
            place = error.filename or "the index proxy"
            raise ProxyFailed(
                f"{place}: {error.strerror}: the index proxy cannot be started"
            ) from None
        self.token = secrets.token_urlsafe(24)
        port = self._listening.getsockname()[1]
        self.proxy_url = f"http://uv:{self.token}@{proxy_urls.LOOPBACK}:{port}"
        self._wakes, self._woken = socket.socketpair()
        self._started = threading.Event()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def folder(self) -> Path:
        """A folder that only the user can read, and that ends with the session."""
        return self._folder.path

    def start(self) -> None:
        """Begin to import the server, because uv or the command is going to ask."""
        self._wakes.send(b"\0")

    # what the command asks

    def failure(self) -> ProxyFailed | None:
        """Return why uv got no answers, None if it did."""
        if self._problem is None:
            return None
        return ProxyFailed(f"the index proxy failed: {self._problem}")

    def refused(self, text: str) -> None:
        """Note why uv did not get a page or file."""
        self._refusals.pop(text, None)
        self._refusals[text] = None
        while len(self._refusals) > MOST_REFUSALS:
            del self._refusals[next(iter(self._refusals))]

    def failed(self, error: Exception) -> None:
        """Note why nothing can be answered."""
        self._problem = error

    def refusals(self) -> list[str]:
        """Return the files that uv did not get, with the reason."""
        return list(self._refusals)

    def passing(self) -> list[str]:
        """Return why uv did not get, up to its last try, what it may get later."""
        return [*self._application.passing.values()] if self._application is not None else []

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that there are notices about."""
        services = self._services
        return [] if services is None else list(filter(services.has_notices, self.asked()))

    def plain_projects(self) -> list[str]:
        """Return the projects that uv asked for and that have nothing to choose from."""
        services = self._services
        return [] if services is None else list(filter(services.is_plain, self.asked()))

    def asked(self) -> list[str]:
        """Return the projects that uv asked for."""
        return sorted(self._application.asked) if self._application is not None else []

    def reports(self, projects: Iterable[str]) -> dict[str, ProjectReport]:
        """Return the reports by project; one (normalized name) that no index has is missing."""
        reports = {name: self._first(name, IndexServices.report) for name in projects}
        return {name: report for name, report in reports.items() if report is not None}

    def judge(
        self,
        project: str,
        installed: Mapping[str, Installed],
        admits: Callable[[Version], bool],
        preferences: Preferences,
        key: str = "",
    ) -> Judgement | None:
        """Return the judgement on what is installed of a project, None if no index has it.

        Args:
            project: normalized name.
            installed: everything, by project.
            admits: whether the requirements admit a version.
            preferences: whether a build for the accelerator goes before newer versions.
            key: platform key of another machine than that of the session; empty for that.
        """
        return self._first(
            project,
            partial(
                IndexServices.judge,
                installed=installed,
                admits=admits,
                preferences=preferences,
                key=key,
            ),
        )

    def labels_like(self, project: str, installed: Installed) -> dict[str, tuple[str, ...]]:
        """Return by version the label of a project that goes with an *installed* build of another.

        None are returned of a project (normalized name) that no index has.
        """
        work = partial(IndexServices.labels_like, installed=installed)
        return self._first(project, work) or {}

    def keep(self, labels: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Show uv these *labels* as well from now on, see `SessionSettings.locked`."""
        known = self._settings.locked
        locked: dict[str, Mapping[str, tuple[str, ...]]] = {**known}
        locked |= {name: {**known.get(name, {}), **found} for name, found in labels.items()}
        self._settings = self._settings._replace(locked=locked)
        if self._services is not None:
            self._services.keep(locked)

    def kept(self, names: Iterable[str]) -> list[Mapping[str, tuple[str, ...]] | None]:
        """Return the labels that `keep`, or a lock, has uv see of projects (normalized names)."""
        return [self._settings.locked.get(name) for name in names]

    def release_files(
        self, project: str, version: str, *, index: str, tags: Iterable[str], served: bool
    ) -> IndexRelease | None:
        """Return the files of a version, see `variants_proxy._pages.deliveries`.

        Args:
            project: normalized name.
            version: any spelling.
            index: name of the index that has it; empty for the first one that has the project.
            tags: python and ABI tags of the wheels that are listed; empty for all.
            served: compute the hashes of wheels as they are installed.

        Returns:
            The files, None if the index has no such project.
        """
        files = partial(
            IndexServices.release_files, version=version, tags=list(tags), served=served
        )
        return self._first(project, files, index)

    def hashed(
        self, project: str, version: str, index: str, names: Collection[str] | None = None
    ) -> Sequence[PageFile]:
        """Return the files of a version as a page of *index* has them, with their hashes.

        Those with *names* alone, if given.
        """
        from packaging.version import Version

        files = partial(IndexServices.hashed, version=Version(version), names=names)
        return self._first(project, files, index) or ()

    def _first(
        self,
        project: str,
        work: Callable[[IndexServices, str, str], Awaitable[T | None]],
        index: str = "",
    ) -> T | None:
        """Return what *work* finds at the first index that has *project*, None if none has."""
        self.open()
        for name in [index] if index else self._indexes_of(project):
            found = self._ask(work, name, project)
            if found is not None:
                return found
        return None

    def _indexes_of(self, project: str) -> Iterable[str]:
        for index in self._settings.indexes:
            name = index.proxy_name
            if project in self._settings.projects.get(name, (project,)):
                yield name

    def _ask(
        self, work: Callable[[IndexServices, str, str], Awaitable[T]], index: str, project: str
    ) -> T | None:
        """Return what *work* returns in the thread of the session.

        Raises:
            ProxyFailed: there is no answer.
        """
        self.start()
        self._started.wait(ANSWER_SECONDS)
        if self._loop is None or self._services is None:
            raise self.failure() or ProxyFailed("the index proxy did not start")
        services = self._services
        import asyncio

        async def asked() -> T:
            return await asyncio.wait_for(work(services, index, project), ANSWER_SECONDS)

        try:
            return asyncio.run_coroutine_threadsafe(asked(), self._loop).result()
        except asyncio.TimeoutError:
            return None
        except Exception as error:
            raise self.failure() or error from None

    # the thread

    def _run(self) -> None:
        """Wait for uv or the command, then serve."""
        try:
            select.select((self._listening, self._woken), (), ())
            import logging

            # What servers log is for logs; what the user has to know is said at the end, but for
            # what takes long.
            logging.getLogger().addHandler(logging.NullHandler())
            waiting = logging.StreamHandler()
            waiting.setLevel(logging.WARNING)
            waiting.setFormatter(logging.Formatter("uv-variants: %(message)s"))
            logging.getLogger("variants_index._downloads").addHandler(waiting)
            if not self._closed:
                import asyncio

                asyncio.run(self._serve())
        except (OSError, ValueError) as error:
            if not self._closed:
                self._problem = error
        except Exception as error:
            self._problem = error
        finally:
            self._listening.close()  # so uv does not wait for ever
            self._started.set()

    async def _serve(self) -> None:
        import asyncio

        from ._transport.forwarding import Forwarder
        from ._transport.index_application import AnsweredIndex, IndexApplication
        from ._transport.outbound import Outbound, Route
        from ._transport.proxy_server import Transport

        settings, forwarder = self._settings, Forwarder()
        services = IndexServices(settings, self._roots, self)
        proxy = settings.proxy
        outbound = Outbound(proxy.environ, self._roots, proxy.insecure_hosts)
        self._application = IndexApplication(
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
            services.response,
            outbound,
            forwarder,
            self.refused,
            settings.may_keep,
        )
        route = Route(self._application.hosts, self._application, outbound, self.refused)
        self._transport = Transport(self._authority, self.token, route, forwarder)
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._started.set()
        try:
            if not self._closed:
                await self._transport.serve(self._listening)
        finally:
            services.close()

    def close(self) -> None:
        """End the session."""
        if self._closed or not self._is_open:
            return
        self._closed = True
        self.start()
        if self._loop is not None and self._transport is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._transport.close)
        self._thread.join(END_SECONDS)
        for each in (self._wakes, self._woken):
            each.close()
        self._folder.remove()

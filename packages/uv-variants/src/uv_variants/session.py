"""The session of one uv command: it listens before uv starts, and answers what uv asks for.

A command that is known to ask nothing never opens its session.

uv may connect at once: its first connection waits while a thread imports the server, which begins
with that connection, or with the first question of the command itself. A command that asks no index
imports no server.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from .errors import ProxyFailed

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from .index_services import IndexServices, SessionSettings
    from .transport.authority import Authority
    from .transport.index_application import IndexApplication
    from .transport.proxy_server import Transport

ANSWER_SECONDS = 120.0
"""Seconds that a decision may take: the page has to be fetched first."""
END_SECONDS = 2.0
MOST_REFUSALS = 3
"""Refusals that are reported, the last ones."""

T = TypeVar("T")


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

        from variants_proxy.internal import LOOPBACK, listen

        from .private_folder import PrivateFolder
        from .transport.trust_bundle import trusted_roots

        self._settings = settings = self._make_settings()
        parts = (urlsplit(index.shown or index.url) for index in settings.indexes)
        hosts = [each.hostname for each in parts if each.scheme == "https" and each.hostname]
        if hosts:
            from .transport.authority import Authority

            self._authority = Authority(hosts)
        roots = trusted_roots(settings.proxy.environ, system=settings.system_certs)
        try:
            self._folder = PrivateFolder()
            self._roots = self._folder.write("trusted.pem", roots)
            own = self._authority.certificate if self._authority is not None else b""
            self.ca_file = self._folder.write("for-uv.pem", own + roots)
            self._listening = listen()
        except OSError as error:
            place = error.filename or "the index proxy"
            raise ProxyFailed(
                f"{place}: {error.strerror}: the index proxy cannot be started"
            ) from None
        self.token = secrets.token_urlsafe(24)
        port = self._listening.getsockname()[1]
        self.proxy_url = f"http://uv:{self.token}@{LOOPBACK}:{port}"
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

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that there are notices about."""
        services = self._services
        return [] if services is None else list(filter(services.has_notices, self._asked()))

    def plain_projects(self) -> list[str]:
        """Return the projects that uv asked for and that have nothing to choose from."""
        services = self._services
        return [] if services is None else list(filter(services.is_plain, self._asked()))

    def _asked(self) -> list[str]:
        return sorted(self._application.asked) if self._application is not None else []

    def reports(self, projects: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return the reports of `variants_proxy.choice.reports` by project.

        A project (normalized name) that no index has is missing.
        """

        def report(services: IndexServices, index: str, name: str) -> Awaitable[Any]:
            return services.report(index, name)

        found = {name: self._first(name, report) for name in projects}
        return {name: tree for name, tree in found.items() if tree is not None}

    def release_files(
        self, project: str, version: str, *, index: str, tags: Iterable[str], served: bool
    ) -> Mapping[str, Any] | None:
        """Return the files of a version, see `variants_proxy.pages.deliveries`.

        Args:
            project: normalized name.
            version: any spelling.
            index: name of the index that has it; empty for the first one that has the project.
            tags: python and ABI tags of the wheels that are listed; empty for all.
            served: compute the hashes of wheels as they are installed.

        Returns:
            The files, None if the index has no such project.
        """

        def files(services: IndexServices, index: str, name: str) -> Awaitable[Any]:
            return services.release_files(index, name, version, list(tags), served=served)

        found: Mapping[str, Any] | None = self._first(project, files, index)
        return found

    def _first(
        self,
        project: str,
        work: Callable[[IndexServices, str, str], Awaitable[Any]],
        index: str = "",
    ) -> Any:  # noqa: ANN401 - trees of JSON
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

            # What servers log is for logs; what the user has to know is said at the end.
            logging.getLogger().addHandler(logging.NullHandler())
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

        from .index_services import IndexServices
        from .transport.forwarding import Forwarder
        from .transport.index_application import AnsweredIndex, IndexApplication
        from .transport.proxy_server import Transport
        from .transport.route import Outbound, Route

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
            services.application,
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

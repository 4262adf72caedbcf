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

import logging
import secrets
import select
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from packaging.version import Version

from pep_variants.errors import file_problem
from variants_proxy import urls as proxy_urls

from ._errors import ProxyFailed
from ._private_folder import PrivateFolder
from ._transport.trust_bundle import trusted_roots

if TYPE_CHECKING:
    from pep_variants.preferences import Preferences
    from pep_variants.wheel_files import Installed
    from variants_index.pages import PageFile
    from variants_proxy.service import IndexRelease, Judgement, ProjectReport
    from variants_proxy.settings import ClientSettings

    from ._session_server import IndexServices, SessionServer
    from ._session_settings import SessionSettings
    from ._transport.authority import Authority

T = TypeVar("T")


START_SECONDS = 120.0
"""Seconds that the server may take to be ready."""
END_SECONDS = 2.0
MOST_REFUSALS = 3
"""Refusals that are reported, the last ones."""


class CommandSession:
    """Answers to the requests of one uv, from before it starts until after it has ended.

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
        self._server: SessionServer | None = None
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
            problem = f"{file_problem(error)}: the index proxy cannot be started"
            raise ProxyFailed(problem) from None
        self.token = secrets.token_urlsafe(24)
        host, port = self._listening.getsockname()
        self.proxy_url = f"http://uv:{self.token}@{host}:{port}"
        self._wakes, self._woken = socket.socketpair()
        self._ready = threading.Event()
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

    def started(self, server: SessionServer) -> None:
        """Note the server, which is ready to answer, unless the session has ended."""
        self._server = server
        self._ready.set()
        if self._closed:
            server.close()

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
        return [] if self._server is None else [*self._server.application.passing.values()]

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that there are notices about."""
        server = self._server
        return [] if server is None else list(filter(server.services.has_notices, self.asked()))

    def plain_projects(self) -> list[str]:
        """Return the projects that uv asked for and that have nothing to choose from."""
        server = self._server
        return [] if server is None else list(filter(server.services.is_plain, self.asked()))

    def asked(self) -> list[str]:
        """Return the projects that uv asked for."""
        return [] if self._server is None else sorted(self._server.application.asked)

    def reports(self, projects: Iterable[str]) -> dict[str, ProjectReport]:
        """Return the reports by project; one (normalized name) that no index has is missing."""
        reports = {name: self._report(name) for name in projects}
        return {name: report for name, report in reports.items() if report is not None}

    def _report(self, project: str) -> ProjectReport | None:
        return self._first(project, lambda services, index: services.report(index, project))

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
            lambda services, index: services.judge(
                index, project, installed, admits, preferences, key
            ),
        )

    def labels_like(self, project: str, installed: Installed) -> dict[str, tuple[str, ...]]:
        """Return by version the label of a project that goes with an *installed* build of another.

        None are returned of a project (normalized name) that no index has.
        """
        labels = self._first(
            project, lambda services, index: services.labels_like(index, project, installed)
        )
        return labels or {}

    def keep(self, labels: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Show uv these *labels* as well from now on, see `SessionSettings.locked`."""
        client = self._settings.client
        known = client.locked
        locked: dict[str, Mapping[str, tuple[str, ...]]] = {**known}
        locked |= {name: {**known.get(name, {}), **found} for name, found in labels.items()}
        self._choose_for(replace(client, locked=locked))

    @property
    def in_order(self) -> tuple[str, ...] | None:
        """Projects of which uv sees no release as yanked for a build, None for all."""
        return self._settings.client.in_order if self._is_open else None

    def hold_back(self, in_order: Iterable[str] | None) -> None:
        """Yank from now on what builds go before, but for `in_order`."""
        names = None if in_order is None else tuple(sorted(in_order))
        self._choose_for(replace(self._settings.client, in_order=names))

    def _choose_for(self, client: ClientSettings) -> None:
        self._settings = self._settings._replace(client=client)
        if self._server is not None:
            self._server.services.keep(self._settings.client)

    def kept(self, names: Iterable[str]) -> list[Mapping[str, tuple[str, ...]] | None]:
        """Return the labels that `keep`, or a lock, has uv see of projects (normalized names)."""
        return [self._settings.client.locked.get(name) for name in names]

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
        wanted = list(tags)
        return self._first(
            project,
            lambda services, at: services.release_files(
                at, project, version, wanted, served=served
            ),
            index,
        )

    def hashed(
        self, project: str, version: str, index: str, names: Collection[str] | None = None
    ) -> Sequence[PageFile]:
        """Return the files of a version as a page of *index* has them, with their hashes.

        Those with *names* alone, if given.
        """
        wanted = Version(version)
        files = self._first(
            project, lambda services, at: services.hashed(at, project, wanted, names), index
        )
        return files or ()

    def _first(
        self,
        project: str,
        work: Callable[[IndexServices, str], Awaitable[T | None]],
        index: str = "",
    ) -> T | None:
        """Return the result of *work* at the first index that has *project*, None if none has.

        Raises:
            ProxyFailed: there is no answer.
        """
        self.open()
        for name in [index] if index else self._indexes_of(project):
            found = self._answer(work, name)
            if found is not None:
                return found
        return None

    def _indexes_of(self, project: str) -> Iterable[str]:
        for index in self._settings.indexes:
            name = index.proxy_name
            if project in self._settings.projects.get(name, (project,)):
                yield name

    def _answer(
        self, work: Callable[[IndexServices, str], Awaitable[T | None]], index: str
    ) -> T | None:
        """Return the result of *work* in the thread of the session.

        Raises:
            ProxyFailed: there is no answer.
        """
        self.start()
        self._ready.wait(START_SECONDS)
        if self._server is None:
            raise self.failure() or ProxyFailed("the index proxy did not start")
        try:
            return self._server.answer(work, index)
        except Exception as error:
            raise self.failure() or error from None

    # the thread

    def _run(self) -> None:
        """Wait for uv or the command, then serve."""
        try:
            select.select((self._listening, self._woken), (), ())
            # What servers log is for logs; what the user has to know is said at the end, but for
            # what takes long.
            logging.getLogger().addHandler(logging.NullHandler())
            waiting = logging.StreamHandler()
            waiting.setLevel(logging.WARNING)
            waiting.setFormatter(logging.Formatter("uv-variants: %(message)s"))
            for module in ("_downloads", "_package_finder"):
                logging.getLogger(f"variants_index.{module}").addHandler(waiting)
            if not self._closed:
                # Takes 150 ms; uv's first connection, or question of the command, waits for it.
                from ._session_server import serve

                serve(self._settings, self._roots, self._authority, self, self._listening)
        except (OSError, ValueError) as error:
            if not self._closed:
                self._problem = error
        except Exception as error:
            self._problem = error
        finally:
            self._listening.close()  # uv would wait forever
            self._ready.set()

    def close(self) -> None:
        """End the session."""
        if self._closed or not self._is_open:
            return
        self._closed = True
        self.start()
        if self._server is not None:
            self._server.close()
        self._thread.join(END_SECONDS)
        for each in (self._wakes, self._woken):
            each.close()
        self._folder.remove()

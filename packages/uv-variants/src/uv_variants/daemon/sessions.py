"""The sessions of a daemon: opened by commands, ended when the command's connection ends."""

from __future__ import annotations

import asyncio
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from uv_variants.transport import AnsweredIndex, Forwarder, IndexApplication, Outbound, Route

from .services import IndexService, Services
from .session import SessionSettings
from .tokens import is_equal, session_token

if TYPE_CHECKING:
    from uv_variants.transport import Application
    from uv_variants.transport.route import Receive, Scope, Send

MOST_SESSIONS = 256
"""Sessions at a time; a command beyond gets a daemon of its own."""
MOST_REFUSALS = 3
"""Refusals of a session that are reported, the last ones."""
RESTORE_SECONDS = 15.0
"""Seconds after the start in which a request waits for its session."""
FIRST_SECONDS = 60.0
"""Seconds within which the command that started the daemon has to connect."""

ID = re.compile(r"[0-9a-f]{32}")
_OWN_PATH = re.compile(r"/p/[^/]+(?P<rest>/i/(?P<index>[^/]+)/.*)")


class TooManySessions(Exception):
    """There is no room for another session."""


@dataclass
class OpenSession:
    """A session of one command.

    Attributes:
        id: user name for HTTP basic authentication.
        settings: of the command.
        bundle: certificates for uv.
        roots: certificates that upstreams may have.
        pid: of the command, 0 if unknown.
        connections: of the command that hold the session.
        begun: `time.monotonic`.
        used: services by digest.
        authorizations: that uv sent last, by name of index.
        route: of uv's requests.
        application: that answers for the indexes.
        client: name in URLs of the services.
    """

    id: str
    settings: SessionSettings
    bundle: Path
    roots: Path
    pid: int = 0
    connections: int = 0
    begun: float = field(default_factory=time.monotonic)
    used: dict[str, IndexService] = field(default_factory=dict)
    authorizations: dict[str, str] = field(default_factory=dict)
    route: Route | None = None
    application: IndexApplication | None = None
    client: str = ""
    _refusals: dict[str, None] = field(default_factory=dict)

    def refused(self, text: str) -> None:
        """Note that a file was not served."""
        self._refusals.pop(text, None)
        self._refusals[text] = None
        while len(self._refusals) > MOST_REFUSALS:
            del self._refusals[next(iter(self._refusals))]

    def report(self) -> dict[str, list[str]]:
        """Return what the command tells its user."""
        asked = sorted(self.application.asked) if self.application is not None else []
        noted = [
            name
            for name in asked
            if any(service.has_notices(self.client, name) for service in self.used.values())
        ]
        plain = [name for name in asked if self._is_plain(name)]
        return {
            "refusals": list(self._refusals),
            "noted": noted,
            "plain": plain,
        }

    def _is_plain(self, name: str) -> bool:
        """Return whether nothing was chosen for a project, whichever index it is from."""
        found = {service.is_plain(self.client, name) for service in self.used.values()}
        return found - {None} == {True}


class Sessions:
    """The sessions that are open."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._sessions: dict[str, OpenSession] = {}
        self.forwarder = Forwarder()
        self.services = Services(self._services_in_use)
        self._awaited: dict[str, asyncio.Event] = {}
        self._begun = time.monotonic()
        self.last_end = time.monotonic()
        """When the last session ended, or the daemon began."""

    def open(self, session: OpenSession) -> OpenSession:
        """Add a session, or return the one with its id.

        Raises:
            TooManySessions: there is no room.
            ProxyError, VariantError: the settings are not valid.
        """
        known = self._sessions.get(session.id)
        if known is not None:
            return known
        if len(self._sessions) >= MOST_SESSIONS:
            raise TooManySessions
        service = self.services.service(session.settings, session.roots)
        session.used[service.digest] = service
        session.client = service.client(session.settings)
        self._connect(session)
        self._sessions[session.id] = session
        if session.id in self._awaited:
            self._awaited[session.id].set()
        return session

    def find(self, name: str, token: str) -> OpenSession | None:
        """Return the session with the id *name* if *token* is its own."""
        return self._sessions.get(name) if self._is_valid(name, token) else None

    def by_id(self, name: str) -> OpenSession | None:
        """Return the session with the id *name*; the caller has checked who asks."""
        return self._sessions.get(name)

    async def route(self, name: str, token: str) -> Route | None:
        """Return the way of a session's requests, None for a wrong id or token.

        After the start it waits for a session that is not known yet: commands in progress are
        about to restore those of a daemon that died.
        """
        found = self.find(name, token)
        if found is None and self._is_new() and self._is_valid(name, token):
            restored = self._awaited.setdefault(name, asyncio.Event())
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(restored.wait(), RESTORE_SECONDS)
            self._awaited.pop(name, None)
            found = self.find(name, token)
        return found.route if found is not None else None

    def _is_new(self) -> bool:
        return time.monotonic() - self._begun < RESTORE_SECONDS

    def _is_valid(self, name: str, token: str) -> bool:
        return bool(ID.fullmatch(name)) and is_equal(token, session_token(self._secret, name))

    def end(self, name: str) -> None:
        """End a session; requests in progress are answered."""
        if self._sessions.pop(name, None) is not None:
            self.last_end = time.monotonic()

    def expire(self) -> None:
        """End the sessions whose command has not connected, and is gone or too late."""
        now = time.monotonic()
        for each in list(self._sessions.values()):
            late = now - each.begun > FIRST_SECONDS
            if not each.connections and (late or is_gone(each.pid)):
                self.end(each.id)

    def own_application(self, session: OpenSession) -> Application:
        """Return the application for requests that the command sends itself.

        In their paths any name of a client stands for the session's own. An index is asked with
        the credentials that uv sent.
        """

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            match = _OWN_PATH.fullmatch(scope["path"])
            given = session.authorizations.get(match["index"]) if match is not None else None
            service = self.services.service(
                session.settings,
                session.roots,
                match["index"] if match is not None and given is not None else None,
                given or "",
            )
            if match is not None:
                path = f"/p/{service.client(session.settings)}{match['rest']}"
                scope = {**scope, "path": path, "raw_path": path.encode()}
            await service.application(scope, receive, send)

        return application

    def _connect(self, session: OpenSession) -> None:
        """Set the way of the session's requests."""
        settings = session.settings
        outbound = Outbound(settings.environ, session.roots, frozenset(settings.insecure_hosts))

        known: dict[tuple[str, str], Application] = {}

        def service(index: str, authorization: str) -> Application:
            session.authorizations[index] = authorization
            application = known.get((index, authorization))
            if application is None:
                # Once: digests of large settings take longer than the answer to a request.
                found = self.services.service(settings, session.roots, index, authorization)
                session.used[found.digest] = found
                found.client(settings)
                application = known[index, authorization] = _observed(found, session)
            return application

        application = IndexApplication(
            [
                AnsweredIndex(
                    each.proxy_name,
                    each.shown or each.url,
                    settings.projects.get(each.proxy_name),
                    each.links,
                )
                for each in settings.indexes
                if (each.shown or each.url).startswith(("http://", "https://"))
            ],
            session.client,
            service,
            outbound,
            self.forwarder,
            session.refused,
        )
        session.application = application
        session.route = Route(application.hosts, application, outbound, session.refused)

    def _services_in_use(self) -> list[str]:
        return [digest for each in self._sessions.values() for digest in each.used]

    def __len__(self) -> int:
        return len(self._sessions)


def _observed(service: IndexService, session: OpenSession) -> Application:
    """Return the application of *service*, which notes for *session* what breaks off."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        state = {**scope.get("state", {}), "observer": session}
        await service.application({**scope, "state": state}, receive, send)

    return application


def is_gone(pid: int) -> bool:
    """Return whether the process *pid* has certainly ended; 0 stands for none that is known."""
    if not pid or os.name == "nt":  # Windows has no way to ask without a handle
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

"""The applications of `variants_proxy` that a session has: one for each credentials that uv sent.

What an index shows with credentials goes to requests that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from variants_proxy import Limits, Settings, create_app
from variants_proxy.internal import ANSWERED, ClientSettings

from .transport.upstream_credentials import with_authorization

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from variants_proxy.internal import Client, ProjectView, Service

    from .session_settings import SessionSettings
    from .transport.route import Application, Receive, Scope, Send

_LIMITS = Limits(retries=0)  # uv asks again itself
_FOR_ALL = 10.0**9
"""Seconds for which a page is fresh: each is asked for once, or when uv asks for a new one."""


class Observer(Protocol):
    """Who is told of files that were not served."""

    def refused(self, text: str) -> None:
        """Note that a file was not served, and why."""


class IndexServices:
    """The applications.

    Attributes:
        client: name of the command in their URLs.
    """

    def __init__(self, settings: SessionSettings, roots: Path, observer: Observer) -> None:
        """Make the one that asks indexes with the user's credentials, as far as we find them.

        Args:
            settings: of the session.
            roots: file of certificates that upstreams may have.
            observer: of transfers that break off.

        Raises:
            ProxyError, VariantError: a setting is not valid.
        """
        self._client_settings = ClientSettings(
            settings.key, settings.locked, settings.floating, settings.hashes
        )
        self._observer = observer
        self._settings = _settings(settings, roots)
        self._sent: dict[str, str] = {}
        self._made: dict[tuple[str, str], Starlette] = {}
        self._own = create_app(self._settings)
        self.client = self._registered(self._own)

    def application(self, index: str, authorization: str) -> Application:
        """Return the application for a request of uv's.

        Args:
            index: name of the index.
            authorization: that uv sent for it, empty without one.
        """
        self._sent[index] = authorization
        made = self._for(index, authorization)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            state = {**scope.get("state", {}), "observer": self._observer}
            await made({**scope, "state": state}, receive, send)

        return application

    def _for(self, index: str, authorization: str) -> Starlette:
        # Without credentials it is the same for all indexes.
        key = (index if authorization else "", authorization)
        if key not in self._made:
            self._made[key] = create_app(with_authorization(self._settings, *key))
            self._registered(self._made[key])
        return self._made[key]

    def _registered(self, made: Starlette) -> str:
        service: Service = made.state.service
        return service.clients.register(self._client_settings)

    @property
    def _all(self) -> list[tuple[Service, Client]]:
        services = [made.state.service for made in (self._own, *self._made.values())]
        return [(each, each.clients.client(self.client)) for each in services]

    def has_notices(self, project: str) -> bool:
        """Return whether there are notices about *project*, a normalized name."""
        return any(service.noted.has(client, project) for service, client in self._all)

    def is_plain(self, project: str) -> bool:
        """Return whether nothing was chosen for *project*, whichever index it is from."""
        found = {service.plain.is_plain(client, project) for service, client in self._all}
        return found - {None} == {True}

    async def report(self, index: str, project: str) -> Any:  # noqa: ANN401
        """Return the decisions on a project of an index as a tree, None if it has no such project.

        The index is asked with the credentials that uv sent, if it did.
        """
        service, view = await self._view(index, project)
        return None if view is None else await service.report.decisions(view)

    async def release_files(
        self, index: str, project: str, version: str, tags: Sequence[str], *, served: bool
    ) -> Any:  # noqa: ANN401
        """Return the files of a version as a tree, see `ReleaseFiles.of`."""
        service, view = await self._view(index, project)
        if view is None:
            return None
        return await service.release_files.of(view, version, tags, served=served)

    async def _view(self, index: str, project: str) -> tuple[Service, ProjectView | None]:
        sent = self._sent.get(index)
        made = self._own if sent is None else self._for(index, sent)
        service: Service = made.state.service
        client = service.clients.client(self.client)
        try:
            return service, await service.views.view(client, service.upstream(index), project)
        except ANSWERED:
            return service, None  # there is less to report, and uv is not affected

    def close(self) -> None:
        """Close the connections to the upstreams."""
        for made in (self._own, *self._made.values()):
            made.state.service.upstreams.close()


def _settings(settings: SessionSettings, roots: Path) -> Settings:
    return Settings(
        tuple(each.upstream() for each in settings.indexes),
        settings.cache,
        settings.platforms,
        limits=_LIMITS,
        fresh_seconds=_FOR_ALL,
        ca_bundle=roots,
        insecure_hosts=frozenset(settings.insecure_hosts),
        keyring=settings.keyring,
        environ=dict(settings.environ),
        compress=False,
        failures=settings.failures,
        requested=frozenset(settings.requested),
        catalog=settings.catalog,
        catalog_mirrors=settings.catalog_mirrors,
        pinned=frozenset(settings.pinned),
        hashes=settings.given_hashes,
    )

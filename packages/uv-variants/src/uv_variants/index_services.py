"""The applications of `variants_proxy` that a session has: one for each credentials that uv sent.

What an index shows with credentials goes to requests that have them. An application is made, and
imported, for the first page that it has to choose from: a command that meets no variants has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.applications import Starlette

    from variants_proxy import Settings
    from variants_proxy.internal import ProjectView, Service

    from .indexes import UserIndex
    from .transport.route import Application, Receive, Scope, Send


@dataclass(frozen=True)
class SessionSettings:
    """What one uv command needs of its session.

    Attributes:
        proxy: settings of the service, whose upstreams are the indexes.
        indexes: of the user, in the order in which uv asks them.
        key: platform key of the machine, or name of one of the service's platforms.
        projects: for explicit indexes, by `UserIndex.proxy_name`, the projects (normalized names)
            that they are used for.
        locked: labels that an existing lock file has, by project and version: they stay.
        hashes: whether pages need hashes of all wheels, for a lock file.
        forced: projects (normalized names) whose variant the user names.
        system_certs: whether the command line or a file asks for the system's certificates.
    """

    proxy: Settings
    indexes: tuple[UserIndex, ...]
    key: str
    projects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    locked: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    hashes: bool = True
    forced: frozenset[str] = frozenset()
    system_certs: bool = False

    def may_keep(self, project: str) -> bool:
        """Return whether a page without variants stays as it is while its index does not change it.

        The catalogue, find-links and variants that are asked for by name change it.
        """
        is_simple = all(each.kind == "simple" for each in self.proxy.upstreams)
        return is_simple and self.proxy.catalog is None and project not in self.forced


class Observer(Protocol):
    """Who is told of files that were not served."""

    def refused(self, text: str) -> None:
        """Note that a file was not served, and why."""

    def failed(self, error: Exception) -> None:
        """Note that nothing can be served."""


class _Made(NamedTuple):
    """An application, its service, and the name of the command in its URLs."""

    application: Starlette
    service: Service
    client: str


class IndexServices:
    """The applications."""

    def __init__(self, settings: SessionSettings, roots: Path, observer: Observer) -> None:
        """Set up.

        Args:
            settings: of the session.
            roots: file of certificates that upstreams may have.
            observer: of transfers that break off.
        """
        self._settings = settings
        self._proxy = replace(settings.proxy, ca_bundle=roots)
        self._observer = observer
        self._sent: dict[str, str] = {}
        self._made: dict[tuple[str, str] | None, _Made] = {}

    def application(self, index: str, authorization: str) -> Application:
        """Return the application for a request of uv's, whose path is below that of the index.

        Args:
            index: name of the index.
            authorization: that uv sent for it, empty without one.
        """
        self._sent[index] = authorization

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            made = self._for(index, authorization)
            path = f"/p/{made.client}/i/{index}/{scope['path']}"
            state = {**scope.get("state", {}), "observer": self._observer}
            await made.application({**scope, "path": path, "state": state}, receive, send)

        return application

    def _for(self, index: str, sent: str | None) -> _Made:
        """Return the application that asks an index with what uv *sent*.

        None stands for credentials that we find ourselves, before uv has asked.
        """
        # Without credentials it is the same for all indexes.
        key = None if sent is None else (index if sent else "", sent)
        if key not in self._made:
            from .transport.upstream_credentials import with_authorization

            proxy = self._proxy if key is None else with_authorization(self._proxy, *key)
            try:
                self._made[key] = self._new(proxy)
            except Exception as error:
                self._observer.failed(error)
                raise
        return self._made[key]

    def _new(self, proxy: Settings) -> _Made:
        from variants_proxy import create_app
        from variants_proxy.internal import ClientSettings

        made, own = create_app(proxy), self._settings
        service: Service = made.state.service
        client = ClientSettings(own.key, own.locked, hashes=own.hashes)
        return _Made(made, service, service.clients.register(client))

    def has_notices(self, project: str) -> bool:
        """Return whether there are notices about *project*, a normalized name."""
        return any(
            service.noted.has(service.clients.client(client), project)
            for _, service, client in self._made.values()
        )

    def is_plain(self, project: str) -> bool:
        """Return whether nothing was chosen for *project*, whichever index it is from."""
        found = {
            service.plain.is_plain(service.clients.client(client), project)
            for _, service, client in self._made.values()
        }
        return False not in found

    async def report(self, index: str, project: str) -> Any:  # noqa: ANN401
        """Return the decisions on a project of an index as a tree, None if it has no such project.

        The index is asked with the credentials that uv sent, if it did.
        """
        service, view = await self._view(index, project)
        return None if view is None else await service.decisions(view)

    async def release_files(
        self, index: str, project: str, version: str, tags: Sequence[str], *, served: bool
    ) -> Any:  # noqa: ANN401
        """Return the files of a version as a tree, see `Deliveries.files_of`."""
        service, view = await self._view(index, project)
        if view is None:
            return None
        return await service.deliveries.files_of(view, version, tags, served=served)

    async def _view(self, index: str, project: str) -> tuple[Service, ProjectView | None]:
        _, service, name = self._for(index, self._sent.get(index))
        from variants_proxy.internal import ANSWERED

        client = service.clients.client(name)
        try:
            return service, await service.views.view(client, service.upstream(index), project)
        except ANSWERED:
            return service, None  # there is less to report, and uv is not affected

    def close(self) -> None:
        """Close the connections to the upstreams."""
        for made in self._made.values():
            made.service.upstreams.close()

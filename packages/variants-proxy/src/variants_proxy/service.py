"""The proxy without HTTP: its parts, connected.

A part is made, and its module imported, when it is first used: pages that are passed on need few.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .choice.clients import Clients
from .components import PageSource
from .errors import NoSuchFile
from .projects.observations import NotedProjects
from .projects.plain_pages import PlainPages
from .settings import Settings, Upstream
from .upstream.upstream_pages import UpstreamPages
from .upstream.upstreams import Upstreams
from .upstream.wheel_metadata import CoreMetadata

if TYPE_CHECKING:
    from .files.deliveries import Deliveries
    from .pages.project_pages import ProjectPages
    from .projects.decision_report import DecisionReport
    from .projects.project_views import ProjectViews
    from .projects.release_files import ReleaseFiles
    from .projects.served_metadata import ServedMetadata
    from .upstream.release_metadata import ReleaseMetadata
    from .wheels.wheel_preparation import WheelPreparation


class Service:
    """The parts of one proxy.

    Attributes:
        settings: of the proxy.
        upstreams: connections to the upstream indexes.
        upstream_pages: the upstreams' own pages.
        clients: from platform keys.
        noted: projects that there are notices about.
        plain: pages that are passed on.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.upstreams = Upstreams(settings)
        self.upstream_pages = UpstreamPages(settings, self.upstreams)
        self.clients = Clients(settings)
        self.noted = NotedProjects()
        self._core_metadata = CoreMetadata(self.upstreams, settings.limits)
        self._source: PageSource = self.upstream_pages
        if settings.catalog is not None:
            from .catalog.catalog_pages import CatalogPages
            from .catalog.catalog_source import CatalogSource

            catalog = CatalogSource(settings, self.upstreams)
            self._source = CatalogPages(settings, self.upstreams, self.upstream_pages, catalog)
        self.plain = PlainPages(
            self.upstreams, self.upstream_pages, self._source, self._core_metadata
        )

    @cached_property
    def views(self) -> ProjectViews:
        """Views of projects, for clients."""
        from .projects.project_views import ProjectViews

        return ProjectViews(
            self.settings,
            self.upstreams,
            self.upstream_pages,
            self._source,
            self._metadata,
            self._core_metadata,
            self._preparation,
            self.noted,
            self.plain,
        )

    @cached_property
    def pages(self) -> ProjectPages:
        """Pages that are written from views."""
        from .pages.project_pages import ProjectPages

        return ProjectPages(
            self.settings,
            self.upstreams,
            self.upstream_pages,
            self._core_metadata,
            self._preparation,
            self._served,
            self.noted,
        )

    @cached_property
    def deliveries(self) -> Deliveries:
        """Deliveries of files."""
        from .files.deliveries import Deliveries

        return Deliveries(
            self.upstreams,
            self.views,
            self._metadata,
            self._core_metadata,
            self._preparation,
            self._served,
        )

    @cached_property
    def report(self) -> DecisionReport:
        """Reports of decisions."""
        from .projects.decision_report import DecisionReport

        return DecisionReport(self.upstreams)

    @cached_property
    def release_files(self) -> ReleaseFiles:
        """Files of versions, for lock files and exports."""
        from .projects.release_files import ReleaseFiles

        limits = self.settings.limits
        return ReleaseFiles(
            self.upstreams, self._metadata, self._core_metadata, self._preparation, limits
        )

    @cached_property
    def _metadata(self) -> ReleaseMetadata:
        from .upstream.release_metadata import ReleaseMetadata

        return ReleaseMetadata(self.upstreams, self.settings.limits)

    @cached_property
    def _preparation(self) -> WheelPreparation:
        from .wheels.wheel_preparation import WheelPreparation

        return WheelPreparation(self.upstreams, self._core_metadata, self.settings.limits)

    @cached_property
    def _served(self) -> ServedMetadata:
        from .projects.served_metadata import ServedMetadata

        limits = self.settings.limits
        return ServedMetadata(self.upstreams, self._core_metadata, self._preparation, limits)

    def upstream(self, name: str) -> Upstream:
        """Return the upstream called *name*.

        Raises:
            NoSuchFile: there is none.
        """
        found = self.settings.upstream(name)
        if found is None:
            known = ", ".join(item.name for item in self.settings.upstreams)
            raise NoSuchFile(f"unknown index {name!r}; known indexes: {known or 'none'}")
        return found

"""The proxy without HTTP: its parts, connected."""

from __future__ import annotations

from .choice.clients import Clients
from .components import PageSource
from .errors import NoSuchFile
from .files.deliveries import Deliveries
from .pages.project_pages import ProjectPages
from .projects.decision_report import DecisionReport
from .projects.observations import NotedProjects, PlainProjects
from .projects.project_views import ProjectViews
from .projects.release_files import ReleaseFiles
from .projects.served_metadata import ServedMetadata
from .settings import Settings, Upstream
from .upstream.core_metadata import CoreMetadata
from .upstream.release_metadata import ReleaseMetadata
from .upstream.upstream_pages import UpstreamPages
from .upstream.upstreams import Upstreams
from .wheels.wheel_preparation import WheelPreparation


class Service:
    """The parts of one proxy.

    Attributes:
        settings: of the proxy.
        upstreams: connections to the upstream indexes.
        upstream_pages: the upstreams' own pages.
        clients: from platform keys.
        noted: projects that there are notices about.
        plain: projects that nothing is chosen for.
        views: of projects, for clients.
        pages: written from views.
        deliveries: of files.
        report: of decisions.
        release_files: for lock files and exports.
    """

    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.settings = settings
        self.upstreams = upstreams = Upstreams(settings)
        metadata = ReleaseMetadata(upstreams, limits)
        core_metadata = CoreMetadata(upstreams, limits)
        preparation = WheelPreparation(upstreams, core_metadata, limits)
        self.noted = NotedProjects()
        self.plain = PlainProjects()
        served = ServedMetadata(upstreams, core_metadata, preparation, limits)
        pages = UpstreamPages(settings, upstreams)
        self.upstream_pages = pages
        self.clients = Clients(settings)
        source: PageSource = pages
        if settings.catalog is not None:
            from .catalog.catalog_pages import CatalogPages
            from .catalog.catalog_source import CatalogSource

            source = CatalogPages(settings, upstreams, pages, CatalogSource(settings, upstreams))
        self.views = ProjectViews(
            settings,
            upstreams,
            pages,
            source,
            metadata,
            core_metadata,
            preparation,
            self.noted,
            self.plain,
        )
        self.pages = ProjectPages(
            settings, upstreams, pages, core_metadata, preparation, served, self.noted
        )
        self.deliveries = Deliveries(
            upstreams, self.views, metadata, core_metadata, preparation, served
        )
        self.report = DecisionReport(upstreams)
        self.release_files = ReleaseFiles(upstreams, metadata, core_metadata, preparation, limits)

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

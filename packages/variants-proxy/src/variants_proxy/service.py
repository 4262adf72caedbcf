"""The proxy without HTTP: its parts, connected.

A part is made, and its module imported, when it is first used: pages that are passed on need few.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .clients import Clients, NotedProjects
from .errors import NoSuchFile
from .pages.plain_pages import PlainPages
from .settings import Settings, Upstream
from .upstream.catalog_pages import CatalogPages
from .upstream.upstream_pages import UpstreamPages
from .upstream.upstreams import Upstreams
from .upstream.wheels import Wheels

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .choice.offers import ProjectView
    from .choice.reports import ProjectReport
    from .pages.deliveries import Deliveries
    from .pages.project_pages import ProjectPages
    from .pages.project_views import ProjectViews

    _T = TypeVar("_T")


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
        self.upstream_pages = UpstreamPages(self.upstreams)
        self.clients = Clients(settings)
        self.noted = NotedProjects()
        self._wheels = Wheels(self.upstreams)
        self._source = CatalogPages(self.upstreams, self.upstream_pages)
        self.plain = PlainPages(self.upstreams, self.upstream_pages, self._source, self._wheels)

    @cached_property
    def views(self) -> ProjectViews:
        """Views of projects, for clients."""
        from .pages.project_views import ProjectViews

        return ProjectViews(
            self.upstreams, self.upstream_pages, self._source, self._wheels, self.noted, self.plain
        )

    @cached_property
    def pages(self) -> ProjectPages:
        """Pages that are written from views."""
        from .pages.project_pages import ProjectPages

        return ProjectPages(self.upstreams, self.upstream_pages, self._wheels, self.noted)

    @cached_property
    def deliveries(self) -> Deliveries:
        """Deliveries of files."""
        from .pages.deliveries import Deliveries

        return Deliveries(self.upstreams, self.views, self._wheels)

    async def report(self, shown: ProjectView, python: str = "") -> ProjectReport:
        """Return the decisions on a project and their reasons, see `reports.report`."""
        from .choice.reports import report

        return await self.upstreams.budget(shown.upstream).compute(lambda: report(shown, python))

    async def judge(self, shown: ProjectView, question: Callable[[ProjectView], _T]) -> _T:
        """Return what *question*, a function of `judgement`, says of a project."""
        return await self.upstreams.budget(shown.upstream).compute(lambda: question(shown))

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

"""The proxy without HTTP: its parts, connected.

A part is made, and its module imported, when it is first used: pages that are passed on need few.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ._choice.judgement import Judgement, judge, labels_like
from ._choice.reports import ProjectReport, report
from ._clients import Clients, NotedProjects
from ._pages.plain_pages import PlainPages
from ._pages.project_pages import ProjectPages
from ._pages.project_views import ProjectViews
from ._upstream.catalog_pages import CatalogPages
from ._upstream.upstream_pages import UpstreamPages
from ._upstream.upstreams import Upstreams
from ._upstream.wheels import Wheels
from .errors import NoSuchFile
from .settings import Settings, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from packaging.version import Version

    from pep_variants.preferences import Preferences
    from pep_variants.wheel_files import Installed

    from ._choice.offers import ProjectView
    from ._pages.deliveries import Deliveries


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
        return ProjectViews(
            self.upstreams, self.upstream_pages, self._source, self._wheels, self.noted, self.plain
        )

    @cached_property
    def pages(self) -> ProjectPages:
        """Pages that are written from views."""
        return ProjectPages(self.upstreams, self.upstream_pages, self._wheels, self.noted)

    @cached_property
    def deliveries(self) -> Deliveries:
        """Deliveries of files."""
        from ._pages.deliveries import Deliveries

        return Deliveries(self.upstreams, self.views, self._wheels)

    async def report(self, shown: ProjectView, python: str = "") -> ProjectReport:
        """Return the decisions on a project and their reasons, see `reports.report`."""
        return await self.upstreams.budget(shown.upstream).compute(lambda: report(shown, python))

    async def judge(
        self,
        shown: ProjectView,
        installed: Mapping[str, Installed],
        admits: Callable[[Version], bool],
        preferences: Preferences,
        python: str = "",
    ) -> Judgement:
        """Return the judgement on what is *installed* of a project, see `judgement.judge`."""
        others = {name: each.version for name, each in installed.items()}
        own = installed[shown.project]
        return await self.upstreams.budget(shown.upstream).compute(
            lambda: judge(shown, own, others, admits, preferences, python)
        )

    async def labels_like(
        self, shown: ProjectView, installed: Installed
    ) -> dict[str, tuple[str, ...]]:
        """Return the labels that go with a build of another project, see `judgement`."""
        compute = self.upstreams.budget(shown.upstream).compute
        return await compute(lambda: labels_like(shown, installed))

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

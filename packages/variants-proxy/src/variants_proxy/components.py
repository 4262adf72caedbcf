"""How the proxy is put together: components with project pages that wrap one another.

::

    PlainPages                  pages without variants, passed on as the index sent them
    │   ProjectPages            pages for installers
    │     ProjectViews          the files that fit a client's machine
    └───────CatalogPages        existing builds, as files of variants
              UpstreamPages     pages of an index, find-links page or directory; fetched and cached
                Upstreams       sessions, limits of concurrent work, the cache on disk

A request for a page asks `PlainPages` first; what has to do with variants is written by
`ProjectPages`. `CatalogPages` and `UpstreamPages` are a `PageSource`: the former asks the latter,
and hands on its pages or others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .choice.views import Client
    from .settings import Upstream
    from .upstream.upstream_pages import FetchedPage


class PageSource(Protocol):
    """Project pages of the upstreams."""

    async def get_project_page(
        self, upstream: Upstream, project: str, client: Client
    ) -> FetchedPage | None:
        """Return the page of a project, None if the upstream does not have it.

        Args:
            upstream: index or find-links page.
            project: normalized name; empty for all files of a find-links page.
            client: of the request.

        Raises:
            UpstreamError: the upstream fails, and there is no old page.
        """

    async def adds(self, upstream: Upstream, project: str, client: Client) -> bool:
        """Return whether the page may have files that the upstream's own does not have."""

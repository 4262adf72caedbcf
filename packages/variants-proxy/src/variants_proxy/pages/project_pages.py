"""Pages of the proxy (PEP 503, PEP 691): project pages and the list of projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from variants_index.pages import (
    JSON,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
)

from ..choice.views import Client, ProjectView
from ..headers import Document, PageFormat
from ..settings import Settings, Upstream
from ..upstream.upstream_pages import UpstreamPages
from ..upstream.upstreams import Upstreams
from .page_entries import PageEntries

_KINDS: dict[PageFormat, str] = {"json": JSON, "html": "text/html; charset=utf-8"}


class ProjectPages:
    """Writes the pages of the proxy."""

    def __init__(
        self, settings: Settings, upstreams: Upstreams, pages: UpstreamPages, entries: PageEntries
    ) -> None:
        self._settings = settings
        self._upstreams = upstreams
        self._pages = pages
        self._entries = entries

    async def project_list(
        self, upstream: Upstream | None, forms: Sequence[PageFormat]
    ) -> Document:
        """Return the list of projects of *upstream*, or of all upstreams if it is None.

        Args:
            upstream: index, None for all that are not explicit.
            forms: accepted formats, the preferred one first.

        Raises:
            UpstreamError: one of them fails.
        """
        asked = (
            [item for item in self._settings.upstreams if not item.explicit]
            if upstream is None
            else [upstream]
        )
        found = [await self._pages.projects(item) for item in asked]

        def write() -> bytes:
            names = sorted({name for listed in found for name in listed})
            return json_projects(names) if forms[0] == "json" else html_projects(names)

        private = any(map(self._upstreams.is_private, asked))
        return Document(
            await self._upstreams.compute(write),
            _KINDS[forms[0]],
            _cache_control(private=private, seconds=int(self._settings.fresh_seconds)),
            vary="Accept",
        )

    async def page(
        self, client: Client, shown: Sequence[ProjectView], prefix: str, forms: Sequence[PageFormat]
    ) -> Document:
        """Return the page with the files of *shown*.

        Args:
            client: of the request.
            shown: one project, or all of a find-links page.
            prefix: relative URL from the page to ``/p/<key>/``.
            forms: accepted formats, the preferred one first.
        """
        body, kind = await self._written(client, shown, prefix, forms[0])
        sure = all(item.sure for item in shown) and not client.floating
        # As long as the upstreams allow their own clients.
        lasts = min((item.found.max_age for item in shown), default=0) if sure else 0
        private = any(item.found.private for item in shown)
        has_variants = any(item.choice and item.choice.decisions for item in shown)
        is_for_all = not (client.is_at_index or client.floating or private)
        return Document(
            body,
            kind,
            "no-cache"
            if client.in_place
            else _cache_control(private=private, seconds=lasts, stored=not client.floating),
            vary="Accept, User-Agent" if has_variants and not client.is_at_index else "Accept",
            kept=max(1, min(lasts, int(self._settings.fresh_seconds))) if is_for_all else 0,
        )

    async def _written(
        self, client: Client, shown: Sequence[ProjectView], prefix: str, form: PageFormat
    ) -> tuple[bytes, str]:
        entries: list[PageFile] = []
        for item in shown:
            if item.choice is None:
                entries += item.found.page.files
            else:
                entries += await self._entries.of(client, item, item.choice, prefix)
        files = tuple(entries)

        def write() -> bytes:
            page = Page("", files)
            if len(shown) == 1:
                page = replace(shown[0].found.page, files=files)
            return json_page(page) if form == "json" else html_page(page)

        return await self._upstreams.compute(write), _KINDS[form]


def _cache_control(*, private: bool, seconds: int, stored: bool = True) -> str:
    if not stored:
        return "no-store"
    scope = "private" if private else "public"
    return f"{scope}, max-age={seconds}, stale-if-error=86400"

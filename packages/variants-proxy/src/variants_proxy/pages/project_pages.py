"""Pages of the proxy (PEP 503, PEP 691): project pages and the list of projects."""

from __future__ import annotations

import time
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
from ..settings import Settings, Upstream
from ..upstream.responses import CachedResponse, PageFormat
from ..upstream.upstream_pages import UpstreamPages
from ..upstream.upstreams import Upstreams
from .page_entries import PageEntries

_KINDS: dict[PageFormat, str] = {"json": JSON, "html": "text/html; charset=utf-8"}

UNSURE_SECONDS = 5.0
"""Lifetime of a response that was made without everything that should have been read."""


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
    ) -> CachedResponse:
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

        fresh = self._settings.fresh_seconds
        return CachedResponse(
            await self._upstreams.compute(write),
            _KINDS[forms[0]],
            _cache_control(private=any(map(self._upstreams.is_private, asked)), seconds=int(fresh)),
            expires=time.monotonic() + fresh,
            vary="Accept",
            packs=self._settings.compress,
        )

    async def page(
        self, client: Client, shown: Sequence[ProjectView], prefix: str, forms: Sequence[PageFormat]
    ) -> CachedResponse:
        """Return the page with the files of *shown*.

        Args:
            client: of the request.
            shown: one project, or all of a find-links page.
            prefix: relative URL from the page to ``/p/<key>/``.
            forms: accepted formats, the preferred one first.
        """
        body, kind = self._unchanged(shown, forms) or await self._written(
            client, shown, prefix, forms[0]
        )
        sure = all(item.sure for item in shown)
        fresh = self._settings.fresh_seconds
        now = time.monotonic()
        left = max(0.0, min((item.found.checked + fresh for item in shown), default=now) - now)
        lasts = left if sure else min(left, UNSURE_SECONDS)
        private = any(item.found.private for item in shown)
        has_variants = any(item.choice and item.choice.decisions for item in shown)
        return CachedResponse(
            body,
            kind,
            "no-cache"
            if client.in_place
            else _cache_control(
                private=private,
                seconds=0 if client.floating or not sure else int(fresh),
                stored=not client.floating,
            ),
            expires=now + lasts,
            vary="Accept, User-Agent" if has_variants and not client.is_at_index else "Accept",
            packs=self._settings.compress,
            kept=max(1, int(lasts)) if client.shared and not (client.floating or private) else 0,
        )

    def _unchanged(
        self, shown: Sequence[ProjectView], forms: Sequence[PageFormat]
    ) -> tuple[bytes, str] | None:
        """Return body and content type of the upstream's page if it can be served unchanged."""
        if len(shown) == 1 and shown[0].choice is None:
            listing = shown[0].found.listing
            if listing is not None and listing.plain and listing.plain.form in forms:
                return listing.body, listing.kind
        return None

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

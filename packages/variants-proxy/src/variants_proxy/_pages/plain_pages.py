"""Pages that have nothing to do with variants: they are passed on, without a look at each file."""

from __future__ import annotations

from functools import partial

from pep_variants import preferences as user_preferences
from pep_variants import safe_files

from .._clients import Client
from .._sharing import LRUCache
from .._upstream.catalog_pages import CatalogPages
from .._upstream.releases import FetchedPage, PageRelease
from .._upstream.upstream_pages import SentPage, UpstreamPages
from .._upstream.upstreams import Upstreams
from .._upstream.wheels import Wheels, is_cheap
from ..errors import NoSuchFile
from ..settings import Upstream

_MOST = 20_000
"""Projects that are remembered, of all clients together."""


class PlainPages:
    """Finds the pages of indexes that clients get unchanged."""

    def __init__(
        self,
        upstreams: Upstreams,
        pages: UpstreamPages,
        source: CatalogPages,
        wheels: Wheels,
    ) -> None:
        self._upstreams = upstreams
        self._pages = pages
        self._source = source
        self._wheels = wheels
        self._projects: LRUCache[tuple[str, str], bool] = LRUCache(_MOST)

    def is_plain(self, client: Client, project: str) -> bool | None:
        """Return whether all pages of a project were unchanged, None if there were none."""
        return self._projects.get((client.key, project))

    async def passes(
        self, client: Client, upstream: Upstream, project: str, found: FetchedPage
    ) -> bool:
        """Return whether there is nothing to select from on a page."""
        plain = (
            not found.is_described
            and (client.at_index or not found.private)
            and found.newest is not None
            and await self._may_pass(client, upstream, project)
            and not await self._is_marked(upstream, found.newest)
        )
        self._note(client, project, plain=plain)
        return plain

    async def unchanged(self, client: Client, upstream: Upstream, project: str) -> SentPage | None:
        """Return the page of an index that *client* gets as the index sent it, None for another.

        That is one at the index's own URL which has nothing to do with variants.

        Raises:
            NoSuchFile: the index does not have the project.
            UpstreamError: the index fails.
        """
        if (
            not client.at_index
            or not await self._may_pass(client, upstream, project)
            or await self._source.adds(upstream, project, client)
        ):
            return None
        sent = await self._pages.sent(upstream, project)
        if sent is None:
            raise NoSuchFile(f"index {upstream.name} has no project {project}")
        if sent.answer.url != f"{upstream.url}{project}/":
            return None  # relative links are relative to another page
        if not sent.is_plain:
            if sent.newest is None or (marked := await self._is_marked(upstream, sent.newest)):
                return None
            wheels = sent.newest.wheels[:1]
            # METADATA of wheels without a hash may change.
            if marked is not None and all(each.hashes or not is_cheap(each) for each in wheels):
                sent = await self._upstreams.budget(upstream).compute(
                    partial(self._pages.note_plain, upstream, project, sent)
                )
        self._note(client, project, plain=True)
        return sent

    async def _may_pass(self, client: Client, upstream: Upstream, project: str) -> bool:
        """Return whether a page of *upstream* alone decides what *client* gets."""
        forced = client.machine.preferences.forced.get(project, user_preferences.NON_VARIANT_LABEL)
        return (
            upstream.kind == "simple"
            and not safe_files.is_local(upstream.url)
            and forced == user_preferences.NON_VARIANT_LABEL
            and not await self._pages.other_sources(upstream, project)
        )

    async def _is_marked(self, upstream: Upstream, release: PageRelease) -> bool | None:
        """Return whether a release has variant markers, None if they cannot be read."""
        if not release.wheels:
            return False
        return await self._wheels.is_marked(upstream, release.wheels[0], thorough=False)

    def _note(self, client: Client, project: str, *, plain: bool) -> None:
        """Note a page; a project with one that is not plain is not plain for good."""
        key = (client.key, project)
        self._projects.put(key, plain and self._projects.get(key) is not False)

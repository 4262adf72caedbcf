"""Projects of the catalogue that have to come from the same variant, such as torch and torchvision.

Pages are made one project at a time. So a project has the label that the user or a lock gives the
other one, or else one that is chosen for what it depends on, where it has such a variant that fits.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from packaging.utils import canonicalize_name

from pep_variants.choose.preferences import NON_VARIANT_LABEL
from pep_variants.wheelfile.core_metadata import iter_fields

from ..choice.locked_labels import LockedVersion
from ..choice.offers import NO_AGREEMENT, Agreed, Choice
from ..choice.views import Client
from ..errors import UpstreamError
from ..settings import Upstream
from ..upstream.catalog_files import published
from ..upstream.core_metadata import CoreMetadata
from ..upstream.lru import LRUCache
from ..upstream.releases import wheel_version
from ..upstream.upstream_pages import FetchedPage
from .catalog_choice import locked_names
from .catalog_pages import CatalogPage

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class CatalogAgreement:
    """Finds the labels that a project should have because of others."""

    def __init__(
        self,
        core_metadata: CoreMetadata,
        page: Callable[[Client, Upstream, str], Awaitable[FetchedPage | None]],
        choice: Callable[[Client, Upstream, str, FetchedPage], Awaitable[Choice]],
    ) -> None:
        """Set up.

        Args:
            core_metadata: of wheels.
            page: returns the page of a project.
            choice: returns the choice for a project whatever others have.
        """
        self._core_metadata = core_metadata
        self._page = page
        self._choice = choice
        self._known: LRUCache[str, frozenset[str]] = LRUCache(1024)

    async def agreed(
        self, client: Client, upstream: Upstream, project: str, found: FetchedPage
    ) -> Agreed:
        """Return what *project* should have because of another one.

        Args:
            client: of the request.
            upstream: of the page.
            project: normalized name.
            found: its page.
        """
        entry = found.entry if isinstance(found, CatalogPage) else None
        forced = client.machine.preferences.forced
        if entry is None or not entry.coherent or project in forced:
            return NO_AGREEMENT
        for name in entry.coherent:
            if name in forced:
                label = forced[name]
                return NO_AGREEMENT if label == NON_VARIANT_LABEL else Agreed((label,), name)
        for name in entry.coherent:
            if name in client.locked and (labels := await self._locked(client, upstream, name)):
                return Agreed(labels, name)
        needed = await self._required(upstream, found)
        for name in entry.coherent:
            if name in needed and (labels := await self._chosen(client, upstream, name)):
                return Agreed(labels, name)
        return NO_AGREEMENT

    async def _locked(self, client: Client, upstream: Upstream, name: str) -> tuple[str, ...]:
        """Return the labels that a lock has of a project."""
        page = await self._other(client, upstream, name)
        if page is None:
            return ()
        names = locked_names(client.locked[name], page.page)
        labels: dict[str, None] = {}
        for items in names.values():
            locked = LockedVersion(items)
            labels |= dict.fromkeys(locked.labels)
            labels |= dict.fromkeys(label for label in locked.names.values() if label is not None)
        return tuple(labels)

    async def _chosen(self, client: Client, upstream: Upstream, name: str) -> tuple[str, ...]:
        """Return the labels that are chosen for the versions of a project."""
        page = await self._other(client, upstream, name)
        if page is None:
            return ()
        choice = await self._choice(client, upstream, name, page)
        found = (decision.selection.chosen for decision in choice.decisions)
        labels = (file.label for file in found if file is not None)
        return tuple(dict.fromkeys(label for label in labels if label is not None))

    async def _other(self, client: Client, upstream: Upstream, name: str) -> FetchedPage | None:
        try:
            return await self._page(client, upstream, name)
        except UpstreamError:
            return None  # a request for its page says why

    async def _required(self, upstream: Upstream, found: FetchedPage) -> frozenset[str]:
        """Return what the newest of the publishers' files requires, without extras."""
        known = self._known.get(found.digest)
        if known is None:
            known = await self._read_required(upstream, found)
            self._known.put(found.digest, known)
        return known

    async def _read_required(self, upstream: Upstream, found: FetchedPage) -> frozenset[str]:
        files = [file for file in found.page.files if published(file) is not None]
        versions = {file.filename: wheel_version(file.filename) for file in files}
        known = [(version, name) for name, version in versions.items() if version is not None]
        if not known:
            return frozenset()
        newest = max(known)[1]
        try:
            metadata = await self._core_metadata.read(
                upstream, next(file for file in files if file.filename == newest)
            )
        except UpstreamError:
            return frozenset()
        values = [item.value for item in iter_fields(metadata) if item.name == "requires-dist"]
        matches = (_NAME.match(value) for value in values if "extra" not in value)
        return frozenset(canonicalize_name(match[1]) for match in matches if match is not None)

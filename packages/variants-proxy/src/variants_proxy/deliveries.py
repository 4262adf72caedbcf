"""Files for clients: a redirect to the upstream, or bytes that pass through the proxy."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from pep_variants.choose.markers import VariantContext
from pep_variants.errors import MetadataError
from pep_variants.model.label import split_label
from pep_variants.model.metadata import Metadata
from variants_index.pages import Page, PageFile

from .choice import OWN, Choice, Release, releases
from .core_metadata import CoreMetadata
from .errors import NoSuchFile, UpstreamError
from .metadata_check import MetadataCheck
from .project_views import ProjectViews
from .release_metadata import ReleaseMetadata
from .settings import Settings, Upstream
from .transfers import Transfer, unchanged_transfer
from .upstream_pages import FetchedPage, UpstreamPages
from .upstreams import Upstreams
from .urls import CHOSEN, PLAIN
from .views import Client
from .wheel_preparation import WheelPreparation

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """The response for a file: a redirect, a transfer, or the contents of a small file.

    Attributes:
        upstream: of the file.
        private: whether shared caches must not store it.
        floating: whether the URL may stand for another file later.
        redirect: URL of the file, empty if it passes through the proxy.
        transfer: through the proxy.
        data: contents of a small file.
    """

    upstream: Upstream
    private: bool
    floating: bool
    redirect: str = ""
    transfer: Transfer | None = None
    data: bytes | None = None


class Deliveries:
    """Decides how files are delivered."""

    def __init__(
        self,
        settings: Settings,
        upstreams: Upstreams,
        pages: UpstreamPages,
        views: ProjectViews,
        metadata: ReleaseMetadata,
        core_metadata: CoreMetadata,
        preparation: WheelPreparation,
    ) -> None:
        self._settings = settings
        self._upstreams = upstreams
        self._pages = pages
        self._views = views
        self._metadata = metadata
        self._core_metadata = core_metadata
        self._preparation = preparation

    async def file(
        self, client: Client, upstream: Upstream, project: str, choice: str, filename: str
    ) -> Delivery:
        """Return the delivery of a file or, with the suffix ``.metadata``, of its core metadata.

        Raises:
            NoSuchFile: the upstream has no such file.
            UpstreamError: it cannot be fetched.
            VariantError, UnusableFile: it cannot be rewritten.
        """
        wanted = filename.removesuffix(".metadata")
        is_metadata = wanted != filename
        found = await self._pages.page(upstream, project)
        if found is None:
            raise NoSuchFile(f"index {upstream.name} has no project {project}")
        floating = choice == CHOSEN
        file, context, release = await self._resolved(
            client, upstream, project, found, choice, wanted
        )
        label = split_label(file.filename)[1]
        # Pages have no hashes of these: the proxy compares them with the upstream's.
        unhashed = floating
        try:
            reduced = await self._preparation.reduced(upstream, file, context)
        except UpstreamError as error:
            if is_metadata or not self._is_direct(upstream, file):
                raise
            logger.warning("%s: its metadata cannot be inspected: %s", file.filename, error)
            reduced = None
            unhashed = True
        redirects = self._is_direct(upstream, file) and not (unhashed and file.hashes)
        delivery = Delivery(upstream, found.private, floating)
        if is_metadata:
            if reduced is None and file.core_metadata is not None and redirects:
                return replace(delivery, redirect=f"{file.url}.metadata")
            if not file.filename.endswith(".whl"):
                raise NoSuchFile(f"{filename}: only wheels have core metadata files")
            data = reduced or await self._core_metadata.read(upstream, file)
            return replace(delivery, data=data)
        check = None
        if label is not None:
            metadata = await self._index_metadata(upstream, release)
            check = MetadataCheck(upstream.url, file, label, metadata)
            if await self._preparation.agrees(upstream, check):
                check = None
        if reduced is not None:
            transfer = await self._preparation.prepared(upstream, file, context, reduced)
            return replace(delivery, transfer=replace(transfer, check=check))
        if check is None and redirects:
            return replace(delivery, redirect=file.url)
        self._upstreams.allow_links(upstream, file.url)
        session = self._upstreams.session(upstream)
        transfer = await self._upstreams.budget(upstream).file(
            file.url, lambda: unchanged_transfer(session, file), self._settings.limits.page_seconds
        )
        return replace(delivery, transfer=replace(transfer, check=check))

    def _is_direct(self, upstream: Upstream, file: PageFile) -> bool:
        return self._upstreams.is_direct(upstream, file.url)

    async def _resolved(
        self,
        client: Client,
        upstream: Upstream,
        project: str,
        found: FetchedPage,
        choice: str,
        plain: str,
    ) -> tuple[PageFile, VariantContext | None, Release | None]:
        """Return the upstream's file for a choice and plain filename, with context and release."""
        shown, _ = await self._views.chosen(client, upstream, project, found)
        return await self._upstreams.budget(upstream).compute(
            lambda: _find_file(shown, upstream, found.page, choice, plain)
        )

    async def _index_metadata(self, upstream: Upstream, release: Release | None) -> Metadata | None:
        if release is None:
            return None
        try:
            return await self._metadata.read(upstream, release)
        except MetadataError:
            return None


def _find_file(
    shown: Choice, upstream: Upstream, page: Page, choice: str, plain: str
) -> tuple[PageFile, VariantContext | None, Release | None]:
    if choice == CHOSEN:
        offer = next((item for item in shown.offers if item.filename == plain), None)
        if offer is None:
            raise NoSuchFile(f"no file is selected for {plain}")
        release = next((d.release for d in shown.decisions if plain in d.offers), None)
        return offer.file, offer.context, release or _release_of(offer.file, page)
    label = None if choice == PLAIN else choice
    file = next(
        (item for item in page.files if split_label(item.filename) == (plain, label)),
        None,
    )
    if file is None:
        raise NoSuchFile(
            f"index {upstream.name} has no {plain}"
            + (f" of variant {label}" if label is not None else "")
        )
    for decision in shown.decisions:
        if file in decision.release.wheels:
            for candidate in decision.offers.values():
                if candidate.file is file:
                    return file, candidate.context, decision.release
            ranking = decision.selection.rankings.get(OWN)
            supported = ranking.supported(label) if ranking and label is not None else {}
            return file, VariantContext(label or "", supported), decision.release
    offer = next((item for item in shown.offers if item.file == file), None)
    release = _release_of(file, page) if label is not None else None
    if offer is None and label is not None:
        return file, VariantContext(label, {}), release
    return file, offer.context if offer is not None else None, release


def _release_of(file: PageFile, page: Page) -> Release | None:
    """Return the release with variants that has *file*, None if there is none."""
    return next((release for release in releases(page) if file in release.wheels), None)

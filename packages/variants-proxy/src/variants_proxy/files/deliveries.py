"""Files for clients: a redirect to the upstream, or bytes that pass through the proxy."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import quote

from pep_variants import Metadata, MetadataError, VariantContext, VariantError, split_label
from pep_variants.internal import metadata_terms
from variants_index import Page, PageFile

from ..choice.choice import OWN, own_context
from ..choice.in_place_names import (
    FOLDER,
    HERE,
    REFUSED,
    UNLABELLED,
    label_in_folder,
    wheel_at,
)
from ..choice.metadata_check import MetadataCheck
from ..choice.offers import Choice, Offer
from ..choice.remarks import refusal
from ..choice.views import Client
from ..errors import NoSuchFile, UnusableFile, UpstreamError
from ..projects.project_views import ProjectViews
from ..projects.served_metadata import ServedMetadata
from ..settings import Upstream
from ..upstream.catalog_files import known_variants, origin, published
from ..upstream.release_metadata import ReleaseMetadata
from ..upstream.releases import Release, release_with
from ..upstream.upstream_pages import FetchedPage, project_of
from ..upstream.upstreams import Upstreams
from ..upstream.wheel_metadata import CoreMetadata, is_cheap
from ..wheels.transfers import Transfer, unchanged_transfer
from ..wheels.wheel_preparation import WheelPreparation

logger = logging.getLogger(__name__)

_Resolved: TypeAlias = "tuple[PageFile, VariantContext | None, Release | None]"
"""The upstream's file, what its markers are evaluated against, and its version."""


@dataclass(frozen=True)
class Delivery:
    """The response for a file: a redirect, a transfer, or the core metadata of a wheel.

    Attributes:
        client: of the request.
        upstream: of the file.
        private: whether shared caches must not store it.
        vary: request headers that the response depends on.
        redirect: URL of the file, empty if it passes through the proxy.
        transfer: through the proxy.
        data: core metadata.
    """

    client: Client
    upstream: Upstream
    private: bool
    vary: str = ""
    redirect: str = ""
    transfer: Transfer | None = None
    data: bytes | None = None

    @property
    def cache_control(self) -> str:
        """Value of ``Cache-Control``: a URL of a transfer with a name always means its bytes.

        Unless the platform file may change that the URL names.
        """
        may_change = bool(self.client.machine.name) and not self.client.portable
        if self.transfer is None or not self.transfer.name or may_change:
            return "no-cache"
        return f"{'private' if self.private else 'public'}, max-age=31536000, immutable"


class Deliveries:
    """Decides how files are delivered."""

    def __init__(
        self,
        upstreams: Upstreams,
        views: ProjectViews,
        metadata: ReleaseMetadata,
        core_metadata: CoreMetadata,
        preparation: WheelPreparation,
        served: ServedMetadata,
    ) -> None:
        self._upstreams = upstreams
        self._views = views
        self._metadata = metadata
        self._core_metadata = core_metadata
        self._preparation = preparation
        self._served = served

    async def file(
        self, client: Client, upstream: Upstream, project: str, folder: str, filename: str
    ) -> Delivery:
        """Return the delivery of a file that pages link to, or of its core metadata.

        Any label of the index is delivered, whether or not it fits the client's machine: a lock
        file is for others as well.

        Args:
            client: of the request.
            upstream: of the page.
            project: normalized name; empty for the one in *filename*, on a find-links page.
            folder: of the URL, see `in_place_names`.
            filename: of the URL; with the suffix ``.metadata`` for core metadata.

        Raises:
            NoSuchFile: the upstream has no such file, or folder and filename do not agree.
            UpstreamError: it cannot be fetched.
            VariantError, UnusableFile: it cannot be rewritten.
        """
        label, plain = _named(folder, filename.removesuffix(".metadata"))
        project = project or project_of(plain) or ""
        found = await self._views.source.get_project_page(upstream, project, client)
        if found is None:
            raise NoSuchFile(f"index {upstream.name} has no project {project}")
        compute = self._upstreams.budget(upstream).compute
        if client.portable and label is not None:
            file, release = await compute(lambda: _labelled(upstream, found.page, plain, label))
            context = await self._own_context(upstream, file, label, release)
            resolved: _Resolved = file, context, release
        else:
            shown, _ = await self._views.chosen(client, upstream, project, found)
            if folder == REFUSED and (reason := refusal(shown, project, plain)):
                raise UnusableFile(reason)
            resolved = await compute(lambda: _find_file(shown, upstream, found.page, label, plain))
        return await self._delivered(client, upstream, project, found, resolved, filename)

    async def _own_context(
        self, upstream: Upstream, file: PageFile, label: str, release: Release | None
    ) -> VariantContext:
        if release is None:
            return VariantContext(label, {})
        try:
            return own_context(label, await self._metadata.read(upstream, release))
        except VariantError:
            # Without variant markers nothing depends on it.
            if metadata_terms(await self._core_metadata.read(upstream, file)):
                raise
            return VariantContext(label, {})

    async def _delivered(
        self,
        client: Client,
        upstream: Upstream,
        project: str,
        found: FetchedPage,
        resolved: _Resolved,
        filename: str,
    ) -> Delivery:
        file, context, release = resolved
        page_upstream, upstream = upstream, origin(upstream, file)
        is_metadata = filename.endswith(".metadata")
        plain, label = split_label(file.filename)
        is_direct = self._upstreams.is_direct(upstream, file.url, at_index=client.at_index)
        # Pages may have no hashes of these: the proxy compares them with the upstream's.
        unhashed = not (client.hashes or is_cheap(file))
        # What was read to look for markers is at hand: no client has to ask twice for it.
        is_known = context is not None and bool(file.hashes or file.core_metadata)
        try:
            reduced = await self._preparation.reduced(upstream, file, context)
        except UpstreamError as error:
            if is_metadata or not is_direct:
                raise
            logger.warning("%s: its metadata cannot be inspected: %s", file.filename, error)
            reduced = None
            unhashed = True
            is_known = False
        redirects = is_direct and not (unhashed and file.hashes)
        delivery = Delivery(client, upstream, found.private)
        if is_metadata:
            if context is not None and not client.at_index:
                delivery = replace(delivery, vary="User-Agent")
            if client.merges and context is not None:
                shown, _ = await self._views.chosen(client, page_upstream, project, found)
                offer = Offer(file, plain, label, context)
                merged = await self._served.of_file(page_upstream, shown, offer)
                if merged is not None:
                    return replace(delivery, data=merged)
            if reduced is None and file.core_metadata is not None and redirects and not is_known:
                return replace(delivery, redirect=f"{file.url}.metadata")
            if not file.filename.endswith(".whl"):
                raise NoSuchFile(f"{filename}: only wheels have core metadata files")
            data = reduced or await self._core_metadata.read(upstream, file)
            return replace(delivery, data=data)
        if label is not None and known_variants((file,)) is None:
            metadata = await self._index_metadata(upstream, release)
            check = MetadataCheck(upstream.url, file, label, metadata)
            await self._preparation.verify(upstream, check)
        if reduced is not None:
            transfer = await self._preparation.prepared(upstream, file, context, reduced)
            return replace(delivery, transfer=transfer)
        if redirects:
            return replace(delivery, redirect=file.url)
        self._upstreams.allow_links(upstream, file.url)
        session = self._upstreams.session(upstream)
        transfer = await self._upstreams.budget(upstream).fetch(
            lambda: unchanged_transfer(session, file)
        )
        return replace(delivery, transfer=transfer)

    async def _index_metadata(self, upstream: Upstream, release: Release | None) -> Metadata | None:
        if release is None:
            return None
        try:
            return await self._metadata.read(upstream, release)
        except MetadataError:
            return None


def _named(folder: str, name: str) -> tuple[str | None, str]:
    """Return label and plain filename of the file *name* in a folder, as its page has them.

    Raises:
        NoSuchFile: no page has such a URL.
    """
    wheel = wheel_at(f"{FOLDER}/{quote(folder)}/{quote(name)}")
    if folder == HERE:
        raise NoSuchFile(f"{name}: is of a floating lock of an earlier release: lock it anew")
    if wheel is not None:
        return wheel
    label = label_in_folder(folder)
    if label is None and folder not in (REFUSED, UNLABELLED):
        raise NoSuchFile(f"{FOLDER}/{folder}/{name}: is not the name of a variant wheel")
    return label, name  # a publisher's file has its own name in the folder


def _find_file(
    shown: Choice, upstream: Upstream, page: Page, label: str | None, plain: str
) -> _Resolved:
    file = _file_with(upstream, page, plain, label)
    for decision in shown.decisions:
        if file in decision.release.wheels:
            for candidate in decision.offers.values():
                if candidate.file is file:
                    return file, candidate.context, decision.release
            ranking = decision.selection.rankings.get(OWN)
            supported = ranking.supported(label) if ranking and label is not None else {}
            return file, VariantContext(label or "", supported), decision.release
    offer = next((item for item in shown.offers if item.file == file), None)
    release = release_with(file, page) if label is not None else None
    if offer is None and label is not None:
        return file, VariantContext(label, {}), release
    return file, offer.context if offer is not None else None, release


def _file_with(upstream: Upstream, page: Page, plain: str, label: str | None) -> PageFile:
    for file in page.files:
        if split_label(file.filename) == (plain, label):
            return file
        own = published(file)
        if own is not None and (own.original.filename, own.label) == (plain, label):
            return file
    of = f" of variant {label}" if label is not None else ""
    raise NoSuchFile(f"index {upstream.name} has no {plain}{of}")


def _labelled(
    upstream: Upstream, page: Page, plain: str, label: str
) -> tuple[PageFile, Release | None]:
    file = _file_with(upstream, page, plain, label)
    return file, release_with(file, page)

"""Files for clients: redirects to the upstream, or bytes that pass through the proxy.

`Deliveries.files_of` describes the files of one version, for lock files and exports.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants import labels as wheel_labels
from pep_variants import markers, wheel_files
from pep_variants.errors import MetadataError, VariantError
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from variants_index.finder import CatalogFile
from variants_index.pages import Page, PageFile

from .._choice.choice import OWN, own_context
from .._choice.in_place_names import FOLDER, REFUSED, UNLABELLED, label_in_folder, wheel_at
from .._choice.offers import Choice, Offer, ProjectView
from .._choice.reports import IndexRelease, IndexWheel, refusal
from .._clients import Client
from .._sharing import gather_limited
from .._upstream.releases import (
    FetchedPage,
    PageRelease,
    is_rewritten,
    known_variants,
    named_as,
    published,
    release_with,
    wheel_version,
)
from .._upstream.transfers import Transfer, unchanged_transfer
from .._upstream.upstream_pages import project_of
from .._upstream.upstreams import Upstreams
from .._upstream.wheels import Wheels, is_cheap
from ..errors import NoSuchFile, UnusableFile, UpstreamError
from ..settings import Upstream
from .merged_metadata import merged_for
from .project_views import ProjectViews

logger = logging.getLogger(__name__)

_Resolved: TypeAlias = "tuple[PageFile, VariantContext | None, PageRelease | None]"
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
        wheels: Wheels,
    ) -> None:
        self._upstreams = upstreams
        self._views = views
        self._wheels = wheels

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
            file = await compute(lambda: _file_with(upstream, found.page, plain, label))
            release = await compute(lambda: release_with(file, found.page))
            context = await self._own_context(upstream, file, label, release)
            resolved: _Resolved = file, context, release
        else:
            shown, _ = await self._views.chosen(client, upstream, project, found)
            if folder == REFUSED and (reason := refusal(shown, project, plain)):
                raise UnusableFile(reason)
            resolved = await compute(lambda: _find_file(shown, upstream, found.page, label, plain))
        return await self._delivered(client, upstream, project, found, resolved, filename)

    async def _own_context(
        self, upstream: Upstream, file: PageFile, label: str, release: PageRelease | None
    ) -> VariantContext:
        if release is None:
            return VariantContext(label, {})
        try:
            return own_context(label, await self._views.metadata.read(upstream, release))
        except VariantError:
            # Without variant markers nothing depends on it.
            if markers.metadata_terms(await self._wheels.read(upstream, file)):
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
        page_upstream, upstream = upstream, self._upstreams.origin(upstream, file)
        is_metadata = filename.endswith(".metadata")
        plain, label = wheel_labels.split_label(file.filename)
        is_direct = self._upstreams.is_direct(upstream, file.url, at_index=client.at_index)
        # Pages may have no hashes of these: the proxy compares them with the upstream's.
        unhashed = not (client.hashes or is_cheap(file))
        # What was read to look for markers is at hand: no client has to ask twice for it.
        is_known = context is not None and bool(file.hashes or file.core_metadata)
        try:
            reduced = await self._wheels.reduced(upstream, file, context)
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
                merged = await merged_for(
                    self._upstreams, self._wheels, page_upstream, shown, offer
                )
                if merged is not None:
                    return replace(delivery, data=merged)
            if reduced is None and file.core_metadata is not None and redirects and not is_known:
                return replace(delivery, redirect=f"{file.url}.metadata")
            if not file.filename.endswith(".whl"):
                raise NoSuchFile(f"{filename}: only wheels have core metadata files")
            data = reduced or await self._wheels.read(upstream, file)
            return replace(delivery, data=data)
        if label is not None and known_variants((file,)) is None:
            metadata = await self._index_metadata(upstream, release)
            await self._wheels.verify(upstream, file, label, metadata)
        if reduced is not None:
            logger.debug("Delivering %s, its dependencies decided for %s", filename, label)
            transfer = await self._wheels.prepared(upstream, file, context, reduced)
            return replace(delivery, transfer=transfer)
        if redirects:
            logger.debug("Delivering %s by a redirect to the index's own file", filename)
            return replace(delivery, redirect=file.url)
        logger.debug("Delivering %s, the index's own file", filename)
        self._upstreams.allow_links(upstream, file.url)
        session = self._upstreams.session(upstream)
        transfer = await self._upstreams.budget(upstream).fetch(
            lambda: unchanged_transfer(session, file)
        )
        return replace(delivery, transfer=transfer)

    async def _index_metadata(
        self, upstream: Upstream, release: PageRelease | None
    ) -> Metadata | None:
        if release is None:
            return None
        try:
            return await self._views.metadata.read(upstream, release)
        except MetadataError:
            return None

    async def files_of(
        self, shown: ProjectView, version: str, tags: Collection[str], *, served: bool
    ) -> IndexRelease:
        """Return the wheels of a version with variants, and its variant metadata.

        A version without variants has no documents, and only its wheels with variant markers.
        Publishers' files of another version (``2.9.0+cu128``) are not listed.

        Args:
            shown: one project.
            version: any spelling.
            tags: python and ABI tags (``cp313-cp313``) of the wheels that are listed; empty for
                all.
            served: compute the hashes of rewritten wheels, which may take downloading them.

        Raises:
            VariantError: the variant metadata is broken, or cannot be fetched.
            UpstreamError: the same of wheels.
        """
        release = _release(shown, version)
        metadata = Metadata()
        documents: tuple[bytes, ...] = ()
        if release is not None:
            metadata, documents = await self._views.metadata.documents(shown.upstream, release)
        wheels = [
            file
            for file in (_wheels(shown, version) if release is None else release.wheels)
            if _is_of(file, version) and (not tags or _python_tags(file.filename) in tags)
        ]
        entries = await gather_limited(
            [partial(self._entry, shown, file, metadata, served=served) for file in wheels],
            self._upstreams.limits.parallel,
        )
        return IndexRelease([json.loads(text) for text in documents], entries)

    async def _entry(
        self, shown: ProjectView, file: PageFile, metadata: Metadata, *, served: bool
    ) -> IndexWheel:
        plain, label = wheel_labels.split_label(file.filename)
        context = own_context(label or "", metadata)
        wheel = IndexWheel(
            file.filename,
            plain,
            label,
            file.url,
            dict(file.hashes),
            file.size,
            file.upload_time,
            published=file.original.filename if isinstance(file, CatalogFile) else None,
        )
        try:
            core = await self._wheels.read(shown.upstream, file)

            def read() -> tuple[bytes, bool, list[str]]:
                reduced = markers.reduce_metadata(core, context)
                is_marked = is_rewritten(file) or bool(markers.metadata_terms(core))
                return reduced, is_marked, _requires(reduced)

            budget = self._upstreams.budget(shown.upstream)
            reduced, is_marked, requires = await budget.compute(read)
        except (UpstreamError, VariantError):
            return wheel
        digest = None
        if is_marked:
            digest = await self._wheels.announced(
                shown.upstream, file, context, reduced, ahead=served
            )
        return replace(
            wheel,
            requires=hashlib.sha256("\n".join(requires).encode()).hexdigest(),
            marked=is_marked,
            served=None if digest is None else digest.sha256,
        )


def _named(folder: str, name: str) -> tuple[str | None, str]:
    """Return label and plain filename of the file *name* in a folder, as its page has them.

    Raises:
        NoSuchFile: no page has such a URL.
    """
    wheel = wheel_at(f"{FOLDER}/{quote(folder)}/{quote(name)}")
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
        own_plain, own_label = wheel_labels.split_label(file.filename)
        if own_label == label and plain in (own_plain, named_as(file, own_plain)):
            return file
        own = published(file)
        if own is not None and (own.original.filename, own.published.label) == (plain, label):
            return file
    of = f" of variant {label}" if label is not None else ""
    raise NoSuchFile(f"index {upstream.name} has no {plain}{of}")


def _release(shown: ProjectView, version: str) -> PageRelease | None:
    wanted = wheel_files.read_version(version)
    decisions = shown.choice.decisions if shown.choice is not None else ()
    for decision in decisions:
        if decision.release.version == wanted and decision.release.has_variants:
            return decision.release
    return None


def _wheels(shown: ProjectView, version: str) -> list[PageFile]:
    """Return the wheels with variant markers of a version without variants."""
    wanted = wheel_files.read_version(version)
    offers = shown.choice.offers if shown.choice is not None else ()
    return [
        offer.file
        for offer in offers
        if offer.context is not None and wheel_version(offer.filename) == wanted
    ]


def _is_of(file: PageFile, version: str) -> bool:
    """Return whether a file of a release can be had as a file of *version*."""
    own = published(file)
    return own is None or wheel_version(own.original.filename) == wheel_files.read_version(version)


def _requires(metadata: bytes) -> list[str]:
    """Return the dependencies in *metadata*, the same for the same ones however spelled."""
    found = []
    for value in wheel_files.requirements_of(metadata):
        try:
            found.append(str(Requirement(value)))
        except (InvalidRequirement, ValueError):  # an installer will report it
            found.append(value)
    return sorted(found)


def _python_tags(filename: str) -> str:
    """Return python and ABI tag of a wheel."""
    plain, _ = wheel_labels.split_label(filename)
    return "-".join(plain.removesuffix(".whl").split("-")[-3:-1])

"""Wheels of upstreams: their METADATA, whether they have variant markers, rewriting, checks.

METADATA is the file beside the wheel (PEP 658), or the wheel's own.

Clients of the proxy see plain filenames and cannot compare what the index says of a label with the
wheel (PEP 825, "Metadata consistency"): an installer that knows variants does, after downloading.
So every wheel with a label is looked into before a client is sent to it, by range requests, or
downloaded once if its server serves none.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import IO

from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import markers, safe_files, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import InvalidWheel, MetadataError, redacted
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from variants_index import finder as package_finder
from variants_index.finder import CatalogFile, PlacedFile
from variants_index.pages import PageFile

from .._sharing import LRUCache, SingleFlight, gather_limited
from ..errors import UpstreamError
from ..settings import Upstream
from .releases import PageRelease, is_rewritten
from .transfers import (
    PROBLEMS,
    Transfer,
    WheelDigest,
    hash_transfer,
    read_digest,
    rewrite_name,
    rewritten_transfer,
)
from .upstreams import Upstreams, identity

logger = logging.getLogger(__name__)
waits = logging.getLogger("variants_index._downloads")
"""What a person waits for, said at once."""

_LONG = 16 * 10**6


def metadata_key(file: PageFile) -> str:
    """Return a key that is equal for wheels with the same ``METADATA`` according to the index."""
    if isinstance(file, CatalogFile):
        variant = file.published
        return (
            f"{variant.label} {variant.filename} {variant.requires} {metadata_key(file.original)}"
        )
    digest = (file.core_metadata or {}).get("sha256")
    key = f"sha256 {digest}" if digest else identity(file)
    return f" {key}" if isinstance(file, PlacedFile) else key


def is_cheap(wheel: PageFile) -> bool:
    """Return whether METADATA of *wheel* can be read without reading from a remote wheel."""
    return wheel.core_metadata is not None or safe_files.is_local(wheel.url)


_CHECKED = "proxy-checked"


class Wheels:
    """Reads METADATA of wheels, inspects, rewrites and checks them, once for all clients."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._limits = upstreams.limits
        self._inspected: LRUCache[tuple[str, str], bytes] = LRUCache(16 * 2**20)
        self._inspections: SingleFlight[bytes] = SingleFlight()
        self._announcing: SingleFlight[WheelDigest | None] = SingleFlight()
        self._comparing: SingleFlight[None] = SingleFlight()

    async def read(self, upstream: Upstream, file: PageFile) -> bytes:
        """Return ``METADATA`` of the wheel *file*, from beside it or out of it.

        Raises:
            UpstreamError: it cannot be read.
        """
        upstream = self._upstreams.origin(upstream, file)
        if isinstance(file, CatalogFile):
            own = await self.read(upstream, file.original)
            budget = self._upstreams.budget(upstream)
            return await budget.compute(lambda: file.installed_metadata(own))
        key = upstream.name, metadata_key(file)
        known = self._inspected.get(key)
        if known is not None:
            return known

        async def work() -> bytes:
            found = await self._upstreams.budget(upstream).fetch(
                partial(self._fetch, upstream, file), self._limits.file_seconds
            )
            if file.hashes or file.core_metadata:
                self._inspected.put(key, found, len(found))
            return found

        return await self._inspections.join(key, work)

    async def is_marked(
        self, upstream: Upstream, wheel: PageFile, *, thorough: bool
    ) -> bool | None:
        """Return whether *wheel* has variant markers, None if its metadata cannot be read.

        An installer will report what is wrong with it.
        """
        if not (thorough or is_cheap(wheel)):
            return False
        try:
            metadata = await self.read(upstream, wheel)
            if not markers.may_have_terms(metadata):
                return False
            return await self._upstreams.budget(upstream).compute(
                lambda: bool(markers.metadata_terms(metadata))
            )
        except UpstreamError as error:
            logger.info("%s: its metadata cannot be inspected: %s", wheel.filename, error)
            return None

    async def marked(
        self, upstream: Upstream, plain: Sequence[PageRelease], *, thorough: bool
    ) -> frozenset[Version]:
        """Return the versions without variants that have variant markers.

        A project adds markers at some version: one wheel of each version is inspected, from the
        newest one down to the first without.

        Args:
            upstream: of the versions.
            plain: versions without variants, newest first.
            thorough: read METADATA from the wheel if there is no file beside it.
        """
        versions: list[Version] = []
        width = 1
        while len(versions) < min(len(plain), self._limits.inspected):
            some = plain[len(versions) : len(versions) + width]
            looks = [
                partial(self.is_marked, upstream, release.wheels[0], thorough=thorough)
                for release in some
            ]
            are_marked = await gather_limited(looks, self._limits.parallel)
            versions += [
                release.version
                for release, _ in takewhile(itemgetter(1), zip(some, are_marked, strict=True))
            ]
            if not all(are_marked):
                break
            width = min(2 * width, self._limits.parallel)
        return frozenset(versions)

    async def reduced(
        self, upstream: Upstream, file: PageFile, context: VariantContext | None
    ) -> bytes | None:
        """Return METADATA with evaluated variant markers, None without markers."""
        if context is None:
            return None
        metadata = await self.read(upstream, file)

        def reduce() -> bytes | None:
            changes = is_rewritten(file) or markers.metadata_terms(metadata)
            return markers.reduce_metadata(metadata, context) if changes else None

        return await self._upstreams.budget(upstream).compute(reduce)

    async def prepared(
        self,
        upstream: Upstream,
        file: PageFile,
        context: VariantContext | None,
        reduced: bytes,
    ) -> Transfer:
        """Return the transfer of the wheel *file* with *reduced* METADATA.

        Raises:
            UpstreamError: it cannot be read.
            VariantError, UnusableFile: as `rewritten_transfer`, which has the arguments.
        """
        upstream = self._upstreams.origin(upstream, file)
        self._upstreams.allow_links(upstream, file.url)
        assert context is not None
        return await self._upstreams.budget(upstream).fetch(
            partial(
                rewritten_transfer,
                self._upstreams.session(upstream),
                file,
                context,
                reduced,
                self._limits.metadata_bytes,
                rewrite_name(upstream.url, file, reduced),
            ),
            self._limits.file_seconds,
        )

    async def verify(
        self, upstream: Upstream, file: PageFile, label: str, metadata: Metadata | None
    ) -> None:
        """Verify that a variant wheel is what its index says of its label.

        Args:
            upstream: that lists it.
            file: the wheel.
            label: of its variant.
            metadata: the index's metadata of the version; None if it is not usable, then only the
                label is compared.

        Raises:
            UpstreamError: it cannot be read.
            InvalidWheel: it is not a wheel, or another project's.
            MetadataError: it has no variant metadata, invalid one, or that of another label.
            InconsistentMetadata: its properties are not those of the index.
        """
        self._upstreams.allow_links(upstream, file.url)
        session, store = self._upstreams.session(upstream), self._upstreams.store
        key = _promise_key(upstream.url, file, label, metadata)
        lasts = "sha256" in file.hashes

        def look() -> None:
            if lasts and store.get(_CHECKED, key) is not None:
                return
            with package_finder.opened(session, file.url, file.hashes) as stream:
                _compare(stream, file, label, metadata)
            if lasts:
                store.put(_CHECKED, key, b"")

        async def work() -> None:
            await self._upstreams.budget(upstream).fetch(look, self._limits.file_seconds)

        await self._comparing.join(key, work)

    async def announced(
        self,
        upstream: Upstream,
        file: PageFile,
        context: VariantContext | None,
        reduced: bytes,
        *,
        ahead: bool,
    ) -> WheelDigest | None:
        """Return hash and size of a rewritten wheel, None if unknown.

        Args:
            upstream: of the wheel.
            file: the wheel.
            context: for variant markers.
            reduced: its METADATA with evaluated markers.
            ahead: read the wheel to compute them, if it is small enough.
        """
        upstream = self._upstreams.origin(upstream, file)
        name = rewrite_name(upstream.url, file, reduced)
        if not name:
            return None
        store = self._upstreams.store
        known = await self._upstreams.budget(upstream).compute(lambda: read_digest(store, name))
        limit = self._limits.hashed_bytes
        if known is not None or not ahead or (file.size or 0) > limit:
            return known

        async def work() -> WheelDigest | None:
            if file.size and file.size > _LONG:
                waits.warning("%s: reading %d MB for its hash", file.filename, file.size // 10**6)
            session = self._upstreams.session(upstream)
            transfer = await self.prepared(upstream, file, context, reduced)
            if transfer.rewrite is None or transfer.rewrite.original > limit:
                return None
            return await self._upstreams.budget(upstream).fetch(
                lambda: hash_transfer(store, session, transfer),
                self._limits.file_seconds,
            )

        try:
            return await self._announcing.join(name, work)
        except (UpstreamError, *PROBLEMS) as error:
            logger.warning("%s: cannot be rewritten: %s", file.filename, error)
            return None

    def _fetch(self, upstream: Upstream, file: PageFile) -> bytes:
        self._upstreams.allow_links(upstream, file.url)
        metadata = package_finder.fetch_metadata_file(
            self._upstreams.session(upstream),
            file,
            limit=self._limits.metadata_bytes,
            seconds=self._limits.page_seconds,
            scope=upstream.url,
        )
        try:
            markers.metadata_terms(metadata)
        except InvalidWheel as error:  # for every reader of it that there is
            raise InvalidWheel(error.problem, redacted(file.url)) from None
        return metadata


def _compare(stream: IO[bytes], file: PageFile, label: str, metadata: Metadata | None) -> None:
    with wheel_files.open_wheel(stream, file.url, filename=file.filename) as contents:
        inside = contents.variant_metadata()
    if inside is None:
        problem = f"is named a variant wheel, but has no {wheel_labels.VARIANT_FILE}"
        raise MetadataError(redacted(file.url), "", problem)
    variant_metadata.check_promise(metadata or inside, inside, label)


def _promise_key(index: str, file: PageFile, label: str, metadata: Metadata | None) -> str:
    """Return a hash of everything that the result of `Wheels.verify` depends on."""
    said: object = None
    if metadata is not None:
        properties = metadata.properties_of(metadata.label_of(label))
        said = (
            []
            if properties is None
            else sorted(map(str, variant_metadata.iter_properties(properties)))
        )
    facts = json.dumps([index, file.url, sorted(file.hashes.items()), label, said])
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()

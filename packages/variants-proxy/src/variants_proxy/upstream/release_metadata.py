"""The variant metadata of releases, fetched within the budget of their upstream, and cached.

What is fetched, and what is made of it, is decided by `pep_variants.release`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import (
    Metadata,
    MetadataError,
    ReleaseReader,
    VariantError,
    split_label,
    write_metadata,
)
from pep_variants.internal import Fetch, FetchAnswer, Whole
from variants_index.internal import answer, release_file

from ..errors import UpstreamError
from ..settings import Limits, Upstream
from .catalog_files import known_variants, release_origin
from .lru import LRUCache
from .releases import Release
from .single_flight import SingleFlight, gather_limited
from .upstreams import Upstreams, identity

logger = logging.getLogger(__name__)

_KIND = "proxy-document"


class ReleaseMetadata:
    """Reads the variant metadata of releases, each once, and keeps what cannot change."""

    def __init__(self, upstreams: Upstreams, limits: Limits) -> None:
        self._upstreams = upstreams
        self._limits = limits
        self._documents: LRUCache[tuple[str, str], Metadata] = LRUCache(4096)
        self._flights: SingleFlight[Metadata] = SingleFlight()

    def cached(self, upstream: Upstream, release: Release) -> Metadata | None:
        """Return the variant metadata of *release* if that is known and can never change."""
        described = known_variants(release.wheels)
        if described is not None:
            return described
        upstream = release_origin(upstream, release.wheels)
        return self._documents.get((upstream.name, _release_key(release)))

    async def read(self, upstream: Upstream, release: Release) -> Metadata:
        """Return the variant metadata of *release*.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        known = self.cached(upstream, release)
        if known is not None:
            return known
        upstream = release_origin(upstream, release.wheels)
        key = upstream.name, _release_key(release)

        async def work() -> Metadata:
            found = (await self._read(upstream, release)).result()
            if _is_lasting(release):
                self._documents.put(key, found)
            return found

        return await self._flights.join(key, work)

    async def documents(
        self, upstream: Upstream, release: Release
    ) -> tuple[Metadata, tuple[bytes, ...]]:
        """Return the variant metadata of *release* with the files that it is made of.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        described = known_variants(release.wheels)
        if described is not None:
            return described, (write_metadata(described).encode(),)
        reader = await self._read(release_origin(upstream, release.wheels), release)
        found = reader.documents
        return reader.result(), tuple(found[key] for key in sorted(found))

    async def _read(self, upstream: Upstream, release: Release) -> ReleaseReader:
        """Return a reader that wants no more; raises what `documents` does."""
        document = release.document
        reader = ReleaseReader(
            map(release_file, release.wheels),
            None if document is None else release_file(document),
            source=upstream.name,
        )

        def work() -> None:
            while fetches := reader.wanted():
                reader.receive(fetches[0], self._answer(upstream, fetches[0]))

        try:
            await self._upstreams.budget(upstream).fetch(work, self._limits.file_seconds)
        except UpstreamError as error:
            raise MetadataError("", "", str(error)) from None
        return reader

    def _answer(self, upstream: Upstream, fetch: Fetch) -> FetchAnswer:
        """Return what is fetched; the metadata file of an index from the cache, by its hash."""
        self._upstreams.allow_links(upstream, fetch.url)
        store, session = self._upstreams.store, self._upstreams.session(upstream)
        digest = None if fetch.is_wheel else fetch.file.hashes.get("sha256")
        known = store.get(_KIND, digest) if digest else None
        if known is not None:
            return Whole(known)
        found = answer(session, fetch)
        data = found.data if isinstance(found, Whole) else None
        if isinstance(data, bytes) and hashlib.sha256(data).hexdigest() == digest:
            store.put(_KIND, digest, data)
        return found

    async def read_all(
        self, upstream: Upstream, wanted: Sequence[Release]
    ) -> tuple[dict[Version, Metadata | VariantError], bool]:
        """Return the metadata of releases, and whether it will be the same when asked again."""

        async def one(release: Release) -> Metadata | VariantError:
            try:
                return await self.read(upstream, release)
            except VariantError as error:
                name = canonicalize_name(release.wheels[0].filename.partition("-")[0])
                logger.warning("variants ignored: %s %s: %s", name, release.version, error)
                return error

        wanted = [release for release in wanted if release.has_variants]
        known = [self.cached(upstream, release) for release in wanted]
        if all(known):
            return {r.version: item for r, item in zip(wanted, known, strict=True) if item}, True
        found = await gather_limited(
            [partial(one, release) for release in wanted], self._limits.parallel
        )
        sure = all(
            not isinstance(result, VariantError)
            and (known_variants(release.wheels) is not None or _is_lasting(release))
            for release, result in zip(wanted, found, strict=True)
        )
        return {release.version: item for release, item in zip(wanted, found, strict=True)}, sure


def known_metadata(
    metadata: Mapping[Version, Metadata | VariantError], release: Release
) -> Metadata:
    """Return the metadata of *release* out of *metadata*, see `ReleaseMetadata.read_all`.

    Raises:
        VariantError: it cannot be fetched, or is broken.
    """
    known = metadata[release.version]
    if isinstance(known, VariantError):
        raise known
    return known


def _is_lasting(release: Release) -> bool:
    """Return whether the variant metadata of *release* can never change."""
    files = release.wheels if release.document is None else (release.document,)
    return all(file.hashes for file in files)


def _release_key(release: Release) -> str:
    document = release.document
    if document is None:
        return json.dumps(
            [identity(file) for file in release.wheels if split_label(file.filename)[1]]
        )
    return f"{document.url} {document.hashes.get('sha256', document.hashes)}"

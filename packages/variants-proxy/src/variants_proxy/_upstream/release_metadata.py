"""The variant metadata of releases, fetched within the budget of their upstream, and cached.

`variants_index.fetch_release_metadata` fetches it: files with a hash once, for every process.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants.errors import MetadataError, VariantError, redacted
from pep_variants.metadata import Metadata
from variants_index import finder as package_finder
from variants_index.finder import Prefetcher, ReleaseMetadata

from .._sharing import LRUCache, SingleFlight, gather_limited
from ..errors import NothingFetched, PassingFailure
from ..settings import Upstream
from .releases import PageRelease, known_variants
from .upstreams import Upstreams, identity

logger = logging.getLogger(__name__)


class MetadataReader:
    """Reads the variant metadata of releases, each once, and keeps what cannot change."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._limits = upstreams.limits
        self._documents: LRUCache[tuple[str, str], Metadata] = LRUCache(4096)
        self._flights: SingleFlight[Metadata] = SingleFlight()

    async def read(self, upstream: Upstream, release: PageRelease) -> Metadata:
        """Return the variant metadata of *release*.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        described = known_variants(release.wheels)
        if described is not None:
            return described
        upstream = self._upstreams.origin(upstream, *release.wheels)
        key = upstream.name, _release_key(release)
        known = self._documents.get(key)
        if known is not None:
            return known

        async def work() -> Metadata:
            found = (await self._fetched(upstream, release)).metadata
            if release.is_lasting:
                self._documents.put(key, found)
            return found

        return await self._flights.join(key, work)

    async def documents(
        self, upstream: Upstream, release: PageRelease
    ) -> tuple[Metadata, tuple[bytes, ...]]:
        """Return the variant metadata of *release* with the files that it is made of.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        described = known_variants(release.wheels)
        if described is not None:
            return described, (variant_metadata.write_metadata(described).encode(),)
        fetched = await self._fetched(self._upstreams.origin(upstream, *release.wheels), release)
        return fetched.metadata, tuple(fetched.documents[key] for key in sorted(fetched.documents))

    async def _fetched(self, upstream: Upstream, release: PageRelease) -> ReleaseMetadata:
        """Fetch the variant metadata of *release*; raises what `documents` does."""
        wheels, document = release.wheels, release.document
        files = (*wheels, *([document] if document is not None else []))
        self._upstreams.allow_links(upstream, *(file.url for file in files))
        session, once = self._upstreams.session(upstream), Prefetcher(0)
        try:
            return await self._upstreams.budget(upstream).fetch(
                lambda: package_finder.fetch_release_metadata(
                    session, once, wheels, document, redacted(upstream.url)
                ),
                self._limits.file_seconds,
            )
        except NothingFetched as error:
            passes = isinstance(error, PassingFailure)
            raise MetadataError("", "", str(error), may_pass=passes) from None

    async def read_all(
        self, upstream: Upstream, wanted: Sequence[PageRelease]
    ) -> tuple[dict[Version, Metadata | VariantError], bool]:
        """Return the metadata of releases, and whether it will be the same when asked again."""

        async def one(release: PageRelease) -> Metadata | VariantError:
            try:
                return await self.read(upstream, release)
            except VariantError as error:
                name = canonicalize_name(release.wheels[0].filename.partition("-")[0])
                logger.warning("variants ignored: %s %s: %s", name, release.version, error)
                return error

        wanted = [release for release in wanted if release.has_variants]
        results = await gather_limited(
            [partial(one, release) for release in wanted], self._limits.parallel
        )
        sure = all(
            not isinstance(result, VariantError)
            and (known_variants(release.wheels) is not None or release.is_lasting)
            for release, result in zip(wanted, results, strict=True)
        )
        return {release.version: item for release, item in zip(wanted, results, strict=True)}, sure


def known_metadata(
    metadata: Mapping[Version, Metadata | VariantError], release: PageRelease
) -> Metadata:
    """Return the metadata of *release* out of *metadata*, see `MetadataReader.read_all`.

    Raises:
        VariantError: it cannot be fetched, or is broken.
    """
    known = metadata[release.version]
    if isinstance(known, VariantError):
        raise known
    return known


def _release_key(release: PageRelease) -> str:
    document = release.document
    if document is None:
        return json.dumps(
            [
                identity(file)
                for file in release.wheels
                if wheel_labels.split_label(file.filename)[1]
            ]
        )
    return f"{document.url} {document.hashes.get('sha256', document.hashes)}"

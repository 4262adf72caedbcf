"""The variant metadata of releases, fetched within the budget of their upstream, and cached.

What is fetched, and what is made of it, is decided by `pep_variants.release`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.errors import MetadataError, VariantError, redacted
from pep_variants.fetch import ABSENT, Absent, Answer, Failed, Fetch, Whole
from pep_variants.formats.writer import write_metadata
from pep_variants.model.label import split_label
from pep_variants.model.metadata import Metadata
from pep_variants.release import ReleaseReader
from variants_index.errors import Unreachable
from variants_index.pages import PageFile
from variants_index.release_metadata import answer, release_file

from ..errors import UpstreamError
from ..settings import Limits, Upstream
from .catalog_files import known_variants, release_origin
from .lru import LRUCache
from .releases import Release
from .single_flight import SingleFlight, gather_limited
from .upstreams import Upstreams, identity

logger = logging.getLogger(__name__)


class ReleaseMetadata:
    """Reads the variant metadata of releases, each once, and keeps what cannot change."""

    def __init__(self, upstreams: Upstreams, limits: Limits) -> None:
        self._upstreams = upstreams
        self._limits = limits
        self._documents: LRUCache[tuple[str, str], Metadata] = LRUCache(4096)
        self._equals: LRUCache[bytes, Metadata] = LRUCache(1024)
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
            found = await self._fetch(upstream, release)
            document = release.document
            if all(file.hashes for file in (release.wheels if document is None else (document,))):
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

    async def _fetch(self, upstream: Upstream, release: Release) -> Metadata:
        reader = await self._read(upstream, release)
        found = reader.result()
        # Versions often have the same metadata: then it is one object, and decided on once.
        digest = sha256()
        for key, data in sorted(reader.documents.items()):
            digest.update(f"{key}\n{len(data)}\n".encode() + data)
        same = self._equals.get(digest.digest())
        if same == found:
            return same
        self._equals.put(digest.digest(), found)
        return found

    async def _read(self, upstream: Upstream, release: Release) -> ReleaseReader:
        """Return a reader that wants no more; raises what `documents` does."""
        document = release.document
        budget = self._upstreams.budget(upstream)
        reader = ReleaseReader(
            map(release_file, release.wheels),
            None if document is None else release_file(document),
            source=upstream.name,
        )
        while fetches := reader.wanted():
            fetch = fetches[0]
            if fetch.is_wheel:
                work = partial(self._read_wheels, upstream, reader)
                try:
                    await budget.fetch(work, self._limits.file_seconds)
                except UpstreamError as error:
                    raise MetadataError("", "", str(error)) from None
            else:
                found = await self._document(upstream, fetch)
                await budget.compute(partial(reader.receive, fetch, found))
        return reader

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
            and (
                known_variants(release.wheels) is not None
                or all(
                    file.hashes
                    for file in (
                        release.wheels if release.document is None else (release.document,)
                    )
                )
            )
            for release, result in zip(wanted, found, strict=True)
        )
        return {release.version: item for release, item in zip(wanted, found, strict=True)}, sure

    async def _document(self, upstream: Upstream, fetch: Fetch) -> Answer:
        """Return the metadata file of an index."""
        upstreams, hashes = self._upstreams, fetch.file.hashes
        name = hashes.get("sha256")

        def work() -> bytes:
            upstreams.allow_links(upstream, fetch.url)
            return upstreams.kept(
                "proxy-document",
                name,
                lambda: upstreams.fetch_file(
                    upstream, fetch.url, fetch.limit, hashes, cached=name is None
                ),
            )

        try:
            budget = upstreams.budget(upstream)
            return Whole(await budget.fetch(work))
        except UpstreamError as error:
            reason = str(error).removeprefix(f"{redacted(fetch.url)}: ")
            return Absent(reason) if error.status in ABSENT else Failed(reason)

    def _read_wheels(self, upstream: Upstream, reader: ReleaseReader) -> None:
        """Fetch what *reader* wants of wheels; raises `Unreachable`, for the budget to count."""
        session = self._upstreams.session(upstream)
        while fetches := reader.wanted():
            fetch = fetches[0]
            self._upstreams.allow_links(upstream, fetch.url)
            reader.receive(fetch, answer(session, fetch, passing=(Unreachable,)))


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


def _release_key(release: Release) -> str:
    document = release.document
    if document is None:
        return json.dumps([identity(file) for file in release.wheels if _label(file)])
    return f"{document.url} {document.hashes.get('sha256', document.hashes)}"


def _label(file: PageFile) -> str | None:
    return split_label(file.filename)[1]

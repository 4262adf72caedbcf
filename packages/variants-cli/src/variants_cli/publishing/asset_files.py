"""Distributions as assets of a release on GitHub; the pages that list them are elsewhere."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from pep_variants.model.label import METADATA_SUFFIX

from ..indexing.update import PROVENANCE_SUFFIX
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX
from ..stores.github_releases import MOST_ASSETS, AssetConflict
from .attestations import provenance
from .errors import Conflict, Refused
from .storage_layout import file_path, headers_of, url_at
from .stored_files import metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..stores.github_releases import GithubReleases
    from ..stores.store import Store
    from .target import Progress, Release, ReleaseFile


class AssetFiles:
    """Implements `stored_files.Files`: wheels, their METADATA and sdists are assets.

    The metadata documents and attestations, which have a name of their own on the page, are in the
    store of the pages.
    """

    parallel = 1

    def __init__(self, assets: GithubReleases, pages: Store) -> None:
        """Keep distributions in *assets*, what else there is in *pages*."""
        self._assets = assets
        self._pages = pages

    def check(self, releases: Sequence[Release]) -> None:
        """Check names, sizes and the number of assets, and that the release is there."""
        wanted: dict[str, int] = {}
        for release in releases:
            for file in release.files:
                wanted[file.filename] = file.distribution.size
                if file.distribution.is_wheel:
                    wanted[file.filename + CORE_METADATA_SUFFIX] = 0
        for name, size in wanted.items():
            self._assets.check_name(name, size)
        self._assets.check()
        number = len(wanted.keys() | self._assets.assets(refresh=True).keys())
        if number > MOST_ASSETS:
            raise Refused(
                f"{self._assets.name}: would have {number:,} assets, GitHub takes up to "
                f"{MOST_ASSETS:,}: publish some of them to the release of another tag"
            )
        with _conflicts():
            for release in releases:
                for file in release.files:
                    item = file.distribution
                    self._assets.holds(file.filename, item.size, item.sha256)

    def url(self, project: str, filename: str, sha256: str) -> str:
        """Return the URL for pages of a file."""
        if filename.endswith((METADATA_SUFFIX, PROVENANCE_SUFFIX)):
            return url_at(file_path(project, filename, sha256))
        return self._assets.url(filename)

    def put(self, file: ReleaseFile, progress: Progress) -> None:
        """Put *file*: METADATA and attestations first, the distribution last."""
        item = file.distribution
        attested = provenance(file.attestations)
        if attested is not None:
            path = self._provenance_path(file, attested)
            if self._pages.size(path) != len(attested):
                self._pages.put(path, attested, headers_of(path))
        with _conflicts():
            metadata = metadata_of(file)
            if metadata is not None:
                name = file.filename + CORE_METADATA_SUFFIX
                digest = hashlib.sha256(metadata).hexdigest()
                self._assets.put(
                    name, metadata, len(metadata), digest, headers_of(name), lambda _: None
                )
            self._assets.put(
                file.filename,
                item.path,
                item.size,
                item.sha256,
                headers_of(file.filename),
                progress,
            )

    def missing(self, files: Sequence[ReleaseFile]) -> list[ReleaseFile]:
        """Return those of *files* that are not there completely."""
        self._assets.assets(refresh=True)
        with _conflicts():
            return [file for file in files if not self._is_there(file)]

    def _is_there(self, file: ReleaseFile) -> bool:
        item = file.distribution
        metadata, attested = metadata_of(file), provenance(file.attestations)
        if attested is not None:
            path = self._provenance_path(file, attested)
            if self._pages.size(path) != len(attested):
                return False
        if metadata is not None and not self._assets.holds(
            file.filename + CORE_METADATA_SUFFIX,
            len(metadata),
            hashlib.sha256(metadata).hexdigest(),
        ):
            return False
        return self._assets.holds(file.filename, item.size, item.sha256)

    def _provenance_path(self, file: ReleaseFile, attested: bytes) -> str:
        name = file.filename + PROVENANCE_SUFFIX
        return file_path(file.distribution.project, name, hashlib.sha256(attested).hexdigest())


@contextlib.contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except AssetConflict as error:
        raise Conflict(str(error)) from None

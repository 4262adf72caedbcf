"""Where the files that never change are kept: in the store of the pages, or elsewhere."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from ..indexing.update import PROVENANCE_SUFFIX
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX
from .attestations import provenance
from .errors import PublishError
from .storage_layout import file_path, headers_of, url_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..stores.store import Store
    from .target import Progress, Release, ReleaseFile

_READERS = 16


class Files(Protocol):
    """Keeps distributions, their METADATA and their attestations."""

    @property
    def parallel(self) -> int:
        """How many files may be put at a time."""

    def check(self, releases: Sequence[Release]) -> None:
        """Raise what can be known before the first file is put.

        Raises:
            PublishError: a name or size that is not possible, credentials that are refused.
        """

    def url(self, project: str, filename: str, sha256: str) -> str:
        """Return the URL for pages of a file, see `storage_layout`."""

    def put(self, file: ReleaseFile, progress: Progress) -> None:
        """Put *file* and what belongs to it, unless it is there."""

    def missing(self, files: Sequence[ReleaseFile]) -> list[ReleaseFile]:
        """Return those of *files* that are not there completely."""


class StoredFiles:
    """Implements `Files` in the store of the pages."""

    def __init__(self, store: Store, parallel: int) -> None:
        """Keep files in *store*, *parallel* at a time."""
        self._store = store
        self.parallel = parallel

    def check(self, releases: Sequence[Release]) -> None:
        """Every name and size is possible."""

    def url(self, project: str, filename: str, sha256: str) -> str:
        """Return the URL for pages of a file."""
        return url_at(file_path(project, filename, sha256))

    def put(self, file: ReleaseFile, progress: Progress) -> None:
        """Put *file*: METADATA and attestations first, the distribution last."""
        item = file.distribution
        for path, data in self._beside(file).items():
            if self._store.size(path) != len(data):
                self._store.put(path, data, headers_of(path))
        path = file_path(item.project, file.filename, item.sha256)
        if self._store.size(path) != item.size:
            self._store.put_file(path, item.path, item.sha256, headers_of(path), progress)

    def missing(self, files: Sequence[ReleaseFile]) -> list[ReleaseFile]:
        """Return those of *files* that are not there completely."""
        with ThreadPoolExecutor(_READERS) as pool:
            found = pool.map(self._is_there, files)
            return [file for file, there in zip(files, found, strict=True) if not there]

    def _is_there(self, file: ReleaseFile) -> bool:
        item = file.distribution
        return self._store.size(
            file_path(item.project, file.filename, item.sha256)
        ) == item.size and all(
            self._store.size(path) == len(data) for path, data in self._beside(file).items()
        )

    def _beside(self, file: ReleaseFile) -> dict[str, bytes]:
        item = file.distribution
        found = {}
        metadata = metadata_of(file)
        if metadata is not None:
            path = file_path(item.project, file.filename, item.sha256)
            found[path + CORE_METADATA_SUFFIX] = metadata
        attested = provenance(file.attestations)
        if attested is not None:
            name = file.filename + PROVENANCE_SUFFIX
            found[file_path(item.project, name, hashlib.sha256(attested).hexdigest())] = attested
        return found


def metadata_of(file: ReleaseFile) -> bytes | None:
    """Return METADATA of a wheel, None for a source distribution.

    Raises:
        PublishError: the file beside the wheel is not its METADATA.
    """
    found = file.distribution.core_metadata
    if found is None or found.data is not None:
        return found.data if found is not None else None
    path = file.distribution.path.with_name(file.filename + CORE_METADATA_SUFFIX)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != found.sha256:
        raise PublishError(f"{path}: is not METADATA of {file.filename}: remove it")
    return data

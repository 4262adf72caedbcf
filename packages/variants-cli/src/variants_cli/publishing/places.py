"""Places of storage, as the user writes them: a directory, object storage, GitHub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..stores.directory import DirectoryStore
from ..stores.remote import RemoteStore, is_remote
from .storage_target import StorageTarget
from .stored_files import StoredFiles
from .stored_index import StoredIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..stores.store import Store

_PARALLEL = 4
"""Uploads at a time to object storage, each of several parts."""


def open_store(place: str, environ: Mapping[str, str]) -> Store:
    """Return the store at *place*: a directory, or a URL such as ``s3://bucket/prefix``.

    Raises:
        StoreError: it is neither, or its configuration is not usable.
    """
    return RemoteStore(place, environ) if is_remote(place) else DirectoryStore(Path(place))


def open_target(
    place: str, environ: Mapping[str, str], *, index_url: str | None = None
) -> StorageTarget:
    """Return where ``variants publish --to`` *place* publishes.

    Args:
        place: see `open_store`.
        environ: environment variables.
        index_url: where the pages are served, None if not known.

    Raises:
        StoreError: *place* is not usable.
    """
    store = open_store(place, environ)
    files = StoredFiles(store, _PARALLEL if is_remote(place) else 1)
    return StorageTarget(StoredIndex(store), files, index_url=index_url)

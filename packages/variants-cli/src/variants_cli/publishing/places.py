"""Places of storage, as the user writes them: a directory, object storage, GitHub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.sources import Sources
from variants_index.http.session import Session

from ..stores.directory import DirectoryStore
from ..stores.github_pages import GithubPagesStore
from ..stores.github_releases import GithubReleases
from ..stores.remote import RemoteStore, is_remote
from ..stores.store import StoreError
from .asset_files import AssetFiles
from .destination import open_client
from .errors import PublishError
from .pages_files import PagesFiles
from .storage_target import StorageTarget
from .stored_files import StoredFiles
from .stored_index import StoredIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..stores.store import Store

RELEASES = "github-releases:"
PAGES = "github-pages:"

_PARALLEL = 4
"""Uploads at a time to object storage, each of several parts."""


def open_store(place: str, environ: Mapping[str, str]) -> Store:
    """Return the store at *place*: a directory, or a URL such as ``s3://bucket/prefix``.

    Raises:
        PublishError: it is neither, or its configuration is not usable.
    """
    if place.startswith(RELEASES):
        raise PublishError(f"{place}: has no pages, give the place of the pages that list them")
    if is_remote(place):
        try:
            return RemoteStore(place, environ)
        except StoreError as error:
            raise PublishError(str(error)) from None
    if "://" in place:
        raise PublishError(f"{place}: is neither a directory nor an s3://, gs:// or az:// URL")
    if place.startswith(PAGES):
        return GithubPagesStore(Path(place.removeprefix(PAGES)))
    return DirectoryStore(Path(place))


def open_target(
    place: str,
    environ: Mapping[str, str],
    *,
    pages: str | None = None,
    index_url: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> StorageTarget:
    """Return where ``variants publish --to`` *place* publishes.

    Args:
        place: a directory, ``s3://``, ``gs://`` or ``az://`` URL, ``github-pages:DIRECTORY``, or
            ``github-releases:OWNER/REPOSITORY@TAG``.
        environ: environment variables.
        pages: where the pages are if *place* keeps the files only, written as *place*.
        index_url: where the pages are served, None if not known.
        note: shows the user what may not work.

    Raises:
        PublishError: *place* or *pages* is not usable.
    """
    if place.startswith(RELEASES):
        return _releases_target(place, environ, pages, index_url)
    if pages is not None:
        raise PublishError(f"--pages is for {RELEASES}OWNER/REPOSITORY@TAG: {place} has its pages")
    store = open_store(place, environ)
    files = (
        PagesFiles(store, note)
        if isinstance(store, GithubPagesStore)
        else StoredFiles(store, _PARALLEL if is_remote(place) else 1)
    )
    return StorageTarget(
        StoredIndex(store), files, index_url=index_url, session=_session(index_url, environ)
    )


def _releases_target(
    place: str, environ: Mapping[str, str], pages: str | None, index_url: str | None
) -> StorageTarget:
    if pages is None:
        raise PublishError(
            f"{place}: keeps files only: say with --pages where the pages that list them are "
            "written, for example --pages github-pages:gh-pages"
        )
    store = open_store(pages, environ)
    try:
        assets = GithubReleases(
            place.removeprefix(RELEASES), environ, lambda url: open_client(url, environ, None, None)
        )
    except StoreError as error:
        raise PublishError(str(error)) from None
    files = AssetFiles(assets, store)
    return StorageTarget(
        StoredIndex(store),
        files,
        index_url=index_url,
        place=place,
        session=_session(index_url, environ),
        close=assets.close,
    )


def _session(index_url: str | None, environ: Mapping[str, str]) -> Session | None:
    return None if index_url is None else Session(Sources.from_environ(environ))

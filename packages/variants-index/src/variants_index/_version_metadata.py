"""The variant metadata of one version in one source, fetched with a `Session`.

`pep_variants._release` decides what to fetch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pep_variants import safe_files
from pep_variants.metadata import (
    Absent,
    Failed,
    Fetch,
    FetchAnswer,
    LocalFile,
    Metadata,
    NoRanges,
    ReleaseFile,
    ReleaseReader,
    Whole,
)

from ._cache import temporary_file
from ._errors import AccessDenied, NotFound, PackageIndexError
from ._http.session import Session
from ._prefetch import Prefetcher
from .pages import PageFile


@dataclass(frozen=True)
class ReleaseMetadata:
    """The variant metadata of a version.

    Attributes:
        metadata: of all variants.
        documents: the files it was read from: the index's under an empty key, or the
            ``variant.json`` of one wheel of each label, by label.
    """

    metadata: Metadata
    documents: Mapping[str, bytes]


def fetch_release_metadata(
    session: Session,
    prefetcher: Prefetcher,
    wheels: Sequence[PageFile],
    index_file: PageFile | None,
    source: str | None,
) -> ReleaseMetadata:
    """Return the variant metadata of a version; of the same files, it is fetched once.

    Args:
        session: makes the requests.
        prefetcher: keeps the result.
        wheels: the variant wheels of the version.
        index_file: the metadata file that the index lists, None if it lists none.
        source: URL of the index page, or the directory, for messages; None for a single wheel
            that the user named.

    Raises:
        VariantError: there is none, it cannot be fetched, or it is broken.
    """

    def work() -> ReleaseMetadata:
        reader = ReleaseReader(
            map(release_file, wheels),
            None if index_file is None else release_file(index_file),
            source=source,
        )
        while fetches := reader.wanted():
            ask = partial(answer, session, fetches[0])
            if fetches[0].is_wheel:
                found = ask()
            else:  # also if the wheels of another target are wanted
                found = prefetcher.result(("index file", fetches[0].url), ask)
            reader.receive(fetches[0], found)
        return ReleaseMetadata(reader.result(), reader.documents)

    listed = None if index_file is None else index_file.url
    urls = tuple(sorted(file.url for file in wheels))
    return prefetcher.result(("release metadata", source, listed, urls), work)


def release_file(file: PageFile) -> ReleaseFile:
    """Return *file* for the engine."""
    return ReleaseFile(file.filename, file.url, file.hashes)


def answer(session: Session, fetch: Fetch) -> FetchAnswer:
    """Make the request *fetch* with *session*; what fails is an answer."""
    try:
        return _response(session, fetch)
    except PackageIndexError as error:
        reason = error.problem_at(fetch.url)
        is_absent = isinstance(error, (NotFound, AccessDenied))
        return Absent(reason) if is_absent else Failed(reason, error.may_pass)


def _response(session: Session, fetch: Fetch) -> FetchAnswer:
    url = fetch.url
    if not fetch.is_wheel:
        return Whole(session.fetch(url, limit=fetch.limit, hashes=fetch.file.hashes).body)
    try:
        if safe_files.is_local(url):
            return LocalFile(safe_files.open_regular(safe_files.local_path(url)))
        if fetch.range is not None:
            part = session.fetch_range(url, fetch.range.start, fetch.range.length)
            return NoRanges.NEVER if part is None else part
        return _downloaded(session, fetch)
    except OSError as error:
        return Failed(error.strerror or str(error), may_pass=True)


def _downloaded(session: Session, fetch: Fetch) -> Whole:
    """Return a whole wheel as a temporary file, cut off when it is too large."""
    copy = temporary_file(session.store)
    try:
        left = fetch.limit + 1
        with session.stream(fetch.url) as chunks:
            for chunk in chunks:
                copy.write(chunk[:left])
                left -= len(chunk)
                if left <= 0:
                    break
    except BaseException:
        copy.close()
        raise
    return Whole(copy)

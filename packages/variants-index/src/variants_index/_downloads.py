"""Files on servers: read by ranges, or downloaded, verified and written atomically."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants import safe_files, wheel_files
from pep_variants.errors import MetadataError, redacted
from pep_variants.metadata import Digests, Metadata
from pep_variants.wheel_files import Part, PartialFile, Range

from ._cache import temporary_file
from ._catalog_builds import CatalogFile
from ._errors import BadResponse
from ._http.responses import CHUNK, check_digests
from ._http.session import Session

logger = logging.getLogger(__name__)

MAX_DOWNLOAD = 16 * 1024**3
_NOTABLE = 8 * 1024**2
"""Bytes after which a download of which only the metadata is wanted is said."""


@contextmanager
def opened(
    session: Session, url: str, hashes: Mapping[str, str] | None = None
) -> Iterator[IO[bytes]]:
    """Yield the file at *url*, seekable: by ranges, or downloaded if its server serves none.

    Args:
        session: makes the requests.
        url: http, https or file.
        hashes: expected digests; only checked if it is downloaded.

    Raises:
        PackageIndexError: it cannot be fetched; also raised by reading.
    """
    if safe_files.is_local(url):
        with safe_files.open_regular(safe_files.local_path(url)) as file:
            yield file
        return
    tail = session.fetch_range(url, None, wheel_files.FIRST_PART)
    if tail is not None:

        def fetch(wanted: Range) -> Part | None:
            return session.fetch_range(url, wanted.start, wanted.length)

        with PartialFile(tail, fetch, lambda what: BadResponse(what, url=url)) as parts:
            yield parts  # type: ignore[misc] # has all that readers of archives use
        return
    notice = f"{redacted(url)}: downloading all of it for its metadata: its server has no ranges"
    with downloaded(session, url, hashes, notice=notice) as copy:
        yield copy


@contextmanager
def downloaded(
    session: Session,
    url: str,
    hashes: Mapping[str, str] | None = None,
    *,
    size: int | None = None,
    limit: int = MAX_DOWNLOAD,
    notice: str = "",
) -> Iterator[IO[bytes]]:
    """Yield the file at *url*, all of it, as a temporary file.

    Raises:
        PackageIndexError, OSError: as `download`, which has the other arguments.
    """
    with temporary_file(session.store) as copy:
        download(session, url, copy, hashes or {}, size=size, limit=limit, notice=notice)
        copy.seek(0)
        yield copy


def download(
    session: Session,
    url: str,
    target: IO[bytes],
    hashes: Mapping[str, str],
    *,
    size: int | None = None,
    limit: int = MAX_DOWNLOAD,
    notice: str = "",
) -> None:
    """Download *url* to *target*, and check *hashes* and *size*.

    Args:
        session: makes the request.
        url: http, https or file.
        target: is written to.
        hashes: expected digests.
        size: expected, None if it is not known.
        limit: bytes that are taken at most of a file whose size is not known.
        notice: logged as a warning if the file is so large that it takes a while.

    Raises:
        PackageIndexError: it cannot be fetched, or a hash or its size differs.
        OSError: *target* cannot be written.
    """
    check = Digests(hashes)
    logger.debug("Downloading %s, checked against %d hashes", redacted(url), len(check.found))
    written = 0
    limit = limit if size is None else size
    with session.stream(url) as chunks:
        for chunk in chunks:
            written += len(chunk)
            if notice and written > _NOTABLE:
                logger.warning("%s", notice)
                notice = ""
            if written > limit:
                raise BadResponse(f"is larger than the {limit} bytes expected", url=url)
            check.update(chunk)
            target.write(chunk)
    if size is not None and written != size:
        raise BadResponse(f"has {written} bytes, expected {size}", url=url)
    check_digests(check, url)


@dataclass(frozen=True)
class Download:
    """A file to be downloaded.

    Attributes:
        filename: name in the folder.
        url: of the file.
        hashes: expected hexadecimal digests by algorithm.
        size: in bytes, None if unknown.
        metadata: variant metadata of its index or lock file, None for a non-variant file.
        rewritten: see `Candidate.rewritten`; the hashes are those of the published file.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    size: int | None = None
    metadata: Metadata | None = None
    rewritten: CatalogFile | None = None


def download_files(session: Session, downloads: Iterable[Download], folder: Path) -> list[Path]:
    """Download files to *folder*; return their paths.

    An existing file with the expected hashes is kept. Files of the catalogue are written as they
    are installed.

    Raises:
        PackageIndexError: a file cannot be fetched, or its hash or size differs.
        VariantError: the variant metadata in a wheel differs from the expected one, or it is not
            a wheel.
        OSError: *folder* cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_downloaded(session, wanted, folder) for wanted in downloads]


def _downloaded(session: Session, wanted: Download, folder: Path) -> Path:
    path = folder / wanted.filename
    if path.parent != folder or wanted.filename in ("", ".", ".."):
        raise BadResponse(f"{wanted.filename!r} is not a filename")
    if wanted.hashes and path.exists() and _has(path, wanted.hashes):
        logger.debug("Skipping download of %s: it is there", wanted.filename)
        return path
    with safe_files.replacing(path) as stream:
        if wanted.rewritten is None:
            download(session, wanted.url, stream, wanted.hashes, size=wanted.size)
        else:
            with temporary_file(session.store) as copy:
                download(session, wanted.url, copy, wanted.hashes, size=wanted.size)
                wanted.rewritten.write(copy, stream)
        stream.flush()
        _check_variant(Path(stream.name), wanted)
    return path


def _has(path: Path, hashes: Mapping[str, str]) -> bool:
    check = Digests(hashes)
    if not check.found:
        return False
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            check.update(chunk)
    return check.problem() is None


def _check_variant(path: Path, wanted: Download) -> None:
    label = wheel_labels.split_label(wanted.filename)[1]
    if label is None or wanted.metadata is None:
        return
    found = wheel_files.read_wheel_metadata(path, wanted.url)
    if found is None:
        raise MetadataError(
            wanted.url, "", f"is named a variant wheel, but has no {wheel_labels.VARIANT_FILE}"
        )
    variant_metadata.check_promise(wanted.metadata, found, label)

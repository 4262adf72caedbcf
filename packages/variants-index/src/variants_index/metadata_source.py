"""Where the core metadata of a file on an index comes from, cheapest place first.

A file beside the wheel (PEP 658); the wheel itself, read in ranges or, without these, downloaded;
``PKG-INFO`` of a source distribution if that is final (PEP 643). Nothing is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO

from pep_variants.errors import InvalidSdist, InvalidWheel, redacted
from pep_variants.limits import CORE_METADATA_BYTES
from pep_variants.wheelfile.sdist import read_pkg_info
from pep_variants.wheelfile.wheel import open_wheel

from .candidate import Candidate
from .core_metadata import (
    CoreMetadata,
    read_core_metadata,
    read_sdist_metadata,
    without_description,
)
from .errors import NotFound, UnusableDistribution
from .http.ranges import download, opened, temporary_file
from .http.session import Session

_KIND = "core-metadata"


def fetch_core_metadata(session: Session, candidate: Candidate) -> CoreMetadata:
    """Return the core metadata of *candidate*, from the cheapest place that has it.

    Raises:
        UnusableDistribution: it is broken, or known only after a build.
        PackageIndexError: it cannot be fetched.
    """
    if candidate.core is not None:
        return candidate.core
    file = candidate.file
    if file.core_metadata is not None:
        url = f"{file.url}.metadata"
        try:
            response = session.fetch(url, limit=CORE_METADATA_BYTES, hashes=file.core_metadata)
            return _installed(candidate, response.body, url)
        except NotFound:
            pass  # some indexes promise it for every file
    if not candidate.is_wheel:
        return _of_sdist(session, candidate)
    data = _cached(session, candidate, lambda: _in_wheel(session, candidate))
    return _installed(candidate, data, file.url)


def _installed(candidate: Candidate, metadata: bytes, url: str) -> CoreMetadata:
    """Read *metadata* of a published file, as it is installed."""
    if candidate.rewritten is not None:
        try:
            metadata = candidate.rewritten.installed_metadata(metadata)
        except InvalidWheel as error:
            raise UnusableDistribution(str(error)) from None
    return read_core_metadata(metadata, candidate.project, candidate.version, url)


def _cached(session: Session, candidate: Candidate, fetch: Callable[[], bytes]) -> bytes:
    """Return the fields that *fetch* gives; a file with a hash never changes, so it is cached."""
    file = candidate.file
    name = json.dumps([file.url, sorted(file.hashes.items())])
    store = session.store if file.hashes else None
    data = store.get(_KIND, name) if store is not None else None
    if data is None:
        data = without_description(fetch())
        if store is not None:
            store.put(_KIND, name, data)
    return data


def _in_wheel(session: Session, candidate: Candidate) -> bytes:
    file = candidate.file
    try:
        with (
            opened(session, file.url, file.hashes) as stream,
            open_wheel(stream, file.url) as contents,
        ):
            data = contents.read("METADATA", CORE_METADATA_BYTES)
    except InvalidWheel as error:
        raise UnusableDistribution(str(error)) from None
    if data is None:
        raise UnusableDistribution(f"{redacted(file.url)}: has no METADATA")
    return data


def _of_sdist(session: Session, candidate: Candidate) -> CoreMetadata:
    data = _cached(session, candidate, lambda: _in_sdist(session, candidate))
    metadata, reason = read_sdist_metadata(
        data, candidate.project, candidate.version, candidate.file.url
    )
    if metadata is None:
        raise _needs_build(candidate, reason)
    return metadata


def _in_sdist(session: Session, candidate: Candidate) -> bytes:
    file = candidate.file
    with temporary_file(session.store) as copy:
        download(session, file.url, copy, file.hashes, size=file.size)
        copy.seek(0)
        data = _package_info(copy, candidate)
    if data is None:
        raise _needs_build(candidate, "has no PKG-INFO")
    return data


def _package_info(archive: IO[bytes], candidate: Candidate) -> bytes | None:
    try:
        return read_pkg_info(archive, candidate.filename, candidate.file.url)
    except InvalidSdist as error:
        raise UnusableDistribution(str(error)) from None


def _needs_build(candidate: Candidate, reason: str) -> UnusableDistribution:
    pinned = f"{candidate.project}=={candidate.version}"
    return UnusableDistribution(
        f"{candidate.filename} needs a build ({reason}), and nothing is built here: "
        f"run 'pip wheel --no-deps {pinned} -w DIR' and add --find-links DIR"
    )

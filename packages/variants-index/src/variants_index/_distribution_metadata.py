"""Core metadata of wheels and source distributions. Nothing is built.

From the cheapest place: a file beside the wheel (PEP 658); the wheel itself, read in ranges or,
without these, downloaded; ``PKG-INFO`` of a source distribution if that is final (PEP 643).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import limits, wheel_files
from pep_variants.errors import InvalidSdist, InvalidWheel, redacted, shortened
from pep_variants.metadata import Digests

from ._cache import temporary_file
from ._candidate import Candidate, CoreMetadata
from ._downloads import download, opened
from ._errors import NotFound, UnusableDistribution
from ._http.responses import check_digests
from ._http.session import Session
from .pages import PageFile

_KIND = "core-metadata"
_NEEDED = ("requires-dist", "provides-extra", "requires-python")
_STATIC_SINCE = (2, 2)

_Headers = dict[str, list[str]]


def read_core_metadata(data: bytes, project: str, version: Version, source: str) -> CoreMetadata:
    """Read the ``METADATA`` of a wheel.

    Args:
        data: contents of the file.
        project: normalized name of the project that it belongs to.
        version: of the project.
        source: URL, for messages.

    Raises:
        UnusableDistribution: it is of another project or version, or exceeds the limits.
    """
    return _parsed(_headers(data, source), project, version, source)


def read_sdist_metadata(
    data: bytes, project: str, version: Version, source: str
) -> tuple[CoreMetadata | None, str]:
    """Read the ``PKG-INFO`` of a source distribution.

    Args:
        data: contents of the file.
        project: normalized name of the project that it belongs to.
        version: of the project.
        source: URL, for messages.

    Returns:
        The metadata; or None, and the reason why it is known only after a build: before metadata
        version 2.2, or with ``Dynamic`` fields, it may differ in the wheel (PEP 643).

    Raises:
        UnusableDistribution: it is of another project or version, or exceeds the limits.
    """
    headers = _headers(data, source)
    found = _first(headers, "metadata-version")
    try:
        final = tuple(map(int, found.split("."))) >= _STATIC_SINCE
    except ValueError:  # no numbers, or more digits than `int` reads
        final = False
    if not final:
        return None, f"its metadata (version {found or 'unknown'}) is not final"
    dynamic = sorted({item.lower() for item in headers.get("dynamic", ())} & set(_NEEDED))
    if dynamic:
        return None, f"it leaves {', '.join(dynamic)} to its build"
    return _parsed(headers, project, version, source), ""


def _headers(data: bytes, source: str) -> _Headers:
    try:
        return wheel_files.read_fields(data)
    except InvalidWheel as error:
        raise UnusableDistribution(f"{redacted(source)}: {error.problem}") from None


def _parsed(headers: _Headers, project: str, version: Version, source: str) -> CoreMetadata:
    name, text = _first(headers, "name"), _first(headers, "version")
    if (
        canonicalize_name(name[: limits.REQUIREMENT_LENGTH]) != project
        or wheel_files.read_version(text) != version
    ):
        raise UnusableDistribution(
            f"{redacted(source)}: its metadata is of {shortened(name)} {shortened(text)}, "
            f"not of {project} {version}"
        )
    requires = tuple(headers.get("requires-dist", ()))
    python = _first(headers, "requires-python")
    try:
        wheel_files.check_requirements(requires)
        wheel_files.check_requirements([python])  # is parsed as well
    except InvalidWheel as error:
        raise UnusableDistribution(f"{redacted(source)}: {error.problem}") from None
    return CoreMetadata(
        requires,
        frozenset(map(canonicalize_name, headers.get("provides-extra", ()))),
        python or None,
    )


def _first(headers: _Headers, key: str) -> str:
    return headers.get(key, [""])[0]


def fetch_core_metadata(session: Session, candidate: Candidate) -> CoreMetadata:
    """Return the core metadata of *candidate*, from the cheapest place that has it.

    Raises:
        UnusableDistribution: it is broken, or known only after a build.
        PackageIndexError: it cannot be fetched.
    """
    try:
        if candidate.is_wheel:
            metadata = fetch_metadata_file(session, candidate.file)
        elif (beside := _beside(session, candidate.file)) is not None:
            metadata = beside
        else:
            return _of_sdist(session, candidate)
        if candidate.rewritten is not None:
            metadata = candidate.rewritten.installed_metadata(metadata)
    except InvalidWheel as error:
        raise UnusableDistribution(str(error)) from None
    return read_core_metadata(metadata, candidate.project, candidate.version, candidate.file.url)


def fetch_metadata_file(
    session: Session,
    wheel: PageFile,
    *,
    limit: int = limits.CORE_METADATA_BYTES,
    seconds: float = limits.ANSWER_SECONDS,
    scope: str = "",
) -> bytes:
    """Return METADATA of *wheel*, from beside it (PEP 658) or out of it.

    Args:
        session: makes the requests; its cache keeps what cannot change.
        wheel: of a page.
        limit: the most bytes that are read.
        seconds: the most that the file beside it may take.
        scope: keeps METADATA out of wheels apart in a cache for several indexes, any of which may
            claim the hash of another's wheel.

    Raises:
        PackageIndexError: it cannot be fetched, or is not what the page promises.
        InvalidWheel: the wheel is damaged, or has no METADATA.
    """

    def inside() -> bytes:
        with (
            opened(session, wheel.url, wheel.hashes) as stream,
            wheel_files.open_wheel(stream, wheel.url) as contents,
        ):
            data = contents.core_metadata(limit)
        check = Digests(wheel.core_metadata or {})
        check.update(data)
        check_digests(check, f"{wheel.url}: {wheel_files.METADATA_FILE}")
        return data

    found = _beside(session, wheel, limit, seconds)
    return _cached(session, wheel, inside, scope) if found is None else found


def _beside(
    session: Session,
    file: PageFile,
    limit: int = limits.CORE_METADATA_BYTES,
    seconds: float = limits.ANSWER_SECONDS,
) -> bytes | None:
    if file.core_metadata is not None:
        with suppress(NotFound):  # some indexes promise it for every file
            return session.fetch(
                f"{file.url}.metadata", limit=limit, hashes=file.core_metadata, seconds=seconds
            ).body
    return None


def _cached(session: Session, file: PageFile, fetch: Callable[[], bytes], scope: str = "") -> bytes:
    """Return the result of *fetch*, cached: a file with a hash never changes."""
    name = json.dumps([scope, file.url, sorted(file.hashes.items())])
    store = session.store if file.hashes else None
    data = store.get(_KIND, name) if store is not None else None
    if data is None:
        data = fetch()
        if store is not None:
            store.put(_KIND, name, data)
    return data


def _of_sdist(session: Session, candidate: Candidate) -> CoreMetadata:
    data = _cached(session, candidate.file, lambda: _in_sdist(session, candidate))
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
        try:
            data = wheel_files.read_pkg_info(copy, candidate.filename, file.url)
        except InvalidSdist as error:
            raise UnusableDistribution(str(error)) from None
    if data is None:
        raise _needs_build(candidate, "has no PKG-INFO")
    return data


def _needs_build(candidate: Candidate, reason: str) -> UnusableDistribution:
    pinned = f"{candidate.project}=={candidate.version}"
    return UnusableDistribution(
        f"{candidate.filename} needs a build ({reason}), and nothing is built here: "
        f"run 'pip wheel --no-deps {pinned} -w DIR' and add --find-links DIR"
    )

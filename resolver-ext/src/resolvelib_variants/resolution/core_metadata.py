"""What a distribution says of itself: the part of its core metadata that resolving needs.

From the cheapest place that has it: a file beside the wheel (PEP 658), the wheel itself, read in
parts or, at worst, downloaded; ``PKG-INFO`` of a source distribution if that is final (PEP 643).
Nothing is ever built.
"""

from __future__ import annotations

import email.parser
import email.policy
import gzip
import io
import json
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pep_variants.errors import InvalidWheel, redacted, shortened
from pep_variants.wheel import open_wheel

from ..index.errors import NotFound
from ..index.ranges import download, opened
from ..index.session import Session
from .candidate import Candidate
from .errors import UnusableFile

MAX_METADATA = 16 * 1024 * 1024
MAX_UNPACKED = 1024 * 1024 * 1024
"""So many bytes of a source distribution are unpacked while looking for its PKG-INFO."""

_KIND = "core-metadata"
_NEEDED = ("requires-dist", "provides-extra", "requires-python")
_STATIC_SINCE = (2, 2)


@dataclass(frozen=True)
class CoreMetadata:
    """The part of core metadata that resolving needs.

    Attributes:
        requires: ``Requires-Dist`` values as they are.
        extras: normalized ``Provides-Extra`` values.
        requires_python: version specifier, None if there is none.
    """

    requires: tuple[str, ...]
    extras: frozenset[str]
    requires_python: str | None


def read_core_metadata(data: bytes, candidate: Candidate, source: str) -> CoreMetadata:
    """Read ``METADATA`` or ``PKG-INFO``.

    Args:
        data: the contents.
        candidate: whose it should be.
        source: for messages.

    Raises:
        UnusableFile: it is another project's or version's, or cannot be read.
    """
    return _parsed(_headers(data), candidate, source)


def fetch_core_metadata(session: Session, candidate: Candidate) -> CoreMetadata:
    """Return what *candidate* says of itself, from the cheapest place that has it.

    Raises:
        UnusableFile: it is broken, or would have to be built.
        IndexProblem: it cannot be had.
    """
    if candidate.core is not None:
        return candidate.core
    file = candidate.file
    if file.core_metadata is not None:
        url = f"{file.url}.metadata"
        try:
            answer = session.fetch(url, limit=MAX_METADATA, hashes=file.core_metadata)
            return read_core_metadata(answer.body, candidate, url)
        except NotFound:
            pass  # some indexes promise it for every file
    if not candidate.is_wheel:
        return _of_source(session, candidate)
    # By its hash a file is the same for ever, whatever happens to its URL.
    name = json.dumps([file.url, sorted(file.hashes.items())])
    store = session.store if file.hashes else None
    data = store.get(_KIND, name) if store is not None else None
    if data is None:
        try:
            with (
                opened(session, file.url, file.hashes) as stream,
                open_wheel(stream, file.url) as contents,
            ):
                data = contents.read("METADATA", MAX_METADATA)
        except InvalidWheel as error:
            raise UnusableFile(str(error)) from None
        if data is None:
            raise UnusableFile(f"{redacted(file.url)}: has no METADATA")
        data = _head(data)
        if store is not None:
            store.put(_KIND, name, data)
    return read_core_metadata(data, candidate, file.url)


Headers = dict[str, list[str]]


def _head(data: bytes) -> bytes:
    """Return the fields of *data*, without the description after them."""
    for end in (b"\n\n", b"\r\n\r\n"):
        data = data.partition(end)[0]
    return data + b"\n"


def _headers(data: bytes) -> Headers:
    text = _head(data).decode("utf-8", "replace")
    message = email.parser.HeaderParser(policy=email.policy.compat32).parsestr(text)
    headers: Headers = {}
    for key, value in message.items():
        headers.setdefault(key.lower(), []).append(" ".join(str(value).split()))
    return headers


def _parsed(headers: Headers, candidate: Candidate, source: str) -> CoreMetadata:
    name, version = _first(headers, "name"), _first(headers, "version")
    try:
        right = canonicalize_name(name) == candidate.project
        right = right and Version(version) == candidate.version
    except InvalidVersion:
        right = False
    if not right:
        raise UnusableFile(
            f"{redacted(source)}: its metadata is of {shortened(name)} {shortened(version)}, "
            f"not of {candidate.project} {candidate.version}"
        )
    return CoreMetadata(
        tuple(headers.get("requires-dist", ())),
        frozenset(map(canonicalize_name, headers.get("provides-extra", ()))),
        _first(headers, "requires-python") or None,
    )


def _first(headers: Headers, key: str) -> str:
    return headers.get(key, [""])[0]


# --- source distributions


def _of_source(session: Session, candidate: Candidate) -> CoreMetadata:
    file = candidate.file
    name = json.dumps([file.url, sorted(file.hashes.items())])
    store = session.store if file.hashes else None
    data = store.get(_KIND, name) if store is not None else None
    if data is None:
        with tempfile.TemporaryFile() as copy:
            download(session, file.url, copy, file.hashes, size=file.size)
            copy.seek(0)
            data = _package_info(copy, candidate)
        if data is None:
            raise _needs_build(candidate, "has no PKG-INFO")
        data = _head(data)
        if store is not None:
            store.put(_KIND, name, data)
    headers = _headers(data)
    found = _first(headers, "metadata-version")
    try:
        final = tuple(map(int, found.split("."))) >= _STATIC_SINCE
    except ValueError:
        final = False
    if not final:
        raise _needs_build(candidate, f"its metadata (version {found or 'unknown'}) is not final")
    dynamic = sorted({item.lower() for item in headers.get("dynamic", ())} & set(_NEEDED))
    if dynamic:
        raise _needs_build(candidate, f"it leaves {', '.join(dynamic)} to its build")
    return _parsed(headers, candidate, file.url)


def _needs_build(candidate: Candidate, reason: str) -> UnusableFile:
    pinned = f"{candidate.project}=={candidate.version}"
    return UnusableFile(
        f"{candidate.filename} needs a build ({reason}), and nothing is built here: "
        f"run 'pip wheel --no-deps {pinned} -w DIR' and add --find-links DIR"
    )


def _package_info(archive: IO[bytes], candidate: Candidate) -> bytes | None:
    try:
        if candidate.filename.endswith(".zip"):
            return _from_zip(archive)
        return _from_tar(archive)
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError,
        NotImplementedError, ValueError,
    ) as error:  # fmt: skip
        raise UnusableFile(
            f"{redacted(candidate.file.url)}: not a usable archive: {shortened(str(error))}"
        ) from None


def _from_tar(archive: IO[bytes]) -> bytes | None:
    with gzip.GzipFile(fileobj=archive, mode="rb") as unzipped:
        bounded = _Bounded(unzipped)
        with tarfile.open(fileobj=bounded, mode="r|") as members:
            for member in members:
                if _is_package_info(member.name) and member.isfile():
                    stream = members.extractfile(member)
                    assert stream is not None
                    return _limited(stream)
    return None


def _from_zip(archive: IO[bytes]) -> bytes | None:
    with zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            if _is_package_info(info.filename):
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("PKG-INFO is compressed with something other than deflate")
                with members.open(info) as stream:
                    return _limited(stream)
    return None


def _is_package_info(path: str) -> bool:
    folder, _, name = path.removeprefix("./").partition("/")
    return bool(folder) and name == "PKG-INFO"


def _limited(stream: IO[bytes]) -> bytes:
    data = stream.read(MAX_METADATA + 1)
    if len(data) > MAX_METADATA:
        raise ValueError(f"PKG-INFO is larger than {MAX_METADATA} bytes")
    return data


class _Bounded(io.RawIOBase):
    """What a compressed archive unpacks to, up to a limit: a few bytes may unpack to anything."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        super().__init__()
        self._stream = stream
        self._left = MAX_UNPACKED

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._stream.read(min(self._left + 1, 1 << 20 if size is None else size))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED} bytes")
        return data

"""Transfers of files from an upstream to a client: unchanged, or wheels with rewritten metadata.

A wheel of any size is streamed in chunks; nothing is unpacked or held. Hash and size are verified
while it is streamed, and the last chunk is sent only after that: a client never gets a
complete file that differs from what its index promised. Files are sent whole: the hash of a part
cannot be verified.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pep_variants import markers, safe_files, wheel_files
from pep_variants.errors import VariantError, redacted
from pep_variants.markers import VariantContext
from pep_variants.metadata import Digests
from pep_variants.wheel_files import Piece, Rewrite
from variants_index import finder as package_finder
from variants_index.finder import CatalogFile, Session, Store
from variants_index.http import BadResponse
from variants_index.pages import PageFile

from ..errors import UnusableFile

_FORMAT = "4"
"""Increased when rewriting gives other bytes for the same wheel and metadata."""


@dataclass(frozen=True)
class Transfer:
    """A file to stream.

    Attributes:
        file: of the upstream.
        rewrite: pieces to send; None if the size is unknown, then the file is sent from start to
            end.
        name: permanent identifier of the bytes; empty if the index gives no hash of the file.
    """

    file: PageFile
    rewrite: Rewrite | None
    name: str


@dataclass(frozen=True)
class WheelDigest:
    """SHA-256 (hexadecimal) and size in bytes of a rewritten wheel."""

    sha256: str
    size: int


def unchanged_transfer(session: Session, file: PageFile) -> Transfer:
    """Return the transfer of *file*, unchanged.

    Raises:
        PackageIndexError: it cannot be fetched.
    """
    size = file.size
    if safe_files.is_local(file.url):
        size = safe_files.local_path(file.url).stat().st_size
    elif size is None:
        part = session.fetch_range(file.url, None, 1)
        size = part.total if part is not None else None
    whole = Rewrite((Piece(0, size),), size, size) if size is not None else None
    return Transfer(file, whole, file.hashes.get("sha256", ""))


def rewritten_transfer(
    session: Session,
    file: PageFile,
    context: VariantContext,
    reduced: bytes,
    limit: int,
    name: str,
) -> Transfer:
    """Return the transfer of the wheel *file* with its variant markers evaluated.

    Args:
        session: of the upstream.
        file: the wheel.
        context: for variant markers.
        reduced: METADATA that pages promise.
        limit: maximum size of METADATA in bytes.
        name: of the result, see `rewrite_name`.

    Raises:
        UnusableFile: it cannot be rewritten.
        InvalidWheel: it is not a wheel.
        PackageIndexError: it cannot be fetched.
    """
    source = redacted(file.url)
    with (
        package_finder.opened(session, file.url, file.hashes) as stream,
        wheel_files.open_wheel(stream, file.url) as contents,
    ):
        metadata = contents.core_metadata(limit)
        if isinstance(file, CatalogFile):
            metadata = file.installed_metadata(metadata)
        if markers.reduce_metadata(metadata, context) != reduced:
            raise UnusableFile(
                f"{source}: its METADATA differs from the core metadata that the index lists"
            )
        if isinstance(file, CatalogFile) and file.published.is_rewritten:
            rewrite = file.rewritten(contents, stream, reduced)
        else:
            rewrite = wheel_files.with_metadata(contents, stream, reduced)
    return Transfer(file, rewrite, name)


def rewrite_name(index: str, file: PageFile, reduced: bytes) -> str:
    """Return an identifier of *file* with *reduced* METADATA, empty without a hash of the file.

    How it is put together follows from parts of the file, whose bytes no hash speaks for: the
    index and the URL tell it from another index's file under the same hash.

    Args:
        index: URL of the index that lists the file.
        file: the wheel.
        reduced: its METADATA with the markers evaluated.
    """
    known = file.hashes.get("sha256")
    if known is None:
        return ""
    source = json.dumps([_FORMAT, index, file.url, known])
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass") + b"\n" + reduced)
    for filename, data in file.added.items() if isinstance(file, CatalogFile) else ():
        digest.update(f"\n{filename} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def read_digest(store: Store, name: str) -> WheelDigest | None:
    """Return hash and size of the result called *name*, None if it was never streamed."""
    record = store.get("proxy-rewritten", name) if name else None
    try:
        tree = json.loads(record) if record is not None else None
        return None if tree is None else WheelDigest(tree["sha256"], tree["size"])
    except (ValueError, KeyError, TypeError):
        return None


def hash_transfer(store: Store, session: Session, transfer: Transfer) -> WheelDigest:
    """Read and hash the stream of *transfer*, discarding it; return hash and size.

    Raises:
        PackageIndexError: it cannot be fetched, or differs from the promised file.
    """
    for _ in stream_all(session, transfer, store):
        pass
    found = read_digest(store, transfer.name)
    if found is None:
        raise UnusableFile(
            f"{redacted(transfer.file.url)}: its hash cannot be written to the cache"
        )
    return found


def stream_all(
    session: Session, transfer: Transfer, store: Store | None = None
) -> Generator[bytes, None, None]:
    """Yield all chunks of a transfer; raise before the last one if verification fails.

    The hash of a rewritten wheel is stored in *store*, for pages.

    Raises:
        PackageIndexError: it cannot be fetched, is truncated, or differs from the promised file.
    """
    file = transfer.file
    original = Digests(file.hashes)
    is_new = store is not None and _is_changed(transfer) and not read_digest(store, transfer.name)
    digest, size, waiting = hashlib.sha256(), 0, b""
    for chunk in _assembled(session, transfer, original):
        if waiting:
            yield waiting
        waiting = chunk
        if is_new:
            digest.update(chunk)
            size += len(chunk)
    package_finder.check_digests(original, file.url)
    if is_new and store is not None:
        record = {"sha256": digest.hexdigest(), "size": size}
        store.put("proxy-rewritten", transfer.name, json.dumps(record).encode())
    if waiting:
        yield waiting


def _is_changed(transfer: Transfer) -> bool:
    """Return whether *transfer* sends other bytes than the upstream, that have a name."""
    pieces = transfer.rewrite.pieces if transfer.rewrite is not None else ()
    return bool(transfer.name) and any(piece.data is not None for piece in pieces)


def _assembled(session: Session, transfer: Transfer, digests: Digests) -> Iterator[bytes]:
    """Yield the pieces while reading the upstream's file once, hashing all of it."""
    file = transfer.file
    with session.stream(file.url) as chunks:
        if transfer.rewrite is None:
            for chunk in chunks:
                digests.update(chunk)
                yield chunk
            return
        original = _SinglePass(chunks, digests)
        for piece in transfer.rewrite.pieces:
            if piece.data is not None:
                yield piece.data
                continue
            original.skip_to(piece.start)
            yield from original.copy_to(piece.end)
        original.skip_to(transfer.rewrite.original)
        if original.position != transfer.rewrite.original or original.has_more():
            raise BadResponse(
                f"its size is not the expected {transfer.rewrite.original} bytes", url=file.url
            )


class _SinglePass:
    """The upstream's file, read once from start to end."""

    def __init__(self, chunks: Iterator[bytes], digests: Digests) -> None:
        self.position = 0
        self._chunks = chunks
        self._digests = digests
        self._chunk = b""

    def copy_to(self, end: int) -> Iterator[bytes]:
        """Yield the bytes up to *end*, fewer if the file ends."""
        while self.position < end and self.has_more():
            part = self._chunk[: end - self.position]  # the chunk itself if all of it is wanted
            self._chunk = self._chunk[len(part) :]
            self.position += len(part)
            self._digests.update(part)
            yield part

    def skip_to(self, end: int) -> None:
        """Read up to *end* without yielding."""
        for _ in self.copy_to(end):
            pass

    def has_more(self) -> bool:
        """Return whether there are more bytes."""
        while not self._chunk:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._chunk = chunk
        return True


PROBLEMS = (VariantError, UnusableFile)
"""Errors of wheels that cannot be rewritten, besides errors of the upstream."""

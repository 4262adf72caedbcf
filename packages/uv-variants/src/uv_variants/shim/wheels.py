"""Wheels on their way from an upstream to a client: as they are, or with other metadata.

Nothing is unpacked and nothing held: a wheel of any size passes in chunks. What was promised of it
is checked while it passes, and its last chunk follows only when the check is done: what is not as
promised never arrives whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pep_variants.core_metadata import reduce_metadata
from pep_variants.errors import InvalidWheel, VariantError, redacted
from pep_variants.markers import VariantContext
from pep_variants.merging import check_promise
from pep_variants.metadata import Metadata
from pep_variants.wheel import open_wheel
from resolvelib_variants.index.errors import BadAnswer
from resolvelib_variants.index.pages import PageFile
from resolvelib_variants.index.ranges import opened
from resolvelib_variants.index.session import Digests, Session, is_local, local_path
from resolvelib_variants.index.store import Store

from ..errors import UnusableFile
from .record import rewrite_record
from .splicing import Piece, Splice, splice

MAX_RECORD = 64 * 2**20
CHUNK = 256 * 1024
_PART = 4 * 2**20
_FORMAT = "1"
"""Raised when the same wheel and metadata are put together to other bytes."""


@dataclass(frozen=True)
class Passage:
    """A file that passes.

    Attributes:
        file: the upstream's.
        splice: what is sent, piece by piece; None if nobody knows how large the file is, which
            then is sent from its start to its end.
        name: identifies what is sent, for ever; empty if the index gives no hash of the file.
    """

    file: PageFile
    splice: Splice | None
    name: str


@dataclass(frozen=True)
class Announcement:
    """What a page says of a wheel that is put together: hexadecimal SHA-256, bytes."""

    sha256: str
    size: int


def plain_passage(session: Session, file: PageFile) -> Passage:
    """Return the passage of *file* as it is.

    Raises:
        IndexProblem: it cannot be had.
    """
    size = file.size
    if is_local(file.url):
        size = local_path(file.url).stat().st_size
    elif size is None:
        part = session.part(file.url, None, 1)
        size = part.total if part is not None else None
    whole = Splice((Piece(0, size),), size, size) if size is not None else None
    return Passage(file, whole, file.hashes.get("sha256", ""))


def spliced_passage(
    session: Session,
    file: PageFile,
    label: str | None,
    context: VariantContext,
    reduced: bytes,
    promised: Metadata | None,
    limit: int,
) -> Passage:
    """Return the passage of the wheel *file* with its variant markers evaluated.

    Args:
        session: of the upstream.
        file: the wheel.
        label: its variant.
        context: what markers see.
        reduced: METADATA that clients were told of.
        promised: what the index says of its variants, None if it says nothing.
        limit: bytes of the largest METADATA.

    Raises:
        UnusableFile: it cannot be put together.
        InvalidWheel: it is no wheel.
        VariantError: it is not the variant that the index promises.
        IndexProblem: it cannot be had.
    """
    source = redacted(file.url)
    with opened(session, file.url, file.hashes) as stream:
        with open_wheel(stream, file.url) as contents:
            found = contents.read("METADATA", limit)
            record = contents.read("RECORD", MAX_RECORD)
            if found is None or record is None:
                raise InvalidWheel(f"{source}: has no METADATA or no RECORD")
            if label is not None and promised is not None:
                inside = contents.variant_metadata()
                if inside is None:
                    raise InvalidWheel(f"{source}: is named a variant wheel, but has no metadata")
                check_promise(promised, inside, label)
            folder = contents.dist_info
        if reduce_metadata(found, context) != reduced:
            raise UnusableFile(f"{source}: its METADATA is not what the index has beside it")
        path = f"{folder}/METADATA"
        replacements = {path: reduced, f"{folder}/RECORD": rewrite_record(record, path, reduced)}
        plan = splice(stream, replacements, source)
    return Passage(file, plan, splice_name(file, reduced))


def splice_name(file: PageFile, reduced: bytes) -> str:
    """Return what identifies *file* with *reduced* METADATA, empty without a hash of it."""
    digest = file.hashes.get("sha256")
    if digest is None:
        return ""
    return hashlib.sha256(f"{_FORMAT} {digest} ".encode() + reduced).hexdigest()


def read_announcement(store: Store, name: str) -> Announcement | None:
    """Return what is known of the result called *name*, None if it has never passed whole."""
    record = store.get("shim-spliced", name) if name else None
    try:
        tree = json.loads(record) if record is not None else None
        return None if tree is None else Announcement(tree["sha256"], tree["size"])
    except (ValueError, KeyError, TypeError):
        return None


def announce(store: Store, session: Session, passage: Passage) -> Announcement:
    """Return hash and size of what *passage* sends: all of it passes, to nobody.

    Raises:
        IndexProblem: it cannot be had, or is not what was promised.
    """
    for _ in whole(session, passage, store):
        pass
    found = read_announcement(store, passage.name)
    if found is None:
        raise UnusableFile(f"{redacted(passage.file.url)}: the cache does not keep its hash")
    return found


def whole(session: Session, passage: Passage, store: Store | None = None) -> Iterator[bytes]:
    """Yield all of a passage, checked; what is not as promised ends before its last chunk.

    The hash of a result that is put together is kept in *store* for pages to announce.

    Raises:
        IndexProblem: it cannot be had, breaks off, or is not what was promised.
    """
    file = passage.file
    digests = Digests(file.hashes)
    learnt = hashlib.sha256() if store is not None and _is_changed(passage) else None
    waiting = b""
    size = 0
    for chunk in _assembled(session, passage, digests):
        if waiting:
            yield waiting
        waiting = chunk
        size += len(chunk)
        if learnt is not None:
            learnt.update(chunk)
    digests.compare(file.url)
    if learnt is not None and store is not None and passage.name:
        record = json.dumps({"sha256": learnt.hexdigest(), "size": size})
        store.put("shim-spliced", passage.name, record.encode())
    if waiting:
        yield waiting


def _is_changed(passage: Passage) -> bool:
    return passage.splice is not None and any(
        piece.data is not None for piece in passage.splice.pieces
    )


def _assembled(session: Session, passage: Passage, digests: Digests) -> Iterator[bytes]:
    """Yield the pieces while the original goes by from start to end, every byte of it hashed."""
    file = passage.file
    with session.stream(file.url) as chunks:
        if passage.splice is None:
            for chunk in chunks:
                digests.update(chunk)
                yield chunk
            return
        original = _Passing(chunks, digests)
        for piece in passage.splice.pieces:
            if piece.data is not None:
                yield piece.data
                continue
            original.skip_to(piece.start)
            yield from original.copy_to(piece.end)
        original.skip_to(passage.splice.original)
        if original.position != passage.splice.original or original.goes_on():
            raise BadAnswer(
                f"{redacted(file.url)}: does not have the {passage.splice.original} bytes expected"
            )


class _Passing:
    """The original, of which each byte comes by once."""

    def __init__(self, chunks: Iterator[bytes], digests: Digests) -> None:
        self.position = 0
        self._chunks = chunks
        self._digests = digests
        self._chunk = memoryview(b"")

    def copy_to(self, end: int) -> Iterator[bytes]:
        """Yield what comes by until *end*, less if the original ends."""
        while self.position < end and self._more():
            part = self._chunk[: end - self.position]
            self._chunk = self._chunk[len(part) :]
            self.position += len(part)
            yield bytes(part)

    def skip_to(self, end: int) -> None:
        """Let go by what comes until *end*."""
        for _ in self.copy_to(end):
            pass

    def goes_on(self) -> bool:
        """Return whether there is anything left."""
        return self._more()

    def _more(self) -> bool:
        while not self._chunk:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._digests.update(chunk)
            self._chunk = memoryview(chunk)
        return True


def part(session: Session, passage: Passage, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a passage from *start* to *end*; nothing of a part can be checked.

    Raises:
        IndexProblem: they cannot be had.
    """
    assert passage.splice is not None
    for piece in passage.splice.between(start, end):
        if piece.data is not None:
            yield piece.data
        elif is_local(passage.file.url):
            with local_path(passage.file.url).open("rb") as stream:
                stream.seek(piece.start)
                left = len(piece)
                while left and (chunk := stream.read(min(CHUNK, left))):
                    left -= len(chunk)
                    yield chunk
        else:
            yield from _remote(session, passage, piece)


def _remote(session: Session, passage: Passage, piece: Piece) -> Iterator[bytes]:
    url = passage.file.url
    for start in range(piece.start, piece.end, _PART):
        length = min(_PART, piece.end - start)
        found = session.part(url, start, length)
        if found is not None:
            if found.start != start or len(found.data) != length:
                raise BadAnswer(f"{redacted(url)}: the server gives another part than asked for")
            yield found.data
            continue
        with session.stream(url) as chunks:  # no parts here: let go by what comes before
            original = _Passing(chunks, Digests({}))
            original.skip_to(start)
            yield from original.copy_to(piece.end)
        return


PROBLEMS = (VariantError, UnusableFile)
"""What makes a wheel that cannot be put together, beside an upstream that fails."""

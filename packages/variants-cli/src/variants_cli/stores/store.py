"""What every store can do, and its errors."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NewType, Protocol

from pep_variants.errors import VariantError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

Version = NewType("Version", str)
"""Identifies the content of one object, as its store spells it."""

CHUNK = 8 * 1024 * 1024
"""Bytes of a file that are read, or sent as one part, at a time."""


class StoreError(VariantError):
    """A store cannot be read or written."""


class Changed(StoreError):
    """An object is not, or no longer, the version that was to be replaced."""


@dataclass(frozen=True)
class Content:
    """An object that was read.

    Attributes:
        data: all of it.
        version: of exactly these bytes.
    """

    data: bytes
    version: Version


@dataclass(frozen=True)
class Entry:
    """An object in a listing.

    Attributes:
        path: of the object.
        size: in bytes.
        modified: when it was written, with a time zone.
    """

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Headers:
    """What servers of the store send with an object; stores that cannot keep it ignore it.

    Attributes:
        content_type: media type.
        cache_control: as in HTTP.
    """

    content_type: str
    cache_control: str


class Store(Protocol):
    """Objects under paths: relative, with ``/``, without empty, ``.`` and ``..`` segments.

    Readers see an object whole or not at all, and see a write as soon as it returned. All methods
    raise `StoreError` if the store cannot be reached or refuses.
    """

    @property
    def name(self) -> str:
        """The place, for messages; without secrets."""
        ...

    def get(self, path: str, limit: int) -> Content | None:
        """Return the object at *path*, None if there is none.

        Raises:
            StoreError: it has more than *limit* bytes.
        """
        ...

    def size(self, path: str) -> int | None:
        """Return the bytes of the object at *path*, None if there is none."""
        ...

    def put(self, path: str, data: bytes, headers: Headers) -> None:
        """Write an object, whatever is there."""
        ...

    def put_file(
        self,
        path: str,
        source: Path,
        sha256: str,
        headers: Headers,
        progress: Callable[[int], None],
    ) -> None:
        """Write the file *source*, in parts if it is large.

        Args:
            path: of the object.
            source: the file.
            sha256: what its content must have, hexadecimal.
            headers: of the object.
            progress: called with the number of bytes that were read since the last call.

        Raises:
            StoreError: also if *source* has another hash; then nothing is written.
        """
        ...

    def put_if(self, path: str, data: bytes, version: Version | None, headers: Headers) -> None:
        """Write an object if it still has *version*; None if it must not exist yet.

        Raises:
            Changed: it has another, or is there, or is not.
        """
        ...

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield all objects below *prefix*, in any order."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; those that are not there are ignored."""
        ...


class HashedStream:
    """Reads a file in chunks and checks in the end that it is the one that was expected."""

    def __init__(
        self, stream: IO[bytes], source: Path, sha256: str, progress: Callable[[int], None]
    ) -> None:
        """Prepare to read *stream*, opened from *source*; the others as in `Store.put_file`."""
        self._stream = stream
        self._source = source
        self._sha256 = sha256
        self._progress = progress

    def __iter__(self) -> Iterator[bytes]:
        """Yield the chunks.

        Raises:
            StoreError: the file has another hash, or cannot be read.
        """
        digest = hashlib.sha256()
        # One chunk is held back, so that a file that changed is never complete.
        held = self._read()
        digest.update(held)
        while chunk := self._read():
            digest.update(chunk)
            yield held
            self._progress(len(held))
            held = chunk
        if digest.hexdigest() != self._sha256:
            raise StoreError(f"{self._source}: changed while it was read: run the command again")
        yield held
        self._progress(len(held))

    def _read(self) -> bytes:
        try:
            return self._stream.read(CHUNK)
        except OSError as error:
            raise StoreError(f"{self._source}: {error.strerror or error}") from None


def checked_path(path: str) -> str:
    """Return *path* if it names an object inside a store.

    Raises:
        StoreError: it is absolute, or leads outside.
    """
    if any(segment in ("", ".", "..") for segment in path.split("/")) or "\\" in path:
        raise StoreError(f"{path!r}: is not the path of an object")
    return path

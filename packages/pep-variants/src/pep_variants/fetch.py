"""What `release` asks its caller to fetch, what the caller answers, and whole files opened.

Nothing in here opens a connection: a client with any HTTP library makes the requests.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import IO, TYPE_CHECKING, NoReturn, Protocol, TypeAlias

from .digests import Digests
from .errors import MetadataError, redacted
from .limits import DOCUMENT_BYTES, INSPECTED_WHEEL_BYTES
from .model.metadata import Metadata

if TYPE_CHECKING:
    from .wheelfile.lazy_file import Part, Range


ABSENT = (401, 403, 404, 410)
"""HTTP statuses of a server that does not have a file, or does not serve it to this user."""

_OK = 200
_PARTIAL_CONTENT = 206


@dataclass(frozen=True)
class ReleaseFile:
    """A file of a version, as its index lists it.

    Attributes:
        filename: of a wheel or a metadata file.
        url: of the file, http, https or file. For a client that knows files by another key: any
            text that names the file in messages.
        hashes: hexadecimal digests by algorithm, empty if the index gives none.
        origin: whatever the client wants to find in `Fetch.file` again, such as its own link.
    """

    filename: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    origin: object = None


@dataclass(frozen=True, eq=False)
class Fetch:
    """A request to be made.

    Attributes:
        file: the file.
        range: the bytes of it, None for the whole file.
    """

    file: ReleaseFile
    range: Range | None = None

    @property
    def url(self) -> str:
        """URL of the file."""
        return self.file.url

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel; otherwise the index's metadata file of the version."""
        return self.file.filename.endswith(".whl")

    @property
    def limit(self) -> int:
        """The most bytes of a whole file that are used: one more is enough to refuse it."""
        return INSPECTED_WHEEL_BYTES if self.is_wheel else DOCUMENT_BYTES

    @property
    def headers(self) -> dict[str, str]:
        """The request headers.

        The metadata file may change under its name, so caches have to revalidate it. Parts of a
        wheel have to be of its present state, and bytes that are not compressed.
        """
        headers = {"Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        if self.range is not None:
            headers["Range"] = self.range.header
        return headers


@dataclass(frozen=True)
class Whole:
    """The whole file, downloaded: its size and hashes are checked.

    Servers may send it in place of a range.

    Attributes:
        data: the bytes, at most `Fetch.limit` + 1 of them; or a seekable binary file with them,
            which is closed when it was read.
    """

    data: bytes | IO[bytes]


@dataclass(frozen=True)
class LocalFile:
    """A file of this machine, in place of a range or the whole: only what is needed is read.

    Attributes:
        stream: seekable binary file; closed when it was read.
    """

    stream: IO[bytes]


class NoRanges(Enum):
    """A server does not send the range: `REFUSED` this one, or `NEVER` sends any."""

    REFUSED = "refused"
    NEVER = "never"


@dataclass(frozen=True)
class Absent:
    """The server does not have the file, or does not serve it to this user: see `ABSENT`.

    Attributes:
        reason: in words, without the URL: ``HTTP status 404``.
    """

    reason: str


@dataclass(frozen=True)
class Failed:
    """The file cannot be fetched.

    Attributes:
        reason: in words, without the URL: ``no connection``.
    """

    reason: str


FetchAnswer: TypeAlias = "Part | Whole | LocalFile | NoRanges | Absent | Failed"


class Headers(Protocol):
    """Response headers, found whatever the case of their names."""

    def get(self, name: str, default: str, /) -> str:
        """Return the value of a header."""


def read_response(
    fetch: Fetch, status: int, headers: Headers, read: Callable[[int], bytes]
) -> FetchAnswer:
    """Return the answer that an HTTP response is, after redirects.

    Args:
        fetch: the request that was made, with its `Fetch.headers`.
        status: HTTP status.
        headers: of the response.
        read: returns up to so many bytes of the body, fewer only at its end.
    """
    if status in ABSENT:
        return Absent(f"HTTP status {status}")
    if status == _OK:
        return Whole(read(fetch.limit + 1))
    if fetch.range is None:
        return Failed(f"HTTP status {status}")
    from .wheelfile.lazy_file import REFUSED, Part, read_content_range

    if status in REFUSED:
        return NoRanges.REFUSED
    if status != _PARTIAL_CONTENT:
        return Failed(f"HTTP status {status}")
    span = read_content_range(headers.get("Content-Range", ""))
    if span is None:
        return NoRanges.NEVER
    start, size, total = span
    if size > fetch.range.length:
        return Failed("the server sends more than the range asked for")
    data = read(size)
    if len(data) != size:
        return Failed("the server sends fewer bytes than it announces")
    return Part(data, start, total, headers.get("ETag", ""))


Document = tuple[bytes, Metadata]
"""A file with variant metadata, and what it says."""

Reading = Generator[Fetch, FetchAnswer, Document]
"""Yields what has to be fetched, is sent the answers, and returns the document."""

_CHUNK = 64 * 1024


def opened(file: ReleaseFile, answer: FetchAnswer, stack: ExitStack) -> IO[bytes]:
    """Return a whole file from its start; it is closed with *stack*.

    Raises:
        MetadataError: it cannot be fetched.
    """
    if isinstance(answer, LocalFile):
        return stack.enter_context(answer.stream)
    if isinstance(answer, Whole):
        data = answer.data
        stream = io.BytesIO(data) if isinstance(data, bytes) else data
        stream.seek(0)
        return stack.enter_context(stream)
    if isinstance(answer, (Absent, Failed)):
        fail(file, answer)
    raise TypeError(f"{answer!r} is not a valid answer to a request for a whole file")


def verify(file: ReleaseFile, stream: IO[bytes]) -> None:
    """Compare the file in *stream* with the hashes of its index.

    Raises:
        MetadataError: it is another one.
    """
    digests = Digests(file.hashes)
    if not digests.found:
        return
    while chunk := stream.read(_CHUNK):
        digests.update(chunk)
    problem = digests.problem()
    if problem is not None:
        raise MetadataError(file.url, "", problem)


def fail(file: ReleaseFile, answer: Absent | Failed) -> NoReturn:
    """Raise the error for a file that cannot be fetched."""
    raise MetadataError(file.url, "", f"cannot be fetched: {redacted(answer.reason)}")

"""The variant metadata of one version: from its file on the index, else from its wheels.

The rule of PEP 825 ("Installing a package from an index", step 5), with its limits and messages,
for every client. Like h11, it does no I/O: `ReleaseReader` says what to fetch next and is given
the answers; nothing in here opens a connection. An installer on ``urllib``:

    def variant_metadata(wheels, index_file, page_url):
        reader = ReleaseReader(wheels, index_file, source=page_url)
        while fetches := reader.wanted():
            fetch = fetches[0]  # all of them could be made at once
            request = Request(fetch.url, headers=fetch.headers)
            try:
                with urlopen(request, timeout=15) as response:
                    answer = read_response(
                        fetch, response.status, response.headers, response.read
                    )
            except HTTPError as error:
                answer = read_response(fetch, error.code, error.headers, error.read)
            except OSError as error:
                answer = Failed(str(error), may_pass=True)
            reader.receive(fetch, answer)
        return reader.result()
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import IO, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar

from ._digests import Digests
from ._formats.merging import check_promise, merge_all
from ._formats.reader import read_metadata
from ._lazy_file import (
    FIRST_PART,
    Part,
    PartialFile,
    Range,
    RangeRefused,
    is_refused,
    last_part_ranges,
    read_content_range,
)
from ._model.filename import metadata_filename, parse_filename
from ._model.metadata import Metadata
from ._urls import is_local
from .errors import MetadataError, VariantError, redacted
from .labels import VARIANT_FILE, split_label
from .limits import DOCUMENT_BYTES, INSPECTED_WHEEL_BYTES, INSPECTED_WHEELS

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")

ABSENT = (401, 403, 404, 410)
"""HTTP statuses of a server that does not have a file, or does not serve it to this user."""

MAY_PASS = frozenset((408, 425, 429, *range(500, 600)))
"""HTTP statuses of requests that may succeed when they are sent again."""

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


class Whole(NamedTuple):
    """The whole file, downloaded: its size and hashes are checked.

    Servers may send it in place of a range.

    Attributes:
        data: the bytes, at most `Fetch.limit` + 1 of them; or a seekable binary file with them,
            which is closed when it was read.
    """

    data: bytes | IO[bytes]


class LocalFile(NamedTuple):
    """A file of this machine, in place of a range or the whole: only what is needed is read.

    Attributes:
        stream: seekable binary file; closed when it was read.
    """

    stream: IO[bytes]


class NoRanges(Enum):
    """A server does not send the range: `REFUSED` this one, or `NEVER` sends any."""

    REFUSED = "refused"
    NEVER = "never"


class Absent(NamedTuple):
    """The server does not have the file, or does not serve it to this user: see `ABSENT`.

    Attributes:
        reason: in words, without the URL: ``HTTP status 404``.
    """

    reason: str


class Failed(NamedTuple):
    """The file cannot be fetched.

    Attributes:
        reason: in words, without the URL: ``no connection``.
        may_pass: whether it may be there when it is asked for again.
    """

    reason: str
    may_pass: bool = False


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
    failed = Failed(f"HTTP status {status}", status in MAY_PASS)
    if status == _OK and fetch.range is None:
        return _whole_body(fetch, headers, read)
    if fetch.range is None:
        return failed
    if is_refused(fetch.range, status, headers.get("Accept-Ranges", "")):
        return NoRanges.REFUSED
    if status == _OK:
        return _whole_body(fetch, headers, read)
    if status != _PARTIAL_CONTENT:
        return failed
    span = read_content_range(headers.get("Content-Range", ""))
    if span is None:
        return NoRanges.NEVER
    start, size, total = span
    if size > fetch.range.length:
        return Failed("the server sends more than the range asked for")
    data = read(size)
    if len(data) != size:
        return _CUT_OFF
    return Part(data, start, total, headers.get("ETag", ""))


_CUT_OFF = Failed("the server sends fewer bytes than it announces", may_pass=True)


def _whole_body(fetch: Fetch, headers: Headers, read: Callable[[int], bytes]) -> FetchAnswer:
    """Return the body of a response; not every HTTP library says that it was cut off."""
    data, length = read(fetch.limit + 1), headers.get("Content-Length", "")
    expected = min(int(length[:19]), fetch.limit + 1) if length.isdecimal() else 0
    is_short = len(data) < expected and not headers.get("Content-Encoding", "")
    return _CUT_OFF if is_short else Whole(data)


Document = tuple[bytes, Metadata]
"""A file with variant metadata, and what it says."""

Reading = Generator[Fetch, FetchAnswer, Document]
"""Yields what has to be fetched, is sent the answers, and returns the document."""

_CHUNK = 64 * 1024


def _opened(file: ReleaseFile, answer: FetchAnswer, stack: ExitStack) -> IO[bytes]:
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
        _fail(file, answer)
    raise TypeError(f"{answer!r} is not a valid answer to a request for a whole file")


def _verify(file: ReleaseFile, stream: IO[bytes]) -> None:
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


def _fail(file: ReleaseFile, answer: Absent | Failed) -> NoReturn:
    """Raise the error for a file that cannot be fetched."""
    problem = f"cannot be fetched: {redacted(answer.reason)}"
    raise MetadataError(file.url, "", problem, may_pass=getattr(answer, "may_pass", False))


_INDEX_FILE = ""
"""Key of the index's metadata file where those of the wheels are their labels."""


class ReleaseReader:
    """Finds the variant metadata of one version in one source, an index or a directory.

    A metadata file that the index lists is used alone: if it is broken, or its server is down,
    wheels are not read in its place. If its server does not have it, or not for this user, it
    counts as not listed. Without it, one wheel of each label is read, by ranges where its server
    serves them, and what they say is merged.

    Whatever is wrong is an error in `result`, and costs the version its variants. The error is
    the same in whichever order the answers come.

    >>> from pep_variants.metadata import ReleaseFile, ReleaseReader
    >>> place = "https://index.example/torch-2.8.0-variants.json"
    >>> reader = ReleaseReader([], ReleaseFile("torch-2.8.0-variants.json", place), source=None)
    >>> [fetch.url for fetch in reader.wanted()]
    ['https://index.example/torch-2.8.0-variants.json']
    """

    def __init__(
        self,
        wheels: Iterable[ReleaseFile],
        index_file: ReleaseFile | None,
        *,
        source: str | None,
    ) -> None:
        """Start.

        Args:
            wheels: the variant wheels of the version in the source. Of several with one label,
                the first is read.
            index_file: the ``{name}-{version}-variants.json`` that the source lists, None if it
                lists none.
            source: URL of the index page, or the directory, for messages; None for a single
                wheel that the user named.

        Raises:
            InvalidWheelFilename: a wheel's filename is not valid.
        """
        self._source = source
        self._wheels: dict[str, ReleaseFile] = {}
        for wheel in wheels:
            label = split_label(wheel.filename)[1]
            if label is not None:
                self._wheels.setdefault(label, wheel)
        self._index_file = index_file
        self._filename = "" if index_file is None else index_file.filename
        self._missing = ""
        self._error: VariantError | None = None
        self._readings: dict[str, Reading] = {}
        self._fetches: dict[str, Fetch | None] = {}
        self._documents: dict[str, Document] = {}
        if index_file is not None:
            _logger.debug("Reading variant metadata from %s", self._filename)
            self._begin({_INDEX_FILE: _index_file(index_file, self._check_place)})
        else:
            self._begin_wheels(f"lists variant wheels, but no {self._name()}")

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The files that `result` was made of: of the index under an empty key, else by label."""
        return {key: data for key, (data, _) in self._documents.items()}

    def wanted(self) -> list[Fetch]:
        """Return the fetches whose answers are needed now; none when `result` is there.

        They do not depend on each other. A client that makes one at a time takes the first, and
        asks again after its answer: an error makes the others unnecessary.
        """
        return [fetch for fetch in self._fetches.values() if fetch is not None]

    def receive(self, fetch: Fetch, answer: FetchAnswer) -> None:
        """Take the *answer* to one of the fetches that are wanted.

        Answers to fetches that are not wanted any more are ignored.
        """
        for key, known in self._fetches.items():
            if known is fetch:
                self._advance(key, partial(self._readings[key].send, answer))
                return
        if isinstance(answer, LocalFile):
            answer.stream.close()
        elif isinstance(answer, Whole) and not isinstance(answer.data, bytes):
            answer.data.close()

    def result(self) -> Metadata:
        """Return the variant metadata of the version.

        Raises:
            VariantError: there is none, it cannot be fetched, it is broken, or wheels contradict
                each other.
            RuntimeError: fetches are still wanted.
        """
        if self._error is not None:
            raise self._error
        if self.wanted():
            raise RuntimeError("fetches are still wanted")
        metadata = [self._documents[key][1] for key in sorted(self._documents)]
        try:
            return merge_all(metadata)
        except VariantError as error:
            raise self._explained(error) from None

    def _begin(self, readings: Mapping[str, Reading]) -> None:
        self._readings = dict(readings)
        self._fetches = dict.fromkeys(self._readings)
        for key in tuple(self._readings):
            if key in self._readings:  # an error has ended those after it
                self._advance(key, partial(next, self._readings[key]))

    def _begin_wheels(self, missing: str) -> None:
        self._missing = missing
        if not self._wheels:
            self._error = MetadataError(self._source or "", "", f"{missing}, and no wheels")
            return
        if len(self._wheels) > INSPECTED_WHEELS:
            self._error = MetadataError(
                self._source or "",
                "",
                f"{missing}, and {len(self._wheels)} labels are too many to read the metadata "
                f"from the wheels (at most {INSPECTED_WHEELS})",
            )
            return
        _logger.debug(
            "Reading variant metadata from the wheels of %d labels, for %s: the index %s",
            len(self._wheels),
            self._name(),
            missing,
        )
        self._begin(
            {
                label: _wheel_file(wheel, label, self._check_place)
                for label, wheel in sorted(self._wheels.items())
            }
        )

    def _advance(self, key: str, step: Callable[[], Fetch]) -> None:
        """Take a reading to its next fetch, or its end."""
        try:
            self._fetches[key] = step()
            return
        except StopIteration as end:
            self._documents[key] = end.value
            del self._fetches[key], self._readings[key]
        except _IndexFileAbsent as absent:
            self._fetches.clear()
            self._readings.clear()
            self._begin_wheels(f"lists {self._name()}, but it cannot be fetched ({absent.reason})")
        except VariantError as error:
            # Those before it may still fail, those after it do not matter any more.
            keys = list(self._fetches)
            for later in keys[keys.index(key) :]:
                del self._fetches[later]
                self._readings.pop(later).close()
            self._error = error if key == _INDEX_FILE else self._explained(error)

    def _explained(self, error: VariantError) -> VariantError:
        """Return *error* with why the metadata was read from wheels."""
        if self._source is None:
            return error
        problem = f"{self._missing}; {redacted(str(error))}"
        return MetadataError(self._source, "", problem, may_pass=error.may_pass)

    def _name(self) -> str:
        """Return the name of the metadata file, for messages."""
        for wheel in self._wheels.values():
            if not self._filename:
                parsed = parse_filename(wheel.filename)
                self._filename = metadata_filename(parsed.name, str(parsed.version))
        return self._filename

    def _check_place(self, file: ReleaseFile) -> None:
        """Check that a local file is listed by a local page, and not by a server.

        Raises:
            MetadataError: the page is from a server.
        """
        source = self._source or ""
        if is_local(file.url) and "://" in source and not is_local(source):
            raise MetadataError(
                file.url, "", f"is a local file, but listed by {redacted(source)}: not read"
            )


class _IndexFileAbsent(Exception):
    """The index's metadata file cannot be fetched."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _index_file(file: ReleaseFile, check: Callable[[ReleaseFile], None]) -> Reading:
    check(file)
    answer = yield Fetch(file)
    if isinstance(answer, Absent):
        raise _IndexFileAbsent(redacted(answer.reason))
    with ExitStack() as stack:
        stream = _opened(file, answer, stack)
        limit = Fetch(file).limit
        data = stream.read(limit + 1)
    if len(data) <= limit:  # else it was not read completely, and the reader says how large it is
        _verify(file, io.BytesIO(data))
    return data, read_metadata(data, file.url)


class _RangeWanted(Exception):
    """A range of a partial file has to be fetched; no error that `zipfile` handles."""

    def __init__(self, wanted: Range) -> None:
        super().__init__()
        self.range = wanted


def _wheel_file(wheel: ReleaseFile, label: str, check: Callable[[ReleaseFile], None]) -> Reading:
    """Read ``variant.json`` of *wheel*, which is named with *label*, by ranges where possible.

    *check* raises the error for a place that it must not be read from.
    """
    # Imported late: zip files are for the few versions that lack the index's file.
    from ._wheelfile.wheel import open_wheel

    check(wheel)
    place = redacted(wheel.url)
    with ExitStack() as stack:
        file = yield from _wheel_stream(wheel, stack)
        opening = partial(open_wheel, file, place, filename=wheel.filename)
        contents = yield from _read(wheel, file, lambda: stack.enter_context(opening()))
        data = yield from _read(wheel, file, lambda: contents.read(VARIANT_FILE))
    if data is None:
        raise MetadataError(wheel.url, "", f"is named a variant wheel, but has no {VARIANT_FILE}")
    metadata = read_metadata(data, f"{place}: {contents.dist_info}/{VARIANT_FILE}")
    check_promise(metadata, metadata, label)
    return data, metadata


def _wheel_stream(wheel: ReleaseFile, stack: ExitStack) -> Generator[Fetch, FetchAnswer, IO[bytes]]:
    """Return the wheel as a seekable file: of parts, or whole where there are no ranges."""
    ranges = last_part_ranges(FIRST_PART)
    step = partial(next, ranges)
    tail: Part | None = None
    while True:
        try:
            fetch = Fetch(wheel, step())
        except StopIteration as end:
            tail = end.value
            break
        answer = yield fetch
        if isinstance(answer, Part):
            step = partial(ranges.send, answer)
        elif answer is NoRanges.REFUSED:
            step = partial(ranges.throw, RangeRefused())
        elif answer is NoRanges.NEVER:
            step = partial(ranges.send, None)
        else:
            return _whole(wheel, answer, stack)
    if tail is None:
        return _whole(wheel, (yield Fetch(wheel)), stack)
    file = PartialFile(tail, _raise_wanted, partial(MetadataError, wheel.url, ""))
    return stack.enter_context(file)  # type: ignore[arg-type] # has what `zipfile` uses


def _read(
    wheel: ReleaseFile, file: IO[bytes], read: Callable[[], _T]
) -> Generator[Fetch, FetchAnswer, _T]:
    """Return the result of *read*, which is called again when a missing part was fetched."""
    while True:
        try:
            return read()
        except _RangeWanted as missing:
            wanted = missing.range
        answer = yield Fetch(wheel, wanted)
        if isinstance(answer, (Absent, Failed)):
            _fail(wheel, answer)
        assert isinstance(file, PartialFile)
        file.add(wanted, answer if isinstance(answer, Part) else None)


def _raise_wanted(wanted: Range) -> NoReturn:
    raise _RangeWanted(wanted)


def _whole(wheel: ReleaseFile, answer: FetchAnswer, stack: ExitStack) -> IO[bytes]:
    """Return a whole wheel, its size and hashes checked."""
    stream = _opened(wheel, answer, stack)
    if isinstance(answer, Whole):
        limit = Fetch(wheel).limit
        if stream.seek(0, io.SEEK_END) > limit:
            raise MetadataError(
                wheel.url,
                "",
                "the server does not support range requests, and it is larger than the "
                f"{limit} bytes that are downloaded for metadata",
            )
        stream.seek(0)
        _verify(wheel, stream)
        stream.seek(0)
    return stream

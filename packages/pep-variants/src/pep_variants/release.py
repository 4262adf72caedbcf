"""The variant metadata of one version: from its file on the index, else from its wheels.

The rule of PEP 825 ("Installing a package from an index", step 5), with its limits and messages,
for every client. Like h11, it does no I/O: `ReleaseReader` says what to fetch next and is given
the answers. An installer on ``urllib``:

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
                answer = Failed(str(error))
            reader.receive(fetch, answer)
        return reader.result()
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import IO, NoReturn, TypeVar

from .digests import Digests
from .errors import MetadataError, VariantError, redacted
from .fetch import Absent, Answer, Failed, Fetch, LocalFile, NoRanges, ReleaseFile, Whole
from .formats.merging import check_promise, merge_all
from .formats.reader import read_metadata
from .limits import INSPECTED_WHEELS
from .model.filename import metadata_filename, parse_filename
from .model.label import split_label
from .model.metadata import Metadata
from .urls import is_local
from .wheelfile.lazy_file import (
    FIRST_PART,
    Part,
    PartialFile,
    Range,
    RangeRefused,
    last_part_ranges,
)
from .wheelfile.wheel import VARIANT_FILE, open_wheel

_T = TypeVar("_T")
_Document = tuple[bytes, Metadata]
_Reading = Generator[Fetch, Answer, _Document]

_INDEX_FILE = ""
"""Key of the index's metadata file where those of the wheels are their labels."""

_CHUNK = 64 * 1024


class ReleaseReader:
    """Finds the variant metadata of one version in one source, an index or a directory.

    A metadata file that the index lists is used alone: if it is broken, or its server is down,
    wheels are not read in its place. If its server does not have it, or not for this user, it
    counts as not listed. Without it, one wheel of each label is read, by ranges where its server
    serves them, and what they say is merged.

    Whatever is wrong is an error in `result`, and costs the version its variants. The error is
    the same in whichever order the answers come.
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
        self._readings: dict[str, _Reading] = {}
        self._fetches: dict[str, Fetch | None] = {}
        self._documents: dict[str, _Document] = {}
        if index_file is not None:
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

    def receive(self, fetch: Fetch, answer: Answer) -> None:
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

    def _begin(self, readings: Mapping[str, _Reading]) -> None:
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
        return MetadataError(self._source, "", f"{self._missing}; {redacted(str(error))}")

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


class _RangeWanted(Exception):
    """A range of a partial file has to be fetched; no error that `zipfile` handles."""

    def __init__(self, wanted: Range) -> None:
        super().__init__()
        self.range = wanted


def _index_file(file: ReleaseFile, check: Callable[[ReleaseFile], None]) -> _Reading:
    check(file)
    answer = yield Fetch(file)
    if isinstance(answer, Absent):
        raise _IndexFileAbsent(redacted(answer.reason))
    with ExitStack() as stack:
        stream = _downloaded(file, answer, stack)
        limit = Fetch(file).limit
        data = stream.read(limit + 1)
    if len(data) <= limit:  # else it was not read completely, and the reader says how large it is
        _verify(file, io.BytesIO(data))
    return data, read_metadata(data, file.url)


def _wheel_file(wheel: ReleaseFile, label: str, check: Callable[[ReleaseFile], None]) -> _Reading:
    check(wheel)
    place = redacted(wheel.url)
    with ExitStack() as stack:
        file = yield from _opened(wheel, stack)
        opening = partial(open_wheel, file, place, filename=wheel.filename)
        contents = yield from _read(wheel, file, lambda: stack.enter_context(opening()))
        data = yield from _read(wheel, file, lambda: contents.read(VARIANT_FILE))
    if data is None:
        raise MetadataError(wheel.url, "", f"is named a variant wheel, but has no {VARIANT_FILE}")
    metadata = read_metadata(data, f"{place}: {contents.dist_info}/{VARIANT_FILE}")
    check_promise(metadata, metadata, label)
    return data, metadata


def _opened(wheel: ReleaseFile, stack: ExitStack) -> Generator[Fetch, Answer, IO[bytes]]:
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
            return _checked(wheel, answer, stack)
    if tail is None:
        return _checked(wheel, (yield Fetch(wheel)), stack)
    file = PartialFile(tail, _raise_wanted, partial(MetadataError, wheel.url, ""))
    return stack.enter_context(file)  # type: ignore[arg-type] # has what `zipfile` uses


def _read(
    wheel: ReleaseFile, file: IO[bytes], read: Callable[[], _T]
) -> Generator[Fetch, Answer, _T]:
    """Return what *read* returns, which is called again when a missing part was fetched."""
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


def _checked(wheel: ReleaseFile, answer: Answer, stack: ExitStack) -> IO[bytes]:
    """Return a whole wheel, its size and hashes checked."""
    stream = _downloaded(wheel, answer, stack)
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


def _downloaded(file: ReleaseFile, answer: Answer, stack: ExitStack) -> IO[bytes]:
    """Return a whole file from its start; it is closed with *stack*."""
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
    digests = Digests(file.hashes)
    if not digests.found:
        return
    while chunk := stream.read(_CHUNK):
        digests.update(chunk)
    problem = digests.problem()
    if problem is not None:
        raise MetadataError(file.url, "", problem)


def _fail(file: ReleaseFile, answer: Absent | Failed) -> NoReturn:
    raise MetadataError(file.url, "", f"cannot be fetched: {redacted(answer.reason)}")

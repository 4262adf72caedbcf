"""The variant metadata in the wheels of a version, for sources without a metadata file of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import partial
from typing import IO, NoReturn, TypeVar

from .errors import MetadataError, redacted
from .fetch import (
    Absent,
    Failed,
    Fetch,
    FetchAnswer,
    NoRanges,
    Reading,
    ReleaseFile,
    Whole,
    fail,
    opened,
    verify,
)
from .formats.merging import check_promise
from .formats.reader import read_metadata
from .model.label import VARIANT_FILE
from .wheelfile.lazy_file import (
    FIRST_PART,
    Part,
    PartialFile,
    Range,
    RangeRefused,
    last_part_ranges,
)
from .wheelfile.wheel import open_wheel

_T = TypeVar("_T")


class _RangeWanted(Exception):
    """A range of a partial file has to be fetched; no error that `zipfile` handles."""

    def __init__(self, wanted: Range) -> None:
        super().__init__()
        self.range = wanted


def wheel_file(wheel: ReleaseFile, label: str, check: Callable[[ReleaseFile], None]) -> Reading:
    """Read ``variant.json`` of *wheel*, which is named with *label*, by ranges where possible.

    *check* raises the error for a place that it must not be read from.
    """
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


def _opened(wheel: ReleaseFile, stack: ExitStack) -> Generator[Fetch, FetchAnswer, IO[bytes]]:
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
    """Return what *read* returns, which is called again when a missing part was fetched."""
    while True:
        try:
            return read()
        except _RangeWanted as missing:
            wanted = missing.range
        answer = yield Fetch(wheel, wanted)
        if isinstance(answer, (Absent, Failed)):
            fail(wheel, answer)
        assert isinstance(file, PartialFile)
        file.add(wanted, answer if isinstance(answer, Part) else None)


def _raise_wanted(wanted: Range) -> NoReturn:
    raise _RangeWanted(wanted)


def _whole(wheel: ReleaseFile, answer: FetchAnswer, stack: ExitStack) -> IO[bytes]:
    """Return a whole wheel, its size and hashes checked."""
    stream = opened(wheel, answer, stack)
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
        verify(wheel, stream)
        stream.seek(0)
    return stream

"""Files that were downloaded whole: opened, and checked against the hashes of their index."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import ExitStack
from typing import IO, NoReturn

from .digests import Digests
from .errors import MetadataError, redacted
from .fetch import Absent, Failed, Fetch, FetchAnswer, LocalFile, ReleaseFile, Whole
from .model.metadata import Metadata

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

"""Files on servers: looked into where they are, part by part, or downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import IO

from pep_variants.errors import redacted
from pep_variants.parts import FIRST_PART, PartialFile

from .errors import BadAnswer
from .session import Digests, Session, is_local, local_path

MAX_DOWNLOAD = 16 * 1024**3


@contextmanager
def opened(
    session: Session, url: str, hashes: Mapping[str, str] | None = None
) -> Iterator[IO[bytes]]:
    """Yield the file at *url*, seekable: in parts, or downloaded where there are no parts.

    Args:
        session: what fetches.
        url: http, https or file.
        hashes: of the file; they can only be checked if it is downloaded.

    Raises:
        IndexProblem: it cannot be had; also raised by reading.
    """
    if is_local(url):
        with local_path(url).open("rb") as file:
            yield file
        return
    tail = session.part(url, None, FIRST_PART)
    if tail is not None:

        def problem(what: str) -> BadAnswer:
            return BadAnswer(f"{redacted(url)}: {what}")

        with PartialFile(tail, partial(session.part, url), problem) as file_in_parts:
            yield file_in_parts  # type: ignore[misc] # has all that readers of archives use
        return
    with tempfile.TemporaryFile() as copy:
        download(session, url, copy, hashes or {})
        copy.seek(0)
        yield copy


def download(
    session: Session,
    url: str,
    target: IO[bytes],
    hashes: Mapping[str, str],
    *,
    size: int | None = None,
) -> None:
    """Write what is at *url* to *target*, and check *hashes* and *size* of it.

    Raises:
        IndexProblem: it cannot be had, or is not what was promised.
        OSError: *target* cannot be written.
    """
    check = Digests(hashes)
    written = 0
    limit = MAX_DOWNLOAD if size is None else size
    with session.stream(url) as chunks:
        for chunk in chunks:
            written += len(chunk)
            if written > limit:
                raise BadAnswer(f"{redacted(url)}: is larger than the {limit} bytes expected")
            check.update(chunk)
            target.write(chunk)
    if size is not None and written != size:
        raise BadAnswer(f"{redacted(url)}: has {written} bytes, not the {size} promised")
    check.compare(url)

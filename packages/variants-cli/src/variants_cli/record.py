"""Reading and editing RECORD, the list of a wheel's files (PEP 376, PEP 427).

Edits leave every other line byte for byte as it was, so that taking an edit back gives the
original file.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from pep_variants.errors import InvalidWheel

RECORD_FILE = "RECORD"
SIGNATURE_FILES = ("RECORD.jws", "RECORD.p7s")
"""Signatures over RECORD; they are not listed in it and end with the first change to it."""

MAX_RECORD_BYTES = 256 * 1024 * 1024
"""Larger ones are refused: the largest wheels list some ten thousand files in two megabytes."""


@dataclass(frozen=True)
class Row:
    """One line of RECORD.

    Attributes:
        path: the file, relative to the wheel's root; empty for an empty line.
        digest: ``algorithm=urlsafe-base64``, empty where there is none.
        size: bytes as written, empty where it is not given.
        line: the line as it is, line ending included.
    """

    path: str
    digest: str
    size: str
    line: str


def digest_of(data: bytes) -> str:
    """Return the digest of *data* as RECORD writes it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def read_record(data: bytes, source: str) -> list[Row]:
    """Return the rows of RECORD.

    Raises:
        InvalidWheel: it is not UTF-8, no CSV, or has a line without the three columns.
    """
    try:
        return list(_rows(data.decode()))
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InvalidWheel(f"{source}: RECORD is not valid: {error}") from None


def with_file(rows: list[Row], path: str, data: bytes, before: str) -> list[Row]:
    """Return *rows* with a row for the file *path*, right before the row of *before*.

    At the end if *before* is not listed.
    """
    place = next((number for number, row in enumerate(rows) if row.path == before), len(rows))
    like = rows[min(place, len(rows) - 1)].line if rows else "\n"
    ending = like[len(like.rstrip("\r\n")) :] or "\n"
    if rows and place == len(rows) and like.rstrip("\r\n") == like:  # the last line never ended
        rows = [*rows[:-1], _row(like + ending)]
    fields = (path, digest_of(data), str(len(data)))
    return [*rows[:place], Row(*fields, _line(fields, ending)), *rows[place:]]


def without_files(rows: list[Row], paths: Collection[str]) -> list[Row]:
    """Return *rows* without those of *paths*."""
    return [row for row in rows if row.path not in paths]


def with_paths(
    rows: list[Row], renamed: Callable[[str], str], contents: Mapping[str, bytes]
) -> list[Row]:
    """Return *rows* with other paths, and other digests of files that changed.

    Args:
        rows: of RECORD.
        renamed: gives the new path of an old one, the same for most.
        contents: new contents by old path.
    """
    changed = []
    for row in rows:
        path = renamed(row.path)
        if path == row.path and path not in contents:
            changed.append(row)
            continue
        digest, size = row.digest, row.size
        if row.path in contents:
            digest, size = digest_of(contents[row.path]), str(len(contents[row.path]))
        ending = row.line[len(row.line.rstrip("\r\n")) :]
        changed.append(Row(path, digest, size, _line((path, digest, size), ending)))
    return changed


def write_record(rows: list[Row]) -> bytes:
    """Return RECORD with *rows*."""
    return "".join(row.line for row in rows).encode()


def _line(fields: tuple[str, str, str], ending: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=ending).writerow(fields)
    return buffer.getvalue()


def _row(line: str) -> Row:
    return next(_rows(line))


def _rows(text: str) -> Iterator[Row]:
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        # Not str.splitlines: names may hold characters that it takes for line ends.
        for line in io.StringIO(text, newline=""):
            consumed.append(line)
            yield line

    for number, fields in enumerate(csv.reader(lines(), strict=True), 1):
        if fields and len(fields) != 3:
            raise ValueError(f"line {number} has {len(fields)} columns instead of 3")
        path, digest, size = fields or ("", "", "")  # an empty line is kept, too
        yield Row(path, digest, size, "".join(consumed))
        consumed.clear()

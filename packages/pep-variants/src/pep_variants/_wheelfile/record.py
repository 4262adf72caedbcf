"""RECORD, the list of a wheel's files: reading and editing (PEP 376, PEP 427).

Edits keep every other line byte for byte, so that undoing an edit gives the original file and equal
inputs give equal bytes on every machine.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from ..errors import InvalidWheel
from ..limits import WHEEL_ENTRIES

RECORD_FILE = "RECORD"
SIGNATURE_FILES = ("RECORD.jws", "RECORD.p7s")
"""Signatures over RECORD. RECORD does not list them, and any change to it invalidates them."""


class Row(NamedTuple):
    """One line of RECORD.

    Attributes:
        path: path of the file, relative to the wheel's root; empty for an empty line.
        digest: ``algorithm=urlsafe-base64``, empty if the line has none.
        size: bytes, as written; empty if the line has none.
        line: the line itself, with its line ending.
    """

    path: str
    digest: str
    size: str
    line: str


def digest_of(data: bytes) -> str:
    """Return the digest of *data* in the form that RECORD uses."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def record_line(path: str, data: bytes | None, ending: str = "\n") -> str:
    r"""Return the line for the file *path*.

    Args:
        path: relative to the wheel's root.
        data: contents; None for RECORD itself, which is listed without digest and size.
        ending: line ending.

    >>> from pep_variants.wheel_files import record_line
    >>> record_line("tool.py", b"print(1)")
    'tool.py,sha256=0oe7f50Vq9xbbphTYmOBV0S27yHI88g5_ENMpw2O_pk,8\n'
    """
    return _line((path, "", "") if data is None else _fields(path, data), ending)


def read_record(data: bytes, source: str) -> list[Row]:
    r"""Return the rows of RECORD.

    Args:
        data: contents of the file.
        source: path or URL for messages.

    Raises:
        InvalidWheel: RECORD is not UTF-8 or not CSV, has a line without exactly three columns, or
            has more lines than a wheel may have files.

    >>> from pep_variants.wheel_files import read_record
    >>> data = b"tool.py,sha256=AA,12\ntool-1.0.dist-info/RECORD,,\n"
    >>> [row.path for row in read_record(data, "tool-1.0-py3-none-any.whl")]
    ['tool.py', 'tool-1.0.dist-info/RECORD']
    """
    if (lines := data.count(b"\n") + data.count(b"\r")) > 2 * WHEEL_ENTRIES:
        raise InvalidWheel(f"RECORD has {lines} lines, at most {2 * WHEEL_ENTRIES}", source)
    try:
        return list(_rows(data.decode()))
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InvalidWheel(f"RECORD is not valid: {error}", source) from None


def with_file(rows: list[Row], path: str, data: bytes, before: str = "") -> list[Row]:
    """Return *rows* with a new row for the file *path*, directly before the row of *before*.

    The row is appended if *before* is not listed.
    """
    place = next((number for number, row in enumerate(rows) if before and row.path == before), None)
    place = len(rows) if place is None else place
    like = rows[min(place, len(rows) - 1)].line if rows else "\n"
    ending = like[len(like.rstrip("\r\n")) :] or "\n"
    if rows and place == len(rows) and like.rstrip("\r\n") == like:  # no newline at end of file
        rows = [*rows[:-1], _row(like + ending)]
    fields = _fields(path, data)
    return [*rows[:place], Row(*fields, _line(fields, ending)), *rows[place:]]


def with_contents(rows: list[Row], path: str, data: bytes) -> list[Row]:
    """Return *rows* with digest and size of *data* for the file *path*, added if not listed."""
    if any(row.path == path for row in rows):
        return with_paths(rows, lambda path: path, {path: data})
    return with_file(rows, path, data)


def without_files(rows: list[Row], paths: Collection[str]) -> list[Row]:
    """Return *rows* without those of *paths*."""
    return [row for row in rows if row.path not in paths]


def with_paths(
    rows: list[Row], renamed: Callable[[str], str], contents: Mapping[str, bytes]
) -> list[Row]:
    """Return *rows* with renamed paths, and new digests of files that changed.

    Args:
        rows: of RECORD.
        renamed: returns the new path for an old one, the same for most.
        contents: new contents by old path.
    """
    changed = []
    for row in rows:
        path = renamed(row.path)
        if path == row.path and path not in contents:
            changed.append(row)
            continue
        fields = (path, row.digest, row.size)
        if row.path in contents:
            fields = _fields(path, contents[row.path])
        ending = row.line[len(row.line.rstrip("\r\n")) :]
        changed.append(Row(*fields, _line(fields, ending)))
    return changed


def write_record(rows: list[Row]) -> bytes:
    """Return RECORD with *rows*."""
    return "".join(row.line for row in rows).encode()


def _fields(path: str, data: bytes) -> tuple[str, str, str]:
    return path, digest_of(data), str(len(data))


def _line(fields: tuple[str, str, str], ending: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=ending).writerow(fields)
    return buffer.getvalue()


def _row(line: str) -> Row:
    return next(_rows(line))


def _rows(text: str) -> Iterator[Row]:
    """Yield the rows of *text*; raises `csv.Error` or ValueError."""
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        # Not str.splitlines: names may contain characters that it treats as line ends.
        for line in io.StringIO(text, newline=""):
            consumed.append(line)
            yield line

    for number, fields in enumerate(csv.reader(lines(), strict=True), 1):
        if fields and len(fields) != 3:
            raise ValueError(f"line {number} has {len(fields)} columns instead of 3")
        path, digest, size = fields or ("", "", "")  # empty lines are kept, too
        yield Row(path, digest, size, "".join(consumed))
        consumed.clear()

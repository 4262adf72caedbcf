"""RECORD of a wheel one of whose files has other contents.

Every other line stays byte for byte, so that equal inputs give equal bytes on every machine.
"""

from __future__ import annotations

import base64
import csv
import hashlib
from io import StringIO


def rewrite_record(record: bytes, path: str, contents: bytes) -> bytes:
    """Return *record* with hash and size of the file at *path* as those of *contents*.

    A record that does not list the file gets a line for it.
    """
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    row = _row([path, f"sha256={digest}", str(len(contents))])
    hint = path.rpartition("/")[2].encode()
    lines = record.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if hint in line and _path(line) == path:
            ending = b"\r\n" if line.endswith(b"\r\n") else b"\n"
            lines[number] = row + ending
            return b"".join(lines)
    return record + (b"" if record.endswith(b"\n") or not record else b"\n") + row + b"\n"


def _path(line: bytes) -> str:
    try:
        (row,) = csv.reader([line.decode().rstrip("\r\n")])
        return row[0]
    except (ValueError, csv.Error, IndexError):
        return ""


def _row(cells: list[str]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue().encode()

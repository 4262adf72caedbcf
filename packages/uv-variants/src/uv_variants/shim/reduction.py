"""METADATA and RECORD of a wheel whose dependencies depend on the variant, made plain.

Everything else stays byte for byte, so that equal inputs give equal bytes on every machine.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from io import StringIO

from pep_variants.errors import InvalidMarker
from pep_variants.markers import VariantContext, reduce_requirement, uses_variant_terms

_HINT = b"variant_"
_FIELD = re.compile(rb"Requires-Dist[ \t]*:", re.IGNORECASE)


def has_variant_markers(metadata: bytes) -> bool:
    """Return whether dependencies in core *metadata* depend on the variant."""
    return _HINT in metadata and any(
        uses_variant_terms(_value(line)) for line, _ in _fields(metadata) if _FIELD.match(line)
    )


def reduce_metadata(metadata: bytes, context: VariantContext) -> bytes:
    """Return core *metadata* with the variant markers of its dependencies evaluated.

    A marker that cannot be understood stays as it is: the installer says so in its own words.
    """
    if _HINT not in metadata:
        return metadata
    kept = []
    fields = _fields(metadata)
    for line, _ in fields:
        if not _FIELD.match(line) or _HINT not in line:
            kept.append(line)
            continue
        value = _value(line)
        try:
            reduced = reduce_requirement(value, context)
        except InvalidMarker:
            reduced = value
        if reduced == value:
            kept.append(line)
        elif reduced is not None:
            ending = b"\r\n" if line.endswith(b"\r\n") else b"\n"
            kept.append(b"Requires-Dist: " + reduced.encode("utf-8", "surrogateescape") + ending)
    return b"".join(kept) + metadata[fields[-1][1] if fields else 0 :]


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


def _fields(metadata: bytes) -> list[tuple[bytes, int]]:
    """Return the header lines, folded ones joined, each with where it ends."""
    fields: list[tuple[bytes, int]] = []
    position = 0
    for line in metadata.splitlines(keepends=True):
        if not line.strip():
            break  # the description follows
        position += len(line)
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1] = (fields[-1][0] + line, position)
        else:
            fields.append((line, position))
    return fields


def _value(field: bytes) -> str:
    text = field.partition(b":")[2].decode("utf-8", "surrogateescape")
    return " ".join(text.split())


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

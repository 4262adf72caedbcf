"""The fields of core metadata (``METADATA`` and ``PKG-INFO``, PEP 643) and where each one lies.

Not `packaging.metadata`: edits have to keep every other byte, which needs the place of a field, and
`parse_email` also reads the description, which makes it 150 times slower for one of 1 MiB.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import InvalidWheel
from ..limits import (
    CORE_METADATA_FIELDS,
    CORE_REQUIREMENTS,
    CORE_REQUIREMENTS_CHARACTERS,
    REQUIREMENT_LENGTH,
)

METADATA_FILE = "METADATA"

_NAME = re.compile(rb"([!-9;-~]+)[ \t]*:")
# A line that starts with white space continues the field before it.
_FIELD_END = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?![ \t])")


class Field(NamedTuple):
    """One field of core metadata.

    Attributes:
        start: where it starts.
        end: where the next one starts; its line ending is part of it.
        name: in lower case.
        value: on one line; bytes that are not UTF-8 are surrogates.
    """

    start: int
    end: int
    name: str
    value: str


def iter_fields(metadata: bytes, hint: bytes = b"") -> Iterator[Field]:
    """Yield the fields of *metadata*, up to the description or the first line that is not a field.

    That is where `email.parser`, which installers use, stops as well.

    Args:
        metadata: contents of METADATA or PKG-INFO.
        hint: yield only fields that contain these bytes.

    Raises:
        InvalidWheel: there are more fields than the limit, once it is reached.
    """
    start = 0
    for number in itertools.count():
        if metadata[start : start + 1] in (b"", b"\r", b"\n"):
            return
        if number == CORE_METADATA_FIELDS:
            raise InvalidWheel(f"{METADATA_FILE} has more than {CORE_METADATA_FIELDS} fields")
        ending = _FIELD_END.search(metadata, start)
        end = ending.end() if ending else len(metadata)
        name = _NAME.match(metadata, start, end)
        if name is None:
            return
        if metadata.find(hint, start, end) >= 0:
            value = metadata[name.end() : end].decode("utf-8", "surrogateescape")
            yield Field(start, end, name[1].decode().lower(), one_line(value))
        start = end


def read_fields(metadata: bytes) -> dict[str, list[str]]:
    """Return the values of all fields of *metadata* by lower-case name.

    Bytes that are not UTF-8 are replaced, so that values can be printed.

    Raises:
        InvalidWheel: as `iter_fields`.
    """
    fields: dict[str, list[str]] = {}
    for field in iter_fields(metadata):
        fields.setdefault(field.name, []).append(_printable(field.value))
    return fields


def first_field(metadata: bytes, name: str) -> str | None:
    r"""Return the first value of the field *name*, in lower case; None if it is missing.

    >>> from pep_variants.wheel_files import first_field
    >>> first_field(b"Name: torch\nRequires-Python: >=3.10\n", "requires-python")
    '>=3.10'
    """
    values = (field.value for field in iter_fields(metadata) if field.name == name)
    return next(map(_printable, values), None)


def requirements_of(metadata: bytes) -> tuple[str, ...]:
    r"""Return the ``Requires-Dist`` values of *metadata*.

    Raises:
        InvalidWheel: they are beyond the limits.

    >>> from pep_variants.wheel_files import requirements_of
    >>> requirements_of(b"Metadata-Version: 2.4\nRequires-Dist: numpy\nRequires-Dist: triton>=3\n")
    ('numpy', 'triton>=3')
    """
    requires = read_fields(metadata).get("requires-dist", [])
    check_requirements(requires)
    return tuple(requires)


def check_requirements(requires: Sequence[str]) -> None:
    """Check the limits of ``Requires-Dist`` values, which take microseconds for each character.

    Raises:
        InvalidWheel: they are too many, or too long.
    """
    found = len(requires), sum(map(len, requires)), max(map(len, requires), default=0)
    most = CORE_REQUIREMENTS, CORE_REQUIREMENTS_CHARACTERS, REQUIREMENT_LENGTH
    if any(count > limit for count, limit in zip(found, most, strict=True)):
        raise InvalidWheel(
            "{} has {} requirements of {} characters, the longest of {}; at most {}, {} and {} "
            "are read".format(METADATA_FILE, *found, *most)
        )


def _printable(value: str) -> str:
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def one_line(value: str) -> str:
    """Return a field's *value* unfolded."""
    return " ".join(value.split())

"""Core metadata (``METADATA``, PEP 643) whose dependencies depend on the variant, made plain.

Only ``Requires-Dist`` fields that change are written anew. Everything else stays byte for byte, so
that equal inputs give equal bytes on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .errors import InvalidMarker
from .markers import VariantContext, reduce_requirement, variant_terms

_HINT = b"variant_"
_DEPENDENCY = re.compile(rb"Requires-Dist[ \t]*:", re.IGNORECASE)
# A line that starts with white space goes on with the field before it.
_FIELD_END = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?![ \t])")


def metadata_terms(metadata: bytes) -> frozenset[str]:
    """Return which of the four variant variables the dependencies in *metadata* use."""
    return frozenset().union(*(variant_terms(value) for _, _, value in _dependencies(metadata)))


def reduce_metadata(metadata: bytes, context: VariantContext) -> bytes:
    """Return *metadata* with the variant terms of its dependencies evaluated.

    Fields are written with the line end that they had, on one line. A dependency that cannot be
    understood stays as it is: the installer says so in its own words.

    Returns:
        The very same object if nothing changes.
    """
    parts = []
    done = 0
    for start, end, value in _dependencies(metadata):
        reduced = _reduced(value, context)
        if reduced == value:
            continue
        parts.append(metadata[done:start])
        if reduced is not None:
            line_end = b"\r\n" if metadata.endswith(b"\r\n", start, end) else b"\n"
            parts.append(b"Requires-Dist: " + reduced.encode("utf-8", "surrogateescape") + line_end)
        done = end
    return b"".join((*parts, metadata[done:])) if done else metadata


def reduce_requirements(requirements: Iterable[str], context: VariantContext) -> list[str]:
    """Return those ``Requires-Dist`` values that apply, as `reduce_metadata` would write them."""
    reduced = (_reduced(_one_line(value), context) for value in requirements)
    return [value for value in reduced if value is not None]


def _reduced(value: str, context: VariantContext) -> str | None:
    try:
        return reduce_requirement(value, context)
    except InvalidMarker:
        return value


def _dependencies(metadata: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and value of every ``Requires-Dist`` that may have variant terms."""
    if _HINT not in metadata:
        return
    start = 0
    while metadata[start : start + 1] not in (b"", b"\r", b"\n"):  # the description follows
        found = _FIELD_END.search(metadata, start)
        end = found.end() if found else len(metadata)
        name = _DEPENDENCY.match(metadata, start, end)
        if name and metadata.find(_HINT, start, end) >= 0:
            yield (
                start,
                end,
                _one_line(metadata[name.end() : end].decode("utf-8", "surrogateescape")),
            )
        start = end


def _one_line(value: str) -> str:
    return " ".join(value.split())

"""Variant markers in core metadata (``METADATA``, PEP 643), evaluated for one variant.

Only the ``Requires-Dist`` fields that change are rewritten. Everything else stays byte for byte, so
that equal inputs give equal bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import InvalidMarker
from ..wheelfile.core_metadata import Field, iter_fields, one_line
from .markers import VariantContext, reduce_requirement, uses_variant_terms, variant_terms

_HINT = b"variant_"


def may_have_terms(metadata: bytes) -> bool:
    """Return whether *metadata* may use variant variables; False if it does not."""
    return _HINT in metadata


def metadata_terms(metadata: bytes) -> frozenset[str]:
    """Return which of the four variant variables the dependencies in *metadata* use."""
    return frozenset().union(*(variant_terms(field.value) for field in _dependencies(metadata)))


def conditional_dependencies(metadata: bytes) -> tuple[str, ...]:
    """Return the dependencies in *metadata* whose markers use variant variables, unchanged."""
    return tuple(
        field.value for field in _dependencies(metadata) if uses_variant_terms(field.value)
    )


def reduce_metadata(metadata: bytes, context: VariantContext) -> bytes:
    """Return *metadata* with the variant terms of its dependencies evaluated.

    Fields keep their line ending and are written on one line. A dependency that cannot be parsed
    stays as it is, for the installer to report.

    Returns:
        The same object if nothing changes.
    """
    parts = []
    done = 0
    for start, end, _, value in _dependencies(metadata):
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
    reduced = (_reduced(one_line(value), context) for value in requirements)
    return [value for value in reduced if value is not None]


def _reduced(value: str, context: VariantContext) -> str | None:
    try:
        return reduce_requirement(value, context)
    except InvalidMarker:
        return value


def _dependencies(metadata: bytes) -> Iterator[Field]:
    """Yield every ``Requires-Dist`` that may use variant variables."""
    if may_have_terms(metadata):
        yield from (f for f in iter_fields(metadata, _HINT) if f.name == "requires-dist")

"""Reducing variant markers in core metadata, before pip's own `packaging` sees them."""

from __future__ import annotations

import email.message
import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._vendor.pep_variants.markers import VariantContext

preparing: ContextVar[Callable[[bytes | None], VariantContext] | None] = ContextVar(
    "preparing", default=None
)
"""What the session knows of the wheel that pip is just preparing, None outside of preparation.

A callable that takes the wheel's own ``variant.json``, where it is at hand, and gives the context
for its markers.
"""

_HINT = "variant_"
_FIELD = re.compile(rb"Requires-Dist[ \t]*:", re.IGNORECASE)


def reduce_contents(contents: bytes, context: Callable[[], VariantContext]) -> bytes:
    """Return core metadata with the variant markers of its ``Requires-Dist`` reduced.

    Everything else stays byte for byte; without variant markers the very same object comes back
    and *context* is not called.
    """
    if _HINT.encode() not in contents:
        return contents
    lines = contents.splitlines(keepends=True)
    kept: list[bytes] = []
    number = 0
    changed = False
    while number < len(lines):
        line = lines[number]
        if not line.strip():  # the description follows
            kept += lines[number:]
            break
        number += 1
        while number < len(lines) and lines[number][:1] in (b" ", b"\t"):  # folded field
            line += lines[number]
            number += 1
        if not _FIELD.match(line) or _HINT.encode() not in line:
            kept.append(line)
            continue
        field = line.partition(b":")[2].decode("utf-8", "surrogateescape")
        reduced = _reduced(" ".join(field.split()), context)
        changed = True
        if reduced is not None:
            kept.append(b"Requires-Dist: " + reduced.encode("utf-8", "surrogateescape") + b"\n")
    return b"".join(kept) if changed else contents


def reduce_message(
    message: email.message.Message, read_text: Callable[[str], str | None]
) -> None:
    """Reduce the variant markers of parsed core metadata of an installed distribution, in place.

    Args:
        message: the metadata.
        read_text: reads a file of the dist-info folder, None if there is no such file.
    """
    requirements = [str(value) for value in message.get_all("Requires-Dist") or ()]
    if not any(_HINT in requirement for requirement in requirements):
        return
    from ._vendor.pep_variants.label import VARIANT_FILE

    text = read_text(VARIANT_FILE)
    context = context_of(None if text is None else text.encode())
    del message["Requires-Dist"]
    for requirement in requirements:
        reduced = _reduced(requirement, lambda: context)
        if reduced is not None:
            message["Requires-Dist"] = reduced


def context_of(variant_json: bytes | None) -> VariantContext:
    """Return the context that a wheel's own ``variant.json`` gives on this machine.

    Broken metadata counts as none: whether it may be installed is not decided here.
    """
    from ._vendor.pep_variants.detection import Detector
    from ._vendor.pep_variants.errors import VariantError
    from ._vendor.pep_variants.markers import NON_VARIANT, VariantContext
    from ._vendor.pep_variants.ranking import rank
    from ._vendor.pep_variants.reader import read_metadata

    if variant_json is None:
        return NON_VARIANT
    try:
        metadata = read_metadata(variant_json, "variant.json")
    except VariantError:
        return NON_VARIANT
    if len(metadata.variants) != 1:
        return NON_VARIANT
    (label,) = metadata.variants
    ranking = rank(metadata, Detector().platform(metadata))
    return VariantContext(label, ranking.supported(label))


def _reduced(requirement: str, context: Callable[[], VariantContext]) -> str | None:
    from ._vendor.pep_variants.errors import InvalidMarker
    from ._vendor.pep_variants.markers import reduce_requirement

    try:
        return reduce_requirement(requirement, context())
    except InvalidMarker:
        return requirement  # pip says what is wrong with it, in its own words

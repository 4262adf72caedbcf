"""Reducing variant markers in core metadata, before pip's own `packaging` sees them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pep_variants.label import VARIANT_FILE

from .decision import DECISION_FILE
from .session import marker_context

if TYPE_CHECKING:
    import email.message

    from pep_variants.markers import VariantContext

logger = logging.getLogger("pip.variants")

_HINT = "variant_"
_VALUES = "variant_properties"
_FIELD = re.compile(rb"Requires-Dist[ \t]*:", re.IGNORECASE)


def reduce_contents(contents: bytes, variant_json: bytes | None) -> bytes:
    """Return core metadata with the variant markers of its ``Requires-Dist`` reduced.

    Everything else stays byte for byte; without variant markers the very same object comes back.

    Args:
        contents: ``METADATA``.
        variant_json: the file beside it, None if there is none.
    """
    if _HINT.encode() not in contents:
        return contents
    context = marker_context(variant_json, values=_VALUES.encode() in contents)
    lines = contents.splitlines(keepends=True)
    kept: list[bytes] = []
    number = 0
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
        if reduced is not None:
            kept.append(b"Requires-Dist: " + reduced.encode("utf-8", "surrogateescape") + b"\n")
    return b"".join(kept)


def reduce_message(message: email.message.Message, read_text: Callable[[str], str | None]) -> None:
    """Reduce the variant markers of parsed core metadata, in place.

    For installed distributions: they are there, whatever is wrong with them or with us.

    Args:
        message: the metadata.
        read_text: reads a file of the dist-info folder, None if there is no such file.
    """
    requirements = [str(value) for value in message.get_all("Requires-Dist") or ()]
    if not any(_HINT in requirement for requirement in requirements):
        return
    try:
        values = any(_VALUES in requirement for requirement in requirements)
        text = read_text(VARIANT_FILE)
        decided = read_text(DECISION_FILE) if values and text is not None else None
        context = marker_context(
            None if text is None else text.encode(),
            values=values,
            decided=None if decided is None else decided.encode(),
        )
        reduced = [_reduced(" ".join(item.split()), context) for item in requirements]
    except Exception:
        # pip 26 refuses imports while it installs. Nobody asks for dependencies then.
        logger.debug("variant markers cannot be reduced", exc_info=True)
        return
    del message["Requires-Dist"]
    for requirement in reduced:
        if requirement is not None:
            message["Requires-Dist"] = requirement


def _reduced(requirement: str, context: VariantContext) -> str | None:
    from pep_variants.errors import InvalidMarker
    from pep_variants.markers import reduce_requirement

    try:
        return reduce_requirement(requirement, context)
    except InvalidMarker:
        return requirement  # pip says what is wrong with it, in its own words

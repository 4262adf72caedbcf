"""Reducing variant markers in core metadata, before pip's own `packaging` sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pep_variants.model.label import VARIANT_FILE

from .choice_record import CHOICE_FILE
from .errors import logger
from .preparation import marker_context, note_conditional

if TYPE_CHECKING:
    import email.message

_HINT = "variant_"  # without it there is nothing to reduce, and no need to import the engine
_VALUES = "variant_properties"


def reduce_contents(contents: bytes, variant_json: bytes | None) -> bytes:
    """Return core metadata with the variant markers of its ``Requires-Dist`` reduced.

    Everything else stays byte for byte; without variant markers the same object is returned.

    Args:
        contents: ``METADATA``.
        variant_json: contents of that file in the same dist-info folder, None without one.
    """
    if _HINT.encode() not in contents:
        return contents
    from pep_variants.choose.metadata_markers import (
        conditional_dependencies,
        metadata_terms,
        reduce_metadata,
    )

    terms = metadata_terms(contents)
    if not terms:
        return contents
    note_conditional(lambda: conditional_dependencies(contents))
    return reduce_metadata(contents, marker_context(variant_json, values=_VALUES in terms))


def reduce_message(message: email.message.Message, read_text: Callable[[str], str | None]) -> None:
    """Reduce the variant markers of parsed core metadata, in place.

    For installed distributions. Never fails: they have to be listed whatever is wrong with them.

    Args:
        message: the metadata.
        read_text: reads a file of the dist-info folder, None if there is no such file.
    """
    requirements = [str(value) for value in message.get_all("Requires-Dist") or ()]
    if not any(_HINT in requirement for requirement in requirements):
        return
    try:
        from pep_variants.choose.metadata_markers import reduce_requirements

        values = any(_VALUES in requirement for requirement in requirements)
        text = read_text(VARIANT_FILE)
        decided = read_text(CHOICE_FILE) if values and text is not None else None
        context = marker_context(
            None if text is None else text.encode(),
            values=values,
            decided=None if decided is None else decided.encode(),
        )
        reduced = reduce_requirements(requirements, context)
    except Exception:
        # pip 26 refuses imports while it installs. Dependencies are not needed then.
        logger.debug("variant markers cannot be reduced", exc_info=True)
        return
    del message["Requires-Dist"]
    for requirement in reduced:
        message["Requires-Dist"] = requirement

"""Variant labels of pip's installed distributions."""

from __future__ import annotations

from typing import Any

from pep_variants.model.label import VARIANT_FILE

from .errors import logger


def installed_label(dist: Any) -> str:
    """Return the label of an installed distribution.

    Empty if it is not a variant, or its ``variant.json`` is invalid.
    """
    try:
        text = dist.read_text(VARIANT_FILE)
    except FileNotFoundError:
        return ""
    from .variant_context import context_of

    return context_of(text.encode(), None, values=False).label


def label_of(dist: Any) -> str:
    """Return the label of an installed distribution to display; empty also after any error."""
    try:
        return installed_label(dist)
    except Exception:
        logger.debug("The variant label of %s cannot be read", dist, exc_info=True)
        return ""

"""Variant labels of pip's installed distributions, and what their publishers call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pep_variants.model.label import ORIGIN_FILE, VARIANT_FILE

from .errors import logger

if TYPE_CHECKING:
    from variants_catalog.rewriting import Origin


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


def origin_of(dist: Any) -> Origin | None:
    """Return what an installed distribution was before it got the name of its project.

    None if it has always had its name, and after any error.
    """
    try:
        text = dist.read_text(ORIGIN_FILE)
    except FileNotFoundError:
        return None
    try:
        from variants_catalog.rewriting import read_origin

        return read_origin(text, str(dist))
    except Exception:
        logger.debug("The origin of %s cannot be read", dist, exc_info=True)
        return None

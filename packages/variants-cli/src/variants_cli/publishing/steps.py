"""The order of uploads to an index that shows every file as soon as it has it.

Installers that read the index meanwhile should not find the version, or find the file that they
will choose in the end. So variant wheels are first, which are ignored without index-level
metadata; then that metadata; then the fallbacks: the null variant before the non-variant wheel
before the source distribution.
"""

from __future__ import annotations

from enum import Enum

from pep_variants.model.label import METADATA_SUFFIX, NULL_LABEL, ZERO_LABEL, split_label

from ..indexing.wheelhouse import SDIST_SUFFIXES, sdist_name


class Kind(Enum):
    """What is uploaded together; values are descriptions, the order is that of the uploads."""

    VARIANTS = "variant wheels"
    METADATA = "index-level metadata"
    NULL = "null variants"
    WHEELS = "non-variant wheels"
    SOURCES = "source distributions"


def kind_of(filename: str) -> Kind | None:
    """Return what is published under *filename*, None for any other file."""
    if filename.endswith(METADATA_SUFFIX):
        return Kind.METADATA
    if filename.endswith(".whl"):
        label = split_label(filename)[1]
        if label is None:
            return Kind.WHEELS
        return Kind.NULL if label in (NULL_LABEL, ZERO_LABEL) else Kind.VARIANTS
    if filename.endswith(SDIST_SUFFIXES) and sdist_name(filename) is not None:
        return Kind.SOURCES
    return None

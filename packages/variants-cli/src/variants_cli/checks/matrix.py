"""Checks of a build matrix, as `variants matrix` reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..matrix.flags import warnings_of_lost_flags
from ..matrix.output import metadata
from .document import check_document
from .finding import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..matrix.model import Matrix, Variant
    from .finding import Finding


def check_matrix(matrix: Matrix, variants: Sequence[Variant]) -> list[Finding]:
    """Check the *variants* of *matrix*.

    Args:
        matrix: the matrix, its providers of the build asked.
        variants: all of its variants.

    Raises:
        VariantError: its metadata cannot be written.
    """
    report = Report(matrix.source)
    report.findings += check_document(metadata(matrix, variants).encode(), matrix.source)[1]
    for message in warnings_of_lost_flags(matrix, variants, os.environ):
        report.add("lost-flags", "environment", message)
    return report.findings

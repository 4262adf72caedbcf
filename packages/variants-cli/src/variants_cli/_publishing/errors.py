"""Errors of publishing. Catch `PublishError` for all of them.

Messages name the file and the target, without credentials, and say what to do. What was uploaded
before the error stays; the same command goes on from there.
"""

from __future__ import annotations

from pep_variants.errors import VariantError


class PublishError(VariantError):
    """An upload that failed, was refused, or is not possible."""


class Conflict(PublishError):
    """The target has a file of that name with other contents, or contradicting metadata."""

"""Errors of publishing. Catch `PublishError` for all of them."""

from __future__ import annotations

from pep_variants.errors import VariantError


class PublishError(VariantError):
    """An upload that failed or is not possible; the message says what to do."""


class Refused(PublishError):
    """The target refuses a file or the credentials: trying again does not help."""


class Conflict(PublishError):
    """The target has a file of that name with other contents, or contradicting metadata."""

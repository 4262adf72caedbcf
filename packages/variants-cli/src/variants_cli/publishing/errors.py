"""Errors of publishing. Catch `PublishError` for all of them.

Messages name the file and the target, without credentials, and say what to do. What was uploaded
before the error stays; the same command goes on from there.
"""

from __future__ import annotations

from pep_variants.errors import VariantError


class PublishError(VariantError):
    """An upload that failed or is not possible."""


class Refused(PublishError):
    """The target refuses a file, metadata or the credentials: trying again does not help."""


class Conflict(PublishError):
    """The target has a file of that name with other contents, or contradicting metadata."""


class Unavailable(PublishError):
    """The target could not be reached, or could not answer, after all retries."""


class Unfinished(PublishError):
    """The release is uploaded, but the index does not show it as it was published."""

"""Errors of the command around uv. Catch `UvVariantsError` for all of them."""

from __future__ import annotations

from pep_variants.errors import VariantError
from variants_proxy.errors import ProxyError


class UvVariantsError(Exception):
    """Base of all errors of this package."""


class UvNotFound(UvVariantsError):
    """There is no uv to run."""


class ProxyFailed(UvVariantsError):
    """The index proxy could not be started, or cannot be reached."""


class ExportFailed(UvVariantsError):
    """An export cannot be written: what it lists of variants is not known."""


class VariantMissing(UvVariantsError):
    """A variant that the user asked for by name is not there."""


USER_ERRORS = (UvVariantsError, ProxyError, VariantError)
"""Errors in the user's input, files or indexes: one line of text each, no traceback."""

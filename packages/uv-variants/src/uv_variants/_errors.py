"""Errors of the command around uv, and its lines. Catch `UvVariantsError` for all errors."""

from __future__ import annotations

import sys

from pep_variants.errors import VariantError
from variants_proxy.errors import ProxyError

ALLOWED = "--allow-missing-sources"


class UvVariantsError(Exception):
    """Base of all errors of this package.

    Attributes:
        exit_code: of the command.
    """

    exit_code = 2


class UvNotFound(UvVariantsError):
    """There is no uv to run."""


class ProxyFailed(UvVariantsError):
    """The index proxy could not be started, or cannot be reached."""


class ExportFailed(UvVariantsError):
    """An export cannot be written: what it lists of variants is not known."""


class VariantMissing(UvVariantsError):
    """A variant that the user asked for by name is not there."""


class SourcesMissing(UvVariantsError):
    """A lock that would lack builds, because a place that has them cannot be reached."""

    exit_code = 1


class TwoNames(UvVariantsError):
    """A project and a build of it under its publisher's name, which have the same files."""

    exit_code = 1


class AcceleratorsUnknown(UvVariantsError):
    """Accelerators that nothing of the project has builds for, or tables that say otherwise."""


USER_ERRORS = (UvVariantsError, ProxyError, VariantError)
"""Errors in the user's input, files or indexes: one line of text each, no traceback."""


def warn(text: str) -> None:
    """Print *text* as a line of uv-variants."""
    print(f"uv-variants: {text}", file=sys.stderr)

"""Errors of resolving; those of indexes are in `resolvelib_variants.index.errors`."""

from __future__ import annotations


class ResolverError(Exception):
    """Base of all errors of this package."""


class RequirementError(ResolverError):
    """A requirement, or a file of requirements, that makes no sense."""


class TargetError(ResolverError):
    """A target that cannot be described that way."""


class UnusableFile(ResolverError):
    """A distribution that cannot be used: broken, or it would have to be built."""


class NoSolution(ResolverError):
    """No set of files meets all requirements.

    Attributes:
        details: what stands in the way, one line each; without them the message is a summary.
    """

    def __init__(self, message: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.details = details

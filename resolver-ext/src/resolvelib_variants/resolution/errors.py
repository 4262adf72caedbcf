"""Errors of resolving; those of indexes are in `variants_index.errors`."""

from __future__ import annotations


class ResolverError(Exception):
    """Base of all errors of this package."""


class RequirementError(ResolverError):
    """Invalid requirement, or file of requirements."""


class NoSolution(ResolverError):
    """No set of files meets all requirements.

    Attributes:
        details: what stands in the way, one line each; without them the message is a summary.
    """

    def __init__(self, message: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.details = details

"""Errors of resolving; those of indexes are in `variants_index._errors`."""

from __future__ import annotations

from collections.abc import Sequence


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


class SameFiles(NoSolution):
    """Distributions with the same files are required, of which only one can be installed."""

    def __init__(
        self, project: str, names: Sequence[str], cause: str, details: Sequence[str] = ()
    ) -> None:
        """Make the error.

        Args:
            project: normalized name.
            names: that its publisher gave builds of it, which are required as well.
            cause: why they do not stand for it.
            details: see `NoSolution`.
        """
        listed = " and ".join((project, *names))
        super().__init__(
            f"{listed} are required, which have the same files, so only one of them can be "
            f"installed: {cause}",
            tuple(details),
        )

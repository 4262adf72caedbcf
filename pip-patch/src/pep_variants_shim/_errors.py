"""Errors of the shim, which pip prints as its own: one line without a traceback."""

from __future__ import annotations

import functools
import logging

from pip._internal.exceptions import InstallationError

from ._guard import described

logger = logging.getLogger("pip.variants")
"""Below pip's own logger, so that pip's verbosity and indentation apply."""


@functools.cache
def is_no_file(path: str) -> bool:
    """Return whether *path* is a pipe or a device, and say once that it is ignored.

    pip would wait for who writes into it.
    """
    from pep_variants import safe_files

    if not safe_files.is_special(path):
        return False
    logger.warning("Ignored %s: not a regular file", path)
    return True


class Fault(InstallationError):  # type: ignore[misc] # pip is not there for mypy
    """An internal error of the shim."""

    def __init__(self, error: BaseException) -> None:
        """Describe *error*."""
        super().__init__(
            f"Internal error in pep-variants-shim: {described(error)}. "
            "Please report this line to the pep-variants project"
        )


class VariantsOff(InstallationError):  # type: ignore[misc] # pip is not there for mypy
    """A fault switched variants off after pip had collected variant wheels.

    `patches.resolution` resolves again without them. Elsewhere pip ends with this error.
    """

    def __init__(self, reason: str) -> None:
        """Give the reason."""
        super().__init__(f"{reason}. Nothing was installed: run pip again with PEP_VARIANTS_SHIM=0")

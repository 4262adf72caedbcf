"""Loggers that import `logging` when there is something to log.

The import takes 20 million instructions (5 ms) of commands that log nothing. As long
as it is not imported, no logging is set up, and nothing below a warning is shown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


class Logger:
    """The part of `logging.Logger` that the engine uses; records name the caller."""

    def __init__(self, name: str) -> None:
        """Log as the logger *name*."""
        self.name = name

    def real(self) -> logging.Logger:
        """Return the logger itself."""
        import logging

        return logging.getLogger(self.name)

    def asked_for_all(self) -> bool:
        """Return whether messages of the level debug are wanted."""
        return "logging" in sys.modules and self.real().isEnabledFor(10)

    def debug(self, message: str, *args: object, **options: Any) -> None:  # noqa: ANN401
        """See `logging.Logger.debug`."""
        if "logging" in sys.modules:
            self.real().debug(message, *args, stacklevel=2, **options)

    def info(self, message: str, *args: object) -> None:
        """See `logging.Logger.info`."""
        if "logging" in sys.modules:
            self.real().info(message, *args, stacklevel=2)

    def warning(self, message: str, *args: object) -> None:
        """See `logging.Logger.warning`."""
        self.real().warning(message, *args, stacklevel=2)

"""What detection tried on this machine: libraries, tools and files, and what each said.

Providers report every attempt with `tried`, which costs a log record at debug level; `recorded`
collects them, from all threads, for those who explain a detection.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

_logger = logging.getLogger(__name__)
_PACKAGE = __name__.partition(".")[0]


class Attempt(NamedTuple):
    """One library, tool or file that a provider looked at.

    Attributes:
        place: its name or path.
        answer: what it said, or why it said nothing; a verb phrase whose subject is *place*.
        found: it is there and answers.
    """

    place: str
    answer: str
    found: bool = False


@dataclass
class Trail:
    """What was tried, in order, and what users were warned of meanwhile."""

    attempts: list[Attempt] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def tried(place: str, answer: str, *, found: bool = False) -> None:
    """Report an attempt, see `Attempt`."""
    attempt = Attempt(place, answer, found)
    _logger.debug("%s %s", place, answer, extra={"attempt": attempt})


def are_recorded() -> bool:
    """Return whether attempts are wanted, for a provider that has to look again to report one."""
    return _logger.isEnabledFor(logging.DEBUG)


@contextmanager
def recorded() -> Iterator[Trail]:
    """Yield what is tried while the context lasts; warnings go there only, not to the terminal."""
    trail = Trail()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            attempt = getattr(record, "attempt", None)
            if isinstance(attempt, Attempt):
                trail.attempts.append(attempt)
            elif record.levelno >= logging.WARNING:
                trail.warnings.append(record.getMessage())

    collector = Collector()
    package = logging.getLogger(_PACKAGE)
    propagate, level = package.propagate, _logger.level
    package.addHandler(collector)
    package.propagate = False
    _logger.setLevel(logging.DEBUG)
    try:
        yield trail
    finally:
        package.removeHandler(collector)
        package.propagate = propagate
        _logger.setLevel(level)

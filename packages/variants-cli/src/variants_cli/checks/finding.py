"""Findings of checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final, Literal

ERROR: Final = "error"
WARNING: Final = "warning"


@dataclass(frozen=True)
class Finding:
    """An error, or a warning about a probable mistake.

    Attributes:
        severity: ``error`` for what breaks the format or makes variants unusable, else
            ``warning``.
        code: stable name of the kind of finding, see docs/reference/findings.md.
        file: the file it is in.
        place: where in the file, empty for the whole of it.
        message: what is wrong.
        remedy: what to do about it.
    """

    severity: Literal["error", "warning"]
    code: str
    file: str
    place: str
    message: str
    remedy: str

    def tree(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return asdict(self)


def error(code: str, file: str, place: str, message: str, remedy: str) -> Finding:
    """Return an error."""
    return Finding(ERROR, code, file, place, message, remedy)


def warning(code: str, file: str, place: str, message: str, remedy: str) -> Finding:
    """Return a warning."""
    return Finding(WARNING, code, file, place, message, remedy)

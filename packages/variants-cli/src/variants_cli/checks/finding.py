"""Findings of checks, and how every command that checks prints them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

import click

from ..console import counted, one_line, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def report(findings: Sequence[Finding], checked: int, *, noun: str, as_json: bool) -> int:
    """Print *findings* and how many there are; return the exit code, 1 if there are errors.

    Args:
        findings: in the order in which they are printed.
        checked: number of things that were checked.
        noun: what these are, in the singular.
        as_json: print JSON for programs.
    """
    errors = sum(finding.severity == ERROR for finding in findings)
    warnings = sum(finding.severity == WARNING for finding in findings)
    if as_json:
        tree = {"checked": checked, "errors": errors, "warnings": warnings}
        print_json({**tree, "findings": [finding.tree() for finding in findings]})
        return 1 if errors else 0
    for finding in findings:
        _show(finding)
    click.echo(
        f"{counted(checked, noun)} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}"
    )
    return 1 if errors else 0


def _show(finding: Finding) -> None:
    place = ": ".join(part for part in (finding.file, finding.place) if part)
    severity = click.style(finding.severity, fg="red" if finding.severity == ERROR else "yellow")
    click.echo(f"{one_line(place)}: {severity}: {one_line(finding.message)} [{finding.code}]")
    click.echo(f"    {one_line(finding.remedy)}")

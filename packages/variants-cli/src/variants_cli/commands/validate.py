"""`variants validate`: what is wrong with variant wheels and metadata, and what to do."""

from __future__ import annotations

from pathlib import Path

import click

from ..checks.directory import check_directory
from ..checks.document import check_index_metadata, check_pyproject
from ..checks.finding import ERROR, WARNING, Finding
from ..checks.wheel import check_wheel
from ..console import counted, one_line, print_json
from .arguments import json_option


@click.command(short_help="Check wheels, metadata and directories of both.")
@click.argument(
    "files",
    metavar="FILE...",
    type=click.Path(exists=True, path_type=Path),
    nargs=-1,
    required=True,
)
@json_option
@click.pass_context
def validate(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Check wheels, metadata and directories of both.

    A FILE is a wheel, a *-variants.json or variant.json, a pyproject.toml, or a directory, whose
    wheels and metadata must also fit each other. Every finding comes with what to do about it.
    Exits with 1 if there are errors; warnings alone are none.
    """
    checked = 0
    findings: list[Finding] = []
    for path in files:
        count, found = _check(path)
        checked += count
        findings += found
    errors = sum(finding.severity == ERROR for finding in findings)
    warnings = sum(finding.severity == WARNING for finding in findings)
    if as_json:
        print_json(
            {
                "checked": checked,
                "errors": errors,
                "warnings": warnings,
                "findings": [finding.tree() for finding in findings],
            }
        )
    else:
        for finding in findings:
            _show(finding)
        click.echo(
            f"{counted(checked, 'file')} checked: {counted(errors, 'error')}, "
            f"{counted(warnings, 'warning')}"
        )
    context.exit(1 if errors else 0)


def _check(path: Path) -> tuple[int, list[Finding]]:
    if path.is_dir():
        return check_directory(path)
    if path.suffix == ".whl":
        return 1, check_wheel(path).findings
    if path.suffix == ".toml":
        return 1, check_pyproject(path)
    return 1, check_index_metadata(path)[1]


def _show(finding: Finding) -> None:
    place = ": ".join(part for part in (finding.file, finding.place) if part)
    severity = click.style(finding.severity, fg="red" if finding.severity == ERROR else "yellow")
    click.echo(f"{one_line(place)}: {severity}: {one_line(finding.message)} [{finding.code}]")
    click.echo(f"    {one_line(finding.remedy)}")

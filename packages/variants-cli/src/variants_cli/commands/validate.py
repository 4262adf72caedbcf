"""`variants validate`: checks variant wheels and metadata."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..checks.directory import check_directory
from ..checks.document import check_index_metadata, check_pyproject
from ..checks.finding import ERROR, WARNING, Finding
from ..checks.recipe_file import check_recipe, is_recipe
from ..checks.wheel_file import check_wheel
from ..console import counted, one_line, print_json
from .arguments import PathOrURL, json_option
from .index_options import progress


@click.command(short_help="Check wheels, metadata, directories, recipes and live indexes.")
@click.argument("files", metavar="FILE...", type=PathOrURL(), nargs=-1, required=True)
@click.option(
    "--every-wheel",
    is_flag=True,
    help="Check all variant wheels of a live index, not only one of each label.",
)
@json_option
@click.pass_context
def validate(
    context: click.Context, files: tuple[Path | str, ...], every_wheel: bool, as_json: bool
) -> None:
    """Check wheels, metadata, directories of both, and live indexes.

    A FILE is a wheel, a *-variants.json or variant.json, a pyproject.toml, a recipe, a directory,
    whose wheels and metadata must also fit each other, or the URL of a project's page on an index.
    Every finding names a remedy. Exits with 1 if there are errors; warnings alone
    are none.
    """
    checked = 0
    findings: list[Finding] = []
    for target in files:
        count, found = (
            _check(target)
            if isinstance(target, Path)
            else _check_url(target, every_wheel=every_wheel)
        )
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


def _check_url(url: str, *, every_wheel: bool) -> tuple[int, list[Finding]]:
    from pep_variants.sources import Sources
    from variants_index.errors import PackageIndexError
    from variants_index.http.session import Session

    from ..checks.live_index import check_live

    session = Session(Sources.from_environ(os.environ))
    try:
        with progress() as show:
            return check_live(url, session, every_wheel=every_wheel, progress=show)
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        session.close()


def _check(path: Path) -> tuple[int, list[Finding]]:
    if path.is_dir():
        return check_directory(path)
    if path.suffix == ".whl":
        return 1, check_wheel(path).findings
    if path.suffix == ".toml":
        if is_recipe(path):
            return 1, check_recipe(path)
        return 1, check_pyproject(path)
    return 1, check_index_metadata(path)[1]


def _show(finding: Finding) -> None:
    place = ": ".join(part for part in (finding.file, finding.place) if part)
    severity = click.style(finding.severity, fg="red" if finding.severity == ERROR else "yellow")
    click.echo(f"{one_line(place)}: {severity}: {one_line(finding.message)} [{finding.code}]")
    click.echo(f"    {one_line(finding.remedy)}")

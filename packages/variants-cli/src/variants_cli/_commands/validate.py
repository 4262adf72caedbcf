"""`variants validate`: checks variant wheels and metadata."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.preferences import Sources
from variants_index.finder import Session
from variants_index.http import PackageIndexError

from .._checks.directory import check_directory
from .._checks.document import check_index_metadata, check_pyproject
from .._checks.finding import report
from .._checks.live_index import check_live
from .._checks.release_checks import check_wheel
from .._publishing.stored_index import is_published
from .arguments import json_option, path_or_url
from .index_options import progress

if TYPE_CHECKING:
    from variants_catalog.catalogs import Finding


@click.command(short_help="Check wheels, metadata, directories and live indexes.")
@click.argument("files", metavar="FILE...", type=path_or_url, nargs=-1, required=True)
@click.option(
    "--every-wheel",
    is_flag=True,
    help="Check all variant wheels of a live index, not only one of each label.",
)
@json_option
@click.pass_context
def validate(
    context: click.Context,
    files: tuple[Path | str, ...],
    every_wheel: bool,
    as_json: bool,
) -> None:
    """Check wheels, metadata, directories of both, and live indexes.

    A FILE is a wheel, a *-variants.json or variant.json, a pyproject.toml, a directory, whose
    wheels and metadata must also fit each other, or the URL of a project's page on an index.
    Every finding names a remedy. Exits with 1 if there are errors; warnings alone are none.
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
    context.exit(report(findings, checked, noun="file", as_json=as_json))


def _check_url(url: str, *, every_wheel: bool) -> tuple[int, list[Finding]]:
    try:
        with Session(Sources.from_environ(os.environ)) as session, progress() as show:
            return check_live(url, session, every_wheel=every_wheel, progress=show)
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None


def _check(path: Path) -> tuple[int, list[Finding]]:
    # Each kind of file needs what the others do not.
    if path.is_dir():
        if is_published(path):
            raise click.ClickException(
                f"{path} was published with variants publish --to, and has files for clients of "
                "older pages: validate the URLs of the pages that it is served at"
            )
        return check_directory(path)
    if path.suffix == ".whl":
        return 1, check_wheel(path).findings
    return 1, check_pyproject(path) if path.suffix == ".toml" else check_index_metadata(path)[1]

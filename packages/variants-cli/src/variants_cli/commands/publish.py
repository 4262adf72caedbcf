"""`variants publish`: uploads a release in a safe order."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from pep_variants.errors import redacted

from ..checks.directory import check_directory
from ..checks.finding import ERROR
from ..console import counted, fail, one_line
from ..publishing.steps import Kind, Step, steps_of
from ..publishing.tools import (
    TOOLS,
    credentials_of,
    find_tool,
    run_tool,
    upload_command,
    upload_metadata,
)


@click.command(
    short_help="Upload wheels and metadata.", context_settings={"ignore_unknown_options": True}
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("tool_arguments", metavar="[-- ARGUMENTS OF TWINE OR UV]", nargs=-1)
@click.option(
    "--repository-url",
    "url",
    required=True,
    envvar=["TWINE_REPOSITORY_URL", "UV_PUBLISH_URL"],
    metavar="URL",
    help="Upload URL of the index; also TWINE_REPOSITORY_URL or UV_PUBLISH_URL.",
)
@click.option(
    "--tool", type=click.Choice(TOOLS), help="Upload tool. Default: the one that is installed."
)
@click.option(
    "--without-metadata",
    is_flag=True,
    help="Do not upload *-variants.json: the index creates it, or installers read the wheels.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the uploads in their order, without uploading."
)
def publish(
    directory: Path,
    tool_arguments: tuple[str, ...],
    url: str,
    tool: str | None,
    without_metadata: bool,
    dry_run: bool,
) -> None:
    """Upload the wheels, source distributions and metadata in a directory to an index.

    First the variant wheels, which installers ignore without metadata, then that, then the null
    variants, the non-variant wheels and the source distributions. So installers that read
    the index meanwhile do not find the version, or find the file that they will choose in the end.
    The directory is validated first. twine or uv publish upload the files, with their own
    configuration and credentials; arguments after -- are passed to them.

    Example: variants publish dist --repository-url https://index.example/legacy/ -- --skip-existing
    """
    _refuse_faults(directory)
    files = [path for path in directory.rglob("*") if path.is_file()]
    steps = [
        step for step in steps_of(files) if not (without_metadata and step.kind is Kind.METADATA)
    ]
    if not steps:
        raise click.ClickException(f"{directory}: no distributions to publish")
    if dry_run:
        for step in steps:
            click.echo(f"{step.kind.value}:")
            for path in step.files:
                click.echo(f"  {path}")
        return
    command = find_tool(tool, os.environ)
    credentials = credentials_of(url, os.environ)
    for number, step in enumerate(steps, 1):
        click.echo(f"[{number}/{len(steps)}] {_described(step)} to {redacted(url)}")
        sys.stdout.flush()  # before what the tool prints
        if step.kind is Kind.METADATA:
            for path in step.files:
                upload_metadata(path, url, credentials)
        else:
            run_tool(upload_command(command, url, step.files, tool_arguments), os.environ)


def _described(step: Step) -> str:
    return f"{step.kind.value}: {counted(len(step.files), 'file')}"


def _refuse_faults(directory: Path) -> None:
    errors = [finding for finding in check_directory(directory)[1] if finding.severity == ERROR]
    for finding in errors[:10]:
        fail(one_line(f"{finding.file}: {finding.message} [{finding.code}]"))
    if errors:
        raise click.ClickException(
            f"{counted(len(errors), 'error')}: nothing was uploaded; see variants validate "
            f"{directory}"
        )

"""`variants index`: makes a package index of static files from a directory of distributions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.utils import canonicalize_name

from ..console import counted, fail, note, print_json
from ..indexing.update import STATUSES
from .arguments import jobs_option, json_option

if TYPE_CHECKING:
    from ..indexing.static_index import WrittenIndex


def yank_reasons(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return the reasons of ``--yank FILE[=REASON]`` by filename or pattern."""
    return {name: reason for name, _, reason in (value.partition("=") for value in values)}


def _statuses(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    for value in values:
        name, _, said = value.partition("=")
        status, _, reason = said.partition(":")
        if not name or status not in STATUSES:
            raise click.BadParameter(
                f"{value!r} is not PROJECT=STATUS, with one of {', '.join(STATUSES)}"
            )
        found[canonicalize_name(name)] = (status, reason or None)
    return found


@click.command(short_help="Turn a directory of wheels into a package index.")
@click.argument(
    "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output directory of the pages. Default: 'simple' in the directory.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="URL at which the directory will be served. Default: relative links.",
)
@click.option("--fresh", is_flag=True, help="Read all files again, including unchanged ones.")
@click.option(
    "--yank",
    metavar="FILE[=REASON]",
    multiple=True,
    callback=yank_reasons,
    help="Mark files as yanked (PEP 592): a filename or a pattern; repeatable. Later runs keep it.",
)
@click.option(
    "--unyank", metavar="FILE", multiple=True, help="Mark files as not yanked; repeatable."
)
@click.option(
    "--status",
    "statuses",
    metavar="PROJECT=STATUS[:REASON]",
    multiple=True,
    callback=_statuses,
    help=f"Set the status of a project (PEP 792): {', '.join(STATUSES)}. Later runs keep it.",
)
@jobs_option
@json_option
def index(
    directory: Path,
    output: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Turn a directory of wheels into a package index.

    Writes {name}-{version}-variants.json for every version with variant wheels and a .metadata
    file beside every wheel; and pages for any static file server: HTML (index.html) and JSON
    (index.v1_json), one per project and one that lists them. Source distributions are listed,
    too. Files that do not change are not touched, and distributions that did not change since
    the last run are not read again. If the wheels contradict each other, nothing is written.

    Example: variants index dist && python -m http.server --directory dist
    """
    from ..indexing.static_index import DirectoryProblems, IndexSettings, write_index
    from ..publishing.storage import is_published

    if is_published(directory):
        raise click.ClickException(
            f"{directory} was published with variants publish --to, which keeps its pages: change "
            f"them with variants storage {directory}"
        )
    output = output or directory / "simple"
    try:
        written = write_index(directory, output, IndexSettings(**options))
    except DirectoryProblems as error:
        for problem in error.problems[:-1]:
            fail(problem)
        raise click.ClickException(error.problems[-1]) from None
    for path in written.strays:
        note(
            f"{path}: no wheel here has its variants, so it is not listed: delete it, or add its "
            "wheels"
        )
    if as_json:
        print_json(_tree(output, written))
        return
    click.echo(
        f"{output}: {counted(written.projects, 'project')}, {counted(written.wheels, 'wheel')}, "
        + (f"{counted(written.sdists, 'source distribution')}, " if written.sdists else "")
        + f"{counted(written.releases, 'version')} with variants; "
        f"{counted(len(written.changed), 'file')} changed"
    )


def _tree(output: Path, written: WrittenIndex) -> dict[str, Any]:
    return {
        "output": str(output),
        "projects": written.projects,
        "wheels": written.wheels,
        "source-distributions": written.sdists,
        "versions-with-variants": written.releases,
        "changed": [str(path) for path in written.changed if path.exists()],
        "removed": [str(path) for path in written.changed if not path.exists()],
    }

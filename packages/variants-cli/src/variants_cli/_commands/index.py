"""`variants index`: makes a package index of static files from a directory of distributions."""

from __future__ import annotations

from pathlib import Path

import click

from .._console import counted, fail, print_json
from .._indexing.static_index import DirectoryProblems, write_index
from .._publishing.stored_index import is_published
from .arguments import json_option


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
@json_option
def index(
    directory: Path,
    output: Path | None,
    base_url: str | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Turn a directory of wheels into a package index.

    Writes {name}-{version}-variants.json for every version with variant wheels and a .metadata
    file beside every wheel; and pages for any static file server: HTML (index.html) and JSON
    (index.v1_json), one per project and one that lists them. Source distributions are listed,
    too. Files that do not change are not touched, and distributions that did not change since
    the last run are not hashed again. If the wheels contradict each other, nothing is written.

    Example: variants index dist && python -m http.server --directory dist
    """
    if is_published(directory):
        raise click.ClickException(
            f"{directory} was published with variants publish --to, which keeps its pages: change "
            f"them with variants storage {directory}"
        )
    output = output or directory / "simple"
    try:
        written = write_index(directory, output, base_url=base_url, fresh=fresh)
    except DirectoryProblems as error:
        for problem in error.problems[:-1]:
            fail(problem)
        raise click.ClickException(error.problems[-1]) from None
    if as_json:
        tree = {
            "output": str(output),
            "projects": written.projects,
            "wheels": written.wheels,
            "source-distributions": written.sdists,
            "versions-with-variants": written.releases,
            "changed": [str(path) for path in written.changed if path.exists()],
            "removed": [str(path) for path in written.changed if not path.exists()],
        }
        print_json(tree)
        return
    click.echo(
        f"{output}: {counted(written.projects, 'project')}, {counted(written.wheels, 'wheel')}, "
        + (f"{counted(written.sdists, 'source distribution')}, " if written.sdists else "")
        + f"{counted(written.releases, 'version')} with variants; "
        f"{counted(len(written.changed), 'file')} changed"
    )

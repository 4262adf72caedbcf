"""`variants index`: makes a package index of static files from a directory of distributions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.utils import canonicalize_name

from pep_variants.files import write_if_changed
from variants_index.pages import (
    html_projects,
    json_page,
    json_projects,
)

from ..console import counted, fail, note, print_json
from ..indexing.page_state import STATUSES
from ..indexing.wheelhouse import sdist_name
from .arguments import PathOrURL, jobs_option, json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..indexing.directory_index import WrittenIndex

_OF_DIRECTORIES = {
    "base_url": "--base-url",
    "yank": "--yank",
    "unyank": "--unyank",
    "statuses": "--status",
}


def _yanked(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    return {name: reason for name, _, reason in (value.partition("=") for value in values)}


def _statuses(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    for value in values:
        name, _, said = value.partition("=")
        status, _, reason = said.partition(":")
        if not name or status not in STATUSES:
            raise click.BadParameter(
                f"{value!r} is not PROJECT=STATUS, with one of {', '.join(STATUSES)}",
                context,
                parameter,
            )
        found[canonicalize_name(name)] = (status, reason or None)
    return found


@click.command(short_help="Turn a directory of wheels into a package index.")
@click.argument("place", metavar="DIR|URL", type=PathOrURL(file_okay=False))
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
@click.option(
    "--core-metadata/--no-core-metadata",
    default=True,
    show_default=True,
    help="Write every wheel's METADATA to a separate file (PEP 658).",
)
@click.option(
    "--plain-pages",
    is_flag=True,
    help="Write HTML pages with links alone, without what people read.",
)
@click.option("--fresh", is_flag=True, help="Read all files again, including unchanged ones.")
@click.option(
    "--yank",
    metavar="FILE[=REASON]",
    multiple=True,
    callback=_yanked,
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
    place: Path | str,
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

    Of the URL of a project's page on another index, writes a page that lists the files where they
    are, and beside it the metadata that is read from them: for indexes that do not take any. Only
    wheels that were not on the page before are read.

    Example: variants index dist && python -m http.server --directory dist
    """
    if not isinstance(place, Path):
        if output is None:
            raise click.UsageError("a URL needs -o DIR for the output")
        for name, option in _OF_DIRECTORIES.items():
            if options[name]:
                raise click.UsageError(f"{option} is for a directory: a URL lists what it lists")
        plain, fresh = options["plain_pages"], options["fresh"]
        _index_url(place, output, plain_pages=plain, fresh=fresh, as_json=as_json)
        return
    from ..indexing.directory_index import IndexSettings, write_index
    from ..indexing.directory_state import DirectoryProblems
    from ..publishing.attestations import provenances
    from ..publishing.storage_layout import is_published

    if is_published(place):
        raise click.ClickException(
            f"{place} was published with variants publish --to, which keeps its pages: change "
            f"them with variants storage {place}"
        )
    output = output or place / "simple"
    try:
        written = write_index(place, output, IndexSettings(**options, provenances=provenances))
    except DirectoryProblems as error:
        for problem in error.problems[:-1]:
            fail(problem)
        raise click.ClickException(error.problems[-1]) from None
    for text in written.notes:
        note(text)
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
        **_changes(written.changed),
    }


def _index_url(url: str, output: Path, *, plain_pages: bool, fresh: bool, as_json: bool) -> None:
    from pep_variants.sources import Sources
    from variants_index.errors import PackageIndexError
    from variants_index.http.session import Session

    from ..indexing.overlay import project_of, read_overlay, written_overlay
    from ..indexing.static_index import HTML_PAGE, JSON_PAGE, page_html, read_own_page
    from .index_options import progress

    project = project_of(url)
    folder = output / project
    page = None if fresh else read_own_page(folder, project)
    before = None if page is None else written_overlay(folder, page)
    session = Session(Sources.from_environ(os.environ))
    try:
        with progress() as show:
            overlay = read_overlay(url, session, show, before)
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        session.close()
    page = overlay.page
    written = [
        *((folder / name, data) for name, data in overlay.documents.items()),
        (folder / JSON_PAGE, json_page(page)),
        (folder / HTML_PAGE, page_html(page, overlay.documents, plain=plain_pages)),
    ]
    changed = [path for path, data in written if write_if_changed(path, data)]
    names = sorted({path.parent.name for path in output.glob(f"*/{HTML_PAGE}")})
    for path, data in (
        (output / JSON_PAGE, json_projects(names)),
        (output / HTML_PAGE, html_projects(names)),
    ):
        if write_if_changed(path, data):
            changed.append(path)
    if before is not None:
        for name in before.documents.keys() - overlay.documents.keys():
            (folder / name).unlink()
            changed.append(folder / name)
    if as_json:
        print_json(
            {
                "output": str(folder),
                "projects": 1,
                "wheels": overlay.wheels,
                "source-distributions": sum(
                    sdist_name(file.filename) is not None for file in page.files
                ),
                "versions-with-variants": len(overlay.documents),
                **_changes(changed),
            }
        )
        return
    click.echo(
        f"{folder}: {counted(overlay.wheels, 'wheel')}, "
        f"{counted(len(overlay.documents), 'version')} with variants; "
        f"{counted(len(changed), 'file')} changed"
    )


def _changes(paths: Sequence[Path]) -> dict[str, list[str]]:
    return {
        "changed": [str(path) for path in paths if path.exists()],
        "removed": [str(path) for path in paths if not path.exists()],
    }

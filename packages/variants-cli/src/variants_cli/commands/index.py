"""`variants index`: makes a package index of static files from a directory of distributions."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from pep_variants.errors import VariantError
from pep_variants.files import write_if_changed
from variants_index.pages import (
    html_page,
    html_projects,
    json_page,
    json_projects,
)

from ..console import counted, fail
from ..indexing.inventory import FILENAME, Inventory
from ..indexing.static_index import HTML_PAGE, JSON_PAGE, IndexWriter, group_releases, metadata_path
from ..indexing.wheelhouse import Distribution, find_distributions, read_distribution
from .arguments import PathOrURL


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
@click.option("--fresh", is_flag=True, help="Read all files again, including unchanged ones.")
def index(
    place: Path | str,
    output: Path | None,
    base_url: str | None,
    core_metadata: bool,
    fresh: bool,
) -> None:
    """Turn a directory of wheels into a package index.

    Writes {name}-{version}-variants.json for every version with variant wheels and a .metadata
    file beside every wheel; and pages for any static file server: HTML (index.html) and JSON
    (index.v1_json), one per project and one that lists them. Source distributions are listed,
    too. Files that do not change are not touched, and distributions that did not change since
    the last run are not read again. If the wheels contradict each other, nothing is written.

    Of the URL of a project's page on another index, writes a page that lists the files where they
    are, and beside it the metadata that is read from them: for indexes that do not take any.

    Example: variants index dist && python -m http.server --directory dist
    """
    if not isinstance(place, Path):
        if output is None:
            raise click.UsageError("a URL needs -o DIR for the output")
        _index_url(place, output)
        return
    directory = place
    output = output or directory / "simple"
    inventory = Inventory(output / FILENAME, directory)
    distributions, read, problems = _read(
        directory, output, None if fresh else inventory, core_metadata=core_metadata
    )
    releases, contradictions = group_releases(distributions)
    problems += contradictions
    if problems:
        for problem in problems[:-1]:
            fail(problem)
        raise click.ClickException(problems[-1])
    writer = IndexWriter(directory, output, base_url, core_metadata=core_metadata)
    changed = writer.write(releases)
    if read or not (output / FILENAME).exists():
        inventory.write(distributions)
    wheels = sum(item.is_wheel for item in distributions)
    sdists = len(distributions) - wheels
    click.echo(
        f"{output}: {counted(len({release.project for release in releases}), 'project')}, "
        f"{counted(wheels, 'wheel')}, "
        + (f"{counted(sdists, 'source distribution')}, " if sdists else "")
        + f"{counted(sum(release.variants_json is not None for release in releases), 'version')} "
        f"with variants; {counted(changed, 'file')} changed"
    )


def _index_url(url: str, output: Path) -> None:
    from pep_variants.sources import Sources
    from variants_index.errors import PackageIndexError
    from variants_index.http.session import Session

    from ..indexing.overlay import read_overlay
    from .index_options import progress

    session = Session(Sources.from_environ(os.environ))
    try:
        with progress() as show:
            overlay = read_overlay(url, session, show)
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None
    finally:
        session.close()
    page = overlay.page
    folder = output / page.project
    changed = sum(
        write_if_changed(folder / name, data)
        for name, data in (
            *overlay.documents.items(),
            (JSON_PAGE, json_page(page)),
            (HTML_PAGE, html_page(page)),
        )
    )
    names = sorted({path.parent.name for path in output.glob(f"*/{HTML_PAGE}")})
    changed += write_if_changed(output / JSON_PAGE, json_projects(names))
    changed += write_if_changed(output / HTML_PAGE, html_projects(names))
    click.echo(
        f"{folder}: {counted(overlay.wheels, 'wheel')}, "
        f"{counted(len(overlay.documents), 'version')} with variants; "
        f"{counted(changed, 'file')} changed"
    )


def _read(
    directory: Path, output: Path, inventory: Inventory | None, *, core_metadata: bool
) -> tuple[list[Distribution], int, list[str]]:
    """Return the distributions in *directory*, how many were read from disk, and error messages."""
    paths = find_distributions(directory, leave_out=output)
    if not paths:
        raise click.ClickException(f"{directory}: no wheels found")
    found: dict[str, Distribution] = {}
    problems = []
    read = 0
    progress = (
        click.progressbar(paths, label="Reading wheels", file=sys.stderr)
        if sys.stderr.isatty()
        else nullcontext(paths)
    )
    with progress as steps:
        for path in steps:
            try:
                if path.name in found:
                    raise click.ClickException(
                        f"{found[path.name].path} and {path} have the same name"
                    )
                beside = metadata_path(path) if core_metadata else None
                item = inventory.find(path, beside) if inventory else None
                if item is None:
                    item = read_distribution(path)
                    read += 1
                found[path.name] = item
            except (VariantError, click.ClickException) as error:
                problems.append(str(error))
    return list(found.values()), read, problems

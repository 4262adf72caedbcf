"""`variants storage`: shows and changes what is published on storage."""

from __future__ import annotations

from typing import Any

import click
from packaging.utils import canonicalize_name

from .._console import counted, note, print_json, print_table
from .._publishing.stored_index import StoredIndex
from .._publishing.stores import DirectoryStore, open_store
from .arguments import json_option


def _reasons(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return the reasons of ``--yank FILE[=REASON]`` by filename or pattern."""
    return {name: reason for name, _, reason in (value.partition("=") for value in values)}


@click.command(short_help="Show and change what is published on storage.")
@click.argument("place")
@click.argument("project", required=False)
@click.option(
    "--yank", metavar="FILE[=REASON]", multiple=True, callback=_reasons,
    help="Mark files as yanked (PEP 592): a filename or a pattern; repeatable.",
)  # fmt: skip
@click.option("--unyank", metavar="FILE", multiple=True, help="Do not yank it any more.")
@click.option("--remove", metavar="FILE", multiple=True, help="Take this file off the page.")
@json_option
def storage(
    place: str,
    project: str | None,
    as_json: bool,
    **patterns: Any,  # noqa: ANN401 - of `StoredIndex.change_project`
) -> None:
    """Show and change what variants publish --to PLACE has published.

    Lists the projects, or the files of PROJECT. FILE is a filename or a pattern such as
    'demo-1.0-*-cu128.whl'. Where the last wheel of a variant is removed, it leaves the metadata as
    well. Files are taken off the page, and stay where they are: clients that have read the page
    before still find them. Delete them with the tools of the storage.

    Example: variants storage s3://wheels.example.org demo --yank 'demo-1.0-*=broken'
    """
    store = open_store(place)
    index = StoredIndex(store)
    has_change = any(patterns.values())
    if project is None and has_change:
        raise click.UsageError("which project? variants storage PLACE PROJECT ...")
    if project is not None:
        project = canonicalize_name(project)
        if has_change:
            update = index.change_project(project, **patterns)
            if not as_json:
                click.echo(f"{project}: {counted(len(update.changed), 'file')} changed")
    if project is None:
        _show_projects(index, as_json=as_json)
        for path, size in store.left() if isinstance(store, DirectoryStore) else ():
            note(
                f"{path}: {size:,} bytes of a publisher that writes now, or was ended; variants "
                "publish removes them when they are a day old"
            )
    elif as_json or not has_change:
        _show_files(index, project, as_json=as_json)


def _show_projects(index: StoredIndex, *, as_json: bool) -> None:
    pages = [page for project in index.projects() if (page := index.page(project)) is not None]
    if as_json:
        print_json([{"name": page.project, "files": len(page.files)} for page in pages])
        return
    rows = []
    for page in pages:
        size = sum(file.size or 0 for file in page.files)
        rows.append((page.project, f"{len(page.files)}", f"{size:,}", page.status))
    print_table(("project", "files", "bytes", "status"), rows)


def _show_files(index: StoredIndex, project: str, *, as_json: bool) -> None:
    page = index.page(project)
    if page is None:
        raise click.ClickException(f"{index.place}: there is no project {project}")
    if as_json:
        files = [
            {
                "filename": file.filename,
                "sha256": file.hashes.get("sha256"),
                "size": file.size,
                "upload-time": file.upload_time,
                "yanked": file.yanked,
            }
            for file in page.files
        ]
        print_json({"name": project, "status": page.status, "files": files})
        return
    rows = []
    for file in page.files:
        size = "" if file.size is None else f"{file.size:,}"
        yanked = "" if file.yanked is None else f"yanked {file.yanked}".rstrip()
        rows.append((file.filename, size, (file.upload_time or "")[:10], yanked))
    print_table(("file", "bytes", "uploaded", "yanked"), rows)

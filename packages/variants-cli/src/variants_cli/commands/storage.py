"""`variants storage`: shows and changes what is published on storage."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import click

from ..console import counted, print_json, print_table
from ..indexing.update import STATUSES
from .arguments import json_option

if TYPE_CHECKING:
    from ..publishing.storage import StoredIndex


@click.command(short_help="Show and change what is published on storage.")
@click.argument("place")
@click.argument("project", required=False)
@click.option("--yank", metavar="FILE", multiple=True, help="Yank this file (PEP 592); repeatable.")
@click.option("--unyank", metavar="FILE", multiple=True, help="Do not yank it any more.")
@click.option("--remove", metavar="FILE", multiple=True, help="Take this file off the page.")
@click.option("--status", type=click.Choice(STATUSES), help="Status of the project (PEP 792).")
@click.option("--reason", default="", help="Why, of --yank and --status.")
@click.option("--prune", is_flag=True, help="Remove objects that no page lists.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="With --prune: keep younger ones, which a publisher may be about to list.",
)
@json_option
def storage(
    place: str,
    project: str | None,
    yank: tuple[str, ...],
    unyank: tuple[str, ...],
    remove: tuple[str, ...],
    status: str | None,
    reason: str,
    prune: bool,
    older_than: float,
    as_json: bool,
) -> None:
    """Show and change what variants publish --to PLACE has published.

    Lists the projects, or the files of PROJECT. FILE is a filename or a pattern such as
    'demo-1.0-*-cu128.whl'. Where the last wheel of a variant is removed, it leaves the metadata as
    well. Files are taken off the page at once, and deleted by --prune: clients that have read the
    page before still find them.

    Example: variants storage s3://wheels.example.org demo --yank 'demo-1.0-*' --reason broken
    """
    from packaging.utils import canonicalize_name

    from ..publishing.maintenance import Wanted, change_project
    from ..publishing.storage import StoredIndex
    from ..publishing.stores import open_store

    index = StoredIndex(open_store(place))
    has_change = bool(yank or unyank or remove or status)
    if reason and not (yank or status):
        raise click.UsageError("--reason is of --yank or --status")
    if project is None and has_change:
        raise click.UsageError("which project? variants storage PLACE PROJECT ...")
    if project is not None:
        project = canonicalize_name(project)
        if has_change:
            wanted = Wanted(yank, unyank, remove, status, reason)
            update = change_project(index, project, wanted)
            if not as_json:
                click.echo(f"{project}: {counted(len(update.changed), 'file')} changed")
    if prune:
        _prune(index, timedelta(hours=older_than), as_json=as_json)
    elif project is None:
        _show_projects(index, as_json=as_json)
    elif as_json or not has_change:
        _show_files(index, project, as_json=as_json)


def _prune(index: StoredIndex, kept: timedelta, *, as_json: bool) -> None:
    from ..publishing.maintenance import unlisted

    found = unlisted(index, datetime.now(timezone.utc), kept)
    index.store.delete(entry.path for entry in found.old)
    if as_json:
        print_json(
            {
                "removed": [{"path": entry.path, "size": entry.size} for entry in found.old],
                "kept": [{"path": entry.path, "size": entry.size} for entry in found.young],
            }
        )
        return
    size = sum(entry.size for entry in found.old)
    click.echo(
        f"{index.store.name}: {counted(len(found.old), 'object')} removed, {size:,} bytes; "
        f"{counted(len(found.young), 'object')} that no page lists kept, as too young"
    )


def _show_projects(index: StoredIndex, *, as_json: bool) -> None:
    pages = {project: index.read(project).page for project in index.projects()}
    found = [(project, page) for project, page in pages.items() if page is not None]
    if as_json:
        print_json([{"name": name, "files": len(page.files)} for name, page in found])
        return
    rows = []
    for name, page in found:
        size = sum(file.size or 0 for file in page.files)
        rows.append((name, f"{len(page.files)}", f"{size:,}", page.status))
    print_table(("project", "files", "bytes", "status"), rows)


def _show_files(index: StoredIndex, project: str, *, as_json: bool) -> None:
    page = index.read(project).page
    if page is None:
        raise click.ClickException(f"{index.store.name}: there is no project {project}")
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
    if as_json:
        print_json({"name": project, "status": page.status, "files": files})
        return
    rows = []
    for file in page.files:
        size = "" if file.size is None else f"{file.size:,}"
        yanked = "" if file.yanked is None else f"yanked {file.yanked}".rstrip()
        rows.append((file.filename, size, (file.upload_time or "")[:10], yanked))
    print_table(("file", "bytes", "uploaded", "yanked"), rows)

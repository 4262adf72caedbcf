"""Changes of what is published on storage: yanked and removed files, what no page lists."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pep_variants.errors import shortened
from pep_variants.model.filename import metadata_filename

from ..indexing.static_index import JSON_PAGE
from ..indexing.update import UpdateError, marked, matching, release_of, updated
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX
from .errors import PublishError
from .storage import FILES, PAGES, PROBES, StoredIndex, is_file_path, page_path, path_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from variants_index.pages import Page

    from ..indexing.update import Update
    from .stores import Entry

KEPT = timedelta(hours=24)
"""How long files that no page lists are kept: a publisher may be about to list them."""

HELD = timedelta(hours=1)
"""How long clients and caches may go on with the page before the last one."""

_TEMPORARY = re.compile(r"(?:.*/)?\.[^/]+\.[0-9a-f]{12}\.tmp")


def change_project(
    index: StoredIndex,
    project: str,
    *,
    yank: Mapping[str, str],
    unyank: Sequence[str] = (),
    remove: Sequence[str] = (),
    status: tuple[str, str | None] | None = None,
) -> Update:
    """Make the changes; labels whose last wheel is removed leave the metadata.

    Args:
        index: with the project.
        project: normalized name.
        yank: the reason, which may be empty, by filename or shell-style pattern (PEP 592).
        unyank: filenames and patterns of files that are not yanked any more.
        remove: filenames and patterns of files to take away.
        status: of the project (PEP 792), with its reason; None for what it has.

    Raises:
        PublishError: the project, or a file, is not there; nothing was changed.
    """
    before, _ = index.read(project)
    if before is None:
        raise PublishError(f"{index.store.name}: there is no project {shortened(project)}")
    removed = {name for pattern in remove for name in matching(before, pattern)}
    releases = [found[0] for name in removed if (found := release_of(name)) is not None]

    def change(page: Page | None, known: Mapping[str, bytes]) -> Update:
        if page is None:
            raise UpdateError(f"{index.store.name}: the project {project} was removed meanwhile")
        now = datetime.now(timezone.utc)
        update = updated(page, known, [], url_of=index.url_of(project), now=now, removed=removed)
        files = {file.filename: file for file in update.page.files}
        after = marked(update.page, [*yank.items(), *((name, None) for name in unyank)], status)
        changed = {file.filename for file in after.files if files[file.filename] != file}
        return replace(update, page=after, changed=update.changed | changed)

    return index.change(project, {metadata_filename(*release) for release in releases}, change)


def unlisted(index: StoredIndex, now: datetime) -> tuple[list[Entry], list[Entry]]:
    """Return what publishers wrote and no page lists: replaced metadata, removed files, leftovers.

    Only what has a name that publishers give is among it. The first list may be removed, the
    second is too young for that.
    """
    entries = {
        entry.path: entry
        for folder in (FILES, PROBES, PAGES)
        for entry in index.store.entries(folder)
    }
    listed: dict[str, set[str]] = {}
    old: list[Entry] = []
    young: list[Entry] = []
    for path, entry in entries.items():
        is_held = False
        if is_file_path(path) and not _TEMPORARY.fullmatch(path):
            project = path.split("/")[1]
            if project not in listed:
                # After the listing: what a publisher lists meanwhile is not taken for unlisted.
                listed[project] = _paths(index.read(project)[0])
            if path in listed[project]:
                continue
            page = entries.get(page_path(project, JSON_PAGE))
            is_held = page is not None and now - page.modified < HELD
        elif not _TEMPORARY.fullmatch(path) and not path.startswith(f"{PROBES}/"):
            continue
        (old if now - entry.modified > KEPT and not is_held else young).append(entry)
    return old, young


def _paths(page: Page | None) -> set[str]:
    paths: set[str] = set()
    for file in page.files if page is not None else ():
        path = path_at(file.url)
        if path is not None:
            paths |= {path, path + CORE_METADATA_SUFFIX}
        if file.provenance is not None and (path := path_at(file.provenance)) is not None:
            paths.add(path)
    return paths

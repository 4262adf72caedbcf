"""Changes of what is published on storage: yanked and removed files, what no page lists."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pep_variants.errors import shortened
from pep_variants.model.filename import metadata_filename
from pep_variants.model.label import METADATA_SUFFIX

from ..indexing.static_index import JSON_PAGE
from ..indexing.update import UpdateError, marked, matching, release_of, updated
from ..indexing.wheelhouse import CORE_METADATA_SUFFIX
from .errors import PublishError
from .storage import FILES, PAGES, PROBES, StoredIndex, is_file_path, page_path, path_at
from .stores import DirectoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from variants_index.pages import Page

    from ..indexing.update import Update
    from .stores import Entry

KEPT = timedelta(hours=24)
"""How long files that no page lists are kept: a publisher may be about to list them."""

HELD = timedelta(hours=1)
"""How long clients and caches may go on with the page before the last one."""

_TEMPORARY = re.compile(r"(?:.*/)?\.[^/]+\.[0-9a-f]{12}\.tmp")


@dataclass(frozen=True)
class Wanted:
    """Changes of one project; patterns are filenames or shell-style patterns.

    Attributes:
        yank: patterns of files to yank (PEP 592).
        unyank: patterns of files that are not yanked any more.
        remove: patterns of files to take away.
        status: of the project (PEP 792), None for the one that it has.
        reason: of what is yanked, and of the status.
    """

    yank: tuple[str, ...] = ()
    unyank: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    status: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class Unlisted:
    """Objects that no page lists.

    Attributes:
        old: may be removed.
        young: too young for that.
    """

    old: tuple[Entry, ...]
    young: tuple[Entry, ...]


def change_project(index: StoredIndex, project: str, wanted: Wanted) -> Update:
    """Make the changes; labels whose last wheel is removed leave the metadata.

    Raises:
        PublishError: the project, or a file, is not there; nothing was changed.
    """
    before = index.read(project).page
    if before is None:
        raise PublishError(f"{index.store.name}: there is no project {shortened(project)}")
    removed = {name for pattern in wanted.remove for name in matching(before, pattern)}
    releases = [found[0] for name in removed if (found := release_of(name)) is not None]

    def change(page: Page | None, known: Mapping[str, bytes]) -> Update:
        if page is None:
            raise UpdateError(f"{index.store.name}: the project {project} was removed meanwhile")
        now = datetime.now(timezone.utc)
        update = updated(page, known, [], url_of=index.url_of(project), now=now, removed=removed)
        files = {file.filename: file for file in update.page.files}
        marks = {**dict.fromkeys(wanted.yank, wanted.reason), **dict.fromkeys(wanted.unyank)}
        status = (wanted.status, wanted.reason or None) if wanted.status else None
        after = marked(update.page, marks.items(), status)
        changed = {file.filename for file in after.files if files[file.filename] != file}
        return replace(update, page=after, changed=update.changed | changed)

    return index.change(project, {metadata_filename(*release) for release in releases}, change)


def unlisted(index: StoredIndex, now: datetime, kept: timedelta = KEPT) -> Unlisted:
    """Return what publishers wrote and no page lists: replaced metadata, removed files, leftovers.

    Only what has a name that publishers give is among it.
    """
    entries = [entry for folder in (FILES, PROBES, PAGES) for entry in index.store.entries(folder)]
    pages = {entry.path: entry for entry in entries}
    groups: dict[str, list[Entry]] = defaultdict(list)
    old: list[Entry] = []
    young: list[Entry] = []
    for entry in entries:
        is_temporary = _TEMPORARY.fullmatch(entry.path) is not None
        if is_file_path(entry.path) and not is_temporary:
            groups[entry.path.split("/")[1]].append(entry)
        elif is_temporary or entry.path.startswith(f"{PROBES}/"):
            (old if now - entry.modified > kept else young).append(entry)
    for project, group in sorted(groups.items()):
        # After the listing: what a publisher lists meanwhile is not taken for unlisted.
        listed = _paths(index.read(project).page)
        written = pages.get(page_path(project, JSON_PAGE))
        is_held = written is not None and now - written.modified < min(HELD, kept)
        for entry in group:
            if entry.path not in listed:
                is_old = now - entry.modified > kept and not is_held
                (old if is_old else young).append(entry)
    return Unlisted(tuple(old), tuple(young))


def left_over(directory: Path) -> frozenset[Path]:
    """Return the files of a published directory that only clients with an older page still need.

    Those are what no page lists (`unlisted`), and copies of what a page lists in its layout: the
    metadata before the last change, and files of the index that was there before. None for a
    directory that nothing was published to, or with a page that cannot be read.
    """
    if not (directory / FILES).is_dir() or not (directory / PAGES).is_dir():
        return frozenset()
    index = StoredIndex(DirectoryStore(directory))
    try:
        found = unlisted(index, datetime.now(timezone.utc))
        listed = {path for name in index.projects() for path in _paths(index.read(name).page)}
    except PublishError:
        return frozenset()
    left = {directory / entry.path for entry in (*found.old, *found.young)}
    copies = {directory / path.rpartition("/")[2] for path in listed if is_file_path(path)}
    kinds = (".whl", METADATA_SUFFIX)
    return frozenset(
        left | {path for path in copies if path.name.endswith(kinds) and path.is_file()}
    )


def _paths(page: Page | None) -> set[str]:
    paths: set[str] = set()
    for file in page.files if page is not None else ():
        path = path_at(file.url)
        if path is not None:
            paths |= {path, path + CORE_METADATA_SUFFIX}
        if file.provenance is not None and (path := path_at(file.provenance)) is not None:
            paths.add(path)
    return paths
